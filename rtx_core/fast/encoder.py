"""How an `Encoder` trains fast on a CPU: fused blocks, masks by step, an embedding without unused rows."""

from types import MethodType

import torch
from torch import Tensor, nn

from rtx_core.fast import fused_block
from rtx_core.fast.dropout import DropoutMasks
from rtx_core.fast.pruned_embedding import PrunedEmbedding
from rtx_core.models.encoder import Encoder
from rtx_core.models.layers import EncoderBlock
from rtx_core.models.packed import Packed


def block(model: Encoder, layer: EncoderBlock, h: Tensor, batch: Packed, rope, rows: Tensor | None, dropout) -> Tensor:
    """`Encoder.block`, fused where the masks of a step are handed down on a CPU."""
    if not (isinstance(dropout, DropoutMasks) and fused_block.usable(h)):
        return layer(h, batch, rope, rows, dropout)
    parts = 3 if rows is None else 2
    kind = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else h.dtype
    made = batch.__dict__.setdefault("made", {})  # index tables and weights in the products' format, once a batch
    if parts not in made:
        made[parts] = fused_block.grid(batch, model.config.num_heads, parts, kind)
    if layer not in made:
        made[layer] = fused_block.cast(layer, kind)
    return fused_block.block(layer, h, rope, made[parts], rows, dropout, made[layer])


class EncoderPath:
    """The fast training path of one model; `finish` puts the model back as it was."""

    def __init__(self, model: Encoder, ids, device: torch.device):
        self.model, self.word, self.device = model, model.word, device
        self.words = model.word = PrunedEmbedding(model.word, ids)
        self.dense = [p for p in model.parameters() if p is not self.words.weight]
        model.block = MethodType(block, model)

    def begin(self, seed: int, step: int) -> None:
        """Before a step: its masks, on a CPU; a GPU draws its own."""
        self.model.step_dropout = DropoutMasks(seed, step) if self.device.type == "cpu" else None

    def update(self, model: Encoder, optimizer: torch.optim.Optimizer, clip_norm: float) -> None:
        """Clip, step, and leave no gradient.

        Clipping to a whole norm c scales the gradient by min(1, c / (norm + 10⁻⁶)).  The fused AdamW divides by
        `grad_scale` as it reads, so that no pass over the gradient is spent on it, and no host waits for the norm."""
        norm = nn.utils.get_total_norm([p.grad for p in (*self.dense, self.words.trained())], foreach=True)
        optimizer.grad_scale = ((norm + 1e-6) / clip_norm).clamp_(min=1.0).float()
        self.words.write_gradient()
        optimizer.step()
        self.words.clear_gradient()
        for parameter in self.dense:
            parameter.grad = None  # the next backward pass brings its own array: no zero-fill, no sum

    def whole(self, weights: dict[str, Tensor], decay: float) -> dict[str, Tensor]:
        """Weights of the whole model, given those that were trained; `decay` is Π (1 − rate · weight decay)
        over the steps."""
        return weights | {"word.weight": self.words.whole(weights["word.weight"], decay)}

    def finish(self) -> None:
        self.model.word = self.word
        del self.model.block
        self.model.step_dropout = None


def training_path(model: Encoder, task, device: torch.device) -> EncoderPath | None:
    ids = task.used_ids()
    return None if ids is None else EncoderPath(model, ids, device)
