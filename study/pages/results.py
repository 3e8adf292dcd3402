"""The study, rebuilt: what is said of all nine tests together.  The numbers are those of the pages on each test."""

from rtx_core.reads import remember
from rtx_core.records import Record
from rtx_core.report.quantities import Quantities
from rtx_core.report.statistics import equivalent
from rtx_core.report.values import Gap
from study import paper
from study.analysis.classifiers import PAIR, Family, fall, gap, most_accurate, paired
from study.analysis.corpora import inside
from study.analysis.yardstick import Yardstick

SUBSETS = ("", "-10pct", "-50pct", "-short", "-long")  # of SST-2, with phrases in both parts
LEAKING = ("multi-domain-seeded", *(f"sst2-seeded{part}" for part in SUBSETS))


def quantities() -> Quantities:
    """Of the paper's own runs."""

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
            min(gaps()["short"].by_seed) > 0,
            not any(equivalent(gaps()[test].by_seed, 1) for test in ("short", "tenth")),
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
            max(map(inside_training, ("sst2-grouped", "sst2-official", "yelp-seeded"))) < 0.01,
            min(map(inside_training, LEAKING)) > 0.2,
        ],
        "best_validation": lambda: [
            abs(picked("yelp", 0)[0] - picked("yelp", 0)[1]) < 0.2,
            all(0.8 < picked("grouped", seed)[1] - picked("grouped", seed)[0] < 1.2 for seed in (0, 1, 2)),
        ],
    }
    return Quantities({}, checks)
