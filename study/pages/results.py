"""The study, rebuilt: what is said of all nine tests together.  The numbers are those of the pages on each test."""

from rtx_core.reads import remember
from rtx_core.records import Record
from rtx_core.report.quantities import Quantities
from rtx_core.report.statistics import equivalent
from rtx_core.report.values import Gap, Task
from study import paper
from study.analysis.classifiers import PAIR, Family, fall, gap, most_accurate, paired, peaks
from study.analysis.corpora import inside
from study.analysis.precision import format_changes
from study.analysis.yardstick import Yardstick
from study.folders import Folders

DEEPER = ("3x1", "3x2", "1x6", "6x1")
EARLY = {
    "long": "sst2-long-epochs1",
    "yelp": "yelp-trainrows10000-epochs1",
    "yelp_512": "yelp-maxlength512-trainrows10000-epochs1",
}
SUBSETS = ("seeded-10pct", "seeded-short", "seeded-long", "seeded-50pct")  # of SST-2, with phrases in both parts


def quantities() -> Quantities:
    """Of the paper's own runs."""
    folders = Folders(paper.records)

    @remember
    def family() -> Family:
        return Family(paper.tests())

    def gaps() -> dict[str, Gap]:
        return family().gaps

    def full() -> dict[str, Gap]:
        return family().full

    def numbers_of_seeds() -> list[int]:
        return sorted(one.badge.seeds for one in full().values())

    def runs(test: str, model: str) -> list[Record]:
        return paper.records(paper.TESTS[test], model=model)

    def task(name: str) -> Task:
        return Task(paper.records(name), called=name)

    def shared_runs(test: str, model: str) -> list[Record]:
        """On the seeds that both models have."""
        return [run for run in paired(paper.records(paper.TESTS[test])) if run["model"] == model]

    def parameters(test: str, model: str) -> int:
        return runs(test, model)[0]["parameters"]["total"]

    def saved_by_sharing() -> float:
        """Of the parameters that Recurrent lacks, the share that a loop of Baseline's width lacks."""
        baseline, recurrent = (parameters("sst2", model) for model in PAIR)
        return (baseline - parameters("tenth", "recurrent-wide")) / (baseline - recurrent)

    @remember
    def falls() -> list[float]:
        bags = {bag["of"]: bag["test"]["accuracy"] for bag in paper.measurements("yardstick")}
        by_models = [fall(paper.records("sst2"), paper.records("sst2-grouped"), model) for model in PAIR]
        return [*by_models, 100 * (bags["sst2"] - bags["sst2-grouped"])]

    @remember
    def best_beside_counting() -> float:
        tests = {name: paper.records(name) for test, name in paper.TESTS.items() if test != "yelp_512"}
        return max(map(Yardstick(tests, paper.measurements("yardstick")).best, PAIR))

    def inside_training(name: str) -> float:
        return inside(paper.test_part(f"{name}-128"))

    def p_of_seed(test: str, place: int) -> float:
        """Of one seed's two models, by the test over texts."""
        baseline, recurrent = (shared_runs(test, model) for model in PAIR)
        p = gap([baseline[place]], [recurrent[place]]).p
        assert p is not None  # of one seed McNemar's test gives one
        return p

    def picked(test: str, place: int) -> list[float]:
        """Test accuracy of Baseline and Recurrent, one seed, at the best validation accuracy."""
        return [most_accurate([runs(test, model)[place]])[0] for model in PAIR]

    def highest(place: int) -> list[float]:
        """Validation accuracy of Baseline and Recurrent, one seed, on the pooled cut."""
        return [peaks(shared_runs("sst2", model))[place] for model in PAIR]

    def matched_lead(name: str) -> float:
        early = task(EARLY[name])
        return abs(early.baseline.matched - early.recurrent.matched)

    @remember
    def formats():
        return format_changes(paper.measurements("precision"))

    @remember
    def tuned():
        return folders.ladder_tuned()

    checks = {
        "equivalent": lambda: [
            [test for test, one in full().items() if one.badge.seeds >= 3 and equivalent(one.by_seed, 1)]
            == ["grouped"],
            0.4 < saved_by_sharing() < 0.55,
            best_beside_counting() < 2,
            max(abs(one) for one in full().values()) < min(falls()),
        ],
        "cuts": lambda: [len(family().films) == 7, numbers_of_seeds()[:6] == [1, 1, 1, 1, 2, 2]],
        "three_seeds": lambda: [
            not any(one.sign for one in family().films),
            not any(task(paper.TESTS[test]).difference.sign for test in ("grouped", "tenth", "short")),
            min(gaps()["short"].by_seed) > 0,
            not equivalent(gaps()["short"].by_seed, 1),
        ],
        "one_or_two_seeds": lambda: [
            gaps()["tenth"].by_seed[4] < -1.5,
            gaps()["tenth"].by_seed[3] > 1.5,
            gaps()["long"].high < 0,
            min(gaps()["yelp"].low, gaps()["domains"].low) > 0,
            gaps()["yelp"].badge.seeds == gaps()["domains"].badge.seeds == 1,
            max(gaps()["yelp"], gaps()["domains"]) < 1,
            max(gaps()["sst2"].by_seed) < 0 < min(gaps()["official"].by_seed),
            [one.p is None for one in family().films].count(True) == 2,
            max(p_of_seed("sst2", place) for place in (0, 1)) < 0.01,
            p_of_seed("official", 1) < 0.02 < p_of_seed("official", 0),
            min(gaps()["official"].by_seed + gaps()["yelp"].by_seed) > 0,
            max(map(inside_training, ("sst2-grouped", "sst2-official", "yelp-seeded"))) < 0.01,
            inside_training("multi-domain-seeded") <= min(inside_training(f"sst2-{name}") for name in SUBSETS),
        ],
        "best_validation": lambda: [
            highest(0)[0] > highest(0)[1],
            highest(1)[0] < highest(1)[1],
            abs(picked("yelp", 0)[0] - picked("yelp", 0)[1]) < 0.2,
            picked("official", 1)[1] > picked("official", 1)[0],
            all(0.8 < picked("grouped", seed)[1] - picked("grouped", seed)[0] < 1.2 for seed in (0, 1, 2)),
        ],
        "other_pages": lambda: [
            max(abs(change.value) for change in formats()) < 0.001,
            not any(change.lean for change in formats()),
            task("sst2-50pct").difference.lean == 0,
            not any(tuned().ahead(rung, "1x1") for rung in DEEPER),
            task(EARLY["long"]).difference.lean == task(EARLY["yelp"]).difference.lean == -1,
            task(EARLY["yelp_512"]).difference.lean == 1,
            max(map(matched_lead, EARLY)) < 0.02,
        ],
    }
    return Quantities({}, checks)
