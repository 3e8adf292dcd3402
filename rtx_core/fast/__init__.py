"""Speed that changes no formula, looked up by a model's exact class; any other trains and serves as it is written.

A subclass may mean something else by the same methods, so it is not given its parent's fast path.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the table below is read by pages, which import no torch
    from torch import nn

# "module:class" -> the modules of its fast path; each may have a function `install(model)`
FAST_PATHS: dict[str, tuple[str, ...]] = {
    "rtx_core.models.encoder:Encoder": ("rtx_core.fast.encoder",),
    "rtx_core.models.kausik:Kausik": ("rtx_core.fast.recurrence",),
    "rtx_core.models.looped:Looped": ("rtx_core.fast.cross_entropy", "rtx_core.fast.causal"),
}


def accelerate(model: nn.Module):
    """Put fast methods in the place of a model's plain ones; gives the trainer's path, where there is a special one."""
    path = None
    for module in FAST_PATHS.get(f"{type(model).__module__}:{type(model).__qualname__}", ()):
        loaded = import_module(module)
        if hasattr(loaded, "install"):
            loaded.install(model)
        if hasattr(loaded, "training_path"):
            path = loaded.training_path(model)
    return path
