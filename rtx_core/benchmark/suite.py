"""The suite that `rtx bench` trains a model on: tasks, budgets, and the stacks and loops that it is compared with.

    pointers     k-hop induction, up to 4 hops over 32 letters: can it *follow*?         error at the most hops
    pointers-8   the same, up to 8 hops over 48 letters
    facts        random facts (a, b) → v to memorize: how much can it *store*?           error, and kilobits stored
    s3, z6       products in the group S3, where order matters, and Z6, where not        error over all lengths
    characters   language modeling by characters, of generated plays or a text of yours  nats a character

Budgets.  `quick` takes at most 15 minutes on two cores: pointers, facts and s3 at one learning rate with one seed.
Only the model itself is trained.  It is compared with a recorded ladder of models at the same budget: stacks of one to
four layers, narrow stacks of four layers with the parameters of one and of two, and three loops.  One seed bears no
verdict, so the card gives measurements and places: the stack with the nearest number of parameters, the one with the
nearest depth, and how many layers run once have the same error.

`standard` takes a night: all six tasks at three learning rates with three seeds, the rate of each model picked by its
mean validation loss.  The tool makes two controls from the model's own counts (`counts`): `as deep` does as many
multiply-adds a token with each weight used once, so it has more parameters; `as large` has the model's parameters *and*
that depth, so it is narrow.  A verdict follows the rule of *Methods*: Welch's t-test over seeds on the logit of the
error, adjusted over the card after Benjamini and Hochberg; "equal" if two one-sided tests place the odds of an error
between 2/3 and 3/2; else "cannot say", with the factor that so many seeds could have shown.

`trial` takes seconds and trains next to nothing: it tells whether a model passes through all of it.

Every run is a record like all others.  What is recorded is not run again, and a stopped run goes on
from its checkpoint.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rtx_core.data.config import FactData, GroupData, HopData, LanguageData
from rtx_core.experiments import Experiment, ModelVariant
from rtx_core.records import Record
from rtx_core.train.config import TrainConfig

PREFIX, TEXT = "bench-", "characters"  # of the experiments' names; the task that can read a text of one's own
NATS = (TEXT,)  # tasks that are scored by their loss


def variant(layers: int, passes: int = 1, width: int = 64, mlp: int = 176, **switches: object) -> ModelVariant:
    """A model of this library: layers × passes at a width."""
    sizes = {"hidden_size": width, "num_heads": 4 if width >= 64 else 2, "intermediate_size": mlp, "rope_base": 100.0}
    return ModelVariant("looped", sizes | {"num_layers": layers, "num_passes": passes} | switches)


STACKS = {f"{n}x1": variant(n) for n in (1, 2, 3, 4)}
LADDER = STACKS | {
    "4x1-w32": variant(4, width=32, mlp=88),  # as many parameters as one layer of 1x1
    "4x1-w44": variant(4, width=44, mlp=120),  # and as two
    "1x4": variant(1, 4),
    "2x2": variant(2, 2),
    "1x6-random": variant(1, 6, random_passes=True),
}

_TRAIN = TrainConfig(epochs=0, steps=3000, batch_size=32, learning_rate=2e-3, min_learning_rate=1e-4, eval_every=250)
_TRAIN = _TRAIN.replace(schedule="cosine", warmup_steps=200, beta2=0.98, weight_decay=0.01, decay="matrices")
_TRAIN = _TRAIN.replace(stop_patience=0, stop_min_delta=0.0)
_HARD = HopData(letters=48, hops=8, eval_texts=720, test_texts=4_608)
_BY_HEART = _TRAIN.replace(steps=0, epochs=60, batch_size=1024, weight_decay=0.0, eval_every=0)


def _experiment(data, train: TrainConfig = _TRAIN, **quick: Any) -> Experiment:
    source = {"source": "embedded"} if data.algorithmic else {}
    budgets = {"standard": {}, "quick": quick, "trial": data.smoke_settings | source}
    return Experiment(data, train, LADDER, tuple(LADDER), budgets=budgets)


SUITE = {
    "pointers": _experiment(HopData(test_texts=5_120), eval_every=500),
    "pointers-8": _experiment(_HARD, _TRAIN.replace(steps=4000)),
    "facts": _experiment(FactData(facts=32_768), _BY_HEART, epochs=30),
    "s3": _experiment(GroupData(group="S3", letters=16), letters=8, eval_every=500, learning_rate=4e-3),
    "z6": _experiment(GroupData(group="Z6", letters=16)),
    TEXT: _experiment(LanguageData(corpus="shakespeare", source="embedded", block_size=64, eval_batches=20)),
}
EXPERIMENTS = {f"{PREFIX}{task}": experiment for task, experiment in SUITE.items()}


@dataclass(frozen=True)
class Budget:
    """What is trained: the tasks, the learning rates (none: each task's own) and the seeds."""

    tasks: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    rates: tuple[float, ...] = ()
    makes_controls: bool = True  # else the model is compared with the recorded ladder
    cautions: Mapping[str, str] = field(default_factory=dict)  # what its card says of a task


_LATE = "Loops learn facts late: after longer training recorded loops overtake stacks that store more at this budget."
_ONE = "Another seed would change the order of models whose errors lie close together."
BUDGETS = {
    "quick": Budget(("pointers", "facts", "s3"), makes_controls=False, cautions={"facts": _LATE, "pointers": _ONE}),
    "standard": Budget(tuple(SUITE), (0, 1, 2), (1e-3, 2e-3, 4e-3)),
    "trial": Budget(("pointers", "facts", "s3", TEXT)),
}


def unit_of(task: str) -> Literal["error", "nats"]:
    """What a task is scored in."""
    return "nats" if task in NATS else "error"


def error(task: str, record: Record) -> tuple[float, int]:
    """(what the task is scored by, number of answers): the share of wrong answers, or nats."""
    test = record["test"]
    if "accuracy" not in test:
        return test["loss"], 0
    part = test["parts"][-1] if task.startswith("pointers") else {"error": 1 - test["accuracy"], "answers": test["n"]}
    return part["error"], part["answers"]


def of_evaluation(task: str, row: Mapping[str, float]) -> float:
    """The same of the entries of an evaluation on the validation sequences."""
    if task in NATS:
        return row["validation_loss"]
    hops = [name for name in row if name.startswith("error_hops_")]
    return row[hops[-1]] if task.startswith("pointers") else 1 - row["validation_accuracy"]


def logit(share: float, answers: int) -> float:
    """With half an answer added to either side."""
    return math.log((share * answers + 0.5) / ((1 - share) * answers + 0.5))


def kilobits(record: Record) -> float:
    """What a model stores of the facts that it is tested on (`data.algorithmic.Facts`)."""
    facts, values = (record["config"]["data"][name] for name in ("facts", "values"))
    return facts * max(0.0, math.log2(values) - record["test"]["loss"] / math.log(2)) / 1000
