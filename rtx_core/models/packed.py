"""A batch without padding: the sequences lie end to end in one flat array, and `cu_seqlens` says where each begins.

Shapes everywhere in `rtx_core`: T tokens in the batch, B sequences, L tokens of the longest, H heads of size D,
d = H · D hidden size, f intermediate size, C classes, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from rtx_core.deprecated import warn_renamed
from rtx_core.errors import RtxError


@dataclass(frozen=True)
class Packed:
    """B sequences of token ids laid end to end; attention never crosses an offset."""

    ids: Tensor  # (T,) int64
    positions: Tensor  # (T,) int64, 0 at the start of each sequence
    cu_seqlens: Tensor  # (B + 1,) int32, cu_seqlens[i] is where sequence i begins, cu_seqlens[B] = T
    max_seqlen: int  # L, known on the host so that no kernel launch waits for the device

    @classmethod
    def from_sequences(cls, sequences: Sequence[Sequence[int]]) -> "Packed":
        """Pack token-id sequences, in order.  An empty batch or an empty sequence is an error."""
        lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
        if len(lengths) == 0 or lengths.min() == 0:
            got = lengths.tolist()[:8]
            raise RtxError(f"Got sequences of lengths {got}; every batch and every sequence needs a token.")
        return cls.from_flat(np.concatenate([np.asarray(sequence) for sequence in sequences]), lengths)

    @classmethod
    def from_flat(cls, ids: np.ndarray, lengths: np.ndarray) -> "Packed":
        """Pack ids that already lie end to end; `lengths` (B,) sums to T."""
        cu_seqlens = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=cu_seqlens[1:])
        positions = np.arange(cu_seqlens[-1]) - np.repeat(cu_seqlens[:-1], lengths)
        arrays = (np.ascontiguousarray(ids, dtype=np.int64), positions, cu_seqlens.astype(np.int32))
        return cls(*map(torch.from_numpy, arrays), max_seqlen=int(lengths.max()))

    @classmethod
    def from_rows(cls, ids: Tensor) -> "Packed":
        """Pack B texts of one length, ids (B, N)."""
        B, N = ids.shape
        cu_seqlens = torch.arange(0, B * N + 1, N, dtype=torch.int32, device=ids.device)
        return cls(ids.flatten(), torch.arange(N, device=ids.device).repeat(B), cu_seqlens, N)

    @property
    def offsets(self) -> Tensor:
        warn_renamed("Packed.offsets", "Packed.cu_seqlens")
        return self.cu_seqlens

    @property
    def longest(self) -> int:
        warn_renamed("Packed.longest", "Packed.max_seqlen")
        return self.max_seqlen

    def __len__(self) -> int:
        return len(self.cu_seqlens) - 1

    def pin_memory(self) -> "Packed":
        parts = (x.pin_memory() for x in (self.ids, self.positions, self.cu_seqlens))
        return Packed(*parts, max_seqlen=self.max_seqlen)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Packed":
        parts = (x.to(device, non_blocking=non_blocking) for x in (self.ids, self.positions, self.cu_seqlens))
        moved = Packed(*parts, max_seqlen=self.max_seqlen)
        vars(moved)["on_host"] = self.on_host
        return moved

    @cached_property
    def on_host(self) -> Tensor:
        """The offsets on the host: a batch that is moved keeps them, so that nobody waits for the device."""
        return self.cu_seqlens.cpu()

    @cached_property
    def starts(self) -> Tensor:
        """(B,) index of each sequence's first token, where [CLS] sits."""
        return self.cu_seqlens[:-1].long()

    @cached_property
    def cell(self) -> Tensor:
        """(T,) index of each token in a padded (B·L) grid; only the SDPA fallback looks at the grid."""
        lengths = (self.cu_seqlens[1:] - self.cu_seqlens[:-1]).long()
        rows = torch.arange(len(self), device=lengths.device)
        sequence = torch.repeat_interleave(rows, lengths, output_size=len(self.ids))
        return sequence * self.max_seqlen + self.positions

    @cached_property
    def mask(self) -> Tensor:
        """(B, 1, 1, L) True where the padded grid holds a token."""
        lengths = self.cu_seqlens[1:] - self.cu_seqlens[:-1]
        return (torch.arange(self.max_seqlen, device=lengths.device) < lengths[:, None])[:, None, None, :]


def pad_to_multiple(batch: Packed, multiple: int, lengths: tuple[int, ...] = ()) -> Packed:
    """The batch with one more text, which nothing reads, so that few shapes occur: its tokens become a multiple of
    `multiple`, and the longest text counts as the next of `lengths`."""
    tokens = len(batch.ids)
    extra = multiple - tokens % multiple
    max_seqlen = max(batch.max_seqlen, extra)
    ids = torch.cat((batch.ids, batch.ids[:1].expand(extra)))
    positions = torch.cat((batch.positions, torch.arange(extra)))
    cu_seqlens = torch.cat((batch.cu_seqlens, torch.tensor([tokens + extra], dtype=torch.int32)))
    return Packed(ids, positions, cu_seqlens, next((n for n in lengths if n >= max_seqlen), max_seqlen))
