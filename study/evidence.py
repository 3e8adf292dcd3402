"""The evidence for each headline of the paper: effect, seeds, learning rate, largest model, training and cost."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rtx_core.records import Record
from rtx_core.report.statistics import ENOUGH_SEEDS, mean_interval, unpaired
from rtx_core.report.style import number
from rtx_core.report.values import Value
from study.analysis.classifiers import Family
from study.analysis.facts import Facts
from study.analysis.hops import SOLVED, unpaired_odds, wrong
from study.analysis.iso_depth import STACKS, best_of
from study.analysis.wording import listing
from study.folders import Folders
from study.second_pass import questions

ONE_RATE = "one rate, not tuned"


@dataclass(frozen=True)
class Headline:
    """A claim and the runs that it rests on."""

    claim: str
    effect: str  # with its 95 % interval
    runs: list[Record]
    rate: str = ONE_RATE  # how the learning rate of each model was chosen
    main: bool = False  # one of the few that the book is about

    @property
    def seeds(self) -> str:
        """Of each compared model, such as "20" or "3 to 5"."""
        counts = sorted(Counter(run["model"] for run in self.runs).values())
        return " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))

    @property
    def largest(self) -> str:
        """Width, and parameters outside of the embeddings, of the largest model."""
        run = max(self.runs, key=lambda run: run["parameters"]["non_embedding"])
        size = run["parameters"]["non_embedding"]
        size = f"{size / 1e6:.1f} M" if size > 1e6 else f"{size / 1000:.0f} k"
        return f"width {run['config']['model']['hidden_size']}, {size}"

    @property
    def training(self) -> str:
        """Steps, or epochs where these are counted, of the longest run."""
        train = max((run["config"]["train"] for run in self.runs), key=lambda train: (train["steps"], train["epochs"]))
        if train["steps"]:
            return f"{train['steps']:,} steps"
        return f"{'at most ' * bool(train['stop_patience'])}{train['epochs']} epochs"

    @property
    def hours(self) -> str:
        """Of training, of all runs one after the other, as recorded on different machines."""
        hours = sum(run["seconds"] for run in self.runs) / 3600
        on_gpus = [run["environment"]["device_type"] == "cuda" for run in self.runs]
        where = " (GPU)" if all(on_gpus) else " (some on a GPU)" if any(on_gpus) else ""
        return number(hours, ".2f" if hours < 1 else ".1f") + where


def odds(first: list[Record], second: list[Record], hops: int) -> str:
    """How many times as high the odds of a wrong answer are for the first model."""
    middle, low, high = unpaired_odds(first, second, hops).odds
    return f"odds × {number(middle, '.2g')} ({number(low, '.2g')} to {number(high, '.2g')})"


def fewer(once: list[Record], twice: list[Record], form: str = ".1%") -> str:
    """The shares of wrong answers at four hops and their odds, of layers run once and twice."""
    before, after = (float(np.mean([wrong(run, 4) for run in runs])) for runs in (once, twice))
    return f"{number(before, '.1%')} → {number(after, form)} wrong, {odds(twice, once, 4)}"


def layers_worth(exponent: Value) -> str:
    """The layers of the stack that has the loss of one layer run six times."""
    value, low, high = (number(6**each, ".1f") for each in (float(exponent), exponent.low, exponent.high))
    return f"six passes are worth {value} layers ({low} to {high})"


def gain(facts: Facts, model: str, base: str) -> str:
    """Bits that a model stores more than another, in per cent, paired by seed."""
    by_seed = [100 * (a / b - 1) for a, b in zip(facts.each(model), facts.each(base))]
    if len(by_seed) < ENOUGH_SEEDS:
        return " and ".join(number(value, "+.0f") for value in by_seed) + " %"
    middle, low, high = (number(value, "+.1f" if abs(value) < 1 else "+.0f") for value in mean_interval(by_seed))
    return f"{middle} % ({low} to {high})"


def nats(first: list[Record], second: list[Record]) -> str:
    """The difference of two losses, over seeds that are no pairs."""
    middle, low, high, p, _ = unpaired(*([run["test"]["loss"] for run in runs] for runs in (first, second)))
    middle, low, high = (number(value, ".3f") for value in (middle, low, high))
    return f"{middle} nats ({low} to {high}), Welch's p = {number(p, '.2g')}, unadjusted"


def pointers(runs: Folders) -> Iterator[Headline]:
    others = "best of four, on other seeds"
    once, twice, two = map(runs.again, ("1x1", "1x2", "2x1"))
    yield Headline("Four hops: running one layer twice helps", fewer(once, twice), once + twice, others, True)
    yield Headline("Four hops: a second layer helps it more", fewer(once, two), once + two, others, True)
    once, twice = runs.again("2x1"), runs.again("2x2")
    yield Headline("Four hops: running two layers twice helps", fewer(once, twice), once + twice, others, True)
    long = runs.hops("khop-steps12000")
    once, twice = long.records_for("2x1"), long.records_for("2x2")
    yield Headline("Four hops, four times as many steps: it still helps", fewer(once, twice, ".2%"), once + twice)
    rate = "best of three, on another seed"
    single, passes, two = map(runs.wider_runs, ("1x1", "1x2", "2x1"))
    claim = "Four hops, width 256: running one layer twice helps as much as a second layer"
    effect = f"{fewer(single, passes)}; twice beside two layers: {odds(passes, two, 4)}"
    yield Headline(
        claim, effect, single + passes + two, f"{rate}; half of the best rate was worse for 1×2 and 2×1", True
    )
    once, twice = runs.wider_runs("2x1"), runs.wider_runs("2x2")
    yield Headline("Four hops, width 256: running two layers twice still helps", fewer(once, twice), once + twice, rate)
    once, split, longer = runs.again("1x2"), *(runs.split("hops", work) for work in (False, True))
    loop, narrow, stack = map(runs.again, ("2x2", "4x1-w44", "4x1"))
    both = "best of four for the loop and of two for the stack, on other seeds"
    alike = "Four hops: one layer run twice and a narrow stack of its depth and size are equal after equal steps"
    size = (
        "Four hops: two layers run twice get fewer wrong than a narrow stack of their depth and size after equal steps"
    )
    width = "Four hops: two layers run twice and four layers do not differ significantly"
    for claim, of_loop, runs_of, rate in (
        (alike, once, split, others),
        ("After equal computation the narrow stack gets slightly fewer wrong", once, longer, both),
        (
            "At width 256 the narrow stack is better after equal computation",
            runs.wider_runs("1x2"),
            runs.split("hops_wide", True),
            "best of three, on another seed",
        ),
        (size, loop, narrow, others),
        ("After equal computation the two do not differ significantly", *runs.at_equal_work(), both),
        (width, loop, stack, others),
    ):
        p = number(unpaired_odds(of_loop, runs_of, 4).p, ".2g")
        effect = f"{odds(of_loop, runs_of, 4)}; Welch's p = {p}, unadjusted"
        yield Headline(claim, effect, of_loop + runs_of, rate, True)
    narrow, loop = long.records_for("4x1-w44"), long.records_for("2x2")
    ranks = f"rank test p = {number(unpaired_odds(loop, narrow, 4).ranks, '.2f')}, unadjusted"
    rate = "one rate, the loop's best in 3,000 steps and not the stack's"
    yield Headline(
        "Four hops, four times as many steps: the loop still gets fewer wrong than its narrow stack",
        f"{odds(loop, narrow, 4)}; {ranks}",
        loop + narrow,
        rate,
    )
    hard = runs.khop_hard_at_best_rates()
    narrow, loop = hard.new("6x1-w36"), hard.new("2x3")
    unpaired, paired = unpaired_odds(loop, narrow, 8), hard("2x3", "6x1-w36", new=True)
    tests = f"Welch's p = {number(unpaired.p, '.2f')}, ranks {number(unpaired.ranks, '.2f')}, paired p = "
    tests += f"{number(paired.p, '.2f')}, unadjusted"
    solved = [sum(wrong(run, 8) < SOLVED for run in group) for group in (loop, narrow)]
    yield Headline(
        "Eight hops: two layers run three times get fewer wrong than a narrow stack of their depth and size on all "
        "seeds, which is borderline even if seeds are paired",
        f"{odds(loop, narrow, 8)}; {tests}; solved on {solved[0]} and {solved[1]} of {len(loop)} seeds",
        loop + narrow,
        "better of two, on other seeds",
    )


def knowledge(runs: Folders) -> Iterator[Headline]:
    facts = runs.facts()
    for claim, model in (("three more passes add some", "1x4"), ("a second layer adds much", "2x1")):
        effect, both = f"{gain(facts, model, '1x1')} bits", facts.records_for("1x1") + facts.records_for(model)
        yield Headline(f"Facts, 60 exposures, at 2e-3: {claim}", effect, both)
    by_seed = [100 * (each - 1) for each in runs.over_tuned_layer("1x4")]
    middle, low, high = (number(value, "+.0f") for value in mean_interval(by_seed))
    effect = f"{middle} % ({low} to {high}) bits, by seed {listing(number(each, '+.0f') for each in by_seed)} %"
    both = runs.facts(0.004).records_for("1x1") + facts.records_for("1x4")
    claim = "Facts, 60 exposures, each at its own rate: three more passes add nothing significant"
    yield Headline(claim, effect, both, "best of three or four, on the same seeds")
    again = [run for model in ("1x1", "1x2", "2x1") for run in runs.facts_again(model)]
    asked = questions(runs)["bits"]
    effect = f"{number(100 * asked.share(), '.0f')} % of a second layer's gain ({asked.interval})"
    claim, rate = "Facts, 60 exposures: no gain of a second pass is detected", "best of four, on other seeds"
    yield Headline(claim, effect, again, rate, True)
    once, twice, two = map(runs.wide_facts_runs, ("1x1", "1x2", "2x1"))
    claim = "Facts, width 128, 60 exposures: no gain of a second pass is detected, a second layer adds much"
    by_model = [[100 * (b / a - 1) for a, b in zip(runs.wide_facts("1x1"), runs.wide_facts(m))] for m in ("1x2", "2x1")]
    effect = ", ".join(f"{' and '.join(number(v, '+.0f') for v in row)} %" for row in by_model) + " bits"
    rate = "better of two, the lower one, on the same seeds"
    yield Headline(claim, effect, once + twice + two, rate, True)
    saturated = runs.saturated()
    claims = {
        "1x4": "three more passes add to one layer",
        "1x1-wide": "widening it by a second layer's parameters adds more",
    }
    for model, claim in (claims | {"2x1": "a second layer adds most, limited by the ceiling of eight bits"}).items():
        both = saturated.records_for("1x1") + saturated.records_for(model)
        rate = "best of three, on another seed"
        effect = f"{gain(saturated, model, '1x1')} bits"
        yield Headline(f"Facts, 240 exposures: {claim}", effect, both, rate, model != "1x1-wide")


def text(runs: Folders) -> Iterator[Headline]:
    def new(model: str) -> list[Record]:
        return runs.text_again(f"{model}-64")

    best = best_of(runs.iso_depth_at_rates(), seeds=3)
    both = [run for run in best if run["model"] in ("1x6-64", *STACKS)]
    claim = "Text, at 3e-3, beside stacks of one to six layers: six passes are worth more than one layer"
    yield Headline(claim, layers_worth(runs.worth_in_layers("1x6-64")), both, ONE_RATE)
    both = [run for model in ("1x6", "1x1", "2x1", "3x1", "6x1") for run in new(model)]
    claim = "Text, tuned, beside stacks of one, two, three and six: they are worth little more than one"
    yield Headline(claim, layers_worth(runs.worth_at_best_rate("1x6-64")), both, "best of three, on other seeds")
    others, same = "best of three, on other seeds", "best of three, on the same seeds"
    for claim, of, pair, rate, main in (
        ("Text, tuned: running one layer twice is better than running it once", new, ("1x1", "1x2"), others, True),
        ("The same at width 256", runs.wide_text, ("1x1", "1x2"), same, True),
        ("Text, tuned: six passes of one layer beside one", new, ("1x1", "1x6"), others, False),
        ("At width 256 they are better than one", runs.wide_text, ("1x1", "1x6"), same, False),
        ("Text, tuned: running three layers twice makes no significant difference", new, ("3x1", "3x2"), others, False),
        ("The same at width 256, of three layers", runs.wide_text, ("3x1", "3x2"), same, False),
    ):
        once, looped = map(of, pair)
        yield Headline(claim, nats(looped, once), once + looped, rate, main)
    twice, rate = new("1x2"), "best of three for the loop and of four for the stack, on other seeds"
    for claim, stack, rates in (
        ("After equal steps two narrow layers with its parameters are worse", runs.split("text", False), rate),
        ("After equal computation they are better", runs.split("text", True), rate),
        ("One layer trained twice as long is better", runs.longer_single("text"), others),
    ):
        yield Headline(f"Text: beside one layer run twice. {claim}", nats(stack, twice), twice + stack, rates, True)
    once, injected = new("1x1"), runs.injected_again()
    claim = "Text, tuned: one layer run six times with its input injected is better than run once"
    yield Headline(claim, nats(injected, once), once + injected, f"{others}; the loop's is the highest", True)
    once, twice = (runs.with_muon("iso-depth", model) for model in ("3x1-64", "3x2-64"))
    rate = "better of two, which is the higher one for all models, on another seed"
    claim = "Text, trained by Muon: running three layers twice helps"
    yield Headline(claim, nats(twice, once), once + twice, rate)


def steps(runs: Folders) -> Iterator[Headline]:
    products = runs.hops("state-tracking-curriculum")
    most = max(max(row) for row in products.rows("1x64"))
    effect = f"{min(products.factors('1x64'))} of 64 factors on each seed, at most {number(float(most), '.1%')} wrong"
    loop = products.records_for("1x64")
    yield Headline("Products in S3, short ones first: one layer with a pass for each factor keeps all", effect, loop)


def classifiers(family: Family) -> Iterator[Headline]:
    both = [run for runs in family.pairs["grouped"] for run in runs]
    effect = f"{family.gaps['grouped']} points (Baseline − Recurrent), paired by seed"
    yield Headline("SST-2 without leak: equal within a point of accuracy", effect, both, main=True)


def table(runs: Folders, family: Family, main: bool) -> pd.DataFrame:
    """A row for each of the main headlines, or of the others."""
    rows = [headline for part in (pointers, knowledge, steps, text) for headline in part(runs)]
    rows = [row for row in [*rows, *classifiers(family)] if row.main == main]
    return pd.DataFrame(
        {
            "Claim": [row.claim for row in rows],
            "Effect (95 % interval)": [row.effect for row in rows],
            "Seeds": [row.seeds for row in rows],
            "Learning rate": [row.rate for row in rows],
            "Largest model": [row.largest for row in rows],
            "Training": [row.training for row in rows],
            "Hours": [row.hours for row in rows],
        }
    )
