"""Data and models: what leaks from training to test texts, what that is worth, and how many parameters there are."""

from collections.abc import Mapping
from statistics import mean

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities
from rtx_core.report.values import Task
from study.analysis.classifiers import PAIR, fall
from study.analysis.corpora import each_length, furthest_label, inside
from study.analysis.formulas import agree

POOLED, CLEAN, SENTENCES, STUDY = (
    f"SST-2, {cut}" for cut in ("pooled", "leak-free", "GLUE's sentences", "pooled, the study's")
)
CUTS = ("sst2", "official", "short", "tenth", "half", "long")


def quantities(
    tests: Mapping[str, list[Record]],
    counting: Mapping[str, Record],
    profiles: Mapping[str, Record],
    labels: Mapping[str, dict],
    sizes: Mapping[str, dict],
    recorded: list[dict],
    counts: Mapping[str, dict],
) -> Quantities:
    """Of the runs of each test, bags of words, counts of each data set, the published shares of labels, the sizes of
    the models by their formulas, the configurations and parameters of all recorded runs, and the published counts."""

    def task(test: str) -> Task:
        return Task(tests[test], called=test)

    def parts(name: str) -> dict[str, dict]:
        return profiles[name]["parts"]

    def part(name: str, subset: str = "test") -> dict:
        return parts(name)[subset]

    def length(name: str) -> float:
        return mean(each_length(part(name)).tolist())

    def fall_of(model: str) -> float:
        return fall(tests["sst2"], tests["grouped"], model)

    def fall_of_counting() -> float:
        return 100 * (counting["sst2"]["test"]["accuracy"] - counting["sst2-grouped"]["test"]["accuracy"])

    def falls() -> list[float]:
        return [*map(fall_of, PAIR), fall_of_counting()]

    def off_clean(model: str) -> float:
        """How far a model's accuracy on GLUE's sentences is from that without the leak."""
        return abs(getattr(task("grouped"), model).accuracy - getattr(task("official"), model).accuracy)

    def share(part: str) -> float:
        """Recurrent's parameters over Baseline's."""
        return sizes["recurrent"][part] / sizes["baseline"][part]

    numbers = {
        "sentences": lambda: str(part(SENTENCES)["n"]),
        "official_validation_inside": lambda: number(inside(part(SENTENCES, "validation")), ".0%"),
        "fall_baseline": lambda: number(fall_of("baseline"), ".0f"),
        "fall_recurrent": lambda: number(fall_of("recurrent"), ".0f"),
        "recurrent_share": lambda: number(share("total"), ".0%"),
        "share_outside": lambda: number(share("outside"), ".0%"),
        "saving": lambda: number(1 - share("total"), ".1%"),
    }
    checks = {
        "leak": lambda: [
            inside(part(POOLED)) > 0.8 and inside(part(CLEAN)) == 0,
            min(falls()) > 5.4,
            max(falls()) < 8.5,
        ],
        "sentences": lambda: [inside(part(SENTENCES)) < 0.005, inside(part(SENTENCES, "validation")) > 0.8],
        "fall_baseline": lambda: [max(abs(task(test).difference) for test in CUTS) < fall_of_counting()],
        "near_leak_free": lambda: [
            off_clean("baseline") < 0.02,
            off_clean("recurrent") < 0.03,
            1.7 < length(SENTENCES) / length(CLEAN) < 2.3,
        ],
        "study_split": lambda: [
            furthest_label(parts(STUDY), {name: labels[name]["percent"] for name in parts(STUDY)}) < 0.005,
            part(STUDY, "train")["n"] == 54576,
            part(STUDY, "validation")["n"] == 6822,
            part(STUDY, "test")["n"] == 6823,
        ],
        "saving": lambda: [counts[model]["total"] == sizes[model]["total"] for model in PAIR],
        "formulas": lambda: [agree(recorded)],
    }
    return Quantities(numbers, checks)
