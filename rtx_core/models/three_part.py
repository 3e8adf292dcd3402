"""Three parts: a prelude reads, a core is run several times on a state and the prelude's output, a coda writes.

    e = prelude(E[ids]),   s⁰ ~ N(0, σ²),   sʳ⁺¹ = core(A [sʳ, e]),   logits = RMSNorm(coda(RMSNorm_s(sᴿ))) Eᵀ

(Geiping et al. 2025, §3.1–3.2).  As the study's count demands: plain pre-norm layers where Geiping et al. normalise after
each branch too, an adapter A of size d × 2d without bias, and a norm of its own after the recurrence.
"""

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.models.configs import ThreePartConfig
from rtx_core.models.kv_cache import KVCache
from rtx_core.models.layers import RMSNorm
from rtx_core.models.llama import Llama
from rtx_core.models.packed import Packed


class ThreePart(Llama):
    def __init__(self, config: ThreePartConfig):
        super().__init__(config)
        self.adapter = nn.Parameter(torch.empty(config.hidden_size, 2 * config.hidden_size))
        nn.init.normal_(self.adapter, std=config.initializer_std)
        self.state_norm = RMSNorm(config.hidden_size, config.norm_eps)

    @property
    def parts(self) -> tuple[nn.ModuleList, nn.ModuleList, nn.ModuleList]:
        """(prelude, core, coda)"""
        n = (self.config.num_layers - self.config.num_core_layers) // 2
        return self.layers[:n], self.layers[n:-n], self.layers[-n:]

    def states(self, batch: Packed | KVCache, passes: int | None = None) -> Iterator[Tensor]:
        prelude, core, _ = self.parts
        grid, e = self.grid(batch), self.word(batch.ids)
        for layer in prelude:
            e = layer(e, grid)
        s = self.initial_state(batch, e)
        for _ in range(passes or self.config.num_passes):
            s = F.linear(torch.cat((s, e), dim=-1), self.adapter).to(
                e.dtype
            )  # the stream keeps its precision under autocast
            for layer in core:
                s = layer(s, grid)
            yield s

    def initial_state(self, batch: Packed | KVCache, like: Tensor) -> Tensor:
        """Fresh noise in training.  Otherwise one fixed draw for each position, so that a text's loss depends on nothing else."""
        if self.training:
            return self.config.state_std * torch.randn_like(like)
        draw = np.random.RandomState(0).standard_normal(
            (batch.longest, like.shape[1])
        )  # a longer draw begins like a shorter one
        return self.config.state_std * torch.from_numpy(draw).to(like)[batch.positions]

    def read(self, state: Tensor, batch: Packed | KVCache) -> Tensor:
        h, grid = self.state_norm(state), self.grid(batch)
        for layer in self.parts[2]:
            h = layer(h, grid)
        return self.norm(h)

    def components(self) -> dict[str, int]:
        return super().components() | {"adapter": self.adapter.numel()}

    def multiplications(self, passes: int | None = None) -> int:
        once = sum(matrix.numel() for part in self.parts[::2] for layer in part for matrix in layer.matrices)
        return super().multiplications(passes) + once

    def per_pass(self) -> int:
        return self.adapter.numel() + sum(
            matrix.numel() for layer in self.parts[1] for matrix in layer.matrices
        )
