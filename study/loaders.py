"""The paper's records as the classes of `study/analysis`, which verdicts, claims and the table of evidence ask."""

from rtx_core.records import Record
from rtx_core.report.statistics import common
from rtx_core.report.values import Model, Space, Task, Value
from study import paper
from study.analysis.facts import Facts, most_bits
from study.analysis.hops import AtOwnRates, Hops, Rounding, compared
from study.analysis.iso_depth import IsoDepth, best_of, text_worth
from study.analysis.language import Language
from study.values.data_size import Tuned, Usual
from study.values.language import Small, first_seed, own_rates

LOOPS = ("3x2-64", "2x3-64", "1x6-64")  # of iso-depth at width 64
HIGHER = ("-learningrate0.006", "-learningrate0.012")  # than the rate of all iso-depth models


# -- Pointers, products and facts


def hops(name: str) -> Hops:
    """A folder of k-hop or of products in a group."""
    return Hops(paper.records(name=name), name)


def on_logits(first: str, second: str) -> Space:
    """Two k-hop models at 2e-3, paired by seed."""
    khop = hops("khop")
    return compared(khop.records_for(first), khop.records_for(second))


def khop_at_best_rates() -> AtOwnRates:
    return AtOwnRates(4, hops("khop"), *(hops(f"khop-learningrate{rate}") for rate in (0.001, 0.004, 0.008)))


def khop_hard_at_best_rates() -> AtOwnRates:
    return AtOwnRates(8, hops("khop-hard"), hops("khop-hard-learningrate0.004"))


def rounded() -> Rounding:
    return Rounding(paper.measurements("quantized", "khop"), hops("khop"))


def facts(rate: float = 0.002) -> Facts:
    suffix = "" if rate == 0.002 else f"-learningrate{rate}"
    return Facts(paper.records(name=f"facts-facts49152{suffix}"))


def facts_at_best_rate(model: str) -> float:
    """The bits that a model stores at the best of the rates at which it was trained."""
    return most_bits(model, *map(facts, (0.002, 0.001, 0.004, 0.008)))


# -- Text


def iso_depth(seeds: int | None = None) -> IsoDepth:
    """The first seeds of all models, or all."""
    runs = paper.records(name="iso-depth")
    return IsoDepth(runs) if seeds is None else IsoDepth([run for run in runs if run["seed"] < seeds], seeds=seeds)


def at_rates(*suffixes: str) -> list[list[Record]]:
    """Characters at 3e-3 and at other rates."""
    return [paper.records(name=f"iso-depth{suffix}") for suffix in ("", *suffixes)]


def iso_depth_at_best_rates(seeds: int, *suffixes: str) -> IsoDepth:
    return IsoDepth(best_of(*at_rates(*suffixes), seeds=seeds), seeds=seeds)


def iso_depth_longer() -> IsoDepth:
    """At width 64 with four times the text."""
    return IsoDepth(paper.records(name="iso-depth-steps3200"))


def iso_depth_three_part() -> IsoDepth:
    """A loop with layers of its own before and after it."""
    return IsoDepth(paper.records(name="iso-depth"), ("three-part",))


def worth_in_layers(model: str, *suffixes: str) -> Value:
    """φ of a loop in layers, at 3e-3 or at the best of this and other rates."""
    return text_worth(model, *at_rates(*suffixes))


def stories() -> Small:
    return Small("tinystories-small")


def characters() -> Small:
    return Small("shakespeare-small")


def characters_wide() -> Language:
    return first_seed("shakespeare-small-hiddensize256-intermediatesize1024-learningrate0.0015")


def characters_windows() -> Language:
    return first_seed("shakespeare-small-learningrate0.003")


def stories_wide() -> Language:
    return first_seed("tinystories-small-hiddensize128-intermediatesize344")


def stories_combined() -> Language:
    """Two ways of looping at once, beside each alone."""
    return first_seed("tinystories-small-learningrate0.004")


def language(name: str) -> Language:
    return Language(paper.records(name=name), name)


def stories_at_own_rates() -> Language:
    """Each model at the best of the rates that were tried in short runs."""
    return own_rates()


def stories_gained(model: str) -> list[float]:
    """By how many nats 8e-3 is ahead of 4e-3 at the end, by seed."""
    pairs = common(stories().records_for(model), own_rates().records_for(model))
    return [lower["test"]["loss"] - higher["test"]["loss"] for lower, higher in pairs]


# -- Classifiers


def task(name: str) -> Task:
    return Task(paper.records(name=name), called=name)


def bag_of_words(name: str) -> Model:
    """What word counts alone can do on a data set."""
    return Model([m for m in paper.measurements("yardstick") if m["of"] == name], f"bag of words, {name}")


def ladder() -> Usual:
    return Usual()


def ladder_tuned() -> Tuned:
    return Tuned()
