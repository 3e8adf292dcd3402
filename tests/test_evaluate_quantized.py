"""Rounded weights of a looped model: the error of every number of bits, by part and passes."""

from types import SimpleNamespace

import torch

from rtx_core.data.algorithmic import KHop
from rtx_core.data.config import HopData
from rtx_core.evaluate import quantized
from rtx_core.models import build_model
from rtx_core.records import verify


def test_a_looped_model_is_tested_with_its_layers_rounded():
    task = KHop(HopData(letters=8, hops=1, eval_texts=4, test_texts=16), batch_size=2)
    size = {"hidden_size": 16, "num_heads": 2, "intermediate_size": 32, "vocab_size": task.vocab_size}
    model = build_model("looped", seed=0, num_layers=1, num_passes=2, **size).eval()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    study = SimpleNamespace(task=task, trained=lambda record: model)
    measured = [content for content, _ in quantized.of_run({}, study)]
    assert [content["bits"] for content in measured] == list(quantized.BITS)
    assert [content["suffix"] for content in measured][:1] == [["int8"]]
    exact, _ = task.test(model, torch.device("cpu"), torch.autocast("cpu", enabled=False))
    off = [abs(content["test"]["loss"] - exact["loss"]) for content in measured]
    assert 0 < off[0] < off[-1]  # 8 bits are nearer to the exact weights than 3
    for content in measured:
        assert [len(part["error_by_passes"]) for part in content["test"]["parts"]] == [4, 4]
        verify(SimpleNamespace(get=content.get, path=None))
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
