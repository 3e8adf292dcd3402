"""Parameters of every model in closed form, from its configuration; and whether the records agree."""

from rtx_core.models import configs
from rtx_core.models.registry import MODELS, config_of
from rtx_core.report.values import Space
from study import paper


def encoder(c: configs.EncoderConfig) -> dict[str, int]:
    """Linear maps have biases, norms have a weight alone; the number of passes does not occur."""
    d, f = c.hidden_size, c.intermediate_size
    attention = 4 * (d * d + d)  # query, key, value, output
    swiglu = 2 * (d * f + f) + (f * d + d)
    return {
        "word embedding": c.vocab_size * d,
        "token-type embedding": c.type_vocab_size * d,
        "embedding norm": d,
        "layers": c.num_layers * (attention + swiglu + 2 * d),
        "classifier": c.num_labels * (d + 1),
    }


def gpt(c: configs.GPTConfig) -> dict[str, int]:
    """No biases; the output matrix is the embedding. A recurrence over the text adds nothing."""
    d, f = c.hidden_size, c.intermediate_size
    return {
        "word embedding": c.vocab_size * d,
        "position embedding": c.positions * c.block_size * d,
        "layers": c.num_layers * (4 * d * d + 2 * d * f + 2 * d),
        "last norm": d,
    }


def llama(c: configs.LoopedConfig) -> dict[str, int]:
    """No biases; the output matrix is the embedding. What a loop adds depends on the model."""
    d, f = c.hidden_size, c.intermediate_size
    found = {
        "word embedding": c.vocab_size * d,
        "layers": c.num_layers * (4 * d * d + 3 * d * f + 2 * d),
        "last norm": d,
    }
    if c.encoding != "none":
        found["a vector for each pass"] = c.num_passes * d
    if c.injection == "linear":
        found["adapter and norm of the state"] = 2 * d * d + c.state_norm * d
    if c.gate:
        found["gate"] = d * d
    if c.loop_norm:
        found["norm in the loop"] = d
    if c.lora_rank:
        matrices = 4 * (d + d) + 3 * (d + f)  # rows + columns of the seven matrices of a layer
        found["low-rank corrections"] = c.num_passes * c.num_layers * c.lora_rank * matrices
    return found


def parameters(c) -> dict[str, int]:
    """Component -> parameters, of any model of this package."""
    kinds = {configs.EncoderConfig: encoder, configs.GPTConfig: gpt, configs.LoopedConfig: llama}
    return next(count(c) for kind, count in kinds.items() if isinstance(c, kind))


def mflops(c: configs.EncoderConfig) -> float:
    """Millions of operations of the matrix products in the layers, for a token's forward pass."""
    d, f = c.hidden_size, c.intermediate_size
    return 2 * (4 * d * d + 3 * d * f) * c.num_layers * c.num_passes / 1e6


def described(name: str) -> dict:
    c = config_of(name)
    found = parameters(c)
    total = sum(found.values())
    entry = {"total": total, "outside": total - found["word embedding"], "layers": found["layers"]}
    return entry | ({"mflops": mflops(c)} if isinstance(c, configs.EncoderConfig) else {})


def counted() -> Space:
    """`counted.baseline.total`; and whether every recorded run has as many as its formula gives."""
    found = {name: described(name) for name, model in MODELS.items() if isinstance(model.kind, str)}
    agree = all(
        sum(parameters(config_of(config["architecture"], **config["model"])).values()) == run["parameters"]["total"]
        for run in paper.records()
        if (config := run["config"])["architecture"] in found
    )
    return Space(found | {"agree": agree})


VALUES = {"counted": counted}
