"""Forward and backward pass of packed texts as CUDA graphs, for models so small that launching their kernels is the work.

A graph is recorded for fixed shapes.  A step of stories always has as many tokens, but not as many stories, so the offsets are
filled up with stories of no tokens; a batch of more stories than there is room for runs kernel by kernel.  (Not run yet on a GPU;
its tests put the plain pass in the place of the recorded one.)
"""

import torch
from torch import Tensor, nn

from rtx_core.models.flat import kernel_for
from rtx_core.models.packed import Packed

SHORTEST = 32  # tokens of a sequence, in the mean over a batch, that there is room for


class Tensors(nn.Module):
    """The model as a function of tensors alone, which is what can be recorded."""

    def __init__(self, model: nn.Module, longest: int):
        super().__init__()
        self.model, self.longest = model, longest

    def forward(self, ids: Tensor, positions: Tensor, offsets: Tensor, targets: Tensor) -> Tensor:
        return type(self.model).forward(self.model, Packed(ids, positions, offsets, self.longest), targets)


def install(model: nn.Module, longest: int) -> None:
    """From now on `model` trains by graphs, one for each number of tokens, recorded when it is first met; `longest` bounds a sequence."""
    plain, recorded = model.forward, {}

    def forward(batch: Packed, targets: Tensor | None = None, passes: int | None = None) -> Tensor:
        T, room = len(batch.ids), len(batch.ids) // SHORTEST
        trains = model.training and torch.is_grad_enabled() and targets is not None and passes is None
        if not (trains and batch.longest <= longest and len(batch) <= room and kernel_for(batch.ids.device, model.word.weight.dtype)):
            return plain(batch, targets, passes)
        offsets = torch.cat((batch.offsets, batch.offsets[-1:].expand(room - len(batch))))
        inputs = batch.ids, batch.positions, offsets, targets
        if first := T not in recorded:
            recorded[T] = record(Tensors(model, longest), inputs)
        loss = recorded[T](*inputs)
        if first:
            check(loss, Tensors(model, longest), inputs)
        return loss

    model.forward = forward


def check(loss: Tensor, worker: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    """A graph's first loss against the same pass kernel by kernel, for which Three Part draws other noise."""
    with torch.random.fork_rng(devices=[loss.device]), torch.no_grad():
        plain = worker(*inputs)
    if not torch.isclose(loss, plain, rtol=0.02):
        raise RuntimeError(f"The loss of the recorded graph is {loss.item():.4f}, that of the same pass without it {plain.item():.4f}.")


def record(worker: nn.Module, inputs: tuple[Tensor, ...]) -> nn.Module:
    device = inputs[0].device
    kind, on = torch.get_autocast_dtype(device.type), torch.is_autocast_enabled(device.type)
    with torch.random.fork_rng(devices=[device]), torch.autocast(device.type, kind, enabled=on, cache_enabled=False):  # warming up draws noise
        return torch.cuda.make_graphed_callables(worker, inputs)
