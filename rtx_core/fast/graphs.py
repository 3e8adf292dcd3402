"""Forward and backward of a training step as one CUDA graph, which is one launch instead of some hundreds.

A model of width 64 keeps a GPU busy for a fraction of the time that Python takes to launch its kernels.  A graph holds
the launches of one step, with the addresses of what they read and write: a batch is copied to where the graph reads it,
and the gradients lie where the graph leaves them.  Clipping and AdamW stay as they are.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from rtx_core.errors import RtxError

WARM_UP = 3  # steps before a capture, in which libraries take their memory


class GraphedStep:
    """A graph for each shape of the batch and number of passes: (inputs, targets, step_examples) -> the loss's sums,
    and the gradients in `.grad`.

    `backward(inputs, targets, step_examples)` does the same without a graph.  Batches of packed texts have too many
    shapes and are refused.
    """

    def __init__(self, model: nn.Module, backward: Callable[[Tensor, Tensor, int], Tensor]):
        self.model, self.backward, self.captured = model, backward, {}

    def __call__(self, inputs: Tensor, targets: Tensor, step_examples: int) -> Tensor:
        if not isinstance(inputs, Tensor):
            got = f"compile='graph' got a batch of {type(inputs).__name__} texts"
            raise RtxError(f"{got}; expected rows of one length. Use compile='reduce-overhead', or leave it out.")
        drawn = (getattr(self.model, name, None) for name in ("drawn_passes", "drawn_backprop"))
        key = (*inputs.shape, *targets.shape, step_examples, *drawn)
        if key not in self.captured:
            self.captured[key] = self.capture(inputs.clone(), targets.clone(), step_examples)
        graph, batch, gradients, sums = self.captured[key]
        for static, tensor in zip(batch, (inputs, targets)):
            static.copy_(tensor)
        graph.replay()
        for parameter, gradient in zip(self.model.parameters(), gradients):
            parameter.grad = gradient
        return sums

    def capture(self, inputs: Tensor, targets: Tensor, step_examples: int) -> tuple:
        """(graph, the batch that it reads, the gradients and the sums that it writes); warming up draws no numbers."""
        random, stream = torch.cuda.get_rng_state(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self.backward(inputs, targets, step_examples)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.set_rng_state(random)
        self.model.zero_grad(set_to_none=True)  # so that the graph makes gradients of its own, and writes them anew
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            sums = self.backward(inputs, targets, step_examples)
        return graph, (inputs, targets), [p.grad for p in self.model.parameters()], sums
