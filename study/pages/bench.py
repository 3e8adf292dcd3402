"""Bench your loop: whether its quick budget ranks models as longer training does."""

from collections.abc import Mapping
from statistics import mean, median

from rtx_core.benchmark import bench, card
from rtx_core.benchmark.card import Point
from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from study.analysis.ranking import by_seed, correlation, mean_errors, swapped

HOPS = 4
SMALL = ("Universal", "TRM", "Hyper", "LSTM")  # recurrences of others (`study/recurrences`) of about one layer


def quantities(pointers: list[Record], points: Mapping[str, Mapping[str, Point]], facts: list[Record]) -> Quantities:
    """Of runs on four hops with several seeds; of the recorded models at the quick budget, by task and name; and of
    runs on facts with more exposures."""
    quick = {name: point.errors[0] for name, point in points["facts"].items() if name in bench.LADDER}

    def missed(task: str, model: str) -> float:
        return mean(points[task][model].errors)

    def stored(model: str) -> float:
        return mean(points["facts"][model].kilobits)

    def agreement() -> list[float]:
        return [value for _, value in by_seed(pointers, HOPS).values()]

    def models() -> list[int]:
        return [count for count, _ in by_seed(pointers, HOPS).values()]

    def longer() -> dict[str, float]:
        return mean_errors(facts)

    numbers = {
        **{
            f"{key}_{task}": lambda task=task, model=model: card.score(missed(task, model), "error")
            for task in ("pointers", "s3")
            for key, model in (("hyper", "Hyper"), ("loop", "1x4"))
        },
        "huginn_s3": lambda: card.score(missed("s3", "Huginn"), "error"),
        "pointer_models": lambda: f"{min(models())} to {max(models())}",
        "pointer_seeds": lambda: words(len(agreement())),
        "agreement": lambda: number(median(agreement()), ".2f"),
        "agreement_least": lambda: number(min(agreement()), ".2f"),
        "agreement_most": lambda: number(max(agreement()), ".2f"),
        "fact_models": lambda: words(len(quick.keys() & longer().keys())),
        "facts_agreement": lambda: number(correlation(quick, longer()), ".2f"),
        "exposures": lambda: str(facts[0]["config"]["train"]["epochs"]),
    }
    checks = {
        "hyper_pointers": lambda: [
            missed("pointers", "Hyper")
            < min(missed("pointers", each) for each in points["pointers"] if each != "Hyper"),
            missed("s3", "Huginn") < missed("s3", "Hyper") < min(missed("s3", loop) for loop in ("1x4", "2x2", "TRM")),
            max(map(stored, SMALL)) < stored("1x1") < stored("Huginn") < stored("2x1"),
            stored("Universal") < 1,
            missed("pointers", "LSTM") > 0.4 and missed("s3", "LSTM") < 0.001,
        ],
        "agreement": lambda: [median(agreement()) > 0.7, min(agreement()) < 0.85],
        "facts_agreement": lambda: [
            correlation(quick, longer()) > 0.7,
            swapped(quick, longer()) == [("1x1", "1x4"), ("2x1", "2x2")]
            and quick["1x1"] < quick["1x4"]
            and quick["2x1"] < quick["2x2"],
        ],
    }
    return Quantities(numbers, checks)
