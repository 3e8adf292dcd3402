"""Relaxed recursion: one stack of layers run several times, each pass with low-rank corrections of its own.

    y = (W + γ B_{l,r} A_{l,r}) x   for each of the seven matrices W of layer l in pass r   (Bae et al. 2024, eq. 4)

The product BA is added to W once a batch instead of sending every token through A and B: the same function for the
cost of W alone, since a batch holds far more tokens than a matrix has rows to correct.
"""

import torch
from torch import Tensor, nn

from rtx_core.models.configs import RelaxedConfig
from rtx_core.models.kv_cache import KVCache
from rtx_core.models.llama import Llama, LlamaBlock, Matrices, PaddedAttention

PARTS = (3, 1, 2, 1)  # how many of the seven matrices lie in a layer's qkv, out, gate_up, down


class LowRank(nn.Module):
    """The corrections of one layer in one pass: A (rank × in) and B (out × rank) for each of its seven matrices."""

    def __init__(self, layer: LlamaBlock, config: RelaxedConfig):
        super().__init__()
        self.scale, shapes = (
            config.lora_scale,
            [(n, w.shape[0] // n, w.shape[1]) for n, w in zip(PARTS, layer.matrices)],
        )
        self.down = nn.ParameterList(torch.empty(n, config.lora_rank, inner) for n, _, inner in shapes)  # A
        self.up = nn.ParameterList(torch.zeros(n, outer, config.lora_rank) for n, outer, _ in shapes)  # B
        # B = 0 and A uniform in ±1/√in, as in the public code of Hu et al. 2021: the model starts as if shared
        for a in self.down:
            nn.init.uniform_(a, -(a.shape[2] ** -0.5), a.shape[2] ** -0.5)

    def correct(self, matrices: Matrices) -> Matrices:
        """W + γ B A for every W."""
        corrected = (
            torch.baddbmm(w.view(n, -1, w.shape[1]), b, a, alpha=self.scale).view_as(w)
            for n, w, a, b in zip(PARTS, matrices, self.down, self.up)
        )
        return tuple(corrected)


class Relaxed(Llama):
    def __init__(self, config: RelaxedConfig):
        super().__init__(config)
        self.lora = nn.ModuleList(
            nn.ModuleList(LowRank(layer, config) for layer in self.layers) for _ in range(config.num_passes)
        )

    def one_pass(self, h: Tensor, r: int, grid: PaddedAttention | KVCache) -> Tensor:
        """Beyond the trained number of passes the last corrections serve again."""
        for layer, lora in zip(self.layers, self.lora[min(r, len(self.lora) - 1)]):
            h = layer(h, grid, lora.correct(layer.matrices))
        return h

    def components(self) -> dict[str, int]:
        return super().components() | {"low-rank corrections": sum(p.numel() for p in self.lora.parameters())}

    def per_pass(self) -> int:
        """With the tokens sent through A and B, as the study's implementation does it and as at a batch of one token."""
        return super().per_pass() + sum(p.numel() for p in self.lora[0].parameters())
