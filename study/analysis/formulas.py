"""Parameters and computation of every model in closed form, from its configuration; and whether records agree."""

from collections.abc import Iterable, Mapping

from rtx_core.models import configs
from rtx_core.models.registry import MODELS, config_of


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
        "halting gate": bool(c.halting) * (d + 1),
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


def size_of(c) -> dict[str, float]:
    """Parameters in all, of the layers and outside of the word embedding; of an encoder millions of operations, too."""
    parts = parameters(c)
    size = {"total": sum(parts.values()), "layers": parts["layers"]}
    size["outside"] = size["total"] - parts["word embedding"]
    return size | ({"mflops": mflops(c)} if isinstance(c, configs.EncoderConfig) else {})


def agree(runs: Iterable[Mapping]) -> bool:
    """Whether every run of a model of this package has as many parameters as its formula gives."""
    built_in = {name for name, model in MODELS.items() if isinstance(model.kind, str)}
    return all(
        sum(parameters(config_of(config["architecture"], **config["model"])).values()) == run["parameters"]["total"]
        for run in runs
        if (config := run["config"])["architecture"] in built_in
    )
