"""Cross-entropy of a large vocabulary without all its logits at once.

    loss = 1/T Σ_t −log softmax(W h_t)[y_t],   d loss / d logits_t = (softmax(W h_t) − onehot[y_t]) / T

The logits of 8,192 tokens over 4,096 pieces are 134 MB, and autograd keeps three arrays of that size.  Here each
chunk's logits become their own gradient in place, in the forward pass, and only the gradients of h and W are kept.
"""

from types import MethodType

import torch
import torch.nn.functional as F
from torch import Tensor

from rtx_core.models.looped import Looped

CHUNK = 1024  # tokens: 16 MB of logits, which a cache holds


class CrossEntropy(torch.autograd.Function):
    """Mean loss in nats of predicting `targets` (T,) by the logits h Wᵀ, with h (T, d) and W (V, d)."""

    @staticmethod
    def forward(ctx, h: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        needs_grad, device, dtype = any(ctx.needs_input_grad), h.device, weight.dtype
        if torch.is_autocast_enabled(device.type):
            dtype = torch.get_autocast_dtype(device.type)
        h, w, minus_one = h.to(dtype), weight.to(dtype), torch.full((), -1.0, device=device)
        gradients = (torch.empty_like(h), torch.zeros_like(weight)) if needs_grad else None
        loss = torch.zeros((), device=device)
        for start in range(0, len(h), CHUNK):
            rows, y = h[start : start + CHUNK], targets[start : start + CHUNK, None]
            logits = F.linear(rows, w)  # (chunk, V)
            if needs_grad and dtype == torch.bfloat16:  # one pass less; below 10⁻³⁸ a probability is 0
                p = logits.softmax(1, dtype=torch.float32)
                loss -= p.gather(1, y).log_().sum()
            else:
                p = logits.log_softmax(1, dtype=torch.float32)
                loss -= p.gather(1, y).sum()
                p.exp_()
            if gradients:
                d_h, d_weight = gradients
                grad = p.scatter_add_(1, y, minus_one.expand_as(y)).to(dtype)
                torch.mm(grad, w, out=d_h[start : start + CHUNK])
                d_weight += grad.t() @ rows
        ctx.save_for_backward(*(gradients or (None, None)))
        return loss / len(h)

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor):
        (d_loss,) = grad_outputs
        d_h, d_weight = ctx.saved_tensors
        scale = d_loss / len(d_h)
        return d_h * scale, d_weight * scale, None


def loss(model: Looped, h: Tensor, targets: Tensor) -> Tensor:
    return CrossEntropy.apply(h, model.head, targets)


def install(model: Looped) -> None:
    """In the place of `Looped.loss`; a copy of the model is bound to the copy's own head."""
    model.loss = MethodType(loss, model)
