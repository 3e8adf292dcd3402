"""When looping helps: following pointers for four and eight hops."""

from collections.abc import Callable
from functools import partial
from statistics import mean, median

import numpy as np
from scipy.special import logit

from rtx_core.records import Record
from rtx_core.report import number, p_value
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.rates import learning_rate
from study.analysis.hops import Hops, copying, unpaired_odds, wrong
from study.analysis.records import multiply_adds, pass_share
from study.analysis.wording import at_least, seeds, span
from study.folders import PICKING, Folders
from study.plan import WIDER_RATES

HOPS, HARD_HOPS, PUBLISHED_HOPS = 4, 8, 16
SOLVED, BAD = 0.1, 0.03
NARROW, NARROWEST, SPLIT = "4x1-w44", "4x1-w32", "2x1-w44"  # of 2x2, of 1x4 and of 1x2
MODELS = {name: name for name in ("1x1", "1x2", "2x1", "4x1", "2x2", "1x4")}
MODELS |= {"narrow": NARROW, "narrowest": NARROWEST, "split": SPLIT}
SET_MODELS = {"2x2": "2x2", "1x4": "1x4", "4x1": "4x1", "narrow": NARROW}  # trained on a fixed set


def interval_of(name: str, odds: Callable) -> dict[str, Callable[[], str]]:
    """The ratio of odds and the ends of its interval."""
    ends = enumerate(("odds", "low", "high"))
    return {f"{name}_{end}": lambda place=place: number(odds().odds[place], ".2f") for place, end in ends}


def quantities(
    again: list[Record],
    rated: list[Record],
    hard: list[Record],
    higher: list[Record],
    published: list[Record],
    longer: list[Record],
    wider: list[Record],
    small_set: list[Record],
    slow: list[Record],
) -> Quantities:
    """Of k-hop runs: with four hops at each model's own rate (`again`), and those of which that rate was picked; with
    eight hops at one rate and at a higher one; on the published task; trained for `longer`; of `wider` models at
    several rates; on a `small_set` of training sequences; and on the seeds that count the `slow` ones."""
    runs = Folders.among([*again, *rated, *hard, *higher, *wider, *small_set, *slow])
    hard_tuned = runs.khop_hard_at_best_rates()
    lower, upper = Hops(hard, "k-hop of eight hops"), Hops(higher, "k-hop of eight hops at a higher rate")
    wide, long_runs = Hops(published, "k-hop, published"), Hops(longer, "k-hop for longer")

    def in_full(error: float) -> str:
        return number(error, ".1%" if error >= 0.005 else ".2%")

    def at_width(model: str, width: int = 256) -> list[float]:
        """The errors at four hops of the seeds that picked no learning rate."""
        return [wrong(run, HOPS) for run in runs.wider_runs(model, width)]

    def mean_long(model: str) -> float:  # at width 256
        return mean(wrong(run, HOPS) for run in runs.long_wider(model))

    def selected(model: str, rate: float) -> float:
        """The validation loss at width 256 of the seed that picks rates."""
        tried = [run for run in wider if run["model"] == model and run["seed"] == PICKING]
        return next(run["selected"]["validation_loss"] for run in tried if learning_rate(run) == rate)

    def wide_split() -> list[Record]:
        """Two narrow layers with the parameters of one of width 256, for the computation of this layer run twice."""
        return runs.split("hops_wide", True)

    def wide_split_odds():
        return unpaired_odds(runs.wider_runs("1x2"), wide_split(), HOPS)

    def wide_pass():
        """Of one layer run twice to two layers, at width 256."""
        return unpaired_odds(runs.wider_runs("1x2"), runs.wider_runs("2x1"), HOPS)

    compared_models: dict[str, Callable[[], list[Record]]] = {
        name: partial(runs.again, model) for name, model in MODELS.items()
    }
    compared_models["equal"] = runs.again_at_equal_work  # the narrow stack, for as many multiply-adds as the loop
    compared_models["split_equal"] = lambda: runs.split("hops", True)

    def own(name: str) -> list[float]:
        """The errors at a model's own rate, on seeds that did not pick it."""
        return [wrong(run, HOPS) for run in compared_models[name]()]

    def at_hops(name: str, hops: int) -> str:
        """The mean error at fewer hops."""
        return in_full(mean(wrong(run, hops) for run in compared_models[name]()))

    def counted(model: str) -> list[float]:
        """The errors on the seeds that were trained to count the slow ones."""
        return [wrong(run, HOPS) for run in runs.counted_again(model)]

    def slow_of(errors: list[float]) -> int:
        return sum(error > BAD for error in errors)

    def all_errors(place: int) -> list[float]:
        """Of the loop (0) or its narrow stack at equal computation, on all seeds."""
        return [wrong(run, HOPS) for run in runs.at_equal_work()[place]]

    def all_odds():
        return unpaired_odds(*runs.at_equal_work(), HOPS)

    def odds(first: str, second: str):
        return unpaired_odds(compared_models[first](), compared_models[second](), HOPS)

    def weights(model: str) -> int:
        return runs.again(model)[0]["parameters"]["non_embedding"]

    def hard_errors(model: str) -> list[float]:
        return lower.errors(model, HARD_HOPS)

    def higher_errors(model: str) -> list[float]:
        return upper.errors(model, HARD_HOPS)

    def solved(errors: list[float]) -> int:
        return sum(error < SOLVED for error in errors)

    def hard_gap():
        """Of two layers run three times to their narrow stack, on new seeds, without pairing."""
        return hard_tuned.unpaired("2x3", "6x1-w36")

    def longer_narrow():
        """Of two layers run twice to their narrow stack, after the longer training."""
        return unpaired_odds(long_runs.of("2x2"), long_runs.of(NARROW), HOPS)

    def from_set(name: str) -> list[float]:
        """The errors from a fixed training set, on seeds that did not pick the rate."""
        return [wrong(run, HOPS) for run in runs.few_sequences(SET_MODELS[name])]

    def set_odds(name: str):
        """Of 2x2 to a stack, from a fixed training set; of 1x4 to the narrow stack of 2x2."""
        loop, stack = ("1x4", NARROW) if name == "1x4" else ("2x2", SET_MODELS[name])
        return unpaired_odds(runs.few_sequences(loop), runs.few_sequences(stack), HOPS)

    def steps(run: Record) -> str:
        return number(run["config"]["train"]["steps"], ",")

    against = {"4x1": "2x2", "narrow": "2x2", "equal": "2x2", "narrowest": "1x4", "split": "1x2", "split_equal": "1x2"}

    def odds_against(name: str):
        """Of a loop to this stack."""
        return odds(against[name], name)

    numbers = {
        "hard_loops_solved": lambda: words(solved(hard_errors("2x3"))),
        "hard_loops": lambda: words(len(hard_errors("2x3"))),
        "higher_loops": lambda: words(len(higher_errors("2x3"))),
        "hard_missed": lambda: span(
            [error for error in hard_errors("2x3") if error >= SOLVED], lambda error: number(error, ".0%")
        ),
        "share": lambda: number(100 * pass_share(lambda model: mean(own(model))), ".0f"),
        "odds_share": lambda: number(100 * pass_share(lambda model: mean(map(logit, own(model)))), ".0f"),
        "long_odds_share": lambda: number(
            100 * pass_share(lambda model: mean(map(logit, long_runs.errors(model, HOPS)))), ".0f"
        ),
        "long_share": lambda: number(100 * pass_share(lambda model: long_runs.error(model, HOPS)), ".0f"),
        "rates": lambda: words(len({learning_rate(run) for run in rated if run["model"] == "2x2"})),
        "new_seeds": lambda: words(len(own("2x2"))),
        "good_stacks": lambda: words(sum(error < 0.01 for error in own("4x1"))),
        **{
            f"{key}_{name}": lambda name=name, measure=measure: number(measure(own(name)), ".1%")
            for key, measure, names in (
                ("mean", mean, compared_models),
                ("median", median, ("2x2", "4x1", "equal")),
                ("worst", max, ("2x2", "1x4", "4x1")),
                ("best", min, ("2x1",)),
            )
            for name in names
        },
        **{f"bad_{name}": lambda name=name: words(slow_of(own(name))) for name in ("2x2", "4x1", "equal")},
        **{
            f"{end}_{name}": lambda name=name, place=place: number(odds_against(name).odds[place], ".2f")
            for name in against
            for place, end in enumerate(("odds", "low", "high"))
        },
        **{f"p_{name}": lambda name=name: p_value(odds_against(name).p) for name in ("narrow", "equal", "split_equal")},
        "ranks_equal": lambda: p_value(odds_against("equal").ranks),
        "slow_seeds": lambda: words(len(counted("2x2"))),
        "slow_loop": lambda: words(slow_of(counted("2x2"))),
        "slow_stack": lambda: words(slow_of(counted(NARROW))),
        "slow_worst": lambda: number(max(counted("2x2")), ".0%"),
        "all_seeds": lambda: words(len(all_errors(0))),
        **interval_of("all", all_odds),
        "all_p": lambda: p_value(all_odds().p),
        "hard_paired": lambda: number(hard_tuned("2x3", "6x1-w36", new=True).p, ".3f"),
        "narrow_cost": lambda: number(
            multiply_adds(runs.again(NARROW)[0]) / multiply_adds(runs.again("2x2")[0]), ".2f"
        ),
        "equal_steps": lambda: steps(runs.again_at_equal_work()[0]),
        # At eight hops the comparison depends on the learning rate
        "hard_new": lambda: words(len(hard_tuned.errors("2x3", new=True))),
        "published_loops": lambda: seeds(len(wide.of("1x4"))),
        "published_loop_solves": lambda: str(wide.solved("1x4")),  # hops
        # Longer training and wider layers: mean errors at four hops
        **{
            f"longer_{model}": lambda model=model: in_full(long_runs.error(model, HOPS))
            for model in ("1x1", "1x2", "2x1", "4x1", "2x2", "1x4")
        },
        **{
            f"wide_{model}": lambda model=model: number(float(np.mean(at_width(model))), ".1%")
            for model in ("1x1", "1x2", "2x1", "4x1", "2x2", "1x4")
        },
        **{
            f"hops_{hops}_{name}": lambda name=name, hops=hops: at_hops(name, hops)
            for name in ("1x1", "1x2", "2x1")
            for hops in (1, 2, 3)
        },
        "longer_narrow": lambda: in_full(long_runs.error(NARROW, HOPS)),
        "usual_steps": lambda: steps(runs.again("2x2")[0]),
        "longer_worst": lambda: in_full(
            max(e for m in ("2x2", "1x4", "4x1", NARROW) for e in long_runs.errors(m, HOPS))
        ),
        "longer_2x1_least": lambda: at_least(min(long_runs.errors("2x1", HOPS))),
        **{
            f"longer_odds{end}": lambda place=place, form=form: number(longer_narrow().odds[place], form)
            for place, (end, form) in enumerate((("", ".2f"), ("_low", ".3f"), ("_high", ".2f")))
        },
        **interval_of("wide_pass", wide_pass),
        **{f"wide_long_{model}": lambda model=model: in_full(mean_long(model)) for model in ("1x2", "2x1")},
        "wide_pass_seeds": lambda: words(len(runs.wider_runs("1x2"))),
        "wide_split": lambda: number(mean(wrong(run, HOPS) for run in wide_split()), ".1%"),
        **interval_of("wide_split", wide_split_odds),
        "wide_narrow": lambda: number(float(np.mean(at_width("4x1", 128))), ".1%"),
        **{f"set_mean_{name}": lambda name=name: number(mean(from_set(name)), ".0%") for name in SET_MODELS},
        **interval_of("set_narrow", partial(set_odds, "narrow")),
        **interval_of("set_1x4", partial(set_odds, "1x4")),
        "set_sequences": lambda: number(runs.few_sequences("2x2")[0]["config"]["data"]["sequences"], ","),
        "set_seeds": lambda: words(len(from_set("2x2"))),
        "times_the_parameters": lambda: number(
            runs.wider_runs("1x4")[0]["parameters"]["non_embedding"] / weights("1x4"), ".0f"
        ),
    }
    checks = {
        "set_narrow_odds": lambda: [
            all(set_odds(name).odds[2] > 1 for name in ("narrow", "4x1")),
            max(mean(from_set(loop)) for loop in ("2x2", "1x4")) < min(mean(from_set(m)) for m in ("narrow", "4x1")),
            max(from_set("1x4")) < min(from_set("narrow")) and set_odds("1x4").odds[2] < 1,
            all(mean(from_set(name)) > 2 * mean(own(name)) for name in SET_MODELS)
            and {learning_rate(run) for model in SET_MODELS.values() for run in runs.few_sequences(model)} == {0.004},
        ],
        "long_share": lambda: [pass_share(lambda model: long_runs.error(model, HOPS)) > 0.6],
        "longer_2x1_least": lambda: [
            min(long_runs.errors("2x1", HOPS)) > 0.08,
            max(e for m in ("3x1", "4x1", "2x2", "1x4") for e in long_runs.errors(m, HOPS)) < 0.01,
        ],
        "longer_worst": lambda: [max(long_runs.errors(m, HOPS)) < 0.03 for m in ("2x2", "1x4", "4x1", NARROW)],
        "times_the_parameters": lambda: [
            min(at_width("2x1")) > 0.15,
            max(e for m in ("2x2", "1x4") for e in at_width(m)) < 0.015,
            max(at_width("4x1")) < 0.05,
            np.mean(at_width("1x2")) < 1.1 * np.mean(at_width("2x1")) < 0.5 * np.mean(at_width("1x1")),
            np.mean(at_width("1x4")) < min(np.mean(at_width("2x2")), np.mean(at_width("4x1"))),
            len(at_width("1x4")) == 3,
        ],
        "wide_long_1x2": lambda: [
            len(runs.long_wider("1x2")) == len(runs.long_wider("2x1")) == 2,
            max(map(mean_long, ("1x2", "2x1"))) < 0.1,
            mean_long("1x2") < 1.3 * mean_long("2x1"),
        ],
        "wide_pass_odds": lambda: [
            wide_pass().odds[1] > 2 / 3,
            wide_pass().odds[2] < 3 / 2,
            all(wrong(a, HOPS) < wrong(b, HOPS) for a, b in zip(runs.wider_runs("1x4"), runs.wider_runs("4x1"))),
        ],
        "wide_split": lambda: [wide_split_odds().p < 0.05, wide_split_odds().odds[0] > 1],
        "half_rate": lambda: [
            {learning_rate(run) for run in runs.wider_runs(model)} == {min(WIDER_RATES)}
            and selected(model, min(WIDER_RATES) / 2) > selected(model, min(WIDER_RATES))
            for model in ("1x2", "2x1")
        ],
        "wide_narrow": lambda: [
            max(at_width("4x1", 128)) < 0.005,
            0.9
            < runs.wider_runs("4x1", 128)[0]["parameters"]["non_embedding"]
            / runs.wider_runs("1x4")[0]["parameters"]["non_embedding"]
            < 1.1,
        ],
        "hops_2_1x2": lambda: [
            mean(wrong(run, 1) for run in runs.again("1x1"))
            < SOLVED
            < mean(wrong(run, 2) for run in runs.again("1x1")),
            all(
                mean(wrong(run, 2) for run in runs.again(m)) < SOLVED < mean(wrong(run, 3) for run in runs.again(m))
                for m in ("1x2", "2x1")
            ),
        ],
        "worst_2x2": lambda: [max(own("2x2")) < 0.03],
        "mean_2x2": lambda: [
            min(own("1x1")) > copying(4, 2),
            min(own("2x1")) > 0.2,
            max(own("1x4")) < min(own("1x1")) - 0.3,
            weights("4x1") > 1.9 * weights("2x2"),
        ],
        "two_thirds": lambda: [
            0.6 < pass_share(lambda model: mean(own(model))) < 0.85,
            0.9 < pass_share(lambda model: float(np.mean(at_width(model)))) < 1.1,
        ],
        "mean_1x2": lambda: [
            max(mean(own("1x2")), mean(own("2x1"))) < mean(own("1x1")),
            odds("1x2", "1x1").p < 0.001,
            odds("2x1", "1x2").p < 0.001,
        ],
        "good_stacks": lambda: [0 < sum(error < 0.01 for error in own("4x1")) < len(own("4x1"))],
        "new_seeds": lambda: [{len(own(name)) for name in compared_models} == {20}],
        "p_narrow": lambda: [odds("2x2", "narrow").p < 0.01, odds("2x2", "narrow").odds[2] < 1],
        "p_equal": lambda: [min(odds("2x2", name).p for name in ("4x1", "equal")) > 0.05],
        "bad_2x2": lambda: [
            slow_of(own("2x2")) == 0,
            all(slow_of(own(name)) >= 5 for name in ("1x4", "4x1", "narrow", "equal", "narrowest")),
            max(median(own(name)) for name in ("4x1", "equal")) <= median(own("2x2")),
        ],
        "slow_loop": lambda: [
            len(counted("2x2")) == len(counted(NARROW)) == 20,
            0 < slow_of(counted("2x2")) < slow_of(counted(NARROW)) <= slow_of(counted("2x2")) + 2,
            max(counted("2x2")) > max(counted(NARROW)),
        ],
        "all_odds": lambda: [all_odds().odds[1] < 1 < all_odds().odds[2], all_odds().ranks > 0.05],
        "narrow_cost": lambda: [
            0.9 < weights(stack) / weights(loop) < 1 for stack, loop in ((NARROW, "2x2"), (SPLIT, "1x2"))
        ],
        "split": lambda: [
            2 / 3 < odds_against("split").odds[1] < 1 < odds_against("split").odds[2] < 3 / 2,
            odds_against("split_equal").p < 0.001,
            odds_against("split_equal").odds[1] > 1,
        ],
        "p_narrowest": lambda: [odds("1x4", "narrowest").p > 0.05],
        "one_layer_fails": lambda: [max(hard_errors("1x6")) > 0.5, max(higher_errors("1x6")) > 0.5],
        "hard_loops_solved": lambda: [max(hard_errors("6x1")) < SOLVED, solved(hard_errors("2x3")) < 3],
        "higher_loops": lambda: [
            solved(higher_errors("2x3")) == len(higher_errors("2x3")) - 1,
            max(higher_errors("2x3")) < 0.2,
            max(higher_errors("6x1")) < SOLVED,
        ],
        "best_narrow_most": lambda: [
            hard_tuned("2x3", "6x1-w36", new=True).lower == len(hard_tuned.errors("2x3", new=True)),
            hard_gap().odds[0] < 0.5 and hard_gap().odds[2] > 1,
            hard_tuned("2x3", "6x1-w36", new=True).p < 0.05 < min(hard_gap().p, hard_gap().ranks),
            lower.weights("6x1-w36") <= lower.weights("2x3"),
        ],
        "published_loop_solves": lambda: [
            max(wide.errors("4x1", 8) + wide.errors("1x4", 8)) < 0.1,
            min(wide.errors("4x1", PUBLISHED_HOPS) + wide.errors("1x4", PUBLISHED_HOPS)) > 0.1,
            wide.weights("4x1") > 3.9 * wide.weights("1x4"),
        ],
    }
    return Quantities(numbers, checks)
