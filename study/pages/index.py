"""The front page: three findings, and what a loop stores beside what it can follow."""

from collections.abc import Mapping

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import ENOUGH_SEEDS, equivalent
from rtx_core.report.values import Gap, Task
from study.analysis.classifiers import PAIR, Family
from study.analysis.records import seeds_of
from study.analysis.yardstick import Yardstick
from study.folders import KHOP_RATES, Folders


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
    khop, facts, rated = runs.hops("khop"), runs.facts(), runs.khop_at_best_rates()
    beside = Yardstick({records[0]["name"]: records for records in tests.values() if records}, bags)

    def more_bits(model: str) -> str:
        """Than one layer run once, in per cent."""
        return number(100 * (facts.gain(model, "1x1") - 1), ".0f")

    def best_gain(model: str) -> float:
        """With the best rate for each model."""
        return runs.facts_at_best_rate(model) / runs.facts_at_best_rate("1x1")

    def head_after_the_first_pass() -> str:
        passes, head = next(part.split(".") for part in parts if not part.startswith("1."))
        return f"head {head} in pass {passes}"

    def full() -> list[Gap]:
        return list(family.full.values())

    def equal() -> list[Gap]:
        """Where the models are equal within a point."""
        return [gap for gap in full() if gap.badge.seeds >= ENOUGH_SEEDS and equivalent(gap.by_seed, 1)]

    numbers = {
        "head": head_after_the_first_pass,
        "two_layers_once": lambda: number(khop.error("2x1", 4), ".0%"),
        "two_layers_twice": lambda: number(khop.error("2x2", 4), ".1%"),
        "seeds": lambda: words(len(seeds_of(khop.of("2x2")))),
        "rates": lambda: words(1 + len(KHOP_RATES)),
        "best_two_layers_once": lambda: number(min(rated.errors("2x1")), ".0%"),
        "four_passes_add": lambda: more_bits("1x4"),
        "facts_seeds": lambda: words(len(seeds_of(facts.of("1x4")))),
        "second_layer_adds": lambda: more_bits("2x1"),
        "parameters": lambda: number(Task(tests["sst2"]).parameter_ratio, ".0%"),
        "clean_seeds": lambda: words(family.gaps["grouped"].seeds),
        "other_tests": lambda: words(len(full()) - 1),
        "tests": lambda: words(len(full())),
        "predictions": lambda: str(predictions["judged"]),
        "predictions_contradicted": lambda: str(predictions["contradicted"]),
        "predictions_in_part": lambda: str(predictions["part"]),
        "predictions_kept": lambda: str(predictions["kept"]),
    }
    checks = {
        "answer": lambda: [
            khop.error("2x2", 4) < 0.01,
            khop.error("2x1", 4) > 0.2,
            facts.gain("2x2", "2x1") < 1.1,
            facts.gain("1x4", "1x1") < 1.25,
        ],
        "best_two_layers_once": lambda: [not rated("2x2", "4x1").separated],
        "four_passes_add": lambda: [
            1 < best_gain("1x4") < facts.gain("1x4", "1x1"),
            1.6 < best_gain("2x1") < facts.gain("2x1", "1x1"),
        ],
        "tests": lambda: [
            len(full()) == 9,
            equal() == [family.gaps["grouped"]],
            max(beside.best(model) for model in PAIR) < 2,
        ],
        "memory_and_computation": lambda: [
            facts.gain("2x2", "2x1") < 1.1,
            facts.gain("4x1", "1x4") > 2,
            max(khop.errors("1x4", 4)) < khop.error("1x1", 4) / 3,
            max(khop.errors("2x2", 4)) < khop.error("2x1", 4) / 10,
        ],
    }
    return Quantities(numbers, checks)
