"""FraiLT: one stack of layers run several times, with a learned vector that tells it which pass it is in.

    hʳ⁺¹ = F(hʳ + E_r),   F = layer_n ∘ … ∘ layer_1   (Tabak 2024, eq. 2, with one vector for all layers of a pass)

Tabak gives every layer and pass a vector of its own.  The study's count allows one a pass (4 · 256 = 1,024).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rtx_core.errors import unknown
from rtx_core.models.cache import Cache
from rtx_core.models.control import Control, ControlConfig, Grid

PLACES = ("pass", "layer")


@dataclass(frozen=True)
class FraiLTConfig(ControlConfig):
    num_passes: int = 4
    encoding: str = "pass"  # added once, as each pass starts, like a position embedding; "layer": before every layer

    def __post_init__(self):
        super().__post_init__()
        if self.encoding not in PLACES:
            raise unknown("encoding", self.encoding, PLACES)


class FraiLT(Control):
    def __init__(self, config: FraiLTConfig):
        super().__init__(config)
        self.encoding = nn.Parameter(torch.empty(config.num_passes, config.hidden_size))
        nn.init.normal_(self.encoding, std=config.initializer_std)  # as the embedding it is added to

    def one_pass(self, h: Tensor, r: int, grid: Grid | Cache) -> Tensor:
        """Beyond the trained number of passes the last vector serves again."""
        vector = self.encoding[min(r, len(self.encoding) - 1)]
        for i, layer in enumerate(self.layers):
            h = layer(h + vector if i == 0 or self.config.encoding == "layer" else h, grid)
        return h

    def components(self) -> dict[str, int]:
        return super().components() | {"iteration encoding": self.encoding.numel()}
