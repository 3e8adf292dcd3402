"""The step as a CUDA graph: one launch instead of about a thousand, for models so small that launching them is the work.

A graph is recorded for fixed shapes.  So a batch is filled up to the next multiple of 64 tokens, and its longest sentence to
the next of a few lengths, with one more sentence that nothing reads: about a dozen graphs cover SST-2.  The first batch of a
shape is an ordinary step (it also warms the kernels up), the second is recorded, and from then on it is replayed.  A step asks
the device for nothing: rates, norms and sums stay there.  (Not run yet on a GPU; a test marked `cuda` waits for one.)
"""

import torch
from torch import Tensor

from rtx_core.errors import RtxError
from rtx_core.models.masks import Dropout
from rtx_core.models.packed import Packed
from rtx_core.training.batches import filled
from rtx_core.training.step import Step

LENGTHS = (64, 128, 256, 512, 1024)  # at least 64, so that the filling sentence fits


class GraphStep(Step):
    """`Step` on a GPU, recorded once a shape and replayed."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        group = self.optimizer.param_groups[0]
        group["capturable"], group["lr"] = True, torch.tensor(group["lr"], device=self.device)
        self.graphs: dict[tuple, tuple[torch.cuda.CUDAGraph, Packed, Tensor, Tensor] | None] = {}
        self.pool = torch.cuda.graph_pool_handle()

    def rate(self, value: float) -> None:
        self.optimizer.param_groups[0]["lr"].fill_(value)

    def __call__(self, batch: Packed, labels: Tensor, masks: Dropout, of: int) -> Tensor:
        batch = filled(batch, 64, LENGTHS)
        key = (len(labels), len(batch.ids), batch.longest)
        if key not in self.graphs:
            self.graphs[key] = None
            return self.run(batch.to(self.device), labels.to(self.device), masks, of)
        if self.graphs[key] is None:
            self.graphs[key] = self._record(batch.to(self.device), labels.to(self.device), masks, of)
        graph, inputs, truth, sums = self.graphs[key]
        static, fresh = (inputs.ids, inputs.positions, inputs.offsets, truth), (batch.ids, batch.positions, batch.offsets, labels)
        for mine, new in zip(static, fresh, strict=True):
            mine.copy_(new, non_blocking=True)
        graph.replay()
        return sums

    def _record(self, batch: Packed, labels: Tensor, masks: Dropout, of: int) -> tuple[torch.cuda.CUDAGraph, Packed, Tensor, Tensor]:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self.pool):
                sums = self.run(batch, labels, masks, of)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise RtxError(
                f"This model's step cannot be recorded as a CUDA graph ({str(error).partition(chr(10))[0]}); a step must not wait for the device, "
                "and nothing else may use it meanwhile."
            ) from error
        return graph, batch, labels, sums
