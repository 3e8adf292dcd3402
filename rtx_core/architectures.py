"""What the models are, counted from the models themselves: `python -m rtx_core.architectures` writes results/architectures.json,
results/decoders.json of the story models and results/characters.json of the character models.

Pages read these files, so they need no torch; a test compares them with a fresh count.
"""

from dataclasses import asdict

from rtx_core.language import LANGUAGE
from rtx_core.models import build_model, count_parameters
from rtx_core.parameters import CLASSIFIERS
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


def describe_decoder(name: str) -> dict:
    """The same of a story model, by its name in the experiment."""
    architecture, overrides = LANGUAGE["tinystories"].models[name]
    model = build_model(architecture, **overrides)
    c = model.config
    looped = getattr(c, "num_core_layers", c.num_layers)
    return {
        "config": asdict(c),
        "components": model.components(),
        "total": count_parameters(model)["total"],
        "layers_a_pass": looped,
        "layers_applied": c.num_layers - looped + looped * c.num_passes,
        "flops_per_token": 2 * model.multiplications(),
    }


def describe_character_model(name: str) -> dict:
    """The same of a model of the Shakespeare study.  Attention is that of a text as long as the position table."""
    architecture, overrides = LANGUAGE["shakespeare"].models[name]
    model = build_model(architecture, **overrides)
    c = model.config
    recurrent = architecture == "kausik"
    blocks = c.num_layers * (2 if recurrent else 1)  # the recurrence applies T once for the state and once for the output
    keys = (c.window + c.window - 1) / 2 if recurrent else (c.block_size + 1) / 2  # seen by a token, on average
    flops = {
        "blocks": 2 * blocks * sum(p.numel() for p in model.layers[0].parameters() if p.dim() == 2),
        "attention": round(4 * blocks * keys * c.hidden_size),  # scores and mixture, a multiply and an add for each
        "head": 2 * model.word.weight.numel(),
    }
    return {
        "config": asdict(c),
        "architecture": architecture,
        "total": count_parameters(model)["total"],
        "blocks_per_token": blocks,
        "flops": flops,
        "flops_per_token": sum(flops.values()),
    }


if __name__ == "__main__":
    write_json(REPOSITORY / "results" / "characters.json", {name: describe_character_model(name) for name in LANGUAGE["shakespeare"].models})
    write_json(REPOSITORY / "results" / "decoders.json", {name: describe_decoder(name) for name in LANGUAGE["tinystories"].models})
    write_json(REPOSITORY / "results" / "architectures.json", {name: describe(name) for name in CLASSIFIERS})
