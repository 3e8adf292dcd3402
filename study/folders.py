"""Runs by the folders of their records, as the classes of `study/analysis`."""

from collections.abc import Callable, Collection, Iterable
from statistics import mean
from types import SimpleNamespace
from typing import Any

from rtx_core.experiments.configure import configure
from rtx_core.records import Record
from rtx_core.report.evidence import by_model
from rtx_core.report.rates import AtOwnRates, by_rate
from rtx_core.report.statistics import common
from rtx_core.report.values import Runs, Task, Unmeasured, Value
from rtx_core.train.config import TrainConfig
from study.analysis.facts import Facts
from study.analysis.hops import Hops, HopsAtOwnRates, compared, wrong
from study.analysis.iso_depth import STACKS, IsoDepth, best_of, text_worth
from study.analysis.ladder import Ladder, Tuned
from study.analysis.language import Language
from study.analysis.phi import worth
from study.analysis.records import mean_loss, test_loss
from study.experiments import ONE_SEED
from study.plan import (
    AGAIN_RATES,
    FACTS_AGAIN_RATES,
    INJECTED,
    LADDER,
    SET_RATES,
    SPLIT_TEXT_RATE,
    SPLIT_WIDE_RATE,
    TENTH,
    TUNED,
    TUNING,
    WIDER_RATES,
)

OWN = 0  # stands for an experiment's own learning rate
HIGHER = (0.006, 0.012)  # than the rate of all iso-depth models, 3e-3
PICKING = 3  # the seed that picks rates where it is reported nowhere
WIDER = {  # k-hop at other widths, and the learning rates tried there
    256: ("khop-hiddensize256-intermediatesize688", WIDER_RATES),
    184: ("khop-hiddensize184-intermediatesize472", WIDER_RATES),  # two layers have the parameters of one of width 256
    128: ("khop-hiddensize128-intermediatesize344", WIDER_RATES[1:]),
}
SPLIT = {  # two layers with the parameters of one: folder, what it adds for the longer training, rate, model
    "hops": ("khop-again", "-steps6400", 0.004, "2x1-w44"),
    "hops_wide": (WIDER[184][0], "-steps6000", SPLIT_WIDE_RATE, "2x1"),
    "text": ("iso-depth-again", "-steps1680", SPLIT_TEXT_RATE, "2x1-44"),
    "bits": ("facts-again", "-epochs111", OWN, "2x1-w44"),
}
LONGER = {  # where one layer was trained twice as long, and its name
    "hops": ("khop-again-steps6000-learningrate0.004", "1x1"),
    "text": ("iso-depth-again-steps1600-learningrate0.006", "1x1-64"),
    "bits": ("facts-again-epochs120-learningrate0.004", "1x1"),
}
MUON = {"khop": (0.001, 0.004), "iso-depth": (OWN, 0.012)}
STORIES, STORIES_HIGHER = "tinystories-small-learningrate0.004", "tinystories-small-learningrate0.008"
CHARACTERS = "shakespeare-small-learningrate0.003"


class Folders:
    """What pages, verdicts and the table of evidence ask of runs; `records` gives those of a folder."""

    def __init__(self, records: Callable[[str], list[Record]]):
        self.records = records

    @classmethod
    def among(cls, runs: Iterable[Record]) -> "Folders":
        """The folders of these runs, each run once."""
        folders: dict[str, dict[tuple, Record]] = {}
        for run in runs:
            folders.setdefault(run["name"], {})[run["model"], run["seed"]] = run
        return cls(lambda name: list(folders.get(name, {}).values()))

    def at_rates(self, name: str, *rates: float) -> list[Runs]:
        """Runs that differ in their learning rates."""
        folders = (f"{name}-learningrate{rate}" if rate else name for rate in rates)
        return [Runs(self.records(folder), folder) for folder in folders]

    def all_rates(self, name: str, *rates: float) -> Runs:
        """The same as one."""
        return Runs([run for at_rate in self.at_rates(name, *rates) for run in at_rate.records], name)

    def tuned(self, name: str, *rates: float, picked_on: Collection[int] = (0, 1, 2)) -> AtOwnRates:
        return AtOwnRates(*self.at_rates(name, *rates), picked_on=picked_on)

    def picked(self, name: str, *rates: float) -> AtOwnRates:
        """At the rates that one seed picks."""
        return self.tuned(name, *rates, picked_on=(PICKING,))

    # -- Pointers, products and facts

    def hops(self, name: str) -> Hops:
        """Of k-hop or of products in a group."""
        return Hops(self.records(name), name)

    def on_logits(self, first: str, second: str) -> SimpleNamespace:
        """Two k-hop models at 2e-3, paired by seed."""
        khop = self.hops("khop")
        return compared(khop.records_for(first), khop.records_for(second))

    def khop_at_best_rates(self) -> HopsAtOwnRates:
        """For comparisons on so many new seeds."""
        return HopsAtOwnRates(4, *self.at_rates("khop", OWN, 0.001, 0.004, 0.008))

    def khop_hard_at_best_rates(self) -> HopsAtOwnRates:
        return HopsAtOwnRates(8, *self.at_rates("khop-hard", OWN, 0.004))

    def wider_runs(self, model: str, width: int = 256, *rates: float) -> list[Record]:
        """k-hop at another width, at the best of all rates tried there, or of some."""
        name, tried = WIDER[width]
        return self.picked(name, *(rates or tried)).new(model)

    def split(self, task: str, equal_work: bool) -> list[Record]:
        """Two narrow layers with the parameters of one, on a task of `SPLIT`: for the steps (or exposures) of this
        layer run twice, or for as many multiply-adds."""
        name, longer, rate, model = SPLIT[task]
        runs = self.at_rates(f"{name}{longer}" if equal_work else name, rate)[0]
        return [run for run in runs.of(model) if run["seed"] != PICKING]

    def wider(self, model: str, width: int = 256, *rates: float) -> float:
        """The mean error at four hops of `wider_runs`."""
        return mean(wrong(run, 4) for run in self.wider_runs(model, width, *rates))

    def again(self, model: str) -> list[Record]:
        """k-hop on twenty new seeds, at the rate that seeds 0 to 2 picked."""
        return self.on_new_seeds("khop-again", model, AGAIN_RATES[model])

    def facts_again(self, model: str) -> list[Record]:
        """Facts on five new seeds, at the rate that seeds 0 to 2 picked."""
        return self.on_new_seeds("facts-again", model, FACTS_AGAIN_RATES[model])

    def on_new_seeds(self, experiment: str, model: str, rate: float) -> list[Record]:
        own_rate = configure(experiment, model).train.learning_rate
        return self.at_rates(experiment, OWN if rate == own_rate else rate)[0].of(model)

    def few_sequences(self, model: str) -> list[Record]:
        """k-hop from a fixed training set, at the better of two rates on seeds 30 to 32."""
        return self.tuned("khop-set", OWN, SET_RATES[1], picked_on=(30, 31, 32)).new(model)

    def again_at_equal_work(self) -> list[Record]:
        """The narrow stack of 2x2 on these seeds, for as many multiply-adds."""
        return self.hops("khop-again-steps6400").of("4x1-w44")

    def many_letters(self, model: str) -> float:
        """The error of k-hop over 98 letters, 10,000 steps, at the better of two rates: the mean over hops from 0 to 16
        and over seeds."""
        runs = self.tuned("khop-published-reduced", OWN, 0.001, picked_on=range(5)).runs(model)
        return mean(part["error"] for run in runs for part in run["test"]["parts"])

    def counted_again(self, model: str) -> list[Record]:
        """k-hop on the seeds that were trained to count the slow ones: 2x2, and its narrow stack at equal work."""
        name = {"2x2": "khop-slow", "4x1-w44": "khop-slow-steps6400"}[model]
        return Runs(self.records(name), "khop, slow seeds").of(model)

    def at_equal_work(self) -> tuple[list[Record], list[Record]]:
        """2x2 and its narrow stack, on the twenty new seeds of `again` and those of `counted_again`."""
        loop = self.again("2x2") + self.counted_again("2x2")
        return loop, self.again_at_equal_work() + self.counted_again("4x1-w44")

    def narrow_at_equal_work(self) -> list[Record]:
        """k-hop: 4x1-w44 for as many multiply-adds as 3,000 steps of 2x2, whose parameters it has."""
        return self.tuned("khop-steps6400", OWN, 0.004).new("4x1-w44")

    def narrow_six(self) -> list[Record]:
        """k-hop for 4,000 steps: six layers with the parameters of one of width 64."""
        return self.picked("khop-hiddensize24-intermediatesize84-steps4000", OWN, 0.004, 0.008).new("6x1")

    def with_muon(self, experiment: str, model: str) -> list[Record]:
        return self.picked(f"{experiment}-optimizermuon", *MUON[experiment]).new(model)

    def saturated(self) -> Facts:
        """Facts shown 240 times."""
        picked = self.picked("facts-facts49152-epochs240", OWN, 0.001, 0.004)
        return Facts([run for model in picked.models for run in picked.new(model)], "facts, 240 exposures")

    def long_facts(self, model: str) -> list[Record]:
        """Facts shown 240 times, at 2e-3, on the seeds that did not pick this rate."""
        runs = Runs(self.records("facts-facts49152-epochs240"), "facts, 240 exposures").of(model)
        return [run for run in runs if run["seed"] != PICKING]

    def long_wider(self, model: str) -> list[Record]:
        """k-hop at width 256 after 12,000 steps, at 2.5e-4."""
        return self.hops(f"{WIDER[256][0]}-steps12000-learningrate{min(WIDER_RATES)}").of(model)

    def long_hops(self, model: str) -> list[Record]:
        """k-hop after 12,000 steps, at 2e-3."""
        return Runs(self.records("khop-steps12000"), "k-hop, 12,000 steps").of(model)

    def facts(self, rate: float = OWN) -> Facts:
        return Facts(self.at_rates("facts-facts49152", rate)[0].records)

    def over_tuned_layer(self, model: str) -> list[float]:
        """The bits of a model at 2e-3 over those of one layer at its own best rate, 4e-3, by seed, ascending."""
        return sorted(a / b for a, b in zip(self.facts().each(model), self.facts(0.004).each("1x1")))

    def facts_at_best_rate(self, model: str) -> float:
        return mean(self.tuned_facts(model))

    def facts_at_own_rate(self, model: str) -> list[Record]:
        """The runs at the rate at which a model stores most bits on average."""
        tried = self.all_rates("facts-facts49152", OWN, 0.001, 0.004, 0.008).of(model)
        return max(by_rate(tried).values(), key=lambda runs: mean(Facts(runs).each(model)))

    def tuned_facts(self, model: str) -> list[float]:
        """The bits that each seed of a model stores at that rate."""
        return Facts(self.facts_at_own_rate(model)).each(model)

    def wide_facts_runs(self, model: str) -> list[Record]:
        """A model of width 128 on 196,608 facts, at the better of two rates."""
        rates = self.at_rates("facts-facts196608-keys512-hiddensize128-intermediatesize344", OWN, 0.001)
        return max((rate.of(model) for rate in rates), key=lambda runs: Facts(runs).bits(model))

    def wide_facts(self, model: str) -> list[float]:
        """The bits that each of these stores."""
        return Facts(self.wide_facts_runs(model)).each(model)

    # -- Text

    def wide_text(self, model: str) -> list[Record]:
        """Characters at width 256."""
        return self.tuned("iso-depth-wide", OWN, 0.00075, 0.003).runs(model)

    def text_again(self, model: str) -> list[Record]:
        """Characters at width 64 on ten new seeds, at the rate that seeds 0 to 2 picked."""
        return self.all_rates("iso-depth-again", 0.006).of(model)

    def longer_single(self, task: str) -> list[Record]:
        """One layer on a task of `LONGER`, for about as many multiply-adds as the layer run twice."""
        folder, model = LONGER[task]
        return Runs(self.records(folder), folder).of(model)

    def longer_text(self, model: str) -> list[Record]:
        """Characters on some of these seeds, with four times the steps, at the same rate."""
        return Runs(self.records("iso-depth-again-steps3200-learningrate0.006"), "text, 3,200 steps").of(model)

    def injected_again(self) -> list[Record]:
        """The injected loop on these seeds."""
        name = f"iso-depth-again-injectionlinear-learningrate{INJECTED['learning_rate']}"
        return Runs(self.records(name), name).of("1x6-64")

    def iso_depth(self, seeds: int | None = None) -> IsoDepth:
        """The first seeds of all models, or all."""
        runs = [run for run in self.records("iso-depth") if run["seed"] < 8]  # later ones are there for their weights
        if seeds is None:
            return IsoDepth(runs)
        return IsoDepth([run for run in runs if run["seed"] < seeds], seeds=seeds)

    def iso_depth_at_rates(self, *rates: float) -> list[Record]:
        """At 3e-3 and at other rates."""
        return self.all_rates("iso-depth", OWN, *rates).records

    def iso_depth_at_best_rates(self, seeds: int, *rates: float) -> IsoDepth:
        return IsoDepth(best_of(self.iso_depth_at_rates(*rates), seeds), seeds=seeds)

    def text_loss(self, model: str, *rates: float) -> float:
        """The loss on characters at 3e-3, or at the best of this and other rates, the mean over seeds 0 to 2."""
        return Runs(best_of(self.iso_depth_at_rates(*rates), seeds=3), "iso-depth").loss(model)

    def text_loop(self, backprop_passes: int = 0, injection: str = "none") -> float:
        """The loss on characters of one layer run six times, whose gradients go through so many of the last passes, 0:
        through all; the mean over seeds 0 to 2."""
        name = "iso-depth" + f"-injection{injection}" * (injection != "none")
        name += f"-backproppasses{backprop_passes}" * (backprop_passes > 0)
        runs = [run for run in Runs(self.records(name), name).of("1x6-64") if run["seed"] < 3]
        if len(runs) < 3:
            raise Unmeasured(f"There are {len(runs)} of 3 planned seeds of {name}; run the others first.")
        return mean_loss(runs)

    def injected_loops(self) -> list[Record]:
        """One layer run six times over characters with its input injected by a matrix, at the best of three rates."""
        return self._text_at_best_rate("iso-depth-injectionlinear", "1x6-64")

    def layer_as_large(self) -> list[Record]:
        """One layer over characters with the parameters of `injected_loops`, at the best of three rates."""
        return self._text_at_best_rate("iso-depth-intermediatesize219", "1x1-64")

    def _text_at_best_rate(self, name: str, model: str) -> list[Record]:
        runs = self.all_rates(name, OWN, *HIGHER).of(model)
        if len(by_rate(runs)) <= len(HIGHER):
            raise Unmeasured(f"{name}, {model}, has not been trained at all three rates; run the others first.")
        return best_of(runs, seeds=3)

    def worth_in_layers(self, model: str, *rates: float) -> Value:
        """φ of a loop in layers, at 3e-3 or at the best of this and other rates."""
        return text_worth(model, self.iso_depth_at_rates(*rates))

    def worth_at_best_rate(self, model: str) -> Value:
        """The same on ten new seeds, at the rate that seeds 0 to 2 picked, beside stacks of 1, 2, 3 and 6 layers."""
        runs = self.all_rates("iso-depth-again", HIGHER[0])
        return Value(*worth(runs, model, [stack for stack in STACKS if stack[0] != "4"], test_loss))

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
