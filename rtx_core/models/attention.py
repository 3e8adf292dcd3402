"""Attention inside each packed sequence, by whichever kernel is usable.

    out_i = Σ_j softmax_j(q_i · k_j / √D) v_j,   j over the tokens of i's own sequence

(Vaswani et al. 2017, eq. 1).  Three kernels, one meaning, chosen in this order:

* `flash`  – flash-attn's varlen kernel (Dao et al. 2022): CUDA, 16-bit, heads of 8, 16, … 256, package optional;
* `varlen` – torch's own varlen kernel: the same, but without dropout, so it serves evaluation and p = 0;
* `sdpa`   – torch's scaled_dot_product_attention on a padded view: any device, any precision, also the reference.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rtx_core.errors import RtxError
from rtx_core.models.packed import Packed

BACKENDS = ("flash", "varlen", "sdpa")


@cache
def _varlen(backend: str) -> Callable[..., Any] | None:
    """The kernel's function; None where it is not installed, or built for another torch."""
    with suppress(ImportError):
        if backend == "flash":
            from flash_attn import flash_attn_varlen_func as kernel  # pyright: ignore[reportMissingImports]
        else:
            from torch.nn.attention.varlen import varlen_attn as kernel
        return kernel


def usable(backend: str, device: torch.device, dtype: torch.dtype, p: float, head_size: int) -> bool:
    """Whether a kernel can run these tensors here, with dropout p."""
    if backend == "sdpa":
        return True
    if device.type != "cuda" or dtype not in (torch.float16, torch.bfloat16) or head_size % 8 or head_size > 256:
        return False
    if torch.cuda.get_device_capability(device) < (8, 0):
        return False
    return (backend == "flash" or p == 0.0) and _varlen(backend) is not None


def best(*tensors_are) -> str:
    """The first kernel that is usable."""
    return next(backend for backend in BACKENDS if usable(backend, *tensors_are))


def packed_attention(q: Tensor, k: Tensor, v: Tensor, batch: Packed, p=0.0, dropout=None, backend="") -> Tensor:
    """Bidirectional attention within each sequence of `batch`.

    q (T, H, D), or (B, H, D) for one query a sequence (the [CLS] row of the last layer); k, v (T, H, D).
    Returns the shape of q.  `backend` names a kernel; without it the first usable one is taken.
    """
    p = p if dropout is not None else 0.0
    backend = backend or best(q.device, q.dtype, p, q.shape[-1])
    if backend == "sdpa":
        return _sdpa(q, k, v, batch, p, dropout)
    one_query = len(q) != len(k)
    q_cu_seqlens = torch.arange(len(batch) + 1, device=q.device, dtype=torch.int32) if one_query else batch.cu_seqlens
    max_seqlens = (1 if one_query else batch.max_seqlen, batch.max_seqlen)
    options = {"dropout_p": p} if backend == "flash" else {"window_size": (-1, -1)}
    if (kernel := _varlen(backend)) is None:
        raise RtxError(f"The kernel {backend!r} is not installed here; name another of {', '.join(BACKENDS)}.")
    return kernel(q, k, v, q_cu_seqlens, batch.cu_seqlens, *max_seqlens, **options)


def _sdpa(q: Tensor, k: Tensor, v: Tensor, batch: Packed, p: float, dropout) -> Tensor:
    """Spread the tokens on a (B, L) grid for this one operation, attend under a mask, gather them back."""
    B, L = len(batch), batch.max_seqlen
    one_query = len(q) != len(k)

    def to_grid(x: Tensor) -> Tensor:  # (T, H, D) -> (B, H, L, D)
        grid = x.new_zeros(B * L, *x.shape[1:]).index_copy(0, batch.cell, x)
        return grid.view(B, L, *x.shape[1:]).transpose(1, 2)

    queries = q.unsqueeze(2) if one_query else to_grid(q)
    if dropout not in (None, F.dropout):  # the kernel would draw its own: state the formula
        scores = queries @ to_grid(k).mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~batch.mask, float("-inf")).softmax(-1)
        out = dropout(weights, p) @ to_grid(v)
    else:
        out = F.scaled_dot_product_attention(queries, to_grid(k), to_grid(v), attn_mask=batch.mask, dropout_p=p)
    if one_query:
        return out.squeeze(2)
    return out.transpose(1, 2).reshape(B * L, *q.shape[1:]).index_select(0, batch.cell)
