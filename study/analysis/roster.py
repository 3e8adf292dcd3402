"""What the book trains: the settings of each task, and every loop and stack of the plan, read from configurations."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from rtx_core.data.config import DataConfig
from rtx_core.experiments.configure import RunConfig, configure
from rtx_core.models.configs import EncoderConfig, GPTConfig, KausikConfig, LoopedConfig
from rtx_core.models.registry import config_of
from rtx_core.report import title
from rtx_core.report.display import markdown
from study.analysis.formulas import size_of
from study.experiments import GROWTH
from study.plan import FACTS, SMALL

TASKS = {  # column of the table of settings -> experiment, model, settings
    "Pointers, 4 hops": ("khop", "2x2", {}),
    "Pointers, 8 hops": ("khop-hard", "2x3", {}),
    "Pointers, 16 hops": ("khop-published", "1x4", {"budget": "reduced"}),
    "Facts": ("facts", "2x2", FACTS),
    "State tracking": ("state-tracking", "1x8", {}),
    "Characters": ("iso-depth", "2x3-64", {}),
    "Stories": ("tinystories-small", "frailt", SMALL["tinystories-small"]),
    "Reviews": ("sst2", "recurrent", {}),
}
PAGES = {  # the start of an experiment's name -> the page of its results
    "khop": "[Pointers](looping.ipynb)",
    "facts": "[Facts](facts.ipynb)",
    "state-tracking": "[State tracking](state-tracking.ipynb)",
    "iso-depth": "[Text](iso-depth.ipynb)",
    "shakespeare": "[Shakespeare](shakespeare.ipynb)",
    "tinystories": "[TinyStories](tinystories.ipynb)",
    "": "[Reviews](../results.md)",
}
KINDS = {LoopedConfig: "decoder", GPTConfig: "GPT", KausikConfig: "Kausik", EncoderConfig: "classifier"}


def model_of(run: RunConfig) -> Any:
    """The configuration of its model, of that model's own class."""
    return config_of(run.architecture, **run.overrides)


def page_of(run: RunConfig) -> str:
    if run.model in GROWTH:
        return "[After the answer](inside-rest.ipynb)"
    if run.model.endswith("-noise"):
        return "[Number formats](precision.ipynb)"
    return next(page for start, page in PAGES.items() if run.experiment.startswith(start))


def applications(c: Any) -> int:
    """Layer applications from the embedding to the output; Kausik's layer is applied twice for each token."""
    if isinstance(c, KausikConfig):
        return 2 * c.num_layers
    core = getattr(c, "num_core_layers", 0) or c.num_layers
    return c.num_layers + core * (getattr(c, "num_passes", 1) - 1)


def multiply_adds(c: Any) -> int:
    """Of the matrix products of one application of a layer to one token, without the scores of attention."""
    matrices = 2 if isinstance(c, GPTConfig) else 3  # of the feed-forward network
    return 4 * c.hidden_size**2 + matrices * c.hidden_size * c.intermediate_size


def short_rate(rate: float) -> str:
    """As in "2e-3"."""
    mantissa, exponent = f"{rate:.1e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def sequence_tokens(data: DataConfig) -> str:
    fields = data.model_dump()
    if "hops" in fields:
        return f"{fields['letters'] + 1}"
    if "letters" in fields:
        return f"4 to {fields['letters']}"
    if "facts" in fields:
        return "2"
    if "block_size" in fields:
        return f"{fields['block_size']}"
    return f"up to {fields['max_length']}"


def setting_column(plan: list[RunConfig], run: RunConfig, vocabulary: int) -> dict[str, str | None]:
    """The settings of one task, as this run has them; widths, rates and seeds are those of all runs of the plan."""
    c, train = model_of(run), run.train
    runs = [each for each in plan if each.experiment == run.experiment]
    widths = sorted({model_of(each).hidden_size for each in runs} - {c.hidden_size})
    rates = sorted({each.train.learning_rate for each in runs} - {train.learning_rate})
    seeds = defaultdict(set)
    for each in runs:
        if each.name == run.name:
            seeds[each.model].add(each.seed)
    encoder = isinstance(c, EncoderConfig)
    return {
        "Experiment": run.experiment,
        "Vocabulary": f"{vocabulary:,}",
        "Tokens in a sequence": sequence_tokens(run.data),
        "Attention": "both ways" if encoder else "causal",
        "Positions": f"rotary, base {c.rope_base:,g}",
        "Width d": f"{c.hidden_size}",
        "Other widths": ", ".join(map(str, widths)) or None,
        "Heads": f"{c.num_heads}",
        "MLP units": f"{c.intermediate_size:,}",
        "Injection of the input": "none" if encoder else c.injection,
        "Residual scale α": f"{c.residual_scale:g}" if encoder else "none",
        "Dropout": f"{c.dropout:g}" if encoder else "0",
        "Training": f"{train.steps:,} steps" if train.steps else f"{train.epochs} epochs",
        "Batch, in sequences": f"{train.batch_size:,}",
        "Learning rate": short_rate(train.learning_rate),
        "Other rates": ", ".join(map(short_rate, rates)) or None,
        "Warm-up, in steps": f"{train.warmup_steps:,}",
        "Weight decay": f"{train.weight_decay:g}",
        "Most seeds at this learning rate": f"{max(map(len, seeds.values()), default=0)}",
        "Multiply-adds, layer": f"{multiply_adds(c):,}",
        "Multiply-adds, output": f"{(c.num_labels if encoder else vocabulary) * c.hidden_size:,}",
    }


def settings(plan: list[RunConfig], vocabularies: Mapping[str, int]) -> pd.DataFrame:
    """A row for each setting, a column for each task; vocabularies by experiment."""
    columns = {
        task: setting_column(plan, configure(experiment, model, **changes), vocabularies[experiment])
        for task, (experiment, model, changes) in TASKS.items()
    }
    return pd.DataFrame(columns).rename_axis("Setting").reset_index()


def differences(c: Any) -> str:
    """How a model differs from the plain decoder, GPT, recurrence or classifier of its size, in a few words."""
    fields: dict[str, Any] = defaultdict(lambda: None, c.model_dump())
    parts = {
        "middle loops": fields["num_core_layers"],
        "pass vectors": fields["encoding"] not in (None, "none"),
        f"rank {fields['lora_rank']} for each pass": fields["lora_rank"],
        "random passes": fields["random_passes"],
        "input added": fields["injection"] == "add",
        "input by matrix": fields["injection"] == "linear",
        "gate": fields["gate"],
        "norm": fields["loop_norm"],
        f"{fields['weight_noise']}-bit noise": fields["weight_noise"],
        f"MLP of {fields['intermediate_size']} units": fields["intermediate_size"] > 4 * fields["hidden_size"],
        f"window of {fields['window']}": (fields["window"] or 2) > 2,
        "learned positions": isinstance(c, KausikConfig) and c.positions,
    }
    return "; ".join(part for part, applies in parts.items() if applies)


def name_of(run: RunConfig) -> str:
    """What figures call a model that is more than layers x passes."""
    name = title(re.sub(r"-(time|64|128)$", "", run.model))
    return "random-pass loop" if run.model == "1x6-random" else "" if name[0].isdigit() else name


def roster(plan: Iterable[RunConfig]) -> pd.DataFrame:
    """A row for each loop and stack; a model that several experiments train is one row."""
    rows = defaultdict(list)
    for run in plan:
        c = model_of(run)
        kind, passes = [*KINDS].index(type(c)), getattr(c, "num_passes", 1)
        key = (kind, passes > 1, c.num_layers, passes, c.hidden_size, size_of(c)["outside"], differences(c))
        rows[key].append(run)
    return pd.DataFrame([roster_row(runs) for _, runs in sorted(rows.items())])


def roster_row(runs: list[RunConfig]) -> dict:
    c = model_of(runs[0])
    kind, passes = KINDS[type(c)], getattr(c, "num_passes", 1)
    names = sorted({name_of(run) for run in runs} - {""})
    return {
        "Model": f"{c.num_layers}×{passes}",
        "Kind": kind,
        "Layers": c.num_layers,
        "Passes": passes,
        "Width": c.hidden_size,
        "Parameters": size_of(c)["outside"],
        "Applications": applications(c),
        "Name in figures": "; ".join(names) or None,
        "Differs by": differences(c) or None,
        "Results": markdown(", ".join(sorted(set(map(page_of, runs))))),
        "Runs": len(runs),
    }
