"""Numbers of the appendix: collisions of rotary positions, distances between activations."""

import numpy as np
from scipy.special import ndtr

from rtx_core.models.registry import config_of
from rtx_core.report.values import Space

FURTHEST = 512


def collisions(size: int, base: float) -> int:
    """Offsets from 2 on whose token looks at least as near as the next one: s(m) ≥ s(1)."""
    theta = base ** (-np.arange(0, size, 2) / size)
    s = np.cos(np.outer(np.arange(FURTHEST), theta)).mean(1)
    return int((s[2:] >= s[1]).sum())


def derived() -> Space:
    c = config_of("baseline")
    z = np.linspace(-8, 8, 160_001)
    silu, swish, sharp = (z / (1 + np.exp(-beta * z)) for beta in (1.0, 1.702, 10.0))
    gelu = z * ndtr(z)
    found = {"collisions_64": collisions(64, c.rope_base)}
    found |= {"head": c.hidden_size // c.num_heads, "furthest": FURTHEST - 1}
    found |= {"silu_low": float(silu.min()), "silu_at": float(z[silu.argmin()])}
    found |= {"silu_gelu": float(abs(silu - gelu).max()), "swish_gelu": float(abs(swish - gelu).max())}
    found["swish_relu"] = float(abs(sharp - np.maximum(z, 0)).max())
    return Space(found)


VALUES = {"derived": derived}
