"""Whether oneDNN's own matrix products can be asked for here."""

import platform

import torch

ONEDNN = (
    platform.machine() in ("x86_64", "AMD64")  # measured there
    and torch.backends.mkldnn.is_available()
    and all(hasattr(torch.ops.mkldnn, name) for name in ("_linear_pointwise", "_reorder_linear_weight"))
)
