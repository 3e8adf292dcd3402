"""When predictions of facts hold and when they are contradicted."""

from statistics import mean

from study.analysis.facts import stored_bits
from study.analysis.hops import wrong
from study.analysis.records import pass_share
from study.second_pass import ASKED, questions
from study.verdicts.runs import RUNS, Conditions, planned


def facts() -> Conditions:
    runs = RUNS.facts()
    passes, layers = runs.gain("1x4", "1x1"), runs.gain("4x1", "1x4")
    holds = passes <= 4 / 3 and runs.gain("2x2", "2x1") <= 4 / 3 and layers >= 2
    return holds and runs.bits("4x1-w32") <= runs.bits("1x4"), passes > 1.5 or layers < 1.5


def facts_rate() -> Conditions:
    default, higher = RUNS.facts(), RUNS.facts(0.004)
    one, loop, two, twice = (max(default.bits(m), higher.bits(m)) for m in ("1x1", "1x4", "2x1", "2x2"))
    holds = loop <= 1.25 * one and twice <= 1.1 * two and two >= 1.6 * one
    return holds, loop > 1.5 * one or two < 1.4 * one


def facts_lower() -> Conditions:
    one, loop, two, twice = map(RUNS.facts_at_best_rate, ("1x1", "1x4", "2x1", "2x2"))
    holds = RUNS.facts(0.001).bits("2x2") <= twice <= 1.15 * two and loop <= 1.25 * one and two >= 1.6 * one
    return holds, loop > 1.5 * one or two < 1.4 * one


def facts_wide() -> Conditions:
    share = RUNS.facts_at_best_rate("1x1-wide") / RUNS.facts_at_best_rate("2x1")
    return 0.75 <= share <= 0.92, not 0.65 <= share < 1


def facts_saturated() -> Conditions:
    """On seeds 0 to 2, at the rate of the lowest validation loss on seed 3."""
    one, loop, two, twice, wide = map(RUNS.saturated().bits, ("1x1", "1x4", "2x1", "2x2", "1x1-wide"))
    holds = 1.1 <= loop / one <= 1.25 and 0.95 <= twice / two <= 1.2 and two >= 1.5 * one
    return holds and 0.75 <= wide / two <= 0.95, loop <= 1.1 * one or loop >= two


def facts_second_pass() -> Conditions:
    share = pass_share(RUNS.facts_at_best_rate)
    return 0 <= share < 0.2, share > 0.5


def facts_wider() -> Conditions:
    one, loop, two, twice = (mean(RUNS.wide_facts(model)) for model in ("1x1", "1x4", "2x1", "2x2"))
    holds = loop <= 1.3 * one and twice <= 1.2 * two and two >= 1.4 * one
    return holds, loop >= two or two < 1.2 * one


def facts_again() -> Conditions:
    planned(RUNS.facts_again("1x2"), 5)
    share = pass_share(lambda model: mean(map(stored_bits, RUNS.facts_again(model))))
    return -0.05 <= share <= 0.25, share > 0.4


def facts_longer_second_pass() -> Conditions:
    followed = {model: [wrong(run, 4) for run in RUNS.long_hops(model) if run["seed"] < 5] for model in ASKED}
    planned(min(followed.values(), key=len), 5)
    first = {model: [run for run in RUNS.long_facts(model) if run["seed"] < 2] for model in ASKED}
    planned(min(first.values(), key=len), 2)
    hops = pass_share(lambda model: mean(followed[model]))
    facts = pass_share(lambda model: mean(map(stored_bits, first[model])))
    return 0.55 <= hops <= 1 and 0.05 <= facts <= 0.25, hops < 0.4 or facts > 0.4


def facts_wider_second_pass() -> Conditions:
    share = pass_share(lambda model: mean(RUNS.wide_facts(model)))
    return share <= 0.25, share > 0.5


def split_elsewhere() -> Conditions:
    """Of text and of facts: one layer run twice against two narrow ones."""
    tasks = questions(RUNS)
    text, stored = tasks["text"], tasks["bits"]
    for question, seeds in ((text, 10), (stored, 5)):
        for name in ("split_steps", "split"):
            planned(question.scores_of(name), seeds)
    loss, bits = (mean(question.scores["1x2"].values()) for question in (text, stored))
    losses, stores = (
        [mean(question.scores_of(name)) for name in ("split_steps", "split")] for question in (text, stored)
    )
    short = losses[0] > loss and not (stores[0] > bits and stored.p_against("split_steps") < 0.05)
    lower, more_bits = losses[1] < loss, stores[1] > bits
    holds = short and lower and text.p_against("split") < 0.05 and more_bits and stored.p_against("split") < 0.05
    return holds, not lower or not more_bits


def split_longer_training() -> Conditions:
    """Of one layer trained for twice as long, on pointers and facts."""
    stored = questions(RUNS)["bits"]
    planned(RUNS.longer_single("hops"), 5)
    planned(RUNS.longer_single("bits"), 5)
    error = mean(wrong(run, 4) for run in RUNS.longer_single("hops"))
    bits, looped = mean(map(stored.score, RUNS.longer_single("bits"))), mean(stored.scores["1x2"].values())
    return error >= 0.55 and bits > looped, error < 0.5 or bits < looped
