"""When a prediction holds and when it is contradicted: a function for each row of `predictions.yaml`, named by its id.

Each gives both conditions, of mean errors over seeds unless it says otherwise; where neither is true the prediction
holds in part.  One whose records are missing raises `Unmeasured`.
"""

from collections.abc import Sequence
from statistics import mean

from rtx_core import records
from rtx_core.report import statistics
from rtx_core.report.evidence import by_model
from rtx_core.report.rates import at_best_rate
from rtx_core.report.statistics import common
from rtx_core.report.values import Model, Unmeasured
from study import paper, published
from study.analysis import cache, classifiers, retrofit, stopping
from study.analysis.facts import rounded
from study.analysis.hops import Rounding, unpaired_odds, wrong
from study.analysis.inside import factors_read, parities_read
from study.analysis.iso_depth import IsoDepth, rounding_cost
from study.analysis.ladder import validated_more_often
from study.analysis.language import rate_gain
from study.analysis.ranking import correlation, mean_errors
from study.analysis.records import mean_loss
from study.folders import CHARACTERS, HIGHER, OWN, STORIES, STORIES_HIGHER, Folders
from study.plan import CURVE

Conditions = tuple[bool, bool]  # whether it holds, whether it is contradicted
LOOPS = ("3x2-64", "2x3-64", "1x6-64")  # of iso-depth at width 64
RUNS = Folders(paper.records)


def _bag_of_words(name: str) -> float:
    """The accuracy of counting words on a data set."""
    return Model(paper.measurements("yardstick", name), f"bag of words, {name}").accuracy


def _planned(runs: Sequence, seeds: int = 3) -> None:
    """An error before all planned seeds are there."""
    if len(runs) < seeds:
        raise Unmeasured(f"There are {len(runs)} of {seeds} planned seeds; run the others first.")


def _stories_gained(model: str) -> list[float]:
    """By how many nats 8e-3 is ahead of 4e-3 at the end, by seed."""
    pairs = common(RUNS.on_shared_seeds(STORIES).records_for(model), RUNS.stories_at_own_rates().records_for(model))
    return [lower["test"]["loss"] - higher["test"]["loss"] for lower, higher in pairs]


# -- Pointers


def khop() -> Conditions:
    runs = RUNS.hops("khop")
    loop, stack, two = (runs.error(model, 4) for model in ("1x4", "4x1", "2x1"))
    holds = loop <= 0.05 and loop - stack <= 0.03 and two >= 0.2 and runs.error("1x1", 4) >= 0.5
    return holds, loop > 0.1 or two < loop


def khop_parameters() -> Conditions:
    runs = RUNS.hops("khop")
    stack, *loops = (runs.error(model, 4) for model in ("4x1", "2x2", "1x4"))
    one, *fewer = (runs.error(model, 4) for model in ("1x1", "2x1", "3x1"))
    most = max(stack, *loops)
    holds = max(abs(loop - stack) for loop in loops) <= 0.05 and min(one, *fewer) > most
    return holds, min(fewer) <= most


def khop_hard() -> Conditions:
    runs = RUNS.hops("khop-hard")
    loop, stack, two = (runs.error(model, 8) for model in ("1x6", "6x1", "2x1"))
    holds = abs(loop - stack) <= 0.05 and two > 0.4 and max(loop, stack) < 0.1
    return holds, loop - stack > 0.1 or two < 0.2


def khop_published() -> Conditions:
    runs, models = RUNS.hops("khop-published-reduced"), ("4x1", "1x4")
    holds = all(2 <= runs.solved(model) < 8 and runs.error(model, 16) > 0.5 for model in models)
    behind = runs.behind("1x4", "4x1")
    return holds and behind <= 0.1, behind > 0.2 or max(map(runs.solved, models)) >= 8


def three_layers_tuned() -> Conditions:
    three = mean(RUNS.khop_at_best_rates().errors("3x1", new=True))
    return 0.01 <= three <= 0.1, three < 0.005


def khop_second_pass() -> Conditions:
    rated = RUNS.khop_at_best_rates()
    once, twice, two = (mean(rated.errors(model, new=True)) for model in ("1x1", "1x2", "2x1"))
    return 1.2 * two <= twice < once, twice <= two


def pointers_wider() -> Conditions:
    narrow, wide = (
        [RUNS.many_letters(model) for model in models]
        for models in (("1x4", "4x1-w64", "4x1"), ("1x4-w256", "4x1", "4x1-w256"))
    )
    (loop, stack, deep), (loop_wide, stack_wide, deep_wide) = narrow, wide
    holds = stack - loop >= 0.02 and stack_wide - loop_wide >= 0.005
    holds = holds and abs(loop - deep) <= 0.02 and abs(loop_wide - deep_wide) <= 0.02
    return holds, stack <= loop or stack_wide <= loop_wide


def random_passes() -> Conditions:
    runs = RUNS.hops("khop")
    rise = max(runs.error("1x6-random", hops, 12) - runs.error("1x6-random", hops, 6) for hops in range(5))
    solved = [runs.solved("1x6-random", passes) for passes in (1, 2, 3, 4)]
    at_six = runs.solved("1x6-random", 6)
    holds = at_six == 4 and runs.error("1x4", 4, 8) >= 0.4 and rise <= 0.05
    holds = holds and all(abs(hops - passes) <= 1 for passes, hops in enumerate(solved, 1))
    return holds, at_six < 3 or rise > 0.1


def khop_narrow() -> Conditions:
    rated, hard = RUNS.khop_at_best_rates(), RUNS.hops("khop-hard")
    pairs = (("1x4", "4x1-w32"), ("2x2", "4x1-w44"))
    at_own_rates = max(rated(*pair).mean for pair in pairs)
    holds = max(RUNS.on_logits(*pair).mean for pair in pairs) < 0 and at_own_rates < 0
    holds = holds and min(rated.errors("4x1-w32") + rated.errors("4x1-w44")) > 0.1
    return holds and hard.error("6x1-w36", 8) > hard.error("2x3", 8), at_own_rates >= 0


def khop_equal_work() -> Conditions:
    stack, loop = RUNS.narrow_at_equal_work(), RUNS.khop_at_best_rates().new("2x2")
    error, p = mean(wrong(run, 4) for run in stack), unpaired_odds(loop, stack).p
    return error < 0.02 and p >= 0.05, error > 0.04 or p < 0.05


def khop_shallow() -> Conditions:
    rated = RUNS.khop_at_best_rates()
    holds = min(rated.errors("2x1")) > 0.15 and min(rated.errors("1x1")) > 0.5
    return holds, mean(rated.errors("2x1")) < 0.1


def khop_eight() -> Conditions:
    ahead, level = RUNS.on_logits("2x2", "4x1"), not RUNS.on_logits("1x4", "4x1").separated
    holds = min(ahead.lower, RUNS.on_logits("2x2", "1x4").lower) >= 6 and level
    holds = holds and max(RUNS.on_logits(model, "3x1").high for model in ("2x2", "4x1", "1x4")) < 0
    return holds, ahead.mean > 0 or not level


def khop_longer() -> Conditions:
    runs = RUNS.hops("khop-steps12000")
    at_eight = runs.error("1x4", 4, 8)
    holds = max(runs.errors("1x4", 4)) < 0.02 and min(runs.errors("1x4", 4, 3)) > 0.3 and at_eight > 0.05
    return holds, runs.error("1x4", 4, 3) < 0.15 or at_eight < 0.02


def backprop_passes() -> Conditions:
    """Of gradients through one, two and all four passes, on the same seeds."""
    one, two = (RUNS.hops(f"khop-backproppasses{n}") for n in (1, 2))
    every = RUNS.hops("khop").errors("1x4", 4)[:3]
    if min(len(runs.of("1x4")) for runs in (one, two)) < len(every):
        raise Unmeasured("There are no three seeds of 1x4 with truncated gradients; run them first.")
    errors = [mean(runs.errors("1x4", 4)) for runs in (one, two)]
    holds = errors[0] >= 0.4 and 0.1 <= errors[1] <= 0.4 and errors[1] > mean(every)
    holds = holds and all(a > b for a, b in zip(one.errors("1x4", 4), every, strict=True))
    return holds, errors[0] < 0.2 or errors[1] <= mean(every)


def cache_last() -> Conditions:
    """Of trained loops that are read with the keys and values of the last pass alone."""
    loop, two = (cache.hop_errors(paper.measurements("cache", "khop"), model, "last", 4) for model in ("1x4", "2x2"))
    text = paper.measurements("cache", "iso-depth")
    rises = [cache.loss_rise(text, model) for model in ("2x3-64", "1x6-64")]
    holds = min(loop) >= 0.4 and mean(two) >= 0.2 and all(0.05 <= rise <= 0.6 for rise in rises)
    return holds, mean(loop) < 0.2 or max(rises) < 0.02


def backprop_passes_elsewhere() -> Conditions:
    """On Shakespeare and on S3, on seeds 0 to 2, and with random cuts on pointers."""
    rises = [RUNS.text_loop(passes) - RUNS.text_loop() for passes in (1, 2)]
    s3, cut = (
        [run["test"]["accuracy"] for run in RUNS.records(name) if run["model"] == "1x8"]
        for name in ("state-tracking", "state-tracking-backproppasses1")
    )
    drawn, fixed = (RUNS.hops(f"khop-backproppasses{n}").error("1x4", 4) for n in ("random", 2))
    holds = rises[0] <= 0.1 and rises[1] <= 0.05 and mean(cut) < mean(s3) and drawn < fixed
    return holds, rises[1] > 0.2 or mean(cut) >= mean(s3)


def backprop_passes_injected() -> Conditions:
    """On Shakespeare, where a matrix injects the input before each pass, on seeds 0 to 2."""
    every, one, two = (RUNS.text_loop(passes, "linear") for passes in (0, 1, 2))
    return two - every <= 0.3 and one - every <= 0.5, two - every > 0.6


def cache_last_trained() -> Conditions:
    errors = RUNS.hops("khop-cachelast").errors("1x4", 4)
    in_turn = RUNS.records("iso-depth-cachelast")
    every = [run for run in RUNS.records("iso-depth") if run["model"] == "1x6-64" and run["seed"] == 0]
    rise = mean_loss(in_turn) - mean_loss(every)
    return max(errors) <= 0.05 and abs(rise) <= 0.05, min(errors) > 0.15 or rise > 0.1


def halting_gate() -> Conditions:
    """Of a gate and of a threshold on the probability, after as many steps, on the means over seeds."""
    measured = [*paper.measurements("stopping", "khop"), *paper.measurements("stopping", stopping.TRAINED["gate"][0])]
    _planned(stopping.of(measured, "gate"))
    passes, wrong_there = stopping.mean_of(measured, "random, 4,000 steps", "confident 0.99", 4)
    gate_passes, gate_wrong = stopping.nearest(measured, "gate", "gate", 4, passes)
    after_six = stopping.mean_of(measured, "gate", "fixed 6", 4)[1]
    easier = stopping.mean_of(measured, "gate", "gate 0.9", 1)[0] < stopping.mean_of(measured, "gate", "gate 0.9", 4)[0]
    better = gate_wrong < wrong_there and gate_passes <= passes
    return after_six <= 0.1 and easier and gate_wrong >= wrong_there, better


def halting_control() -> Conditions:
    names = ("khop-steps4000", "khop-halting10-steps4000", "khop-halting0.1-steps4000")
    for name in names:
        _planned(RUNS.hops(name).of("1x6"))
    alone, level, gate = (RUNS.hops(name).error("1x6", 4) for name in names)
    return alone >= 0.02 and level >= 0.2 and gate <= 0.005, alone < 0.005 or gate > 0.05


def muon() -> Conditions:
    two, twice, narrow = (
        mean(wrong(run, 4) for run in RUNS.with_muon("khop", model)) for model in ("2x1", "2x2", "4x1-w44")
    )
    return two >= 0.15 and twice <= 0.02 and narrow > twice, two < 0.05 or narrow <= twice


def muon_text() -> Conditions:
    deep, loop, shallow = (mean_loss(RUNS.with_muon("iso-depth", model)) for model in ("6x1-64", "3x2-64", "3x1-64"))
    holds = deep < loop < shallow and shallow - loop < loop - deep
    return holds, loop <= deep or loop > shallow + 0.005


def khop_narrow_six() -> Conditions:
    """On seeds 5 to 7, the stack at the rate of the lowest validation loss on seed 3."""
    narrow = [wrong(run, 4) for run in RUNS.narrow_six()]
    loop = [wrong(run, 4) for run in RUNS.hops("khop-steps4000").of("1x6")]
    return min(narrow) >= 0.01 and max(loop) <= 0.001, sum(error <= 0.001 for error in narrow) >= 2


def khop_draw() -> Conditions:
    """Of the middle one of three seeds after four passes and after twelve."""
    runs = RUNS.hops("khop-steps12000")
    four, twelve = (sorted(runs.errors("1x6", 4, passes))[1] for passes in (4, 12))
    holds = max(runs.errors("1x6", 4, 6)) <= 0.02 and four >= 0.2 and twelve > 0.04
    return holds, max(four, twelve) <= 0.05


def khop_hard_rate() -> Conditions:
    runs = RUNS.hops("khop-hard-learningrate0.004")
    loops = sum(error < 0.1 for model in ("2x3", "1x6") for error in runs.errors(model, 8))
    worst = max(runs.errors("6x1", 8))
    holds = loops >= 3 and worst < 0.1 and sum(error < 0.1 for error in runs.errors("6x1-w36", 8)) >= 2
    return holds, loops <= 1 or worst >= 0.1


def khop_hard_again() -> Conditions:
    rated = RUNS.khop_hard_at_best_rates()
    solved = sum(error < 0.1 for error in rated.errors("2x3", new=True))
    return solved >= 4 and rated("2x3", "6x1-w36", new=True).lower >= 4, solved <= 2


def khop_equals_again() -> Conditions:
    rated = RUNS.khop_at_best_rates()
    two = rated("2x2", "4x1-w44", new=True)
    holds = two.lower >= 4 and two.high < 0 and not rated("1x4", "4x1-w32", new=True).separated
    return holds, two.mean >= 0


def khop_four_times() -> Conditions:
    """Of seeds 0 to 4 after 12,000 steps."""
    runs = RUNS.hops("khop-steps12000")
    two, three, narrow = (runs.error(model, 4) for model in ("2x1", "3x1", "4x1-w44"))
    holds = 0.12 <= two <= 0.26 and three <= 0.025 and 0.001 <= narrow <= 0.04
    return holds and max(runs.error(model, 4) for model in ("4x1", "2x2")) <= 0.005, two < 0.1


def khop_wider() -> Conditions:
    two, twice, loop, deep = (RUNS.wider(model) for model in ("2x1", "2x2", "1x4", "4x1"))
    stack = RUNS.wider("4x1", width=128)
    holds = two >= 0.1 and max(twice, loop, deep) <= 0.03 and abs(loop - stack) <= 0.02
    return holds, two < 0.05 or loop > 0.1 or loop - stack > 0.05


def narrow_bracketed() -> Conditions:
    default, higher = (RUNS.hops(f"khop-learningrate{rate}") for rate in (0.008, 0.016))
    wide = mean(wrong(run, 4) for run in default.records_for("4x1-w44") if run["seed"] >= 3)
    narrow = [runs.errors("4x1-w32", 4) for runs in (higher, default)]
    holds = wide >= 0.01 and mean(narrow[0]) > mean(narrow[1])
    return holds, wide < 0.004 or sum(a < b for a, b in zip(*narrow)) >= 6


def rounding() -> Conditions:
    runs = Rounding(paper.measurements("quantized", "khop"), RUNS.hops("khop"))
    loop, two, stack = (runs.cost(model, 4) for model in ("1x4", "2x2", "4x1"))
    by_passes = [runs.cost("1x4", 4, passes=passes) for passes in (1, 2, 3, 4)]
    holds = runs.most(8) <= 0.02 and min(loop, two) > stack and by_passes == sorted(by_passes)
    return holds and runs.cost("1x4-noise", 4) <= loop / 2, stack >= loop


def rounding_text() -> Conditions:
    measured, runs = paper.measurements("quantized", "iso-depth"), RUNS.records("iso-depth")
    (loop8, loop), (stack8, stack) = (
        [rounding_cost(measured, runs, model, bits) for bits in (8, 4)] for model in ("1x6-64", "6x1-64")
    )
    return max(loop8, stack8) <= 0.01 and loop > stack, loop <= stack


def ceiling() -> Conditions:
    found = rounded(paper.measurements("capacity"), paper.records("facts-facts49152-epochs240"))
    if len(found) < 4 * 6:
        raise Unmeasured(f"There are {len(found)} of 24 planned measurements; make the others first.")
    eight, two = ([one.kept for one in found if one.bits == bits] for bits in (8, 2))
    loop, once = (next(o.kept for o in found if o.bits == 4 and o.run["model"] == model) for model in ("1x4", "1x1"))
    below = all(one.stored < one.ceiling for one in found)
    return min(eight) >= 0.97 and below and loop < once and max(two) < 0.1, min(eight) < 0.9 or loop >= once


def stack_to_loop() -> Conditions:
    measured = paper.measurements("retrofit", "iso-depth")
    _planned(measured)
    at_once, after = (retrofit.best(measured, tenth) for tenth in (False, True))
    on, scratch = retrofit.loss(measured, "stack"), retrofit.loss(measured, "anew")
    holds = at_once - retrofit.loss(measured, "stack", tenth=False) > 0.5 and after - on <= 0.1
    holds = holds and scratch - after > 0.2 and retrofit.anew(measured) < after
    return holds, after - on <= 0.02 or after >= scratch


# -- Products in a group


def state_tracking() -> Conditions:
    (s3_one, s3_eight), (z6_one, z6_eight) = (
        [runs.solved(model) for model in ("1x1", "1x8")]
        for runs in (RUNS.hops("state-tracking"), RUNS.hops("state-tracking-groupZ6"))
    )
    holds = s3_eight + 1 >= 4 * (s3_one + 1) and (s3_eight + 1) / (s3_one + 1) > (z6_eight + 1) / (z6_one + 1)
    return holds, s3_eight <= s3_one


def state_tracking_rates() -> Conditions:
    names = ("state-tracking-learningrate0.001", "state-tracking-learningrate0.004", "state-tracking")
    lower, higher, usual = map(RUNS.hops, names)
    loops = [runs.factors("1x8") for runs in (lower, higher)]
    stacks = [runs.factors("8x1") for runs in (lower, higher, usual)]
    holds = all(sum(6 <= n <= 12 for n in loop) >= 2 for loop in loops)
    holds = holds and all(sum(n < 16 for n in stack) >= 2 for stack in stacks)
    return holds, any(sum(not 5 <= n < 16 for n in loop) >= 2 for loop in loops)


def state_tracking_longer() -> Conditions:
    runs = RUNS.hops("state-tracking-letters16-steps12000")
    loop, stack = (runs.factors(model, below=0.05) for model in ("1x8", "8x1"))
    holds = sum(n >= 12 for n in loop) >= 2 and sum(stack) >= sum(loop)
    return holds, sum(n < 10 for n in loop) >= 2 or sum(stack) < sum(loop)


def state_tracking_scan() -> Conditions:
    runs = RUNS.hops("state-tracking-scan")
    loop, stack = (runs.factors(model, below=0.05) for model in ("1x6-numbered", "6x1"))
    holds = sum(n >= 64 for n in loop) >= 2 and sum(n >= 64 for n in stack) >= 2
    return holds, sum(n < 16 for n in loop) >= 2


def state_tracking_curriculum() -> Conditions:
    runs, longer = map(RUNS.hops, ("state-tracking-curriculum", "state-tracking-letters16-steps12000"))
    loop = runs.factors("1x64", below=0.05)
    holds = sum(n >= 32 for n in loop) >= 2 and max(runs.factors("8x1", below=0.05)) < 32
    return holds and min(runs.factors("8x1")) > max(longer.factors("8x1")), sum(n < 16 for n in loop) >= 2


def state_tracking_few_passes() -> Conditions:
    runs = RUNS.hops("state-tracking-curriculum")
    _planned(runs.of("1x8"))
    factors = runs.factors("1x8")
    return min(factors) >= 6 and max(factors) <= 16, sum(n >= 32 for n in factors) >= 2


def state_tracking_parity() -> Conditions:
    products, parities = paper.measurements("spans"), paper.measurements("parity")
    _planned(parities)
    ahead = [
        parity - product
        for passes in range(1, 9)
        for product, parity in zip(factors_read(products, passes), parities_read(parities, passes))
    ]
    return max(ahead) <= 2, sum(n == 16 for n in parities_read(parities, 4)) >= 2


def state_tracking_mixed() -> Conditions:
    loop = RUNS.hops("state-tracking-curriculum-stage1").factors("1x64")
    return sum(n >= 32 for n in loop) >= 2, sum(n < 16 for n in loop) >= 2


def state_tracking_a5() -> Conditions:
    runs = RUNS.hops("state-tracking-scan-groupA5-steps6000")
    loop, stack = (runs.factors(model, below=0.05) for model in ("1x6-numbered", "6x1"))
    holds = sum(4 <= n <= 32 for n in loop) >= 2 and max(stack) <= 32
    all_factors = any(sum(n >= 64 for n in factors) >= 2 for factors in (loop, stack))
    return holds, all_factors or sum(n < 2 for n in loop) >= 2


# -- Facts


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
    once, twice, two = map(RUNS.facts_at_best_rate, ("1x1", "1x2", "2x1"))
    share = (twice - once) / (two - once)
    return 0 <= share < 0.2, share > 0.5


def facts_wider() -> Conditions:
    one, loop, two, twice = (RUNS.wide_facts(model) for model in ("1x1", "1x4", "2x1", "2x2"))
    holds = loop <= 1.3 * one and twice <= 1.2 * two and two >= 1.4 * one
    return holds, loop >= two or two < 1.2 * one


# -- Characters at equal depth


def iso_depth() -> Conditions:
    """A φ above 0 is a lower loss at equal parameters."""
    runs = RUNS.iso_depth()
    every = runs.phi.of_all
    holds = all(0.1 < shape.value < 0.8 for shape in (runs.phi.of_3x2, runs.phi.of_2x3, runs.phi.of_1x6))
    holds = holds and every.low > 0 and every.high < 1 and runs.in_order and runs.phi.least.value > 0
    return holds, every.low > 1 or every.low <= 0 or runs.looped_ahead


def iso_depth_eight() -> Conditions:
    eight = RUNS.iso_depth(8).phi
    every, holds_published = eight.of_all, eight.of_all.low <= 0.46 <= eight.of_all.high
    holds = every.low <= RUNS.iso_depth(3).phi.of_all.value <= every.high and every.high - every.low <= 0.15
    holds = holds and holds_published and eight.falls.low > 0
    return holds, not holds_published or eight.of_1x6.value >= eight.of_3x2.value


def iso_depth_rates() -> Conditions:
    tuned = RUNS.iso_depth_at_best_rates(1, 0.0015, 0.006)
    change = abs(tuned.phi.of_all.value - RUNS.iso_depth(1).phi.of_all.value)
    narrow = [model for model in tuned.runs if int(model.split("-")[1]) <= 64]
    return all(tuned.rate(model) >= 3e-3 for model in narrow) and change < 0.1, change >= 0.2


def iso_depth_rates_seeds() -> Conditions:
    tuned, default = RUNS.iso_depth_at_best_rates(3, *HIGHER), RUNS.iso_depth(3)
    pairs = list(zip(tuned.by_seed(*LOOPS), default.by_seed(*LOOPS)))
    holds = all(tuned.rate(model) < 0.012 for model in LOOPS)
    holds = holds and sum(tuned.rate(model) == 0.012 for model in tuned.of("6x1")) <= 1 and all(a < b for a, b in pairs)
    worth = tuned.phi.at_64.value
    return holds and -0.1 <= worth <= 0.2, worth >= 0.3 or sum(a >= b for a, b in pairs) >= 2


def iso_depth_longer() -> Conditions:
    longer, default = IsoDepth(paper.records("iso-depth-steps3200")), RUNS.iso_depth()
    falls = sum(a < b for a, b in zip(longer.by_seed(*LOOPS), default.by_seed(*LOOPS)))
    worth = longer.phi.at_64.value
    return falls >= 2 and worth > 0.2, worth > default.phi.at_64.value or worth <= 0.1


def iso_depth_three_part() -> Conditions:
    worth = IsoDepth(paper.records("iso-depth"), ("three-part",)).phi.of_all.value
    looped = RUNS.iso_depth().phi.of_1x6.value
    return 0.3 <= worth <= 0.8 and worth > looped, worth <= looped


def text_in_layers() -> Conditions:
    most = max(RUNS.worth_in_layers(loop, *HIGHER) for loop in LOOPS)
    holds = 6 ** RUNS.worth_in_layers("1x6-64") < 2.5 and 2 * 3 ** RUNS.worth_in_layers("2x3-64") < 4
    return holds and most <= 0.4, most > 0.7


def text_second_pass() -> Conditions:
    once, twice, two = (RUNS.text_loss(model, *HIGHER) for model in ("1x1-64", "1x2-64", "2x1-64"))
    share = (once - twice) / (once - two)
    return -0.1 <= share <= 0.5, share >= 0.75


def text_wider() -> Conditions:
    loss = {model: mean_loss(RUNS.wide_text(model)) for model in ("1x1", "2x1", "3x1", "6x1", "3x2", "2x3", "1x6")}
    holds = loss["2x1"] < loss["1x6"] < loss["1x1"] and loss["2x3"] > loss["3x1"]
    return holds and loss["6x1"] == min(loss.values()), loss["1x6"] < loss["2x1"] or loss["2x3"] < loss["6x1"]


# -- Small language models


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
    _planned(higher.of("frailt"))
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


# -- Classifiers


def ladder() -> Conditions:
    default, tuned = RUNS.ladder(), RUNS.ladder_tuned()
    close, every = default.accuracies(256, "1x6"), default.accuracies(256)
    holds = not any(pair.sign for pair in default.differences.values()) and max(close) - min(close) <= 0.02
    gains = [abs(tuned.gain(rung)) for rung in ("3x1", "3x2", "6x1", "1x6")]
    contradicting = [((256, "3x2"), (256, "3x1")), ((256, "3x2"), (256, "6x1")), ((384, "6x1"), (384, "3x2"))]
    return holds and min(gains) > max(every) - min(every), any(default.differences[pair].sign for pair in contradicting)


def ladder_tuned() -> Conditions:
    tuned, level = RUNS.ladder_tuned(), (("3x2", "3x1"), ("3x2", "6x1"), ("1x6", "1x1"))
    holds = min(map(tuned.gain, tuned.runs)) > 0
    holds = holds and min(tuned.accuracies()) >= _bag_of_words("sst2-10pct")
    holds = holds and abs(tuned.accuracy("6x1") - tuned.accuracy("1x1")) <= 0.02
    holds = holds and not any(tuned.differences[pair].sign for pair in level)
    return holds, tuned.ahead("6x1", "1x1") or tuned.ahead("1x6", "1x1")


def bf16() -> Conditions:
    """After training with 16-bit products minus after 32-bit ones."""
    folders = ("sst2-10pct-precisionbf16", "sst2-10pct")
    pairs = [[paper.records(folder, model=model) for folder in folders] for model in classifiers.PAIR]
    gaps = statistics.adjusted([statistics.difference(first, second) for first, second in pairs])
    holds = all(gap.sign == 0 and abs(gap.value) <= 0.01 for gap in gaps)
    return holds, any(gap.sign != 0 or abs(gap.value) >= 0.02 for gap in gaps)


def sst2_curve() -> Conditions:
    """With the first seed."""
    pairs = [(RUNS.on_a_tenth(model, **CURVE)[0], RUNS.on_a_tenth(model)[0]) for model in classifiers.PAIR]
    both = [validated_more_often(*pair) for pair in pairs]
    holds = all(abs(one.steps) <= 171 and abs(one.points) <= 1.5 and one.rise > 0 for one in both)
    return holds, any(abs(one.steps) > 342 or abs(one.points) > 3 for one in both)


def sst2_leak_free() -> Conditions:
    grouped, pooled = RUNS.task("sst2-grouped"), RUNS.task("sst2")
    models = grouped.baseline, grouped.recurrent
    first, second = (mean(classifiers.most_accurate(model)) for model in models)
    holds = all(0.8 < model.accuracy < 0.84 for model in models)
    holds = holds and abs(grouped.difference) < 1 and abs(first - second) < 1
    holds = holds and max(epoch for model in models for epoch in classifiers.tested(model, "epoch")) <= 2
    holds = holds and max(first - 100 * models[0].accuracy, second - 100 * models[1].accuracy) <= 1
    falls = [a.accuracy - b.accuracy for a, b in zip(models, (pooled.baseline, pooled.recurrent))]
    return holds, abs(grouped.difference) >= 2 or max(falls) > -0.03


def sst2_half() -> Conditions:
    half, words = RUNS.task("sst2-50pct"), _bag_of_words("sst2-50pct")
    furthest = max(abs(model.accuracy - words) for model in (half.baseline, half.recurrent))
    holds = -2 < half.difference <= 0 and furthest <= 0.015
    return holds, half.difference.lean == 1 or furthest >= 0.03


def sst2_long() -> Conditions:
    """Of the shares of texts that are called positive and that are."""
    long = RUNS.task("sst2-long")
    true = statistics.shares(long.baseline.records[0])[0][1]
    furthest = max(abs(model.positive - true) for model in (long.baseline, long.recurrent))
    holds = long.difference.lean != -1 and abs(long.difference) < 2 and furthest <= 0.05
    return holds, long.difference.lean == -1 or furthest >= 0.1


def three_domains() -> Conditions:
    domains = RUNS.task("multi-domain-trainrows20000-epochs1")
    models, words = (domains.baseline, domains.recurrent), _bag_of_words("multi-domain")
    _, _, products = domains.recurrent.records[0]["test"]["confusion"]
    holds = all(0.97 <= model.accuracy < min(0.99, words + 0.005) for model in models)
    holds = holds and abs(domains.difference) < 1 and products[2] > 0.9 * sum(products)
    return holds, any(model.accuracy < 0.95 for model in models) or abs(domains.difference) >= 2


def three_domains_full() -> Conditions:
    domains, words = RUNS.task("multi-domain"), _bag_of_words("multi-domain")
    accuracies = [model.accuracy for model in (domains.baseline, domains.recurrent)]
    holds = all(0.98 <= accuracy <= 0.993 and abs(accuracy - words) <= 0.01 for accuracy in accuracies)
    return holds and abs(domains.difference) < 0.5, min(accuracies) < 0.975 or abs(domains.difference) >= 1


def yelp_full() -> Conditions:
    short, long, words = RUNS.task("yelp"), RUNS.task("yelp-maxlength512"), _bag_of_words("yelp")
    most = max(abs(short.difference), abs(long.difference))
    beyond = [model.accuracy - words for model in (short.baseline, short.recurrent)]
    gains = [b.accuracy - a.accuracy for a, b in ((short.baseline, long.baseline), (short.recurrent, long.recurrent))]
    holds = most < 1.5 and max(map(abs, beyond)) <= 0.02 and min(gains) >= 0.01
    return holds, most >= 3 or max(beyond) >= 0.03


# -- The bench


def bench_s3_standard() -> Conditions:
    bench = Folders(lambda name: records.records(name=name))  # which `paper`, with its plan of claims, leaves out
    quick = mean_errors([run for run in bench.records("bench-s3-quick") if run["seed"] == 0])
    runs = by_model(bench.all_rates("bench-s3", OWN, 0.001, 0.004).records)
    at_best = [run for of_model in runs.values() if len(of_model) == 9 for run in at_best_rate(of_model)]
    standard = mean_errors(at_best)
    _planned(sorted(quick.keys() & standard.keys()), 10)
    agreement = correlation(quick, standard)
    first = all(min(errors.values()) == errors["LSTM"] for errors in (quick, standard))
    return agreement >= 0.7 and first, agreement < 0.4
