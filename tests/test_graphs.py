"""A training step as a CUDA graph or with compiled layers: the same numbers as without, elsewhere one sentence."""

import os

import pytest
import torch

import rtx_core as rtx
from rtx_core.errors import RtxError
from rtx_core.experiments.configure import configure
from rtx_core.experiments.run import prepare
from rtx_core.fast import accelerate
from rtx_core.fast.graphs import GraphedStep
from rtx_core.fast.layers import compile_layers
from rtx_core.models.packed import Packed
from rtx_core.train.trainer import Loop, OptimizerStep

SMALL = {"letters": 8, "hops": 2, "eval_texts": 16, "test_texts": 16, "batch_size": 4, "hidden_size": 16}
SMALL |= {"intermediate_size": 16}
ON_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


def loop_of(model: str, device: str, compile: str) -> Loop:
    config = configure("khop", model, 0, **SMALL)
    task, built = prepare(config, torch.device(device))
    built.to(device).train()
    way = compile_layers(built, compile)
    return Loop(built, task, config.train, 0, accelerate(built) or OptimizerStep(), compile=way)


class Replayed:
    """In the place of a captured graph: computes the step again from what its static inputs hold now."""

    def __init__(self, step: GraphedStep, batch: tuple, examples: int):
        self.step, self.batch, self.examples, self.replays = step, batch, examples, 0
        self.gradients = [torch.zeros_like(p) for p in step.model.parameters()]
        self.sums = torch.zeros(1, dtype=torch.float64)

    def replay(self) -> None:
        self.replays += 1
        self.step.model.zero_grad(set_to_none=True)
        self.sums.copy_(self.step.backward(*self.batch, self.examples))
        for kept, parameter in zip(self.gradients, self.step.model.parameters()):
            kept.copy_(parameter.grad)


def test_a_step_by_graphs_trains_as_one_without_them(monkeypatch):
    """A graph for each number of passes; CUDA's own part of it is replaced here."""

    def capture(step: GraphedStep, inputs, targets, examples) -> tuple:
        graph = Replayed(step, (inputs, targets), examples)
        return graph, graph.batch, graph.gradients, graph.sums

    monkeypatch.setattr(GraphedStep, "capture", capture)
    plain, graphed = (loop_of("1x6-random", "cpu", "") for _ in range(2))
    graphed.backward = GraphedStep(graphed.model, graphed.backward)
    for _ in range(12):
        plain.step(1e-2)
        graphed.step(1e-2)
    graphs = [graph for graph, *_ in graphed.backward.captured.values()]
    assert 3 <= len(graphs) <= 6 and sum(graph.replays for graph in graphs) == 12
    assert all(torch.equal(a, b) for a, b in zip(plain.model.parameters(), graphed.model.parameters()))
    assert torch.equal(plain.sums, graphed.sums)


@ON_GPU
@pytest.mark.parametrize("model", ["1x4", "1x6-random", "2x1"])
def test_a_captured_step_gives_the_numbers_of_the_step_as_written(model):
    loops = [loop_of(model, "cuda", compile) for compile in ("", "graph")]
    for _ in range(20):
        for loop in loops:
            loop.step(1e-3)
    written, graphed = (torch.cat([p.flatten() for p in loop.model.parameters()]) for loop in loops)
    torch.testing.assert_close(graphed, written, rtol=1e-4, atol=1e-5)


def test_a_graph_elsewhere_than_on_a_gpu_or_of_packed_texts_is_refused(home):
    with pytest.raises(RtxError, match="'cpu'.*expected 'cuda'"):
        rtx.run("khop", "1x1", device="cpu", compile="graph", replace=True, steps=2, **SMALL)
    step = GraphedStep(torch.nn.Linear(2, 2), lambda *batch: None)
    with pytest.raises(RtxError, match="rows of one length"):
        step(Packed.from_sequences([[1, 2], [1]]), torch.zeros(2), 2)


def test_compiled_layers_train_as_written_ones_and_are_not_used_in_tests(monkeypatch):
    """The compiler is replaced here; what it makes is compared where time allows."""
    calls = []

    def compile(written, dynamic):
        return lambda *arguments: (calls.append(dynamic), written(*arguments))[1]

    monkeypatch.setattr(torch, "compile", compile)
    plain, compiled = (loop_of("2x2", "cpu", way) for way in ("", "layers"))
    for loop in (plain, compiled):
        loop.step(1e-2)
    assert calls == [False] * 4  # two layers, run twice
    assert all(torch.equal(a, b) for a, b in zip(plain.model.parameters(), compiled.model.parameters()))
    with torch.no_grad():
        compiled.model(torch.zeros(1, 3, dtype=torch.int64))
    assert len(calls) == 4


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # those of the compiler
@pytest.mark.skipif(not os.environ.get("RTX_LONG"), reason="compiles for half a minute: RTX_LONG=1")
def test_what_the_compiler_makes_of_layers_gives_the_numbers_of_the_layers_as_written():
    loops = [loop_of("2x2", "cpu", way) for way in ("", "layers")]
    for _ in range(5):
        for loop in loops:
            loop.step(1e-3)
    written, compiled = (torch.cat([p.flatten() for p in loop.model.parameters()]) for loop in loops)
    torch.testing.assert_close(compiled, written, rtol=1e-4, atol=1e-5)


def test_layers_of_classifiers_and_of_models_without_layers_are_not_compiled(home):
    with pytest.raises(RtxError, match="got a model Encoder; expected a looped decoder"):
        rtx.run("quickstart", "recurrent", device="cpu", compile="layers", replace=True, epochs=1, train_rows=48)
    with pytest.raises(RtxError, match="got a model Linear"):
        compile_layers(torch.nn.Linear(2, 2))
