"""Trained encoders in other number formats.

fp32, bf16, fp16   all weights and arithmetic in that format; fp32 is as trained
int8               torch's dynamic quantization: the weight of every linear map as int8, one scale a row; its input as
                   int8, one scale a batch, found when it arrives; embeddings and norms stay fp32

Measured on the CPU, where torch has int8 kernels; a format that it has no arithmetic for is left out.  Every format
computes all rows of the last layer, so that times compare.
"""

import io
import timeit
import warnings
from contextlib import nullcontext
from copy import deepcopy
from functools import partial

import torch
from torch import nn
from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic

from rtx_core.evaluate.latency import latency
from rtx_core.train.device import keep_heap

FORMATS = ("fp32", "bf16", "fp16", "int8")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def converted(model: nn.Module, number_format: str) -> nn.Module:
    """A copy of the model in this format, in evaluation mode; no row is left out: int8 cannot be sliced."""
    model = deepcopy(model).eval().to(DTYPES.get(number_format, torch.float32))
    with warnings.catch_warnings():  # torch announces that this moves to torchao; the locked torch has it
        warnings.simplefilter("ignore")
        if number_format == "int8":
            model = quantize_dynamic(model, {nn.Linear: per_channel_dynamic_qconfig})
    model.forward = partial(model.forward, rows_only=False)
    return model


def emulated(number_format: str) -> bool:
    """Whether the CPU has no arithmetic for it: a matrix product takes several times as long as in fp32."""

    def seconds(dtype: torch.dtype) -> float:
        a = torch.ones(256, 256, dtype=dtype)
        return min(timeit.repeat(lambda: a @ a, number=1, repeat=6))

    return number_format in DTYPES and seconds(DTYPES[number_format]) > 3 * seconds(torch.float32)


def stored_mb(model: nn.Module) -> float:
    """Size of the serialized weights, in MB of 2²⁰ bytes."""
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    return buffer.tell() / 2**20


def of_run(record, study) -> list[tuple]:
    """The run's model in every format that the CPU computes in."""
    keep_heap()
    model, formats = study.trained(record).cpu(), [name for name in FORMATS if not emulated(name)]
    if missing := ", ".join(name for name in FORMATS if name not in formats):
        print(f"left out, as this CPU has no arithmetic for it: {missing}", flush=True)
    cpu, sizes, measured = torch.device("cpu"), (1, study.config.train.batch_size), []
    for name in formats:
        ready = converted(model, name)
        test, predictions = study.task.test(ready, cpu, nullcontext())
        content = {"suffix": [name], "format": name, "size_mb": stored_mb(ready), "test": test}
        content["latency"] = latency(ready, study.task.parts["test"], sizes, cpu, nullcontext())
        measured.append((content, predictions))
    return measured
