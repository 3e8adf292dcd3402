"""What the models are, counted from the models themselves: `python -m rtx_core.architectures` writes results/architectures.json.

Pages read that file, so they need no torch; a test compares it with a fresh count.
"""

from dataclasses import asdict

from rtx_core.models import MODELS, build_model, count_parameters
from rtx_core.paths import REPOSITORY, write_json


def describe(name: str) -> dict:
    """Configuration, parameters by component, and matrix-product FLOPs of one token's forward pass."""
    model = build_model(name)
    layer = sum(p.numel() for p in model.layers[0].parameters())
    c = model.config
    d, f, depth = c.hidden_size, c.intermediate_size, c.num_layers * c.num_passes
    components = {
        "word embedding": model.word.weight.numel(),
        "token-type embedding": model.token_type.weight.numel(),
        "embedding norm": model.norm.weight.numel(),
        "layers": layer * c.num_layers,
        "classifier": sum(p.numel() for p in model.head.parameters()),
    }
    counts = count_parameters(model)
    return {
        "config": asdict(c),
        "parameters": counts | {"layer": layer, "components": components},
        "size_mb": counts["total"] * 4 / 2**20,
        "effective_depth": depth,
        "flops_per_token": 2 * depth * (4 * d * d + 3 * d * f),  # a multiply and an add for every weight of a matrix
    }


if __name__ == "__main__":
    write_json(REPOSITORY / "results" / "architectures.json", {name: describe(name) for name in MODELS})
