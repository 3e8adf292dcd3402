"""Small models and sentences made up for tests, and the encoder written a second time: padded, masked, explicit."""

import math

import torch

from rtx_core.models import build_model

SMALL = {"vocab_size": 97, "hidden_size": 48, "num_heads": 3, "intermediate_size": 80, "num_layers": 2}
TINY = SMALL | {"hidden_size": 16, "num_heads": 2, "intermediate_size": 32}


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(seed: int = 1, **overrides):
    """A model in float64 whose biases, norms and logits are far from their initial 0, 1 and ~0."""
    model = build_model("baseline", seed=seed, **SMALL | overrides).double().eval()
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator(i), dtype=torch.float64))
    return model


def sentences_of(lengths, seed: int = 0) -> list[list[int]]:
    return [torch.randint(1, 97, (n,), generator=generator(1000 * seed + i)).tolist() for i, n in enumerate(lengths)]


# --- The encoder, padded ----------------------------------------------------------------------------------------------

def rms(x, weight, eps):
    return x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * weight


def rope(x, base):  # (B, L, H, D), positions 0 … L-1, pairs (i, i + D/2)
    length, size = x.shape[1], x.shape[-1]
    frequency = torch.tensor([base ** (-2 * i / size) for i in range(size // 2)], dtype=torch.float64).repeat(2)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    half = torch.cat((-x[..., size // 2 :], x[..., : size // 2]), -1)
    return x * angle.cos()[:, None] + half * angle.sin()[:, None]


def padded_layer(x, real, layer, config):
    B, L, d = x.shape
    H, D = config.num_heads, d // config.num_heads
    normed = rms(x, layer.attention_norm.weight, config.norm_eps)
    q, k, v = (
        (normed @ weight.T + bias).view(B, L, H, D)
        for weight, bias in zip(layer.attention.qkv.weight.split(d), layer.attention.qkv.bias.split(d))
    )
    scores = torch.einsum("bihd,bjhd->bhij", rope(q, config.rope_base), rope(k, config.rope_base)) / math.sqrt(D)
    scores = scores.masked_fill(~real[:, None, None, :], -math.inf).exp()
    mixed = torch.einsum("bhij,bjhd->bihd", scores / scores.sum(-1, keepdim=True), v).reshape(B, L, d)
    x = x + mixed @ layer.attention.out.weight.T + layer.attention.out.bias
    gate, up = (
        rms(x, layer.ffn_norm.weight, config.norm_eps) @ weight.T + bias
        for weight, bias in zip(layer.ffn.gate_up.weight.chunk(2), layer.ffn.gate_up.bias.chunk(2))
    )
    return x + (gate / (1 + (-gate).exp()) * up) @ layer.ffn.down.weight.T + layer.ffn.down.bias


def padded_logits(model, sentences):
    c, longest = model.config, max(map(len, sentences))
    ids = torch.tensor([s + [0] * (longest - len(s)) for s in sentences])
    real = torch.tensor([[i < len(s) for i in range(longest)] for s in sentences])
    x = rms(model.word.weight[ids] + model.token_type.weight[0], model.norm.weight, c.norm_eps)
    for r in range(c.num_passes):
        before = x
        for layer in model.layers:
            x = padded_layer(x, real, layer, c)
        if r > 0 or c.residual == "paper":
            x = x + c.residual_scale * before
    return x[:, 0] @ model.head.weight.T + model.head.bias
