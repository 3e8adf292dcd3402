"""Recurrent against standard transformers: models, data, training, records, and what pages draw from them.

Everything public is here and loads on first use, so a page that only draws records never imports torch.
"""

import os

from rtx_core.lazy import lazily

# How long a thread of PyTorch's spins before it hands its core over: beside other work, steps are several times faster.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

_PUBLIC = {
    "bench.check": "check",
    "data": "data",
    "errors": "RtxError",
    "experiments.run": "run runs",
    "experiments.weights": "load",
    "models.build": "build_model save_model load_model",
    "models.packed": "Packed",
    "models.registry": "register",
    "records": "records results",
    "report": "report",
    "report.notebook": "check_parameters",
    "settings": "Settings",
}
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
__all__ = __dir__()
