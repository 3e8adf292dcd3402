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
    """No biases; the output matrix is the embedding. What a loop adds depends on the model, and may be 0."""
    d, f = c.hidden_size, c.intermediate_size
    adapter = 2 * d * d + c.state_norm * d
    matrices = 4 * (d + d) + 3 * (d + f)  # rows + columns of the seven matrices of a layer
    return {
        "word embedding": c.vocab_size * d,
        "layers": c.num_layers * (4 * d * d + 3 * d * f + 2 * d),
        "last norm": d,
        "a vector for each pass": (c.encoding != "none") * c.num_passes * d,
        "adapter and norm of the state": (c.injection == "linear") * adapter,
        "gate": c.gate * d * d,
        "norm in the loop": c.loop_norm * d,
        "low-rank corrections": c.num_passes * c.num_layers * c.lora_rank * matrices,
    }


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
    entry = {"total": sum(found.values()), "layers": found["layers"]}
    entry["outside"] = entry["total"] - found["word embedding"]
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
