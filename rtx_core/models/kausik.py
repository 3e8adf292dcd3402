"""Kausik's recurrent transformer (2025): a transformer layer T slid over the last states and the next token.

    h_1 = T([x_1])                                        (equation 1)
    (y_i, h_{i+1}) = T([h_i, x_{i+1}])                    (equation 2)
    y_N = T([h_N])                                        (equation 3)

T attends causally, so y_i never sees x_{i+1}: it is T([h_i]), and only the states are sequential.  A window of width w
holds w − 1 states and a token,

    h_{i+1} = last of T([h_{i−w+2}, …, h_i, x_{i+1}]),    y_i = last of T([h_{i−w+2}, …, h_i]),

shorter at the beginning; w = 2 is the paper's.  Each layer has a recurrence of its own, over the outputs of the layer
below.  Here the equations stand as they are; gradients flow through every step.  `rtx_core.fast.recurrence` is sooner.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from rtx_core.models.configs import KausikConfig
from rtx_core.models.gpt import GPT, DecoderState, GPTBlock


class Kausik(GPT):
    """The same embeddings, blocks and head as `GPT`; what differs is how a block is applied."""

    config: KausikConfig

    def trunk(self, x: Tensor) -> Tensor:  # (B, N, d) -> (B, N, d)
        x = x.transpose(0, 1)  # time first
        for layer in self.layers:
            _, x = recurrence(layer, x, self.config.window)
        return x.transpose(0, 1)

    def start(self, batch: int) -> DecoderState:
        """Of each layer its last window − 1 states, (≤ window − 1, B, d): all that is carried from token to token."""
        return DecoderState([self.word.weight.new_empty(0, batch, self.config.hidden_size) for _ in self.layers])

    @torch.inference_mode()
    def advance(self, ids: Tensor, state: DecoderState) -> Tensor:
        """Logits (B, V) after one more token each, ids (B,)."""
        x = self.embed(ids[:, None], state.length)[:, 0]
        for i, layer in enumerate(self.layers):
            h = last_of(layer, torch.cat([state.layers[i], x[None]]))
            state.layers[i] = torch.cat([state.layers[i], h[None]])[1 - self.config.window :]
            x = last_of(layer, state.layers[i])
        state.length += 1
        return self.head(x)


def last_of(layer: GPTBlock, window: Tensor) -> Tensor:
    """The last of T(window), (w, B, d) -> (B, d)."""
    q, k, v = layer.heads(window.transpose(0, 1))
    return layer.finish(window[-1], F.scaled_dot_product_attention(q[:, :, -1:], k, v).flatten(1))


def recurrence(layer: GPTBlock, x: Tensor, window: int = 2) -> tuple[Tensor, Tensor]:
    """Equations 1 to 3 as they stand, position by position: (states, outputs) of x (N, B, d)."""
    states, outputs = [], []
    for i in range(len(x)):
        inputs = [*states[max(0, i - window + 1) :], x[i]]
        out = layer(torch.stack(inputs, dim=1))
        if i:
            outputs.append(out[:, -2])
        states.append(out[:, -1])
    outputs.append(layer(torch.stack(states[1 - window :], dim=1))[:, -1])
    return torch.stack(states), torch.stack(outputs)
