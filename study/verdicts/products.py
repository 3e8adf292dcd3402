"""When predictions of products in a group hold and when they are contradicted."""

from study import paper
from study.analysis.inside import factors_read, parities_read
from study.verdicts.runs import RUNS, Conditions, planned


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


def state_tracking_few_passes(name: str = "state-tracking-curriculum") -> Conditions:
    runs = RUNS.hops(name)
    planned(runs.of("1x8"))
    factors = runs.factors("1x8")
    return min(factors) >= 6 and max(factors) <= 16, sum(n >= 32 for n in factors) >= 2


def state_tracking_fixed_passes() -> Conditions:
    return state_tracking_few_passes("state-tracking-fixed-passes")


def state_tracking_parity() -> Conditions:
    products, parities = paper.measurements("spans"), paper.measurements("parity")
    planned(parities)
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
