"""Small models and sentences made up for tests."""

import numpy as np
import torch

from rtx_core.models import build_model
from rtx_core.models.packed import Packed

SMALL = {"vocab_size": 97, "hidden_size": 48, "num_heads": 3, "intermediate_size": 80, "num_layers": 2}
TINY = SMALL | {"hidden_size": 16, "num_heads": 2, "intermediate_size": 32}
STORIES = {"vocab_size": 61, "hidden_size": 32, "num_heads": 4, "intermediate_size": 40}


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def disturbed(model, std: float = 0.1):
    """Biases, norms and logits far from their initial 0, 1 and ~0, so that nothing agrees by symmetry."""
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.add_(std * torch.randn(parameter.shape, generator=generator(i)))
    return model


def small(seed: int = 1, **overrides):
    """An encoder in float64, in evaluation mode."""
    return disturbed(build_model("baseline", seed=seed, **SMALL | overrides)).double().eval()


def small_decoder(name: str, seed: int = 0, **overrides):
    """A story model in float64, in evaluation mode."""
    return disturbed(build_model(name, seed=seed, **STORIES | overrides)).double().eval()


def loud(name: str, std: float, **settings):
    """A character model with weights so large that every part of it shows in its logits."""
    model, random = build_model(name, seed=1, **settings), generator(2)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=random) * std + (parameter.dim() == 1)
    return model


def with_gradients(model, batch, **how):
    """[logits, gradients of their squares …]"""
    logits = model(batch, **how)
    return [logits, *torch.autograd.grad(logits.square().sum(), list(model.parameters()))]


def batch_of(lengths, seed: int = 0) -> Packed:
    drawn = [torch.randint(1, 97, (n,), generator=generator(1000 * seed + i)) for i, n in enumerate(lengths)]
    return Packed.from_sequences([ids.tolist() for ids in drawn])


def stories_of(*lengths: int, seed: int = 0) -> Packed:
    random = np.random.RandomState(seed)
    return Packed.from_sequences([random.randint(0, 61, size=n) for n in lengths])
