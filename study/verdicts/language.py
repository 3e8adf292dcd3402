"""When predictions of small language models hold and when they are contradicted."""

from statistics import mean

from rtx_core.report.statistics import common
from study import paper, published
from study.analysis.language import rate_gain
from study.folders import CHARACTERS, STORIES, STORIES_HIGHER
from study.verdicts.runs import RUNS, Conditions, planned


def _stories_gained(model: str) -> list[float]:
    """By how many nats 8e-3 is ahead of 4e-3 at the end, by seed."""
    pairs = common(RUNS.on_shared_seeds(STORIES).records_for(model), RUNS.stories_at_own_rates().records_for(model))
    return [lower["test"]["loss"] - higher["test"]["loss"] for lower, higher in pairs]


def shakespeare_small() -> Conditions:
    loss = RUNS.on_shared_seeds(CHARACTERS).loss
    recurrence, models = loss("kausik"), ("gpt-1", "gpt-2", "gpt-4")
    at_equal_text = min(map(loss, models))
    at_equal_time = min(loss(f"{model}-time") for model in models)
    return at_equal_time < recurrence < at_equal_text, recurrence >= at_equal_text or recurrence < at_equal_time


def shakespeare_wide() -> Conditions:
    wide = RUNS.first_seed("shakespeare-small-hiddensize256-intermediatesize1024-learningrate0.0015")
    default, models = RUNS.on_shared_seeds(CHARACTERS), ("gpt-4", "gpt-2", "kausik", "gpt-1")
    four, two, recurrence, one = map(wide.loss, models)
    holds = four < two < recurrence < one and all(wide.loss(model) < default.loss(model) for model in models)
    return holds, recurrence < two or recurrence > one


def kausik_windows() -> Conditions:
    gap = RUNS.first_seed(CHARACTERS).gap
    holds = -0.04 <= gap("kausik-w4", "kausik") <= 0 and abs(gap("kausik-w8", "kausik-w4")) <= 0.02
    holds = holds and gap("kausik-2", "gpt-2") < 0 < gap("kausik-2", "gpt-6")
    return holds, not -0.06 <= gap("kausik-w4", "kausik") <= 0.02 or gap("kausik-2", "kausik") > 0


def shakespeare_full() -> Conditions:
    runs = RUNS.language("shakespeare-nanogpt")
    printed = published.published()["shakespeare"]["losses"]["nanogpt"]["gpt-6"]["loss"]
    behind_six, ahead_of_one = runs.gap("kausik", "gpt-6"), runs.gap("gpt-1", "kausik")
    holds = abs(runs.loss("gpt-6") - printed) <= 0.03 and behind_six >= 0.01 and ahead_of_one >= 0.03
    return holds, behind_six < 0 or ahead_of_one < 0


def tinystories_small() -> Conditions:
    loss = RUNS.on_shared_seeds(STORIES).loss
    loops = [loss(model) for model in ("frailt", "three-part", "relaxed")]
    holds = loss("control-8") < min(loops) < loss("control") and loss("control-long") < min(loops)
    return holds, min(loops) <= loss("control-8") or min(loops) >= loss("control")


def tinystories_wide() -> Conditions:
    wide = RUNS.first_seed("tinystories-small-hiddensize128-intermediatesize344")
    default, models = RUNS.on_shared_seeds(STORIES), ("control-8", "three-part", "frailt", "control")
    eight, three_part, frailt, two = map(wide.loss, models)
    holds = eight < three_part < frailt < two and two - frailt < 0.05
    holds = holds and all(wide.loss(model) < default.loss(model) for model in models)
    return holds, min(frailt, three_part) <= eight or min(frailt, three_part) >= two


def tinystories_three() -> Conditions:
    runs, combined = RUNS.on_shared_seeds(STORIES), RUNS.first_seed(STORIES).gap
    holds = runs.loss("three-part") < runs.loss("control-3") < runs.loss("relaxed")
    holds = holds and combined("frailt-lora", "frailt") < 0 and combined("frailt-lora", "relaxed") < 0
    holds = holds and abs(combined("three-part-encoded", "three-part")) <= 0.02
    gaps = [runs.gaps("control-3", model) for model in ("relaxed", "three-part")]
    return holds, max(map(max, gaps)) < 0 or min(map(min, gaps)) > 0


def tinystories_rates() -> Conditions:
    """In runs of 600 steps."""
    runs = paper.records(experiment="tinystories-small")
    short = [run for run in runs if run["config"]["train"]["steps"] == 600]
    loops = max(rate_gain(short, model, 0.008) for model in ("frailt", "relaxed", "three-part"))
    stacks = max(rate_gain(short, model, 0.008) for model in ("control", "control-8"))
    return loops <= 0 and stacks < 0.05, loops >= 0.05


def tinystories_own_rate() -> Conditions:
    gained, runs = mean(_stories_gained("control")), RUNS.stories_at_own_rates()
    gap = runs.gap("control", "frailt")
    holds = 0.005 <= gained <= 0.02 and 0 < gap < 0.015 and min(runs.gaps("control", "frailt")) <= 0
    return holds, gained <= 0 or gap >= 0.02


def tinystories_frailt_rate() -> Conditions:
    base, higher = (RUNS.language(name) for name in (STORIES, STORIES_HIGHER))
    planned(higher.of("frailt"))
    pairs = common(base.of("frailt"), higher.of("frailt"))
    gained = mean(once["test"]["loss"] - twice["test"]["loss"] for once, twice in pairs)
    lead = higher.gap("control", "frailt")
    return gained < 0 and lead < 0, lead >= 0.01


def tinystories_own_rate_three() -> Conditions:
    gaps = RUNS.stories_at_own_rates().gaps("control-3", "three-part")
    return 0 < mean(gaps) < 0.03 and sum(gap > 0 for gap in gaps) >= 2, mean(gaps) <= 0


def tinystories_own_rate_relaxed() -> Conditions:
    gained = mean(_stories_gained("relaxed"))
    gap = RUNS.stories_at_own_rates().gap("control-3", "relaxed")
    return 0.01 <= gained <= 0.05 and gap < 0, gap >= 0 or gained <= 0
