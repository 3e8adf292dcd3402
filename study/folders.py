"""Runs by the folders of their records, as the classes of `study/analysis`."""

from collections.abc import Callable
from statistics import mean
from types import SimpleNamespace
from typing import Any

from rtx_core.experiments.configure import configure
from rtx_core.records import Record
from rtx_core.report.evidence import by_model
from rtx_core.report.statistics import common
from rtx_core.report.values import Runs, Task, Value
from rtx_core.train.config import TrainConfig
from study.analysis.facts import Facts, most_bits
from study.analysis.hops import AtOwnRates, Hops, at_best_rate, compared, wrong
from study.analysis.iso_depth import IsoDepth, best_of, text_worth
from study.analysis.ladder import Ladder, Tuned
from study.analysis.language import Language
from study.analysis.records import picked_on
from study.experiments import ONE_SEED
from study.plan import LADDER, SATURATING, TENTH, TUNED, TUNING

HIGHER = ("-learningrate0.006", "-learningrate0.012")  # than the rate of all iso-depth models, 3e-3
KHOP_RATES = (0.001, 0.004, 0.008)  # beside 2e-3
WIDER_RATES, SATURATED_RATES = (0.0005, 0.001), ("", "-learningrate0.001", "-learningrate0.004")
MUON = (0.001, 0.004, 0.012)
STORIES, STORIES_HIGHER = "tinystories-small-learningrate0.004", "tinystories-small-learningrate0.008"
CHARACTERS = "shakespeare-small-learningrate0.003"


class Folders:
    """What pages, verdicts and the table of evidence ask of runs; `records` gives those of a folder."""

    def __init__(self, records: Callable[[str], list[Record]]):
        self.records = records

    # -- Pointers, products and facts

    def hops(self, name: str) -> Hops:
        """Of k-hop or of products in a group."""
        return Hops(self.records(name), name)

    def on_logits(self, first: str, second: str) -> SimpleNamespace:
        """Two k-hop models at 2e-3, paired by seed."""
        khop = self.hops("khop")
        return compared(khop.records_for(first), khop.records_for(second))

    def khop_at_best_rates(self) -> AtOwnRates:
        return AtOwnRates(4, self.hops("khop"), *(self.hops(f"khop-learningrate{rate}") for rate in KHOP_RATES))

    def khop_hard_at_best_rates(self) -> AtOwnRates:
        return AtOwnRates(8, self.hops("khop-hard"), self.hops("khop-hard-learningrate0.004"))

    def wider_runs(self, model: str, width: int = 256) -> list[Record]:
        """k-hop at another width: seeds 0 to 2 at the rate picked on seed 3."""
        setting = {256: "hiddensize256-intermediatesize688", 128: "hiddensize128-intermediatesize344"}[width]
        names = (f"khop-{setting}-learningrate{rate}" for rate in WIDER_RATES)
        return picked_on(3, [run for name in names for run in self.hops(name).of(model)])

    def many_letters_runs(self, model: str) -> list[Record]:
        """k-hop over 98 letters, 10,000 steps: on the seeds that have both rates, the runs at the better one."""
        names = ("khop-published-reduced", "khop-published-reduced-learningrate0.001")
        return at_best_rate(*(self.hops(name).of(model) for name in names))

    def many_letters(self, model: str) -> float:
        """The error of `many_letters_runs`, the mean over hops from 0 to 16 and over seeds."""
        return mean(part["error"] for run in self.many_letters_runs(model) for part in run["test"]["parts"])

    def narrow_six(self) -> list[Record]:
        """k-hop for 4,000 steps: six layers with the parameters of one of width 64, at the rate picked on seed 3."""
        name = "khop-hiddensize24-intermediatesize84-steps4000"
        rates = ("", "-learningrate0.004", "-learningrate0.008")
        return picked_on(3, [run for rate in rates for run in self.hops(name + rate).of("6x1")])

    def wider(self, model: str, width: int = 256) -> float:
        """The mean error at four hops of `wider_runs`."""
        return mean(wrong(run, 4) for run in self.wider_runs(model, width))

    def with_muon(self, experiment: str, model: str) -> list[Record]:
        """Seeds 0 to 2 of a model trained with Muon at the rate picked on seed 3."""
        names = (f"{experiment}-optimizermuon", *(f"{experiment}-optimizermuon-learningrate{rate}" for rate in MUON))
        return picked_on(3, [run for name in names for run in self.records(name) if run["model"] == model])

    def saturated(self) -> Facts:
        """Facts shown 240 times: of each model seeds 0 to 2 at the rate picked on seed 3."""
        every = [run for suffix in SATURATED_RATES for run in self.records(f"facts-facts49152-epochs240{suffix}")]
        picked = (picked_on(3, [run for run in every if run["model"] == model]) for model in SATURATING)
        return Facts([run for runs in picked for run in runs], "facts, 240 exposures")

    def facts(self, rate: float = 0.002) -> Facts:
        suffix = "" if rate == 0.002 else f"-learningrate{rate}"
        return Facts(self.records(f"facts-facts49152{suffix}"))

    def facts_at_best_rate(self, model: str) -> float:
        """The bits that a model stores at the best of the rates at which it was trained."""
        return most_bits(model, *map(self.facts, (0.002, 0.001, 0.004, 0.008)))

    def wide_facts(self, model: str) -> float:
        """The bits that a model of width 128 stores of 196,608 facts at the better of two rates."""
        name = "facts-facts196608-keys512-hiddensize128-intermediatesize344"
        return most_bits(model, *(Facts(self.records(name + rate)) for rate in ("", "-learningrate0.001")))

    # -- Text

    def wide_text(self, model: str) -> list[Record]:
        """Characters at width 256, at the best of three rates by validation loss, seeds 0 to 2."""
        names = ("iso-depth-wide", "iso-depth-wide-learningrate0.00075", "iso-depth-wide-learningrate0.003")
        return at_best_rate(*([run for run in self.records(name) if run["model"] == model] for name in names))

    def iso_depth(self, seeds: int | None = None) -> IsoDepth:
        """The first seeds of all models, or all."""
        runs = [run for run in self.records("iso-depth") if run["seed"] < 8]  # later ones are there for their weights
        if seeds is None:
            return IsoDepth(runs)
        return IsoDepth([run for run in runs if run["seed"] < seeds], seeds=seeds)

    def iso_depth_at_rates(self, *suffixes: str) -> list[list[Record]]:
        """At 3e-3 and at other rates."""
        return [self.records(f"iso-depth{suffix}") for suffix in ("", *suffixes)]

    def iso_depth_at_best_rates(self, seeds: int, *suffixes: str) -> IsoDepth:
        return IsoDepth(best_of(*self.iso_depth_at_rates(*suffixes), seeds=seeds), seeds=seeds)

    def worth_in_layers(self, model: str, *suffixes: str) -> Value:
        """φ of a loop in layers, at 3e-3 or at the best of this and other rates."""
        return text_worth(model, *self.iso_depth_at_rates(*suffixes))

    def language(self, name: str) -> Language:
        return Language(self.records(name), name)

    def first_seed(self, name: str) -> Language:
        return Language([run for run in self.records(name) if run["seed"] == 0], name)

    def on_shared_seeds(self, name: str) -> Language:
        """Models that were trained on several seeds, on those that all of them have."""
        models = by_model([run for run in self.records(name) if run["model"] not in ONE_SEED])
        return Language([run for seed in common(*models.values()) for run in seed], name)

    def stories_at_own_rates(self) -> Language:
        """Each model at the best rate of short runs: most at 8e-3, FraiLT at 4e-3."""
        frailt = [run for run in self.records(STORIES) if run["model"] == "frailt"]
        return Language([*self.records(STORIES_HIGHER), *frailt], "TinyStories at own rates")

    # -- Classifiers

    def task(self, name: str) -> Task:
        return Task(self.records(name), called=name)

    def on_a_tenth(self, model: str, **settings: Any) -> list[Record]:
        """A model's runs on a tenth of SST-2."""
        name = configure("sst2", model, **TENTH | settings).name
        return Runs(self.records(name), name).records_for(model)

    def ladder(self) -> Ladder:
        """At the study's rate, by (width, layers x passes)."""
        narrow = {(256, rung): self.on_a_tenth("recurrent", **LADDER[rung]) for rung in LADDER if rung != "1x1"}
        wide = {(384, "6x1"): self.on_a_tenth("baseline"), (384, "3x2"): self.on_a_tenth("recurrent-wide")}
        return Ladder(narrow | wide)

    def ladder_tuned(self) -> Tuned:
        """At width 256, each model at its best rate."""
        rates = (TrainConfig().learning_rate, *TUNING)
        return Tuned(
            {
                rung: {rate: self.on_a_tenth("recurrent", **LADDER[rung], learning_rate=rate) for rate in rates}
                for rung in TUNED
            }
        )
