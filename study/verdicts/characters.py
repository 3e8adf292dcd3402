"""When predictions of characters at equal depth hold and when they are contradicted."""

from statistics import mean

from rtx_core.report.statistics import unpaired
from study import paper
from study.analysis.iso_depth import IsoDepth
from study.analysis.records import mean_loss, pass_share, test_loss
from study.folders import HIGHER
from study.verdicts.runs import RUNS, Conditions, planned

LOOPS = ("3x2-64", "2x3-64", "1x6-64")  # of iso-depth at width 64


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
    share = pass_share(lambda model: RUNS.text_loss(model, *HIGHER), "-64")
    return -0.1 <= share <= 0.5, share >= 0.75


def text_wider() -> Conditions:
    loss = {model: mean_loss(RUNS.wide_text(model)) for model in ("1x1", "2x1", "3x1", "6x1", "3x2", "2x3", "1x6")}
    holds = loss["2x1"] < loss["1x6"] < loss["1x1"] and loss["2x3"] > loss["3x1"]
    return holds and loss["6x1"] == min(loss.values()), loss["1x6"] < loss["2x1"] or loss["2x3"] < loss["6x1"]


def text_wider_second_pass() -> Conditions:
    share = pass_share(lambda model: mean_loss(RUNS.wide_text(model)))
    return 0 <= share <= 0.5, share >= 0.75


def text_longer_training() -> Conditions:
    single, loop = RUNS.longer_single("text"), RUNS.text_again("1x2-64")
    planned(single, 10)
    difference, _, _, p, _ = unpaired(list(map(test_loss, single)), list(map(test_loss, loop)))
    return difference < 0 and p < 0.05, difference >= 0


def text_again() -> Conditions:
    runs = {model: RUNS.text_again(f"{model}-64") for model in ("1x1", "1x2", "2x1", "3x1", "3x2")}
    runs["injected"] = RUNS.injected_again()
    planned(min(runs.values(), key=len), 10)
    losses = {model: list(map(test_loss, each)) for model, each in runs.items()}
    share = pass_share(lambda model: mean(losses[model]))

    def lower(first: str, second: str) -> bool:
        difference, _, _, p, _ = unpaired(losses[first], losses[second])
        return difference < 0 and p < 0.05

    ahead = lower("injected", "1x1")
    holds = 0 <= share <= 0.4 and not lower("3x2", "3x1") and not lower("3x1", "3x2")
    return holds and ahead and lower("2x1", "injected"), share >= 0.7 or lower("3x2", "3x1") or not ahead


def text_again_longer() -> Conditions:
    runs = {model: RUNS.longer_text(f"{model}-64") for model in ("1x1", "1x2", "2x1")}
    planned(min(runs.values(), key=len), 5)
    share = pass_share(lambda model: mean_loss(runs[model]))
    difference, _, _, p, _ = unpaired(*(list(map(test_loss, runs[model])) for model in ("1x2", "1x1")))
    return 0.3 <= share <= 0.67 and difference < 0 and p < 0.05, difference >= 0


def text_injected() -> Conditions:
    planned(RUNS.injected_loops())
    loss = mean_loss(RUNS.injected_loops())
    plain, one, two = (RUNS.text_loss(model, *HIGHER) for model in ("1x6-64", "1x1-64", "2x1-64"))
    return two <= loss <= plain - 0.02 and loss < one, loss >= plain or loss < two


def text_injected_wider() -> Conditions:
    planned(RUNS.layer_as_large())
    wider, loop, one = (
        mean_loss(RUNS.layer_as_large()),
        mean_loss(RUNS.injected_loops()),
        RUNS.text_loss("1x1-64", *HIGHER),
    )
    return one - 0.03 < wider < one and wider >= loop + 0.04, wider <= loop + 0.02
