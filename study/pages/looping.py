"""When looping helps: following pointers for four and eight hops."""

from statistics import mean, median

import numpy as np

from rtx_core.records import Record
from rtx_core.report import number, p_value
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.rates import learning_rate
from study.analysis.hops import Hops, compared, copying, unpaired_odds, wrong
from study.analysis.records import multiply_adds, pass_share
from study.analysis.wording import at_least, seeds
from study.folders import PICKING, Folders
from study.plan import WIDER_RATES

HOPS, HARD_HOPS, PUBLISHED_HOPS = 4, 8, 16
SOLVED, BAD = 0.1, 0.03
DEEP = ("4x1", "1x4", "4x1-w44", "4x1-w32")  # of the depth of two layers run twice


def quantities(
    pointers: list[Record],
    rated: list[Record],
    hard: list[Record],
    higher: list[Record],
    published: list[Record],
    longer: list[Record],
    wider: list[Record],
    again: list[Record],
) -> Quantities:
    """Of k-hop runs, on four hops at one rate and at others, on eight at one and at a higher one, on the published
    task, of stacks and loops that are trained for `longer`, of `wider` ones at several rates, and of two layers run
    twice and stacks of their depth on twenty seeds (`again`)."""
    runs = Folders.among([*pointers, *rated, *hard, *higher, *wider, *again])
    khop, tuned, hard_tuned = Hops(pointers, "k-hop"), runs.khop_at_best_rates(least=1), runs.khop_hard_at_best_rates()
    lower, upper = Hops(hard, "k-hop of eight hops"), Hops(higher, "k-hop of eight hops at a higher rate")
    wide, long_runs = Hops(published, "k-hop, published"), Hops(longer, "k-hop for longer")

    def at_width(model: str, width: int = 256) -> list[float]:
        """The errors at four hops of the seeds that picked no learning rate."""
        return [wrong(run, HOPS) for run in runs.wider_runs(model, width)]

    def as_choose() -> list[Record]:
        """The runs that `rtx choose` would make on this task: a loop and three stacks, three rates, three seeds."""
        models, seeds = ("2x1", "2x2", "4x1", "4x1-w44"), (0, 1, 2)
        every = [run for run in [*pointers, *rated] if run["model"] in models and run["seed"] in seeds]
        return [run for run in every if learning_rate(run) < 0.005]

    def selected(model: str, rate: float) -> float:
        """The validation loss at width 256 of the seed that picks rates."""
        tried = [run for run in wider if run["model"] == model and run["seed"] == PICKING]
        return next(run["selected"]["validation_loss"] for run in tried if learning_rate(run) == rate)

    def wide_pass():
        """Of one layer run twice to two layers, at width 256."""
        return unpaired_odds(runs.wider_runs("1x2"), runs.wider_runs("2x1"), HOPS)

    def own(model: str) -> list[float]:
        """The errors at a model's own rate on the reported seeds."""
        return tuned.errors(model, new=True)

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
        return unpaired_odds(long_runs.of("2x2"), long_runs.of("4x1-w44"), HOPS)

    twenty = {
        "loop": lambda: runs.again("2x2"),
        "stack": lambda: runs.again("4x1"),
        "narrow": lambda: runs.again("4x1-w44"),
        "equal": runs.again_at_equal_work,
    }

    def again_errors(name: str) -> list[float]:
        return [wrong(run, HOPS) for run in twenty[name]()]

    def bad(name: str) -> int:
        return sum(error > BAD for error in again_errors(name))

    def against(name: str):
        """Of two layers run twice to a stack, on twenty seeds."""
        return unpaired_odds(twenty["loop"](), twenty[name](), HOPS)

    def narrow_at_lower_rate():
        return compared(lower.of("6x1-w36"), upper.of("6x1-w36"), HARD_HOPS)

    def steps(runs: Hops, model: str) -> int:
        return runs.records_for(model)[0]["config"]["train"]["steps"]

    numbers = {
        "two_layers_once": lambda: number(mean(own("2x1")), ".0%"),  # wrong at four hops
        "hard_loops_solved": lambda: words(solved(hard_errors("2x3"))),
        "higher_loops": lambda: words(len(higher_errors("2x3"))),
        "higher_rate": lambda: f"{1000 * learning_rate(upper.of('2x3')[0]):g}e-3",
        # Two layers run twice err on less than 1 % every time
        "rates": lambda: words(len(tuned.rates)),
        "new_seeds": lambda: words(len(own("2x2"))),
        "two_layers_once_least": lambda: at_least(min(own("2x1"))),
        "two_layers_twice_most": lambda: number(max(own("2x2")), ".1%"),
        "one_layer_least": lambda: number(min(own("1x4")), ".1%"),
        "one_layer_most": lambda: number(max(own("1x4")), ".0%"),
        "good_stacks": lambda: words(sum(error < 0.01 for error in own("4x1"))),
        "stack_most": lambda: number(max(own("4x1")), ".0%"),
        # A narrow stack of the same size
        "new_w32": lambda: number(mean(own("4x1-w32")), ".1%"),
        "new_w32_least": lambda: number(min(own("4x1-w32")), ".1%"),
        "new_w32_most": lambda: number(max(own("4x1-w32")), ".0%"),
        "hard_welch": lambda: number(hard_gap().p, ".2f"),
        "hard_ranks": lambda: number(hard_gap().ranks, ".2f"),
        "hard_paired": lambda: number(hard_tuned("2x3", "6x1-w36", new=True).p, ".3f"),
        "narrow_cost": lambda: number(multiply_adds(khop.of("4x1-w44")[0]) / multiply_adds(khop.of("2x2")[0]), ".2f"),
        "choose_runs": lambda: str(len(as_choose())),
        "choose_hours": lambda: number(sum(run["seconds"] for run in as_choose()) / 3600, ".1f"),
        "equal_steps": lambda: number(runs.again_at_equal_work()[0]["config"]["train"]["steps"], ","),
        "again_seeds": lambda: words(len(again_errors("loop"))),
        **{
            f"again_{name}{key}": lambda name=name, measure=measure: number(measure(again_errors(name)), ".1%")
            for names, measures in (
                (twenty, {"": median, "_worst": max}),
                (("loop", "narrow", "equal"), {"_mean": mean}),
                (("narrow", "equal"), {"_best": min}),
            )
            for name in names
            for key, measure in measures.items()
        },
        **{f"again_{name}_bad": lambda name=name: str(bad(name)) for name in twenty},
        **{f"again_{name}_p": lambda name=name: p_value(against(name).p) for name in ("stack", "narrow", "equal")},
        **{
            f"again_{name}_{end}": lambda name=name, place=place: number(against(name).odds[place], ".2f")
            for name in ("stack", "narrow", "equal")
            for place, end in enumerate(("odds", "low", "high"))
        },
        # At eight hops the comparison depends on the learning rate
        "hard_seeds": lambda: words(len(hard_tuned.errors("2x3"))),  # that picked the rates
        "best_loop_least": lambda: number(min(hard_tuned.errors("2x3")), ".1%"),
        "best_loop_most": lambda: number(max(hard_tuned.errors("2x3")), ".1%"),
        "best_layer_least": lambda: number(min(hard_tuned.errors("1x6")), ".1%"),
        "best_layer_most": lambda: number(max(hard_tuned.errors("1x6")), ".1%"),
        "best_six_layers_least": lambda: number(min(hard_tuned.errors("6x1")), ".1%"),
        "best_six_layers_most": lambda: number(max(hard_tuned.errors("6x1")), ".1%"),
        "best_once_least": lambda: number(min(hard_tuned.errors("2x1")), ".0%"),
        "best_narrow_least": lambda: number(min(hard_tuned.errors("6x1-w36")), ".0%"),
        "best_narrow_most": lambda: number(max(hard_tuned.errors("6x1-w36")), ".0%"),
        "hard_new": lambda: words(len(hard_tuned.errors("2x3", new=True))),
        "hard_new_loops": lambda: words(solved(hard_tuned.errors("2x3", new=True))),
        "hard_new_stacks": lambda: words(solved(hard_tuned.errors("6x1-w36", new=True))),
        "hard_odds": lambda: number(hard_gap().odds[0], ".2f"),
        "hard_odds_low": lambda: number(hard_gap().odds[1], ".2f"),
        "hard_odds_high": lambda: number(hard_gap().odds[2], ".1f"),
        "better_narrow": lambda: words(narrow_at_lower_rate().lower),
        "narrow_stacks": lambda: words(len(hard_errors("6x1-w36"))),
        "published_loops": lambda: seeds(len(wide.of("1x4"))),
        "published_stacks": lambda: seeds(len(wide.of("4x1"))),
        "published_loop_solves": lambda: str(wide.solved("1x4")),  # hops
        "published_stack_solves": lambda: str(wide.solved("4x1")),
        # Longer training and wider layers: mean errors at four hops
        **{
            f"tuned_{model}": lambda model=model: number(mean(own(model)), ".1%")
            for model in ("1x1", "1x2", "2x1", "3x1", "4x1", "2x2", "1x4")
        },
        **{
            f"longer_{model}": lambda model=model: number(long_runs.error(model, HOPS), ".2%")
            for model in ("2x1", "3x1", "4x1", "2x2", "1x4")
        },
        **{
            f"wide_{model}": lambda model=model: number(float(np.mean(at_width(model))), ".1%")
            for model in ("1x1", "1x2", "2x1", "4x1", "2x2", "1x4")
        },
        "tuned_narrow": lambda: number(mean(own("4x1-w44")), ".1%"),
        "longer_narrow": lambda: number(long_runs.error("4x1-w44", HOPS), ".2%"),
        "longer_steps": lambda: number(steps(long_runs, "2x1"), ","),
        "usual_steps": lambda: number(steps(khop, "2x1"), ","),
        "longer_seeds": lambda: words(len(long_runs.of("2x1"))),
        "longer_2x1_least": lambda: at_least(min(long_runs.errors("2x1", HOPS))),
        "longer_narrow_most": lambda: number(max(long_runs.errors("4x1-w44", HOPS)), ".1%"),
        **{
            f"longer_odds{end}": lambda place=place, form=form: number(longer_narrow().odds[place], form)
            for place, (end, form) in enumerate((("", ".2f"), ("_low", ".3f"), ("_high", ".2f")))
        },
        **{
            f"wide_pass_{end}": lambda place=place: number(wide_pass().odds[place], ".2f")
            for place, end in enumerate(("odds", "low", "high"))
        },
        "wide_pass_seeds": lambda: words(len(runs.wider_runs("1x2"))),
        "wide_seeds": lambda: words(len(at_width("2x2"))),
        "wide_narrow": lambda: number(float(np.mean(at_width("4x1", 128))), ".1%"),
        # Exercises
        "others_worst": lambda: number(max(max(own(model)) for model in DEEP), ".0%"),
        "others_best": lambda: number(min(max(own(model)) for model in DEEP), ".0%"),
        "narrow_stack": lambda: number(khop.error("4x1-w44", HOPS), ".0%"),
        "times_the_parameters": lambda: number(
            runs.wider_runs("1x4")[0]["parameters"]["non_embedding"] / khop.of("1x4")[0]["parameters"]["non_embedding"],
            ".0f",
        ),
    }
    checks = {
        "longer_2x1_least": lambda: [
            min(long_runs.errors("2x1", HOPS)) > 0.08,
            max(e for m in ("3x1", "4x1", "2x2", "1x4") for e in long_runs.errors(m, HOPS)) < 0.01,
        ],
        "longer_narrow_most": lambda: [0.005 < max(long_runs.errors("4x1-w44", HOPS)) < 0.02],
        "times_the_parameters": lambda: [
            min(at_width("2x1")) > 0.15,
            max(e for m in ("2x2", "1x4") for e in at_width(m)) < 0.015,
            max(at_width("4x1")) < 0.05,
            np.mean(at_width("1x2")) < 1.1 * np.mean(at_width("2x1")) < 0.5 * np.mean(at_width("1x1")),
            np.mean(at_width("1x4")) < min(np.mean(at_width("2x2")), np.mean(at_width("4x1"))),
            len(at_width("1x4")) == 3,
        ],
        "wide_pass_odds": lambda: [wide_pass().odds[1] > 2 / 3, wide_pass().odds[2] < 3 / 2],
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
        "two_layers_twice": lambda: [max(own("2x2")) < 0.006],
        "two_layers_twice_most": lambda: [
            min(own("1x1")) > copying(4, 2),
            min(own("2x1")) > 0.2,
            max(own("1x4")) < min(own("1x1")) - 0.3,
            khop.weights("4x1") > 1.9 * khop.weights("2x2"),
        ],
        "two_thirds": lambda: [
            0.6 < pass_share(lambda model: mean(own(model))) < 0.72,
            0.9 < pass_share(lambda model: float(np.mean(at_width(model)))) < 1.1,
        ],
        "tuned_1x2": lambda: [min(own("1x1")) > max(own("1x2")), min(own("1x2")) > max(own("2x1"))],
        "good_stacks": lambda: [0 < sum(error < 0.01 for error in own("4x1")) < len(own("4x1"))],
        "again_seeds": lambda: [{len(again_errors(name)) for name in twenty} == {20}],
        "again_narrow_p": lambda: [against("narrow").p < 0.01, against("narrow").odds[2] < 1],
        "again_equal_p": lambda: [min(against("stack").p, against("equal").p) > 0.05],
        "again_loop_bad": lambda: [
            bad("loop") == 0,
            all(4 <= bad(name) <= 6 for name in ("stack", "narrow", "equal")),
            max(median(again_errors(name)) for name in ("stack", "equal")) <= median(again_errors("loop")),
        ],
        "narrow_cost": lambda: [0.9 < khop.weights("4x1-w44") / khop.weights("2x2") < 1],
        "new_1x4": lambda: [tuned.unpaired("1x4", "4x1-w32").p > 0.1],
        "one_layer_fails": lambda: [max(hard_errors("1x6")) > 0.5, max(higher_errors("1x6")) > 0.5],
        "hard_loops_solved": lambda: [max(hard_errors("6x1")) < SOLVED, solved(hard_errors("2x3")) < 3],
        "higher_loops": lambda: [
            solved(higher_errors("2x3")) == len(higher_errors("2x3")) - 1,
            max(higher_errors("2x3")) < 0.2,
        ],
        "best_narrow_most": lambda: [
            hard_tuned("2x3", "6x1-w36", new=True).lower == len(hard_tuned.errors("2x3", new=True)),
            hard_gap().odds[0] < 0.5 and hard_gap().odds[2] > 1,
            hard_tuned("2x3", "6x1-w36", new=True).p < 0.05 < min(hard_gap().p, hard_gap().ranks),
            lower.weights("6x1-w36") <= lower.weights("2x3"),
        ],
        "better_narrow": lambda: [hard_tuned.rate("6x1-w36") == 0.004, narrow_at_lower_rate().lower >= 2],
        "published_loop_solves": lambda: [
            max(wide.errors("4x1", 8) + wide.errors("1x4", 8)) < 0.1,
            min(wide.errors("4x1", PUBLISHED_HOPS) + wide.errors("1x4", PUBLISHED_HOPS)) > 0.1,
            wide.weights("4x1") > 3.9 * wide.weights("1x4"),
        ],
        "others_best": lambda: [max(own("2x2")) < min(max(own(model)) for model in DEEP) / 2],
        "narrow_stack": lambda: [max(khop.errors("2x2", HOPS)) < min(khop.errors("4x1-w44", HOPS))],
    }
    return Quantities(numbers, checks)
