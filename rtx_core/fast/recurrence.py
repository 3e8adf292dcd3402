"""Kausik's recurrence with its back-propagation through time written out: `models.kausik`'s numbers, sooner.

The outputs, and queries, keys and values of the tokens, are computed for all positions at once; what is left in the
loop is one block's matrix products for one position.  A test holds the two together in value and in gradient.
"""

from collections.abc import Callable
from types import MethodType

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from rtx_core.fast import onednn
from rtx_core.models.gpt import GPTBlock
from rtx_core.models.kausik import Kausik


def trunk(model: Kausik, x: Tensor) -> Tensor:  # (B, N, d) -> (B, N, d)
    x = x.transpose(0, 1).contiguous()  # time first from here on: the loop reads and writes whole slices
    for layer in model.layers:
        x = outputs(model, layer, states(model, layer, x))
    return x.transpose(0, 1)


def states(model: Kausik, layer: GPTBlock, x: Tensor) -> Tensor:
    """h_1 … h_N of x (N, B, d): everything that does not depend on a state is done here, the rest in `Recurrence`."""
    (N, B, d), device_type = x.shape, x.device.type
    x = x.to(layer.qkv.weight.dtype)  # states keep the precision of the weights; under autocast products have its
    dtype = torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else x.dtype
    q, token_kv = layer.qkv(layer.norm1(x)).to(x.dtype).split([d, 2 * d], dim=-1)
    # A norm's gain scales the columns of the matrix after it: LN(h) W = ((h − mean) / std) (gain · W).
    key_value = layer.qkv.weight[d:] * layer.norm1.weight
    up = layer.up.weight * layer.norm2.weight
    sizes = [(N, B, d), (N, B, d), (N, model.config.window, B, layer.num_heads)]
    masks = [dropout_mask(size, layer.p, x) if model.training and layer.p else None for size in sizes]
    constants = (layer.num_heads, model.config.window, model.config.norm_eps)
    weights = [weight.to(dtype) for weight in (key_value, layer.out.weight, up, layer.down.weight)]
    with torch.autocast(device_type, enabled=False):
        if device_type == "cuda" and not torch.compiler.is_compiling():
            return graphed(layer, constants, [x, q, token_kv, *weights], masks)
        return Recurrence.apply(*constants, x, q, token_kv, *weights, *masks)


def graphed(layer: GPTBlock, constants: tuple, operands: list[Tensor], masks: list) -> Tensor:
    """The recurrence as a CUDA graph: forward and backward are a launch each, not some fifty a position.  A layer keeps
    graphs of a few sizes, with dropout and without; the next call of a size writes over what this one gave."""
    present = [mask for mask in masks if mask is not None]
    graphs = vars(layer).setdefault("graphs", {})
    key = (len(present), *constants, *((x.shape, x.dtype) for x in operands))
    run = lambda *arguments: Recurrence.apply(*constants, *arguments, *(() if present else masks))  # noqa: E731
    if key not in graphs and len(graphs) < 4:  # of training, validation, and the test with its shorter last batch
        with torch.inference_mode(False), torch.enable_grad():
            examples = [x.detach().clone().requires_grad_() for x in operands] + [mask.clone() for mask in present]
            graphs[key] = torch.cuda.make_graphed_callables(run, tuple(examples))
    return graphs.get(key, run)(*operands, *present)


def outputs(model: Kausik, layer: GPTBlock, h: Tensor) -> Tensor:
    """y_1 … y_N of the states (N, B, d), all at once: the last state of each window attends to the window."""
    N, B, d = h.shape
    past = model.config.window - 1
    normed = layer.norm1(h)
    if past == 1:  # attention to itself alone: its value
        value = F.linear(normed, layer.qkv.weight[2 * d :]).view(N, B, layer.num_heads, -1)
        keep = F.dropout(value.new_ones(N, B, layer.num_heads, 1), layer.p, model.training)
        return layer.finish(h, (value * keep).flatten(2))
    q, k, v = layer.qkv(normed).view(N, B, 3, layer.num_heads, -1).permute(2, 0, 1, 3, 4)  # each (N, B, H, D)
    before = (0, 0, 0, 0, 0, 0, past - 1, 0)
    k, v = (F.pad(t, before).unfold(0, past, 1).transpose(-1, -2) for t in (k, v))  # (N, B, H, past, D)
    real = torch.arange(past, device=h.device) >= past - 1 - torch.arange(N, device=h.device)[:, None]
    p, mask = layer.p if model.training else 0.0, real.view(N, 1, 1, 1, past)
    mixed = F.scaled_dot_product_attention(q.unsqueeze(3), k, v, attn_mask=mask, dropout_p=p)
    return layer.finish(h, mixed.flatten(2))


def dropout_mask(size: tuple[int, ...], p: float, like: Tensor) -> Tensor:
    """Zeros with probability p, else 1 / (1 − p)."""
    return torch.empty(size, device=like.device, dtype=like.dtype).bernoulli_(1 - p).div_(1 - p)


class Recurrence(torch.autograd.Function):
    """The states (N, B, d) and their gradient, by back-propagation through time written out.

    One step, with n(·) the norm without its gain and m the dropout masks (all drawn before):

        [k | v]_j = n(h_j) Kᵀ           of the states in the window; those of the token itself come from outside
        a = Σ_j m_j softmax_j(q · k_j / √D) v_j,   u = x + m_o (a Oᵀ),   h = u + m_d (gelu(n(u) Uᵀ) Dᵀ)

    Backward, a step computes the gradient of its state only.  The gradient of a matrix is a sum over steps of
    (gradient of its output)ᵀ (its input): both are kept, and the sum is one product over all positions.
    """

    @staticmethod
    def forward(ctx, heads: int, window: int, eps: float, x, q, token_kv, key_value, out, up, down, *masks):
        ctx.loop = Loop(heads, window, eps, x, q, token_kv, (key_value, out, up, down), masks)
        return ctx.loop.forward(any(ctx.needs_input_grad))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):  # pyright: ignore[reportIncompatibleMethodOverride]
        return None, None, None, *ctx.loop.backward(grad), None, None, None


class Loop:
    """One recurrence: its operands, and its two loops over the positions."""

    def __init__(self, heads: int, window: int, eps: float, x, q, token_kv, weights: tuple, masks: tuple):
        N, B, d = x.shape
        self.width, self.eps, self.size = window, eps, (B, heads, d // heads)
        self.scale, self.weights = self.size[2] ** -0.5, weights
        self.x, self.token_kv = x.unbind(0), token_kv.unbind(0)  # each N × (B, …)
        self.q = (q * self.scale).view(N, *self.size).unbind(0)
        self.masks = tuple([None] * N if mask is None else mask.unbind(0) for mask in masks)
        self.h: list[Tensor] = []  # the states
        self.kv: list[Tensor] = []  # and their keys and values, (B, 2d)
        self.inner: list[tuple] = []  # each step's inner values, for its backward pass

    def window(self, t: int) -> tuple[Tensor, Tensor]:
        """Keys and values, (≤ w, B, H, D) each, of the states before t and of token t itself."""
        window_kv = torch.stack([*self.kv[max(0, t - self.width + 1) : t], self.token_kv[t]])
        k, v = window_kv.view(-1, self.size[0], 2, *self.size[1:]).unbind(2)
        return k, v

    def forward(self, save_inner: bool) -> Tensor:
        """The states (N, B, d); the inner values are kept where `save_inner`."""
        key_value, out, up, down = (product(weight, self.size[0]) for weight in self.weights)
        (mask_out, mask_down, mask_attention), d, eps = self.masks, self.x[0].shape[-1:], self.eps
        for t, x in enumerate(self.x):
            normed: tuple = (None, None, None)
            if t:
                normed = torch.native_layer_norm(self.h[t - 1], d, None, None, eps)  # with mean and 1 / std
                self.kv.append(key_value(normed[0]))
            k, v = self.window(t)
            p = torch.softmax((self.q[t] * k).sum(-1), 0)  # (≤ w, B, H)
            weighted_p = p if mask_attention[t] is None else p * mask_attention[t][: len(p)]
            mixed = (weighted_p.unsqueeze(-1) * v).sum(0).view_as(x)
            u = added(x, out(mixed), mask_out[t])
            normed_u = torch.native_layer_norm(u, d, None, None, eps)
            wide = up(normed_u[0])
            active = F.gelu(wide)
            self.h.append(added(u, down(active), mask_down[t]))
            if save_inner:
                self.inner.append((normed, p, mixed, u, normed_u, wide, active))
        return torch.stack(self.h)

    def backward(self, grad: Tensor) -> tuple[Tensor, ...]:
        """The gradients of x, q, own and the four weights, given that of the states, (N, B, d)."""
        key_value, out, up, down = (product(weight.t(), self.size[0]) for weight in self.weights)
        mask_out, mask_down, mask_attention = self.masks
        d_x, d_q, d_token_kv, products, d_next = [], [], [], [], 0.0
        d_kv: dict[int, Tensor] = {}  # by position
        for t in reversed(range(len(self.x))):
            normed, p, mixed, u, normed_u, wide, active = self.inner[t]
            d_h = grad[t] + d_next  # of the state, by its output and through the step after it
            d_down = d_h if mask_down[t] is None else d_h * mask_down[t]
            d_wide = torch.ops.aten.gelu_backward(down(d_down), wide)
            d_u = d_h + norm_backward(up(d_wide), u, *normed_u[1:])
            d_out = d_u if mask_out[t] is None else d_u * mask_out[t]
            d_mixed = out(d_out).view(self.size)
            k, v = self.window(t)
            weighted_p, d_p = p, (d_mixed * v).sum(-1)
            if mask_attention[t] is not None:
                mask = mask_attention[t][: len(p)]
                weighted_p, d_p = p * mask, d_p * mask
            d_score = torch.ops.aten._softmax_backward_data(d_p, p, 0, p.dtype).unsqueeze(-1)
            d_window = torch.stack((d_score * self.q[t], weighted_p.unsqueeze(-1) * d_mixed), 2)
            d_x.append(d_u)
            d_q.append((d_score * k).sum(0).view_as(d_u) * self.scale)
            *of_states, of_token = d_window.view(len(p), self.size[0], -1).unbind(0)
            d_token_kv.append(of_token)
            for j, d_state in zip(range(t - len(of_states), t), of_states):
                d_kv[j] = d_kv[j] + d_state if j in d_kv else d_state
            products.append((mixed, d_out, normed_u[0], d_wide, active, d_down))
            if t:  # the window of step t is the last that reads state t − 1
                d_next = norm_backward(key_value(d_kv[t - 1]), self.h[t - 1], *normed[1:])
        mixed, d_out, normed_u, d_wide, active, d_down = map(torch.cat, zip(*products))
        pairs = [(d_out, mixed), (d_wide, normed_u), (d_down, active)]
        if d_kv:
            gradient = torch.cat([d_kv[t] for t in range(len(self.kv))])
            pairs.insert(0, (gradient, torch.cat([normed[0] for normed, *_ in self.inner[1:]])))
        d_weights = [torch.zeros_like(weight) for weight in self.weights]
        for total, (gradient, value) in zip(d_weights[-len(pairs) :], pairs):
            total.addmm_(gradient.t().to(total.dtype), value.to(total.dtype))
        return *(torch.stack(gradients[::-1]) for gradients in (d_x, d_q, d_token_kv)), *d_weights


def norm_backward(grad: Tensor, x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    """Gradient of x for x normed without a gain."""
    options = (None, None, [True, False, False])
    return torch.ops.aten.native_layer_norm_backward(grad, x, x.shape[-1:], mean, scale, *options)[0]


def added(x: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """x + mask · value."""
    return x + value if mask is None else torch.addcmul(x, value, mask)


def product(weight: Tensor, rows: int) -> Callable[[Tensor], Tensor]:
    """x (rows, n) -> x weightᵀ, in the weight's format, which is laid out once for many products of few rows: a
    quarter less time at 8 rows."""
    if weight.device.type == "cpu" and weight.dtype in onednn.FORMATS:
        laid, multiply = onednn.packed(weight, rows), onednn.linear
    else:
        laid, multiply = weight.t().contiguous(), torch.mm
    return lambda x: multiply(x.to(weight.dtype), laid).to(x.dtype)


def install(model: Kausik) -> None:
    """In the place of `Kausik.trunk`."""
    model.trunk = MethodType(trunk, model)
