"""One run on several devices: `torchrun --nproc-per-node=N -m …` starts N processes, and each takes its share of every batch.

The gradient of a batch is the mean of its sentences' gradients, so N processes that each see a part and average what they
found take the very step that one would (Li et al. 2020, PyTorch Distributed).  Only the first of them writes files.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from rtx_core.errors import RtxError


@dataclass(frozen=True)
class Ranks:
    """This process among the N that train distributed; alone, N = 1, everything here does nothing."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def seed(self, seed: int) -> int:
        """A stream of its own for each process; the first has that of a run alone."""
        return seed + 30_000 * self.rank

    def wrapped(self, model: nn.Module) -> nn.Module:
        """The model whose backward pass leaves the mean over processes in every gradient."""
        if self.size == 1:
            return model
        some_unused = getattr(getattr(model, "config", None), "random_passes", False)  # those of later passes
        return DistributedDataParallel(model, broadcast_buffers=False, find_unused_parameters=some_unused)

    def total(self, x: Tensor) -> Tensor:
        """The sum over processes, in place."""
        if self.size > 1:
            dist.all_reduce(x)
        return x

    def broadcast(self, find: Callable[[], object]) -> object:
        """What the first process finds, or why it cannot, for all: they must not decide differently because one machine rounds
        otherwise.
        """
        if self.size == 1:
            return find()
        found, error = None, None
        if self.first:
            try:
                found = find()
            except RtxError as why:
                error = why
        shared = [found, error]
        dist.broadcast_object_list(shared)
        found, error = shared
        if error is not None:
            raise error
        return found


def ranks() -> Ranks:
    """This process's, as `distributed` made it."""
    together = dist.is_available() and dist.is_initialized()
    return Ranks(dist.get_rank(), dist.get_world_size()) if together else Ranks()


@contextmanager
def distributed() -> Iterator[Ranks]:
    """Meet the other processes of torchrun, each with a GPU of its own where there are any; without torchrun, nobody."""
    if "LOCAL_RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield Ranks()
        return
    local, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if gpus and local >= gpus:
        raise RtxError(
            f"torchrun started process {local + 1} on a machine with {gpus} GPUs; give --nproc-per-node={gpus} at most."
        )
    if gpus:
        torch.cuda.set_device(local)
    # A day, since the others wait while the first one tests and measures what all have trained.
    dist.init_process_group("cpu:gloo,cuda:nccl" if gpus else "gloo", timeout=timedelta(days=1))
    try:
        yield ranks()
    finally:
        dist.destroy_process_group()
