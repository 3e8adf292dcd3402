"""Kausik's recurrent transformer (2025): a transformer layer T slid over the last states and the next token.

    h_1 = T([x_1])                                        (equation 1)
    (y_i, h_{i+1}) = T([h_i, x_{i+1}])                    (equation 2)
    y_N = T([h_N])                                        (equation 3)

T attends causally, so y_i never sees x_{i+1}: it is T([h_i]), and only the states are sequential.  With several layers
each has a recurrence of its own, over the outputs of the layer below.  Here the equations stand as they are, position
by position; gradients flow through every step.  `rtx_core.fast.recurrence` computes the same sooner.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from rtx_core.models.configs import KausikConfig
from rtx_core.models.gpt import GPT, GPTBlock


class Kausik(GPT):
    """The same embeddings, blocks and head as `GPT`; what differs is how a block is applied."""

    config: KausikConfig

    def trunk(self, x: Tensor) -> Tensor:  # (B, N, d) -> (B, N, d)
        x = x.transpose(0, 1)  # time first
        for layer in self.layers:
            _, x = recurrence(layer, x)
        return x.transpose(0, 1)

    # -- one token at a time: O(1) each, however long the text --------------------------------------------------------

    def start(self, batch: int) -> "RecurrentState":
        return RecurrentState([None] * len(self.layers))

    @torch.inference_mode()
    def advance(self, ids: Tensor, state: "RecurrentState") -> Tensor:
        """Logits (B, V) after one more token each, ids (B,)."""
        x = self.embed(ids[:, None], state.length)[:, 0]
        for i, layer in enumerate(self.layers):
            before = state.layers[i]
            state.layers[i] = last_of(layer, x[None] if before is None else torch.stack((before, x)))
            x = last_of(layer, state.layers[i][None])
        state.length += 1
        return self.head(x)


@dataclass
class RecurrentState:
    """All that is carried from token to token: the last state of each layer, (B, d), None before the first token."""

    layers: list[Tensor | None]
    length: int = 0


def last_of(layer: GPTBlock, window: Tensor) -> Tensor:
    """The last of T(window), a window (1 or 2, B, d) -> (B, d)."""
    q, k, v = layer.heads(window.transpose(0, 1))
    return layer.finish(window[-1], F.scaled_dot_product_attention(q[:, :, -1:], k, v).flatten(1))


def recurrence(layer: GPTBlock, x: Tensor) -> tuple[Tensor, Tensor]:
    """Equations 1 to 3 as they stand, position by position: (states, outputs) of x (N, B, d)."""
    states, outputs = [], []
    for token in x:
        out = layer(torch.stack([*states[-1:], token], dim=1))
        if states:
            outputs.append(out[:, 0])
        states.append(out[:, -1])
    outputs.append(layer(states[-1][:, None])[:, -1])
    return torch.stack(states), torch.stack(outputs)
