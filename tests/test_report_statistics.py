"""Statistics: intervals and comparisons as in textbooks; the evidence badge, and the frames it reads."""

import numpy as np
import pandas as pd
import pytest
import scipy
from report_records import LABELS, Record, record
from sklearn.metrics import f1_score, precision_score, recall_score

from rtx_core.errors import RtxError
from rtx_core.report import statistics
from rtx_core.report.evidence import as_records, badge, by_model
from rtx_core.report.statistics import Difference, Paired, common, difference, mean_interval


def scored(right: int, n: int) -> Record:
    return Record(test={"n": n, "accuracy": right / n})


def test_accuracy_interval_is_wilsons_of_newcombe_1998():
    interval = statistics.accuracy_interval
    assert interval(scored(81, 263)) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert interval(scored(15, 148)) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert interval(scored(0, 20)) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert interval(scored(29, 29)) == pytest.approx((0.8830, 1.0), abs=5e-5)


def test_mean_interval_is_students():
    half = 4.302653 / 3**0.5
    assert mean_interval([1, 2, 3]) == pytest.approx((2, 2 - half, 2 + half), abs=1e-6)
    mean, low, high = mean_interval([0.25])
    assert mean == 0.25 and np.isnan(low) and np.isnan(high)


def test_accuracy_has_wilsons_interval_of_one_seed_a_range_of_two_and_students_interval_from_three_on():
    seeds = [record(seed=seed, wrong=range(20 + 10 * seed)) for seed in range(3)]
    assert statistics.accuracy(seeds[:1]) == (0.9, *statistics.accuracy_interval(seeds[0]))
    assert statistics.accuracy(seeds[:2]) == pytest.approx((0.875, 0.85, 0.9))
    assert statistics.accuracy(seeds) == pytest.approx(mean_interval([0.9, 0.85, 0.8]))


def test_a_difference_of_one_seed_is_tested_by_mcnemar():
    both = range(100, 110)  # wrong in both: they do not count
    a = record(wrong=[0, *both])
    b = record("recurrent", wrong=[*range(20, 30), *both])
    found = difference([a], [b])  # 10 texts that a alone answers rightly, 1 that b does
    assert found.p == pytest.approx(0.01171875) and found.value == pytest.approx(9 / 200)
    assert difference([b], [a]).value == pytest.approx(-9 / 200)
    assert difference([a], [a]).p == 1.0


def test_different_test_sets_are_not_paired():
    other_hash = record("recurrent", data=record()["data"] | {"sha256": "e" * 64})
    with pytest.raises(RtxError, match="baseline-seed0 and recurrent-seed0 were tested on different data"):
        difference([record()], [other_hash])
    assert difference([record()], [other_hash], same_training=False).value == 0
    other_labels = record("recurrent", labels=1 - LABELS)
    for same_training in (True, False):
        with pytest.raises(RtxError, match="different data"):
            difference([record()], [other_labels], same_training=same_training)


def test_paired_t_test_is_students_of_1908():
    """Extra hours of sleep of ten patients under two drugs."""
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    *interval, p = statistics.over_seeds(second, first)
    assert interval == pytest.approx((1.58, 0.7001, 2.4599), abs=5e-5)
    assert p == pytest.approx(0.002833, abs=5e-7)
    assert statistics.over_seeds([0.5, 0.25], [0.25, 0.0]) == (0.25, 0.25, 0.25, 0.0)  # no spread at all
    assert statistics.over_seeds([0.5, 0.25], [0.5, 0.25]) == (0, 0, 0, 1.0)


def test_bootstrap_of_a_paired_difference_is_agrestis_interval():
    """Approval of a prime minister in two surveys of the same 1,600 people: -0.04 (-0.06 to -0.02)."""
    change = np.repeat([0.0, -1.0, 1.0, 0.0], [794, 150, 86, 570])
    value, low, high = statistics.bootstrap(statistics.mean, change)
    assert value == pytest.approx(-0.04) and (low, high) == pytest.approx((-0.0587, -0.0213), abs=2e-3)


def test_fishers_exact_test_is_that_of_the_lady_tasting_tea():
    assert statistics.same_share(3, 4, 1, 4) == pytest.approx(0.4857, abs=5e-5)
    assert statistics.same_share(4, 4, 0, 4) == pytest.approx(0.0286, abs=5e-5)


def test_one_more_run_is_compared_with_students_t():
    """By hand, m = 0.80 and s = 0.02 of three seeds.

    On the same texts 0.75 has t = −0.05 / sqrt(0.0004 · 4/3) = −2.165064; with two degrees of freedom p is
    1 − |t| / sqrt(2 + t²).  On 300 of its own, ours 200: b = 0.1875/300 + 0.16/200 = 0.001425, t = −1.129865,
    with 2 · (0.00195833 / 0.00053333)² = 26.965 degrees of freedom.
    """
    p = statistics.as_one_more_run
    ours = [0.78, 0.80, 0.82]
    by_hand = 1 - 2.165064 / (2 + 2.165064**2) ** 0.5
    assert p(0.75, 300, ours, 200, same_texts=True) == pytest.approx(by_hand, abs=1e-5)
    assert p(0.75, 300, ours, 200) == pytest.approx(2 * scipy.stats.t.sf(1.129865, 26.965), abs=1e-4)
    assert p(0.8, 300, ours, 200) == pytest.approx(1)
    assert p(0.8, 300, [0.8] * 3, 200, same_texts=True) == 1
    assert p(0.7, 300, [0.8] * 3, 200, same_texts=True) == 0
    no_spread = 2 * scipy.stats.norm.sf(0.1 / (0.0007 + 0.0008) ** 0.5)
    assert p(0.7, 300, [0.8] * 3, 200) == pytest.approx(no_spread)


def test_adjustment_is_that_of_benjamini_and_hochberg_1995():
    """The fifteen p-values of their example, of which four are significant at 5 %."""
    ps = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344]
    ps += [0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    family = [Difference(0.1, 0.0, 0.2, p, 100, (0.1,), "a test") for p in ps]
    found = statistics.adjusted(family)
    assert sum(one.sign for one in family) == 9 and sum(one.sign for one in found) == 4
    assert [one.adjusted for one in found[:4]] == pytest.approx([0.0015, 0.003, 0.0095, 0.035625])
    without = Difference(0.1, 0.05, 0.2, None, 100, (0.1, 0.1), "a test")
    assert statistics.adjusted([without]) == [without] and statistics.adjusted([]) == []


def test_two_seeds_give_a_range_and_no_verdict():
    a = [record(seed=seed, wrong=range(40)) for seed in range(2)]
    b = [record("recurrent", seed, wrong) for seed, wrong in enumerate((range(5), range(20)))]
    both = difference(a, b)
    assert [difference(a[i : i + 1], b).sign for i in range(2)] == [-1, -1]  # of two trained models each
    assert (both.seeds, both.p, both.sign) == (2, None, 0) and both.by_seed == pytest.approx((-0.175, -0.1))
    assert (both.value, both.low, both.high) == pytest.approx((-0.1375, -0.175, -0.1))


SEEDS_IN_USE, DRAWS = (3, 5, 8), 2000


def holds(intervals, truth: float) -> bool:
    """Whether 93 to 97 % of the 95 % intervals hold the truth."""
    low, high = np.array(intervals).T
    return 0.93 <= np.mean((low <= truth) & (truth <= high)) <= 0.97


@pytest.mark.parametrize("seeds", SEEDS_IN_USE)
def test_intervals_over_seeds_hold_the_truth_as_often_as_they_say(seeds):
    drawn = np.random.default_rng(seeds).normal(0.3, 0.02, (DRAWS, 2, seeds))
    assert holds([mean_interval(list(one))[1:] for one, _ in drawn], 0.3)
    found = [statistics.over_seeds(list(one), list(other)) for one, other in drawn]
    assert holds([row[1:3] for row in found], 0.0)
    assert 0.03 <= np.mean([row[3] < 0.05 for row in found]) <= 0.07
    ranges = [(one.min(), one.max()) for one, _ in drawn]
    assert seeds > 3 or not holds(ranges, 0.3)  # of three, lowest to highest is no 95 % interval


@pytest.mark.parametrize(("n", "share"), [(872, 0.8), (6735, 0.9)])  # test sets of GLUE's and of the pooled split
def test_intervals_over_texts_hold_the_truth_as_often_as_they_say(n, share):
    random = np.random.default_rng(n)
    assert holds([statistics.accuracy_interval(scored(right, n)) for right in random.binomial(n, share, DRAWS)], share)
    changes, shares = np.array([0.0, 1.0, -1.0]), [0.85, 0.05, 0.10]  # one model alone right, the other alone
    samples = random.multinomial(n, shares, DRAWS // 4)  # a bootstrap of each: fewer draws
    intervals = [statistics.bootstrap(statistics.mean, np.repeat(changes, sample))[1:] for sample in samples]
    low, high = np.array(intervals).T
    assert 0.92 <= np.mean((low <= -0.05) & (high >= -0.05)) <= 0.98


@pytest.mark.parametrize("seeds", SEEDS_IN_USE)
def test_level_is_said_wrongly_in_one_of_twenty_at_the_margin_and_rightly_within_it(seeds):
    drawn = np.random.default_rng(seeds).normal(0, 0.01, (DRAWS // 2, 2, seeds))  # each takes a while

    def called_level(truth: float, margin: float) -> float:
        pairs = ((list(one + truth), list(other)) for one, other in drawn)
        return np.mean([statistics.equivalence(*pair, margin) < 0.05 for pair in pairs])

    assert called_level(0.2, 0.2) < 0.07 and called_level(-0.2, 0.2) < 0.07
    assert called_level(0.0, 0.2) > 0.95
    assert called_level(0.0, 0.001) < 0.05  # seeds that differ by more than the margin can show nothing


def test_equivalence_without_spread_goes_by_the_margin_alone():
    assert statistics.equivalence([0.5, 0.6], [0.5, 0.6], 0.01) == 0.0
    assert statistics.equivalence([0.5, 0.6], [0.4, 0.5], 0.01) == 1.0


def test_difference_takes_one_common_seed_or_three():
    a = [record(seed=seed, wrong=range(20 + seed)) for seed in range(3)]
    b = [record("recurrent", seed, range(40 + 2 * seed)) for seed in range(3)]
    one = difference(a[1:2], b)
    assert (one.seeds, one.n, one.value, one.sign) == (1, 200, pytest.approx(21 / 200), 1)
    assert one.p == difference([a[1]], [b[1]]).p and one.low < one.value < one.high and "McNemar" in one.test
    three = difference(a, b)
    assert (three.seeds, three.sign) == (3, 1) and "t-test" in three.test
    interval = mean_interval([20 / 200, 21 / 200, 22 / 200])
    assert (three.value, three.low, three.high) == pytest.approx(interval)
    assert difference(a, a).sign == 0
    with pytest.raises(RtxError, match="no record of a seed"):
        difference(a[:1], b[1:])


def test_other_measures_are_scikit_learns():
    a = record(wrong=range(0, 60, 2))
    b = record("recurrent", wrong=range(1, 90, 3))
    guesses = [found.predictions["logits"].argmax(1) for found in (a, b)]
    for measure, score in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
        found = difference([a], [b], measure)
        assert found.value == pytest.approx(score(LABELS, guesses[0]) - score(LABELS, guesses[1]))
        assert found.p is None and found.low < found.value < found.high
    weighted = statistics.MEASURES["weighted precision"](LABELS, guesses[0], np.ones(len(LABELS)))
    assert weighted == pytest.approx(precision_score(LABELS, guesses[0], average="weighted"))


def test_estimate_is_over_seeds_where_there_are_three():
    a = [record(seed=seed, wrong=range(20)) for seed in range(3)]
    b = [record("recurrent", seed, range(20 + 10 * seed)) for seed in range(3)]

    def ratio(labels, first, second, weights):
        return weights @ (labels == first) / (weights @ (labels == second))

    ratios = [0.9 / (0.9 - 0.05 * seed) for seed in range(3)]
    assert statistics.estimate(ratio, common(a, b)) == pytest.approx(mean_interval(ratios))
    first, both = (statistics.estimate(ratio, common(a[1:j], b[1:j])) for j in (2, 3))
    assert first[0] == pytest.approx(ratios[1]) and first[1] < first[0] < first[2]
    assert both == pytest.approx((np.mean(ratios[1:]), *ratios[1:]))
    sure = statistics.estimate(ratio, common(a, b), level=0.99)
    assert sure == pytest.approx(mean_interval(ratios, 0.99)) and sure[1] < mean_interval(ratios)[1]


def test_ranking_and_threshold():
    """Two positives of four: scored 4 and 2, the negatives 3 and 1; three of the four pairs are in order."""
    scores = np.array([4.0, 2.0, 3.0, 1.0])
    changes = {"logits": np.stack([-scores, scores], 1), "labels": np.array([1, 1, 0, 0])}
    found = record(**changes)
    assert statistics.auc(found) == 0.75
    assert statistics.matched_accuracy(found) == 0.5  # the two highest are called positive, one of them rightly
    three = record(test=record()["test"] | {"confusion": [[1, 0, 0]] * 3})
    assert statistics.auc(three) is None and statistics.mean_auc([]) is None
    assert not statistics.answers_all(three) and statistics.answers_all(record())


def language(model: str, seed: int, losses: list[float]) -> Record:
    sizes = [8] * (len(losses) - 1) + [3]
    return Record(model=model, seed=seed, test={"batch_losses": losses, "batch_sizes": sizes})


def test_language_losses_are_paired_by_batch_over_seeds():
    first = [language("a", seed, [2.0, 2.2, 2.1 + seed / 10, 9.0]) for seed in range(2)]
    second = [language("b", seed, [1.0, 1.1, 1.2, 0.0]) for seed in range(2)]
    found = statistics.paired(first, second)
    gain = [1.0, 1.1, 0.95]  # the mean over seeds of each whole batch
    assert (found.value, found.low, found.high) == pytest.approx(mean_interval(gain))
    assert found.by_seed == pytest.approx((1.0, 1.0 + 0.1 / 3)) and found.p is None and found.sign == 0
    assert statistics.paired(first, [language("b", 5, [1.0, 2.0, 3.0, 4.0])]) is None
    assert statistics.paired(first, [language("b", 0, [1.0, 2.0])]) is None  # other batches
    three = [[language(m, s, [2.0, 2.1 + n * s / 10, 9.0]) for s in range(3)] for n, m in enumerate("ab", 1)]
    means = [[np.mean(one["test"]["batch_losses"][:2]) for one in model] for model in three]
    assert statistics.paired(*three).p == pytest.approx(scipy.stats.ttest_rel(*means).pvalue)
    assert Paired(0.2, 0.1, 0.3, (0.2, 0.2, 0.2), 0.2).sign == 0
    assert Paired(0.2, 0.1, 0.3, (0.2, 0.2, 0.2), 0.01).sign == 1
    assert Paired(0.2, 0.1, 0.3, (0.2, 0.2), None).sign == 0  # two seeds decide nothing


def runs(models=("baseline", "recurrent"), seeds=(0, 1, 2), **changes) -> list:
    return [record(model, seed, **changes) for model in models for seed in seeds]


@pytest.mark.parametrize(
    ("found", "circles", "words"),
    [
        (runs(), "●●●", "three seeds, full budget"),
        (runs(seeds=[4], budget="reduced"), "○", "one seed, reduced budget"),
        (runs(seeds=range(7)), "●●●●●+", "seven seeds, full budget"),
        (runs(seeds=[0, 1]) + runs(seeds=[2], budget="reduced"), "●●○", "three seeds, mixed budget"),
        (runs(["baseline"], [0, 1, 2]) + runs(["recurrent"], [1]), "●", "one seed, full budget"),  # in common
        (runs(["baseline"], [0]) + runs(["recurrent"], [1]), "●", "one seed, full budget"),  # none in common
        (runs(name="a") + runs(seeds=[0], name="b"), "●", "one seed, full budget"),  # of every setting
        (runs(["baseline"], [0]) + runs(["recurrent"], [0], budget="reduced"), "○", "one seed, reduced budget"),
        ([], "", "not measured"),
    ],
)
def test_badge(found, circles, words):
    made = badge(found)
    assert (made.circles, made.words) == (circles, words)


def test_records_come_out_of_everything_that_holds_them():
    found = runs(seeds=[1, 0])
    frame = pd.DataFrame({"model": [one["model"] for one in found], "record": found})
    assert as_records(frame) == as_records(found) == as_records({"a": found[:2], "b": found[2:]}) == found
    groups = by_model(frame)
    assert list(groups) == ["baseline", "recurrent"]
    assert [one["seed"] for one in groups["baseline"]] == [0, 1]
    with pytest.raises(TypeError, match="expected records"):
        as_records(3)
