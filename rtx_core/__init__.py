"""Recurrent against standard transformers: models, data, training, records, and what pages draw from them.

Everything public is here and loads on first use, so a page that only draws records never imports torch.
"""

import os
from pkgutil import resolve_name

# How long a thread of PyTorch's spins before it hands its core over: beside other work, steps are several times faster.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

_PUBLIC = {
    "RtxError": "rtx_core.errors:RtxError",
    "Settings": "rtx_core.settings:Settings",
    "build_model": "rtx_core.models.build:build_model",
    "save_model": "rtx_core.models.build:save_model",
    "load_model": "rtx_core.models.build:load_model",
    "register": "rtx_core.models.registry:register",
    "Packed": "rtx_core.models.packed:Packed",
    "results": "rtx_core.records:results",
    "records": "rtx_core.records:",
    "run": "rtx_core.experiments.run:run",
    "runs": "rtx_core.experiments.run:runs",
    "load": "rtx_core.experiments.weights:load",
    "data": "rtx_core.data:",
    "report": "rtx_core.report:",
    "check_parameters": "rtx_core.report.notebook:check_parameters",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rtx_core' has no attribute {name!r}; it offers {', '.join(__all__)}")
    return resolve_name(_PUBLIC[name])


def __dir__() -> list[str]:
    return __all__
