"""FraiLT: one stack of layers run several times, with a learned vector that tells it which pass it is in.

    hʳ⁺¹ = F(hʳ + E_r),   F = layer_n ∘ … ∘ layer_1   (Tabak 2024, eq. 2, with one vector for all layers of a pass)

Tabak gives every layer and pass a vector of its own.  The study's count allows one a pass (4 · 256 = 1,024).
"""

import torch
from torch import Tensor, nn

from rtx_core.models.configs import FraiLTConfig
from rtx_core.models.kv_cache import KVCache
from rtx_core.models.llama import Llama, PaddedAttention


class FraiLT(Llama):
    def __init__(self, config: FraiLTConfig):
        super().__init__(config)
        self.encoding = nn.Parameter(torch.empty(config.num_passes, config.hidden_size))
        nn.init.normal_(self.encoding, std=config.initializer_std)  # as the embedding it is added to

    def one_pass(self, h: Tensor, r: int, grid: PaddedAttention | KVCache) -> Tensor:
        """Beyond the trained number of passes the last vector serves again."""
        vector = self.encoding[min(r, len(self.encoding) - 1)]
        for i, layer in enumerate(self.layers):
            h = layer(h + vector if i == 0 or self.config.encoding == "layer" else h, grid)
        return h

    def components(self) -> dict[str, int]:
        return super().components() | {"iteration encoding": self.encoding.numel()}
