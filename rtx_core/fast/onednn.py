"""oneDNN's own matrix products, under torch's private names, used where a trial gives what torch gives."""

import platform

import torch
import torch.nn.functional as F
from torch import Tensor


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (T, n), weight (m, n) -> x Wᵀ + b (T, m)."""
    return torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, "none", [], "")


def linear_times(x: Tensor, operand: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(x Wᵀ + b) ⊙ operand (T, m)."""
    return torch.ops.mkldnn._linear_pointwise.binary(x, operand, weight, bias, "mul")


def packed(weight: Tensor, rows: int) -> Tensor:
    """The weight as the kernel for inputs of so many rows reads it; the products above take it, too."""
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), rows)


@torch.inference_mode()
def usable(dtype: torch.dtype = torch.float32) -> bool:
    """Whether these private operators, which any version of torch may change, work here and give what torch's do."""
    if platform.machine() not in ("x86_64", "AMD64") or not torch.backends.mkldnn.is_available():
        return False  # measured on those machines alone
    x, weight, bias, operand = (
        torch.arange(float(rows * columns)).sin().view(rows, columns).to(dtype)
        for rows, columns in ((3, 16), (8, 16), (1, 8), (3, 8))
    )
    bias, eps = bias[0], torch.finfo(dtype).eps
    with torch.autocast("cpu", enabled=False):
        plain = F.linear(x.float(), weight.float(), bias.float())
        expected = [plain, plain * operand]
        try:
            for w in (weight, packed(weight, len(x))):
                outputs = [linear(x, w, bias), linear_times(x, operand, w, bias)]
                close = (torch.allclose(a.float(), b, eps, 1e-5) for a, b in zip(outputs, expected))
                if not all(close):
                    return False
        except (AttributeError, RuntimeError, TypeError):
            return False
    return True


FORMATS = [dtype for dtype in (torch.float32, torch.bfloat16) if usable(dtype)]
