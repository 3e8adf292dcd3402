"""Batches: rows of the token store, packed.  Training order depends on (seed, epoch) alone, evaluation order on length."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from rtx_core.corpora.tokens import Tokens
from rtx_core.models.packed import Packed
from rtx_core.training.team import Team

EVALUATION_TOKENS = 8192  # per batch: large enough to fill the machine, small enough for its cache


def training_batches(
    tokens: Tokens, batch_size: int, seed: int, epoch: int, skip: int = 0, mine: Team = Team()
) -> Iterator[tuple[Packed, Tensor]]:
    """One epoch of (batch, labels (B,)) in an order fixed by seed and epoch; `skip` batches were done before a restart.

    Of several processes each gets its share.  One for which nothing is left gets a sentence without a label.
    """
    order = np.random.RandomState([seed, epoch]).permutation(len(tokens))
    for start in range(skip * batch_size, len(tokens), batch_size):
        whole = order[start : start + batch_size]
        share = mine.share(whole)
        ids, lengths, labels = tokens.take(share if len(share) else whole[:1])
        yield Packed.from_flat(ids, lengths), torch.from_numpy(labels[: len(share)])


def steps_per_epoch(tokens: Tokens, batch_size: int) -> int:
    return -(-len(tokens) // batch_size)


def evaluation_batches(tokens: Tokens, budget: int = EVALUATION_TOKENS) -> Iterator[tuple[Packed, np.ndarray]]:
    """(batch, its rows) over all texts, longest first, about `budget` tokens each: alike lengths need no padding."""
    order = np.argsort(-tokens.lengths, kind="stable")
    group = (np.cumsum(tokens.lengths[order]) - 1) // budget
    for rows in np.split(order, np.flatnonzero(np.diff(group)) + 1):
        ids, lengths, _ = tokens.take(rows)
        yield Packed.from_flat(ids, lengths), rows


def filled(batch: Packed, multiple: int, lengths: tuple[int, ...] = ()) -> Packed:
    """The batch with one more sentence, which nothing reads, so that few shapes occur: it changes no other sentence.

    The tokens become a multiple of `multiple`, and the longest sentence counts as the next of `lengths`.
    """
    tokens = len(batch.ids)
    extra = multiple - tokens % multiple
    longest = max(batch.longest, extra)
    return Packed(
        ids=torch.cat((batch.ids, batch.ids[:1].expand(extra))),
        positions=torch.cat((batch.positions, torch.arange(extra))),
        offsets=torch.cat((batch.offsets, torch.tensor([tokens + extra], dtype=torch.int32))),
        longest=next((n for n in lengths if n >= longest), longest),
    )
