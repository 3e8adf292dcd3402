"""Causal attention of a packed batch by a kernel that is told where each sequence begins: CUDA, 16 bits.

    out_i = Σ_j softmax_j(q_i · k_j / √D) v_j,   j ≤ i over the tokens of i's own sequence, q and k rotated

Nothing is padded, the shapes are those of the batch, and nothing waits for the host, so a step can be recorded as a
CUDA graph. The kernel is flash-attn's where it is installed (Dao et al. 2022), else torch's own.  (Not run yet on a
GPU; its tests put a plain kernel in its place.)"""

from collections.abc import Callable
from functools import cache
from inspect import signature

import torch
from torch import Tensor

from rtx_core.models.attention import usable
from rtx_core.models.layers import rotary_rows, rotate
from rtx_core.models.packed import Packed

KERNELS = ("flash", "varlen")  # of `rtx_core.models.attention`, in the order of preference


def kernel_for(device: torch.device, dtype: torch.dtype) -> str | None:
    """The kernel that products of this type, or autocast's if it is on, can use; None: there is none, as on every CPU."""
    kind = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else dtype
    return next((name for name in KERNELS if usable(name, device, kind, dropout=0.0)), None)


@cache
def causal(name: str) -> Callable[[Tensor, Tensor, Tensor, Tensor, int], Tensor]:
    """(q, k, v, offsets, longest) -> out, all but the last two (T, H, D)."""
    if name == "flash":
        from flash_attn import flash_attn_varlen_func

        return lambda q, k, v, offsets, longest: flash_attn_varlen_func(
            q, k, v, offsets, offsets, longest, longest, causal=True
        )
    from torch.nn.attention.varlen import varlen_attn

    how = (
        {"window_size": (-1, 0)}
        if "window_size" in signature(varlen_attn).parameters
        else {"is_causal": True}
    )  # torch 2.10
    return lambda q, k, v, offsets, longest: varlen_attn(q, k, v, offsets, offsets, longest, longest, **how)


class VarlenAttention:
    """What attends for a batch, as `rtx_core.models.llama.PaddedAttention` does elsewhere."""

    def __init__(self, batch: Packed, head_size: int, rope_base: float, kernel: str):
        self.offsets, self.longest, self.kernel = batch.offsets, batch.longest, causal(kernel)
        self.rope = rotary_rows(batch, head_size, rope_base)  # (T, 1, D/2)

    def attend(self, qkv: Tensor, num_heads: int) -> Tensor:
        """qkv (T, 3d) -> (T, d)."""
        q, k, v = qkv.view(len(qkv), 3, num_heads, -1).unbind(1)  # each (T, H, D)
        return self.kernel(rotate(q, self.rope), rotate(k, self.rope), v, self.offsets, self.longest).reshape(
            len(qkv), -1
        )
