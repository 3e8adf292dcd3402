"""When predictions of pointers hold and when they are contradicted."""

from statistics import mean

from study.analysis.hops import Hops, unpaired_odds, wrong
from study.analysis.records import pass_share
from study.folders import PICKING, WIDER
from study.plan import AGAIN_RATES
from study.verdicts.runs import RUNS, Conditions, planned


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
    rates = 0.0005, 0.001
    two, twice, loop, deep = (RUNS.wider(model, 256, *rates) for model in ("2x1", "2x2", "1x4", "4x1"))
    stack = RUNS.wider("4x1", 128)
    holds = two >= 0.1 and max(twice, loop, deep) <= 0.03 and abs(loop - stack) <= 0.02
    return holds, two < 0.05 or loop > 0.1 or loop - stack > 0.05


def khop_wider_second_pass() -> Conditions:
    def first_seeds(model: str) -> float:
        return mean(wrong(run, 4) for run in RUNS.wider_runs(model) if run["seed"] < PICKING)

    share = pass_share(first_seeds)
    return 0.5 <= share <= 1, share < 0.3


def khop_wider_new_seeds() -> Conditions:
    name = WIDER[256][0]
    low, lower = (RUNS.hops(f"{name}-learningrate{rate}") for rate in (0.00025, 0.000125))
    new = {model: [run for run in low.of(model) if run["seed"] > PICKING] for model in ("1x2", "2x1")}
    planned(min(new.values(), key=len), 4)
    twice, two = (mean(wrong(run, 4) for run in runs) for runs in new.values())
    share = (0.587 - twice) / (0.587 - two)

    def loss(runs: Hops, model: str) -> float:
        return next(run["selected"]["validation_loss"] for run in runs.of(model) if run["seed"] == PICKING)

    return 0.85 <= share <= 1.15 and all(loss(lower, model) > loss(low, model) for model in new), share < 0.75


def khop_wider_longer() -> Conditions:
    errors = [[run for run in RUNS.long_wider(model) if run["seed"] < 2] for model in ("1x2", "2x1")]
    planned(min(errors, key=len), 2)
    twice, two = (mean(wrong(run, 4) for run in each) for each in errors)
    share = (0.587 - twice) / (0.587 - two)
    return 0.8 <= share <= 1.1 and max(twice, two) < 0.15, share < 0.7


def khop_set() -> Conditions:
    errors = {model: RUNS.few_sequences(model) for model in ("2x2", "4x1-w44", "4x1", "1x4")}
    planned(min(errors.values(), key=len), 5)
    beside = unpaired_odds(errors["2x2"], errors["4x1-w44"])
    more = [
        mean(wrong(run, 4) for run in each) > mean(wrong(run, 4) for run in RUNS.again(model))
        for model, each in errors.items()
    ]
    return beside.odds[0] >= 1 and all(more), beside.p < 0.05 and beside.odds[0] < 1


def khop_again() -> Conditions:
    loop, narrow, stack = map(RUNS.again, ("2x2", "4x1-w44", "4x1"))
    planned(narrow, 20)
    equal_steps, equal_work = (unpaired_odds(loop, runs) for runs in (narrow, RUNS.again_at_equal_work()))
    fewer, worse = equal_steps.p < 0.05 and equal_steps.odds[0] < 1, equal_work.p < 0.05 and equal_work.odds[0] > 1
    level = min(equal_work.p, unpaired_odds(loop, stack).p) >= 0.05
    return fewer and level, equal_steps.p >= 0.05 or worse


def khop_slow_seeds() -> Conditions:
    loop, narrow = map(RUNS.counted_again, ("2x2", "4x1-w44"))
    planned(loop, 20)
    planned(narrow, 20)
    slow = [sum(wrong(run, 4) > 0.03 for run in runs) for runs in (loop, narrow)]
    return slow[0] <= 2 and slow[1] >= 3 and slow[0] < slow[1], slow[0] >= slow[1]


def narrow_one_layer() -> Conditions:
    loop, narrow, longer = RUNS.again("1x2"), *(RUNS.split("hops", work) for work in (False, True))
    planned(narrow, 20)
    planned(longer, 20)
    steps, work = (unpaired_odds(loop, stack) for stack in (narrow, longer))
    fewer = [one.p < 0.05 and one.odds[0] > 1 for one in (steps, work)]
    return all(fewer), work.p < 0.05 and work.odds[0] < 1


def narrow_one_wide_layer() -> Conditions:
    loop, stack = RUNS.wider_runs("1x2"), RUNS.split("hops_wide", True)
    planned(stack, 7)
    work = unpaired_odds(loop, stack)
    return work.p < 0.05 and work.odds[0] > 1, work.p >= 0.05 or work.odds[0] < 1


def khop_all_again() -> Conditions:
    errors = {model: [wrong(run, 4) for run in RUNS.again(model)] for model in AGAIN_RATES}
    planned(min(errors.values(), key=len), 20)
    share = pass_share(lambda model: mean(errors[model]))
    loop = unpaired_odds(RUNS.again("1x4"), RUNS.again("4x1-w32"))
    holds = 0.55 <= share <= 0.78 and 0.03 <= mean(errors["3x1"]) <= 0.1 and loop.p >= 0.05
    return holds, not 0.45 <= share <= 0.9 or (loop.p < 0.05 and loop.odds[0] > 1)


def narrow_bracketed() -> Conditions:
    default, higher = (RUNS.hops(f"khop-learningrate{rate}") for rate in (0.008, 0.016))
    wide = mean(wrong(run, 4) for run in default.records_for("4x1-w44") if run["seed"] >= 3)
    narrow = [runs.errors("4x1-w32", 4) for runs in (higher, default)]
    holds = wide >= 0.01 and mean(narrow[0]) > mean(narrow[1])
    return holds, wide < 0.004 or sum(a < b for a, b in zip(*narrow)) >= 6
