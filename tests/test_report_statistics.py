"""Statistics: intervals and comparisons as in textbooks; how often intervals hold; the badge; the worth of a pass."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy
from conftest import refused
from report_records import LABELS, Record, record
from sklearn.metrics import f1_score, precision_score, recall_score

from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY
from rtx_core.report import statistics
from rtx_core.report.evidence import as_records, badge, by_model
from rtx_core.report.rates import AtOwnRates, at_best_rate, best_rate, validation_losses
from rtx_core.report.statistics import Difference, common, difference, mean_interval
from rtx_core.report.values import Runs, Unmeasured
from study.analysis.phi import LoopedLosses, equal_size, mean_phi, phi, pooled_phi
from study.analysis.records import share_interval
from study.analysis.sessions import graph_runs, largest_session

NEWCOMBE_1998 = [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (29, 29, 0.8830, 1)]


@pytest.mark.parametrize(("right", "n", "low", "high"), NEWCOMBE_1998)
def test_accuracy_interval_is_wilsons(right, n, low, high):
    scored = Record(test={"n": n, "accuracy": right / n})
    assert statistics.accuracy_interval(scored) == pytest.approx((low, high), abs=5e-5)


def test_accuracy_has_wilsons_interval_of_one_seed_a_range_of_two_and_students_interval_from_three_on():
    half = 4.302653 / 3**0.5
    assert mean_interval([1, 2, 3]) == pytest.approx((2, 2 - half, 2 + half), abs=1e-6)
    assert mean_interval([0.25]) == pytest.approx((0.25, np.nan, np.nan), nan_ok=True)
    seeds = [record(seed=seed, wrong=range(20 + 10 * seed)) for seed in range(3)]
    assert statistics.accuracy(seeds[:1]) == (0.9, *statistics.accuracy_interval(seeds[0]))
    assert statistics.accuracy(seeds[:2]) == pytest.approx((0.875, 0.85, 0.9))
    assert statistics.accuracy(seeds) == pytest.approx(mean_interval([0.9, 0.85, 0.8]))


def test_a_difference_of_one_seed_is_tested_by_mcnemar():
    both = range(100, 110)  # wrong in both: they do not count
    a, b = record(wrong=[0, *both]), record("recurrent", wrong=[*range(20, 30), *both])
    found = difference([a], [b])  # 10 texts that a alone answers rightly, 1 that b does
    assert found.p == pytest.approx(0.01171875) and found.value == pytest.approx(9 / 200)
    assert difference([b], [a]).value == pytest.approx(-9 / 200) and difference([a], [a]).p == 1


def test_different_test_sets_are_not_paired():
    other_hash = record("recurrent", data=record()["data"] | {"sha256": "e" * 64})
    assert difference([record()], [other_hash], same_training=False).value == 0
    other_labels = record("recurrent", labels=1 - LABELS)
    for other, same_training in ((other_hash, True), (other_labels, True), (other_labels, False)):
        with refused("baseline-seed0 and recurrent-seed0 were tested on different data"):
            difference([record()], [other], same_training=same_training)


def test_paired_t_test_is_students_of_1908():
    """Extra hours of sleep of ten patients under two drugs."""
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    *interval, p = statistics.over_seeds(second, first)
    assert interval == pytest.approx((1.58, 0.7001, 2.4599), abs=5e-5)
    assert p == pytest.approx(0.002833, abs=5e-7)
    assert statistics.over_seeds([0.5, 0.25], [0.25, 0.0]) == (0.25, 0.25, 0.25, 0.0)  # no spread at all
    assert statistics.over_seeds([0.5, 0.25], [0.5, 0.25]) == (0, 0, 0, 1.0)


def test_one_more_run_is_compared_with_students_t():
    """By hand, with m = 0.80 and s = 0.02 of three seeds: b = 0.1875/300 + 0.16/200 = 0.001425 and
    t = −0.05 / sqrt(0.0004 · 4/3 + b) = −1.129865, with 2 · (0.00195833 / 0.00053333)² = 26.965 degrees of freedom.
    """
    p, alike = statistics.as_one_more_run, [0.8] * 3
    by_hand = 2 * scipy.stats.t.sf(1.129865, 26.965)
    assert p(0.75, 300, [0.78, 0.80, 0.82], 200) == pytest.approx(by_hand, abs=1e-4)
    no_spread = 2 * scipy.stats.norm.sf(0.1 / (0.0007 + 0.0008) ** 0.5)
    assert p(0.7, 300, alike, 200) == pytest.approx(no_spread)
    assert [p(value, 300, alike, 200, same_texts=True) for value in (0.8, 0.7)] == [1, 0]


def test_adjustment_is_that_of_benjamini_and_hochberg_1995():
    family = [Difference(0.1, 0.0, 0.2, p, 100, (0.1,) * 3, "a test") for p in (0.01, 0.03, 0.04, 0.9)]
    of_texts = Difference(0.1, 0.0, 0.2, 0.001, 100, (0.1,), "a test over texts")
    *found, same = statistics.adjusted([*family, of_texts])
    assert [one.adjusted for one in found] == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.9])
    assert [one.sign for one in family] == [1, 1, 1, 0] and [one.sign for one in found] == [1, 0, 0, 0]
    assert (same, same.sign, same.lean) == (of_texts, 0, 1) and statistics.adjusted([]) == []


def test_a_measure_that_is_none_and_runs_without_predictions_are_refused(monkeypatch):
    with refused("Unknown measure 'loss'", "accuracy"):
        difference([record()], [record()], "loss")
    monkeypatch.setenv("RTX_HOME", str(REPOSITORY))
    with refused("khop/1x4-seed0.json holds no predictions", "compare its test losses"):
        difference(*(records.records(name="khop", model=model) for model in ("1x4", "2x2")))


def test_unpaired_seeds_equivalence_and_the_smallest_detectable_difference():
    """Welch 1947 by hand: difference 2, variances 1 and 4, n = 3, so t = 2 / sqrt(5/3) with 2.94 degrees of freedom."""
    mean, low, high, p, ranks = statistics.unpaired([4.0, 5.0, 6.0], [1.0, 3.0, 5.0])
    assert (mean, p) == (2.0, pytest.approx(2 * scipy.stats.t.sf(2 / (5 / 3) ** 0.5, 50 / 17)))
    assert low < 0 < high and ranks == pytest.approx(0.4)
    assert statistics.unpaired([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0])[4] == pytest.approx(2 / 252)
    near = [0.2, 0.3, 0.1, 0.2]
    assert statistics.equivalent(near, 1.0) and statistics.equivalent([-x for x in near], 1.0)
    assert not statistics.equivalent(near, 0.2) and not statistics.equivalent([-3.0, 3.0, 0.0], 1.0)
    for of_one_seed in (lambda: statistics.equivalent([0.1], 1.0), lambda: statistics.detectable([0.1])):
        with pytest.raises(RtxError, match="two pairs"):
            of_one_seed()
    draws = np.random.default_rng(0).normal(statistics.detectable(near), np.std(near, ddof=1), (4000, 4))
    assert np.mean(scipy.stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05) == pytest.approx(0.8, abs=0.03)


def of_seeds(model: str, *wrong: int) -> list[Record]:
    """A record a seed of a model that is wrong on so many texts."""
    return [record(model, seed, range(n)) for seed, n in enumerate(wrong)]


def test_a_difference_is_of_common_seeds_of_which_two_give_a_range_and_no_verdict():
    a, b = of_seeds("baseline", 40, 40), of_seeds("recurrent", 5, 20)
    both = difference(a, b)
    assert [difference(a[i : i + 1], b).lean for i in range(2)] == [-1, -1]  # of two trained models each
    assert (both.seeds, both.p, both.sign, both.lean) == (2, None, 0, 0) and both.by_seed == pytest.approx(
        (-0.175, -0.1)
    )
    assert (both.value, both.low, both.high) == pytest.approx((-0.1375, -0.175, -0.1))
    a, b = of_seeds("baseline", 20, 21, 22), of_seeds("recurrent", 40, 42, 44)
    one = difference(a[1:2], b)
    assert (one.seeds, one.n, one.value, one.sign, one.lean) == (1, 200, pytest.approx(21 / 200), 0, 1)
    assert one.p == difference([a[1]], [b[1]]).p and one.low < one.value < one.high and "McNemar" in one.test
    three = difference(a, b)
    assert (three.seeds, three.sign) == (3, 1) and "t-test" in three.test
    assert (three.value, three.low, three.high) == pytest.approx(mean_interval([0.1, 0.105, 0.11]))
    assert difference(a, a).sign == 0
    with pytest.raises(RtxError, match="no record of a seed"):
        difference(a[:1], b[1:])


def test_other_measures_are_scikit_learns():
    a, b = record(wrong=range(0, 60, 2)), record("recurrent", wrong=range(1, 90, 3))
    guesses = [found.predictions["logits"].argmax(1) for found in (a, b)]
    for measure, score in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
        found = difference([a], [b], measure)
        assert found.value == pytest.approx(score(LABELS, guesses[0]) - score(LABELS, guesses[1]))
        assert found.p is None and found.low < found.value < found.high
    weighted = statistics.MEASURES["weighted precision"](LABELS, guesses[0], np.ones(len(LABELS)))
    assert weighted == pytest.approx(precision_score(LABELS, guesses[0], average="weighted"))
    three = np.array([0, 1, 2, 2])
    assert statistics.MEASURES["weighted precision"](three, three, np.ones(4)) == 1


def test_estimate_is_over_seeds_where_there_are_three():
    a, b = of_seeds("baseline", 20, 20, 20), of_seeds("recurrent", 20, 30, 40)

    def ratio(labels, first, second, weights):
        return weights @ (labels == first) / (weights @ (labels == second))

    ratios = [0.9 / (0.9 - 0.05 * seed) for seed in range(3)]
    assert statistics.estimate(ratio, common(a, b)) == pytest.approx(mean_interval(ratios))
    first, both = (statistics.estimate(ratio, common(a[1:j], b[1:j])) for j in (2, 3))
    assert first[0] == pytest.approx(ratios[1]) and first[1] < first[0] < first[2]
    assert both == pytest.approx((np.mean(ratios[1:]), *ratios[1:]))


def test_ranking_and_threshold():
    """Two positives of four: scored 4 and 2, the negatives 3 and 1; three of the four pairs are in order."""
    scores = np.array([4.0, 2.0, 3.0, 1.0])
    found = record(logits=np.stack([-scores, scores], 1), labels=np.array([1, 1, 0, 0]))
    assert statistics.auc(found) == 0.75
    assert statistics.matched_accuracy(found) == 0.5  # the two highest are called positive, one of them rightly
    three = record(test=record()["test"] | {"confusion": [[1, 0, 0]] * 3})
    assert statistics.auc(three) is None and statistics.mean_auc([]) is None
    assert not statistics.answers_all(three) and statistics.answers_all(record())


def runs(models=("baseline", "recurrent"), seeds=(0, 1, 2), **changes) -> list:
    return [record(model, seed, **changes) for model in models for seed in seeds]


def test_badge():
    """Of two models that are compared, the seeds in common; of several settings, those of every one."""
    made = [
        ("●●●", "three seeds, full budget", runs()),
        ("○", "one seed, reduced budget", runs(["baseline"], [0]) + runs(["recurrent"], [0], budget="reduced")),
        ("●●●●●+", "seven seeds, full budget", runs(seeds=range(7))),
        ("●●○", "three seeds, mixed budget", runs(seeds=[0, 1]) + runs(seeds=[2], budget="reduced")),
        ("●", "one seed, full budget", runs(["baseline"]) + runs(["recurrent"], [1])),
        ("●", "one seed, full budget", runs(["baseline"], [0]) + runs(["recurrent"], [1])),
        ("●", "one seed, full budget", runs(name="a") + runs(seeds=[0], name="b")),
        ("", "not measured", []),
    ]
    for circles, words, found in made:
        assert (badge(found).circles, badge(found).words) == (circles, words)


def test_records_come_out_of_everything_that_holds_them():
    found = runs(seeds=[1, 0])
    frame = pd.DataFrame({"model": [one["model"] for one in found], "record": found})
    assert as_records(frame) == as_records(found) == as_records({"a": found[:2], "b": found[2:]}) == found
    groups = by_model(frame)
    assert list(groups) == ["baseline", "recurrent"]
    assert [one["seed"] for one in groups["baseline"]] == [0, 1]


def students(random, seeds):
    return mean_interval(random.normal(0.8, 0.01, seeds).tolist())


def paired(random, seeds):
    shared, own = random.normal(0, 0.02, seeds), random.normal(0, 0.01, (2, seeds))
    return statistics.over_seeds(list(0.8 + shared + own[0]), list(0.78 + shared + own[1]))[:3]


def wilsons(random, n, accuracy):
    return statistics.accuracy_interval(Record(test={"n": n, "accuracy": random.binomial(n, accuracy) / n}))


def bootstrapped(random, n):  # right together 75 %, the first alone 7 %, the second alone 5 %, wrong together 13 %
    kind = random.choice(4, n, p=[0.75, 0.07, 0.05, 0.13])
    a, b = (np.isin(kind, [0, 1]), np.isin(kind, [0, 2]))
    return statistics.bootstrap(lambda a, b, weights: weights @ (a * 1.0 - b) / weights.sum(-1), a, b)


DRAWS = [(draw, (seeds,), truth) for draw, truth in ((students, 0.8), (paired, 0.02)) for seeds in (3, 5, 8)]
DRAWS += [(wilsons, given, given[1]) for given in ((872, 0.8), (872, 0.95), (6823, 0.9))]
DRAWS += [(bootstrapped, (n,), 0.02) for n in (682, 872)]


@pytest.mark.parametrize(("draw", "given", "truth"), DRAWS)
def test_intervals_of_95_hold_the_truth_93_to_97_times_of_a_hundred(draw, given, truth, monkeypatch):
    monkeypatch.setattr(statistics, "RESAMPLES", 500)  # whose bounds are as right, and less smooth
    random = np.random.RandomState(0)
    low, high = np.array([draw(random, *given)[-2:] for _ in range(1000)]).T
    assert 0.93 <= np.mean((low <= truth) & (truth <= high)) <= 0.97


SIZES = np.array([50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000])


def loss_of(size):
    """A law as language models follow, in nats."""
    return 1.2 + 8 * np.asarray(size, float) ** -0.2


STANDARD = loss_of(SIZES)[:, None]  # of one seed


def a_looped(exponent: float, recurrent=100_000, passes=4, noise=(0.0,)) -> LoopedLosses:
    loss = loss_of(passes**exponent * recurrent)
    return LoopedLosses([loss + shift for shift in noise], recurrent, passes)


@pytest.mark.parametrize("exponent", [0.0, 0.46, 1.0])
@pytest.mark.parametrize(("passes", "once"), [(2, 0), (3, 0), (6, 0), (4, 80_000)])
def test_a_known_exponent_is_found(exponent, passes, once):
    looped = LoopedLosses([loss_of(once + passes**exponent * 100_000)], 100_000, passes, once)
    assert phi(looped.losses[0], looped, SIZES, loss_of(SIZES)) == pytest.approx(exponent, abs=0.03)


@pytest.mark.parametrize(("loss", "size"), [(2.0, 1000), (1.5, 1000 * 10**0.5), (3.1, np.nan), (0.9, np.nan)])
def test_a_size_between_two_is_interpolated_and_none_is_extrapolated(loss, size):
    assert equal_size(loss, [100, 1000, 10_000], [3.0, 2.0, 1.0]) == pytest.approx(size, nan_ok=True)


@pytest.mark.parametrize("seeds", [3, 8])
def test_intervals_hold_the_exponent_as_often_as_they_say(seeds):
    """That of the mean over seeds' own exponents, and that of the exponent of mean losses."""
    random, held, sizes = np.random.default_rng(seeds), [], (60_000, 150_000, 100_000)
    exact = [a_looped(0.46, size) for size in sizes]
    mean = mean_phi(exact[:2], SIZES, STANDARD)[0]
    pooled = phi(exact[2].losses[0], exact[2], SIZES, loss_of(SIZES))
    for _ in range(600):
        standard = STANDARD + random.normal(0, 0.004, (len(SIZES), seeds))
        looped = [a_looped(0.46, size, noise=random.normal(0, 0.004, seeds)) for size in sizes]
        _, *of_mean = mean_phi(looped[:2], SIZES, standard)
        _, *of_pooled = pooled_phi(looped[2].losses, sizes[2], 4, SIZES, standard)
        held.append((of_mean[0] <= mean <= of_mean[1], of_pooled[0] <= pooled <= of_pooled[1]))
    assert all(0.925 <= share <= 0.975 for share in np.mean(held, 0))


def test_a_seed_is_set_beside_the_curve_of_its_own_seed():
    """A shift that all models of a seed share cancels."""
    shifts = np.array([-0.05, 0.0, 0.05])
    value, low, high = mean_phi([a_looped(0.46, noise=shifts)], SIZES, STANDARD + shifts)
    assert high - low < 1e-9 and value == pytest.approx(0.46, abs=0.03)


def test_one_seed_has_no_interval_and_a_model_out_of_range_no_part_in_the_mean():
    outside = LoopedLosses([9.0], 10, 2)
    value, low, high = mean_phi([a_looped(0.5), outside], SIZES, STANDARD)
    assert value == pytest.approx(0.5, abs=0.03) and np.isnan([low, high]).all()
    assert np.isnan(mean_phi([outside], SIZES, STANDARD)[0])
    assert np.isnan(pooled_phi([0.5, 0.5, 0.5], 100_000, 4, SIZES, STANDARD + [-0.01, 0.0, 0.01])).all()


def test_runs_that_shared_a_gpu_are_one_session():
    ends = ["12:02", "12:03", "12:04", "15:00"]  # the last one was trained alone
    runs = [Record(finished=f"2026-11-27T{end}:00+00:00", seconds=100, config={"compile": "graph"}) for end in ends]
    runs.append(Record(finished="2026-11-27T12:05:00+00:00", seconds=100, config={}))
    session = largest_session(graph_runs(runs))
    assert (session.runs, session.together) == (3, 2)
    assert session.minutes == pytest.approx(2 + 100 / 60)


def rated(rate: float, loss: float, seed: int = 0, model: str = "1x4") -> Record:
    config = {"train": {"learning_rate": rate}}
    return record(model, seed, config=config, selected={"validation_loss": loss})


def test_the_best_rate_has_the_lowest_mean_validation_loss_of_the_seeds_that_all_rates_have():
    runs = [rated(2e-3, 0.4, 1), rated(1e-3, 0.1), rated(2e-3, 0.4), rated(1e-3, 0.9, 1)]
    assert validation_losses(runs) == pytest.approx({1e-3: 0.5, 2e-3: 0.4})
    assert best_rate(runs) == 2e-3 and at_best_rate(runs) == [runs[0], runs[2]]
    assert best_rate([*runs, rated(1e-3, 0.0, 2)]) == 2e-3  # seed 2 has one rate alone
    assert best_rate([rated(1e-3, 0.3), rated(2e-3, 0.2, 1)]) == 2e-3  # no seed has both
    assert best_rate([]) is None and at_best_rate([]) == []


def test_seeds_that_pick_a_rate_are_not_reported():
    runs = [
        rated(rate, loss, seed) for rate, loss, seed in ((1e-3, 0.1, 3), (2e-3, 0.2, 3), (1e-3, 9, 0), (2e-3, 1, 0))
    ]
    assert at_best_rate(runs, picked_on=[3]) == [runs[2]]
    assert at_best_rate(runs[2:], picked_on=[3]) == []
    own = AtOwnRates(Runs(runs[::2], "k-hop"), Runs(runs[1::2], "k-hop"), picked_on=[3])
    assert own.models == ["1x4"] and own.rate("1x4") == 1e-3
    assert own.runs("1x4") == runs[:1] and own.new("1x4") == [runs[2]]
    with pytest.raises(Unmeasured, match="k-hop, 2x2"):  # which has one rate
        AtOwnRates(Runs([*runs, rated(1e-3, 0.1, model="2x2")], "k-hop"), Runs(runs, "k-hop"), picked_on=[3]).new("2x2")
    with pytest.raises(Unmeasured, match="did not pick"):
        AtOwnRates(Runs(runs[:1], "k-hop"), picked_on=[3]).new("1x4")


def test_the_interval_of_a_share_covers_it_as_often_as_it_says():
    random, true = np.random.default_rng(0), 0.7
    covered = 0
    for _ in range(400):
        once, twice, two = (random.normal(mean, sd, 6) for mean, sd in ((10, 1), (10 - 5 * true, 2), (5, 0.5)))
        low, high = share_interval(once, twice, two)
        covered += low <= true <= high
    assert 0.92 < covered / 400 < 0.98
    assert share_interval([5, 6, 7], [4, 5, 6], [5, 6, 7.1]) == (-math.inf, math.inf)  # no layer's gain to share
    narrow, wide = (share_interval([9, 9 + e, 9 - e], [6, 6 + e, 6 - e], [5, 5 + e, 5 - e]) for e in (0.01, 0.1))
    assert wide[0] < narrow[0] < 0.75 < narrow[1] < wide[1]
