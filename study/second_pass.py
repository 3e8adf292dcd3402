"""The book's question, asked of one layer: what a second pass gains, as a share of what a second layer gains."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from statistics import mean

from scipy.special import logit

from rtx_core.reads import remembered
from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.statistics import ENOUGH_SEEDS, unpaired
from study.analysis.facts import stored_bits
from study.analysis.hops import wrong
from study.analysis.records import pass_share, share_interval, test_loss
from study.folders import LONGER, Folders

ASKED = ("1x1", "1x2", "2x1")  # a layer, a second pass of it, a second layer
HOPS = 4


def four_hops(run: Record) -> float:
    """The share of wrong answers."""
    return wrong(run, HOPS)


def bits(run: Record) -> float:
    """Stored of each fact."""
    return stored_bits(run) / run["config"]["data"]["facts"]


@dataclass(frozen=True)
class Question:
    """A task at a width: the runs of each model, what they are scored by, and the form of a score.

    `others` are the runs of what else was trained with the parameters of one layer: two narrow layers for as many steps
    (`split_steps`), and for the multiply-adds of the layer run twice these (`split`) and the layer itself (`longer`).
    """

    task: str
    width: int
    runs: Callable[[str], list[Record]]
    score: Callable[[Record], float]
    form: str
    others: dict[str, Callable[[], list[Record]]] = field(default_factory=dict)

    @remembered
    def scores(self) -> dict[str, dict[int, float]]:
        """Of each model, by seed."""
        return {model: {run["seed"]: self.score(run) for run in self.runs(model)} for model in ASKED}

    def share(self) -> float:
        """Of mean scores."""
        return pass_share(lambda model: mean(self.scores[model].values()))

    @property
    def of_each_loop(self) -> list[float]:
        """Of the layer run twice by seed, beside the mean scores of the others, in per cent."""
        once, two = (mean(self.scores[model].values()) for model in ("1x1", "2x1"))
        return [100 * (once - twice) / (once - two) for twice in self.scores["1x2"].values()]

    @property
    def shares(self) -> list[float]:
        """Of each seed that all models have, in per cent."""
        seeds = set.intersection(*map(set, self.scores.values()))
        return [100 * pass_share(lambda model, seed=seed: self.scores[model][seed]) for seed in sorted(seeds)]

    @property
    def seeds(self) -> str:
        """How many each model has."""
        counts = sorted({len(by_seed) for by_seed in self.scores.values()})
        return " to ".join(map(str, counts[:: max(1, len(counts) - 1)]))

    @property
    def interval(self) -> str:
        """Of 95 % of the share, in per cent; of few seeds what each of them says."""
        if min(map(len, self.scores.values())) < ENOUGH_SEEDS:
            return " and ".join(number(share, ".0f") for share in sorted(self.shares)) + " by seed"
        ends = self.ends
        return " to ".join(number(100 * end, ".0f") for end in ends) if math.isfinite(ends[0]) else "unbounded"

    @property
    def ends(self) -> tuple[float, float]:
        """Of the share's interval, by Fieller's theorem."""
        return share_interval(*(list(by_seed.values()) for by_seed in self.scores.values()))

    def scores_of(self, name: str) -> list[float]:
        """The scores of what else was trained, by seed."""
        return list(map(self.score, self.others[name]()))

    def gain(self, name: str) -> float:
        """What this gains of what a second layer gains, by mean scores."""
        once, two = (mean(self.scores[model].values()) for model in ("1x1", "2x1"))
        return (once - mean(self.scores_of(name))) / (once - two)

    def gain_ends(self, name: str) -> tuple[float, float]:
        """Of the interval of this share."""
        once, two = (list(self.scores[model].values()) for model in ("1x1", "2x1"))
        return share_interval(once, self.scores_of(name), two)

    def p_against(self, name: str) -> float:
        """By Welch's test, of the layer run twice against this."""
        return unpaired(list(self.scores["1x2"].values()), self.scores_of(name))[3]

    def share_in_log_odds(self) -> float:
        """Of mean log-odds of a wrong answer, where scores are shares of wrong answers."""
        return pass_share(lambda model: mean(map(logit, self.scores[model].values())))

    @property
    def p(self) -> float:
        """By Welch's test, of the layer run twice against the layer run once."""
        return unpaired(*(list(self.scores[model].values()) for model in ("1x2", "1x1")))[3]


def questions(runs: Folders) -> dict[str, Question]:
    """Of three tasks, each at two widths and at the best learning rate of each model; and of each after four times the
    training, at one rate."""

    def others(task: str) -> dict[str, Callable[[], list[Record]]]:
        trained = {name: partial(runs.split, task, work) for name, work in (("split_steps", False), ("split", True))}
        return trained | ({"longer": partial(runs.longer_single, task)} if task in LONGER else {})

    pointers, text, facts = "pointers, wrong at four hops", "text, nats per character", "facts, bits stored of eight"
    return {
        "hops": Question(pointers, 64, runs.again, four_hops, ".1%", others("hops")),
        "hops_wide": Question(pointers, 256, runs.wider_runs, four_hops, ".1%", others("hops_wide")),
        "text": Question(text, 64, lambda model: runs.text_again(f"{model}-64"), test_loss, ".3f", others("text")),
        "text_wide": Question(text, 256, runs.wide_text, test_loss, ".3f"),
        "bits": Question(facts, 64, runs.facts_again, bits, ".1f", others("bits")),
        "bits_wide": Question(facts, 128, runs.wide_facts_runs, bits, ".1f"),
        "hops_long": Question(pointers, 64, runs.long_hops, four_hops, ".1%"),
        "bits_long": Question(facts, 64, runs.long_facts, bits, ".1f"),
        "text_long": Question(text, 64, lambda model: runs.longer_text(f"{model}-64"), test_loss, ".3f"),
    }
