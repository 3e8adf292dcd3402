"""Trained models in other number formats: `python -m rtx_core.evaluation.precision sst2 [name=value …]`.

fp32   as trained
bf16   all weights and arithmetic in bfloat16
fp16   the same in half precision
int8   torch's dynamic quantisation: the weight of every linear map as int8, one scale a row; its input as int8, one scale a
       batch, found when it arrives; embeddings and norms stay fp32

Measured on the CPU, where torch has int8 kernels, and a format that the CPU has no arithmetic for is left out.  Every format
computes all rows of the last layer, so that times compare.
"""

import io
import time
import warnings
from contextlib import nullcontext
from copy import deepcopy

import torch
from torch import Tensor, nn

from rtx_core.corpora.dataset import dataset
from rtx_core.evaluation.command import command, say, trained
from rtx_core.evaluation.latency import latency
from rtx_core.evaluation.metrics import logits_of, metrics
from rtx_core.models.packed import Packed
from rtx_core.parameters import settings
from rtx_core.results import measurement
from rtx_core.training.devices import environment, keep_heap

FORMATS = ("fp32", "bf16", "fp16", "int8")
_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class AllRows(nn.Module):
    """A model whose forward pass leaves no row out: the shortcut for [CLS] slices weights, which int8 ones do not allow."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, batch: Packed) -> Tensor:
        return self.model(batch, rows_only=False)


def converted(model: nn.Module, number_format: str) -> nn.Module:
    """A copy of the model, in evaluation mode, in this format."""
    model = deepcopy(model).eval()
    if number_format != "int8":
        return AllRows(model.to(_TYPES[number_format]))
    from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic

    with warnings.catch_warnings():  # torch announces that this moves to torchao; it is in every torch that this project runs on
        warnings.filterwarnings("ignore", message=".*torch.ao.quantization is deprecated", category=DeprecationWarning)
        warnings.filterwarnings("ignore", message=".*quantized tensor creation functions", category=UserWarning)
        return AllRows(quantize_dynamic(model, {nn.Linear: per_channel_dynamic_qconfig}))


def emulated(number_format: str) -> bool:
    """Whether a matrix product takes this CPU several times as long as in fp32: then it only converts, and all else would too."""
    if number_format not in _TYPES:
        return False

    def seconds(kind: torch.dtype) -> float:
        a, times = torch.ones(256, 256, dtype=kind), []
        for _ in range(6):
            begin = time.perf_counter()
            a @ a
            times.append(time.perf_counter() - begin)
        return min(times)

    return seconds(_TYPES[number_format]) > 3 * seconds(torch.float32)


def stored_mb(model: nn.Module) -> float:
    """Size of the serialised weights, in MB of 2²⁰ bytes."""
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    return buffer.tell() / 2**20


def precision(experiment: str, given: dict[str, object]) -> None:
    """Measure every model and seed that the parameters of the experiment's notebook name, in every format."""
    chosen = settings(experiment, given)
    data, where = dataset(**chosen.data), torch.device("cpu")
    made_by, formats = measurement.made_by("precision"), [f for f in FORMATS if not emulated(f)]
    if missing := [f for f in FORMATS if f not in formats]:
        say(chosen.variant, f"left out, as this CPU has no arithmetic for it: {', '.join(missing)}")
    keep_heap()
    for name in chosen.models:
        for seed in chosen.seeds:
            run, model = trained(chosen, name, seed)
            for number_format in formats:
                ready = converted(model, number_format)
                logits = logits_of(ready, data.test, where, nullcontext())
                content = {
                    "kind": "precision",
                    "of": chosen.variant,
                    "name": f"{name}-seed{seed}-{number_format}",
                    "model": name,
                    "seed": seed,
                    "format": number_format,
                    "protocol": run["protocol"],
                    "run": run["key"],
                    "data": data.facts,
                    "size_mb": stored_mb(ready),
                    "test": metrics(logits, data.test.labels),
                    "latency": latency(ready, data.test, (1, chosen.protocol.batch_size), where, nullcontext()),
                    "environment": environment(where),
                    "code": made_by,
                }
                made = measurement.save(content, logits, data.test.labels)
                say(chosen.variant, name, f"seed {seed}", number_format, f"accuracy {made['test']['accuracy']:.4f}", f"{made['size_mb']:.1f} MB",
                    f"batch {chosen.protocol.batch_size}: {made['latency'][-1]['median_ms']:.2f} ms")  # fmt: skip


if __name__ == "__main__":
    command(precision, "EXPERIMENT")
