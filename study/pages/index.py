"""The front page: three findings, and what a loop stores beside what it can follow."""

from collections.abc import Callable, Mapping
from statistics import mean, median

from rtx_core.reads import remember
from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.values import Gap, Value
from study.analysis.classifiers import PAIR, Family
from study.analysis.facts import Facts
from study.analysis.hops import unpaired_odds
from study.analysis.iso_depth import best_of
from study.analysis.records import seeds_of, test_loss
from study.analysis.wording import span
from study.analysis.yardstick import Yardstick
from study.folders import HIGHER, Folders
from study.gains import gains

ASKED = ("1x1", "1x2", "2x1")  # a second pass, and a second layer


def quantities(
    folders: Mapping[str, list[Record]],
    tests: Mapping[str, list[Record]],
    bags: list[Record],
    parts: list[str],
    predictions: Mapping[str, int],
) -> Quantities:
    """Of runs on pointers and facts by folder, those of the tests on which two classifiers are compared, bags of words,
    the parts without which the animated model fails, and how many predictions came to which verdict."""
    runs, family = Folders(lambda name: folders.get(name, [])), Family(tests)
    rated, at_60, at_240 = runs.khop_at_best_rates(), runs.facts(), runs.saturated()
    beside = Yardstick({records[0]["name"]: records for records in tests.values() if records}, bags)

    def wrong(model: str) -> list[float]:
        """At four hops, at the model's own rate, on seeds that did not pick it."""
        return rated.errors(model, new=True)

    def text() -> Value:
        """φ in layers of one layer run six times, each model at the best of three rates."""
        return runs.worth_in_layers("1x6-64", *HIGHER)

    def more_bits(facts: Facts, model: str) -> str:
        """Than one layer run once, in per cent."""
        return number(100 * (facts.gain(model, "1x1") - 1), ".0f")

    def head_in_the_second_pass() -> str:
        """Of two layers, whose third and fourth application make up pass 2."""
        step, head = next(map(int, part.split(".")) for part in parts if int(part[0]) > 2)
        return f"head {head} of layer {step - 2} in pass 2"

    def full() -> list[Gap]:
        return list(family.full.values())

    def hops() -> list[float]:
        """Errors at four hops of one layer, run once and twice, and of two."""
        return [mean(wrong(model)) for model in ASKED]

    def text_losses() -> list[float]:
        return [runs.text_loss(f"{model}-64", *HIGHER) for model in ASKED]

    @remember
    def shares() -> dict[str, list[float]]:
        """Task -> of each seed, what the second pass gains of what the second layer gains, in per cent."""
        return {task: next(iter(loops.values())) for task, loops in gains(runs).items()}

    def bits(average: Callable = mean) -> list[float]:
        """Stored of a fact after 60 exposures, at the rate that is best on average over the seeds."""
        return [average(runs.tuned_facts(model)) / at_60.facts for model in ASKED]

    def share(values: list[float]) -> float:
        """What the second pass gains, of what the second layer gains."""
        once, twice, two = values
        return (once - twice) / (once - two)

    numbers = {
        **{
            f"{task}_{name}": lambda i=i, measure=measure, form=form: number(measure()[i], form)
            for task, measure, form in (("hops", hops, ".0%"), ("text", text_losses, ".3f"), ("bits", bits, ".1f"))
            for i, name in enumerate(("once", "twice", "two"))
        },
        "hops_share": lambda: number(100 * rated.share(*ASKED), ".0f"),
        "text_share": lambda: number(100 * share(text_losses()), ".0f"),
        "bits_share": lambda: number(100 * share(bits()), ".0f"),
        **{
            f"{key}_shares": lambda task=task: span(shares()[task], lambda share: number(share, ".0f"))
            for key, task in (("hops", "pointers, four hops"), ("bits", "facts, 60 exposures"), ("text", "Shakespeare"))
        },
        "head": head_in_the_second_pass,
        "two_layers_once": lambda: number(mean(wrong("2x1")), ".0%"),
        "two_layers_twice": lambda: number(mean(wrong("2x2")), ".1%"),
        "seeds": lambda: words(len(wrong("2x2"))),
        "hops_steps": lambda: number(rated.new("1x2")[0]["config"]["train"]["steps"], ","),
        "exposures": lambda: number(at_240.records[0]["config"]["train"]["epochs"], "d"),
        "four_passes_add": lambda: more_bits(at_240, "1x4"),
        "bits_median_share": lambda: number(100 * share(bits(median)), ".0f"),
        "facts_seeds": lambda: words(len(seeds_of(at_240.of("1x4")))),
        "second_layer_adds": lambda: more_bits(at_240, "2x1"),
        "text_layers": lambda: number(6 ** text(), ".1f"),
        "text_one_rate": lambda: number(6 ** runs.worth_in_layers("1x6-64"), ".1f"),
        "injected": lambda: number(mean(map(test_loss, runs.injected_loops())), ".3f"),
        "text_low": lambda: number(6 ** text().low, ".1f"),
        "text_high": lambda: number(6 ** text().high, ".1f"),
        "text_steps": lambda: number(runs.records("iso-depth")[0]["config"]["train"]["steps"], ","),
        "text_seeds": lambda: words(len(seeds_of(best_of(runs.iso_depth_at_rates(*HIGHER), seeds=3)))),
        "tests": lambda: words(len(full())),
        "predictions": lambda: str(predictions["judged"]),
        "predictions_contradicted": lambda: str(predictions["contradicted"]),
        "predictions_in_part": lambda: str(predictions["part"]),
        "predictions_kept": lambda: str(predictions["kept"]),
        "predictions_inside": lambda: str(predictions["inside"]),
    }
    checks = {
        "second_pass": lambda: [0.6 < rated.share(*ASKED) < 0.72, share(bits()) < 0.25],
        "hops_shares": lambda: [min(shares()["pointers, four hops"]) > 50],
        "bits_shares": lambda: [min(shares()["facts, 60 exposures"]) < 0, max(shares()["facts, 60 exposures"]) < 30],
        "text_shares": lambda: [0 < share(text_losses()) < 0.4, min(shares()["Shakespeare"]) < 0],
        "failed_seeds": lambda: [
            min(runs.facts(0.004).each("1x1")) < 0.9 * sorted(runs.facts(0.004).each("1x1"))[1],
            min(at_60.each("1x2")) < 0.9 * sorted(at_60.each("1x2"))[1],
        ],
        "answer": lambda: [max(wrong("2x2")) < 0.01, min(wrong("2x1")) > 0.2],
        "answer_facts": lambda: [1 < at_240.gain("1x4", "1x1") < 1.5, at_240.gain("2x1", "1x1") > 1.7],
        "same_weights": lambda: [len({run["parameters"]["total"] for run in rated.new("2x1") + rated.new("2x2")}) == 1],
        "seeds": lambda: [rated.unpaired("2x2", "4x1").p > 0.1],
        "four_passes_add": lambda: [at_240.gain("1x4", "1x1") > 1.2, at_240.gain("2x1", "1x1") > 1.7],
        "injected": lambda: [
            max(map(test_loss, runs.injected_loops())) < min(map(test_loss, runs.tuned_text("1x1-64"))),
            mean(map(test_loss, runs.injected_loops())) < (text_losses()[0] + text_losses()[2]) / 2,
        ],
        "text_low": lambda: [text().low < 0 < text() < runs.worth_in_layers("1x6-64")],
        "tests": lambda: [len(full()) == 9, max(beside.best(model) for model in PAIR) < 2],
        "memory": lambda: [
            at_240.gain("1x4", "1x1") < 1.35,
            at_240.gain("1x1-wide", "1x4") > 1.2,
            at_240.gain("2x1", "1x4") > 1.4,
        ],
        "equal_work": lambda: [
            max(wrong("2x2")) < min(wrong("4x1-w44")),
            unpaired_odds(rated.new("2x2"), runs.narrow_at_equal_work()).p > 0.1,
        ],
        "computation": lambda: [
            max(wrong("1x4")) < mean(wrong("1x1")) / 3,
            max(wrong("2x2")) < mean(wrong("2x1")) / 40,
        ],
    }
    return Quantities(numbers, checks)
