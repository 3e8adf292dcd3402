"""A batch without padding: the sequences lie end to end in one flat array, and offsets say where each begins.

Shapes everywhere in `rtx_core`: T tokens in the batch, B sequences, L tokens of the longest, H heads of size D,
d = H · D hidden size, f intermediate size, C classes, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from rtx_core.errors import RtxError


@dataclass(frozen=True)
class Packed:
    """B sequences of token ids laid end to end; attention never crosses an offset."""

    ids: Tensor  # (T,) int64
    positions: Tensor  # (T,) int64, 0 at the start of each sequence
    offsets: Tensor  # (B + 1,) int32, offsets[i] is where sequence i begins, offsets[B] = T
    longest: int  # L, known on the host so that no kernel launch waits for the device

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
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        positions = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        arrays = (np.ascontiguousarray(ids, dtype=np.int64), positions, offsets.astype(np.int32))
        return cls(*map(torch.from_numpy, arrays), int(lengths.max()))

    @classmethod
    def from_rows(cls, ids: Tensor) -> "Packed":
        """Pack B texts of one length, ids (B, N)."""
        B, N = ids.shape
        offsets = torch.arange(0, B * N + 1, N, dtype=torch.int32, device=ids.device)
        return cls(ids.flatten(), torch.arange(N, device=ids.device).repeat(B), offsets, N)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def pin_memory(self) -> "Packed":
        return Packed(*(x.pin_memory() for x in (self.ids, self.positions, self.offsets)), self.longest)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Packed":
        parts = (x.to(device, non_blocking=non_blocking) for x in (self.ids, self.positions, self.offsets))
        moved = Packed(*parts, self.longest)
        vars(moved)["on_host"] = self.on_host
        return moved

    @cached_property
    def on_host(self) -> Tensor:
        """The offsets on the host: a batch that is moved keeps them, so that nobody waits for the device."""
        return self.offsets.cpu()

    @cached_property
    def starts(self) -> Tensor:
        """(B,) index of each sequence's first token, where [CLS] sits."""
        return self.offsets[:-1].long()

    @cached_property
    def cell(self) -> Tensor:
        """(T,) index of each token in a padded (B·L) grid; only the SDPA fallback looks at the grid."""
        lengths = (self.offsets[1:] - self.offsets[:-1]).long()
        rows = torch.arange(len(self), device=lengths.device)
        sequence = torch.repeat_interleave(rows, lengths, output_size=len(self.ids))
        return sequence * self.longest + self.positions

    @cached_property
    def mask(self) -> Tensor:
        """(B, 1, 1, L) True where the padded grid holds a token."""
        lengths = self.offsets[1:] - self.offsets[:-1]
        return (torch.arange(self.longest, device=lengths.device) < lengths[:, None])[:, None, None, :]


def filled(batch: Packed, multiple: int, lengths: tuple[int, ...] = ()) -> Packed:
    """The batch with one more text, which nothing reads, so that few shapes occur: its tokens become a multiple of
    `multiple`, and the longest text counts as the next of `lengths`."""
    tokens = len(batch.ids)
    extra = multiple - tokens % multiple
    longest = max(batch.longest, extra)
    ids = torch.cat((batch.ids, batch.ids[:1].expand(extra)))
    positions = torch.cat((batch.positions, torch.arange(extra)))
    offsets = torch.cat((batch.offsets, torch.tensor([tokens + extra], dtype=torch.int32)))
    return Packed(ids, positions, offsets, next((n for n in lengths if n >= longest), longest))
