"""Recurrent against standard transformers: models, data, training, records, and what pages draw from them.

Everything public is here and loads on first use, so a page that only draws records never imports torch.
"""

import os
from typing import TYPE_CHECKING

from rtx_core.inputs import log_reads
from rtx_core.lazy import lazily

# How long a thread of PyTorch's spins before it hands its core over: beside other work, steps are several times faster.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")
log_reads()

if TYPE_CHECKING:
    from rtx_core import data, records, report
    from rtx_core.benchmark.bench import bench
    from rtx_core.benchmark.check import check
    from rtx_core.benchmark.choose import choose
    from rtx_core.errors import RtxError
    from rtx_core.experiments.configure import settings_of
    from rtx_core.experiments.run import run, runs
    from rtx_core.experiments.weights import load
    from rtx_core.models.build import build_model, load_model, save_model
    from rtx_core.models.packed import Packed
    from rtx_core.models.registry import register
    from rtx_core.records import results
    from rtx_core.report.notebook import check_parameters
    from rtx_core.settings import Settings
else:
    __getattr__, __dir__ = lazily(__name__, __file__)
__all__ = ["Packed", "RtxError", "Settings", "bench", "build_model", "check", "check_parameters", "choose"]
__all__ += ["data", "load", "load_model", "records", "register", "report", "results", "run", "runs", "save_model"]
__all__ += ["settings_of"]
