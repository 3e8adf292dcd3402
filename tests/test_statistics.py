"""Statistics: intervals and comparisons as in textbooks."""

import numpy as np
import pytest
import scipy
from factory import SST2, content, predictions, saved

from rtx_core.errors import RtxError
from rtx_core.results import store
from rtx_core.results.record import Record
from rtx_core.results.statistics import (
    Difference, Paired, accuracy_interval, adjusted, as_one_more_run, bootstrap_interval, common, compare, difference, equals, estimate, mean_interval, over_seeds,
    same_share,
)  # fmt: skip


def scored(right: int, n: int) -> Record:
    return Record({"test": {"n": n, "accuracy": right / n}}, None)


def test_accuracy_interval_is_wilsons_of_newcombe_1998():
    assert accuracy_interval(scored(81, 263)) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert accuracy_interval(scored(15, 148)) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert accuracy_interval(scored(0, 20)) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert accuracy_interval(scored(29, 29)) == pytest.approx((0.8830, 1.0), abs=5e-5)


def test_mean_interval_is_students():
    assert mean_interval([1, 2, 3]) == pytest.approx((2, 2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5), abs=1e-6)
    mean, low, high = mean_interval([0.25])
    assert mean == 0.25 and np.isnan(low) and np.isnan(high)


def test_compare_is_mcnemars_exact_test():
    common = range(100, 110)  # wrong in both: they do not count
    a, b = saved(SST2, "baseline", wrong=[0, *common]), saved(SST2, "recurrent", wrong=[*range(20, 30), *common])
    pair = compare(a, b)
    assert (pair["only_a"], pair["only_b"], pair["n"]) == (10, 1, 200)
    assert pair["p"] == pytest.approx(0.01171875) and "rarely" in pair["verdict"]
    assert pair["difference"] == pytest.approx(9 / 200) and pair["points"] == pytest.approx(4.5)
    turned = compare(b, a)
    assert turned["p"] == pytest.approx(0.01171875) and turned["points"] == pytest.approx(-4.5)


def test_compare_of_equal_models_finds_nothing():
    pair = compare(saved(SST2, "baseline"), saved(SST2, "recurrent"))
    assert pair["p"] == 1.0 and pair["difference"] == 0.0 and "may well be chance" in pair["verdict"]


def test_compare_refuses_different_data():
    a = saved(SST2, "baseline")
    other_hash = saved(SST2, "recurrent", data=content(SST2)["data"] | {"sha256": "e" * 64})
    with pytest.raises(RtxError, match="baseline-seed0 and recurrent-seed0 were tested on different data"):
        compare(a, other_hash)
    logits, labels = predictions(range(40))
    other_labels = store.save(content(SST2, "recurrent"), logits[:, ::-1], 1 - labels)  # as accurate
    with pytest.raises(RtxError, match="different data"):
        compare(a, other_labels)
    shorter = store.save(content(SST2, "recurrent"), logits[1:196], labels[1:196])  # as accurate
    with pytest.raises(RtxError, match="different data"):
        compare(a, shorter)


def test_paired_t_test_is_students_of_1908():
    """Extra hours of sleep of ten patients under two drugs."""
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    value, low, high, p = over_seeds(second, first)
    assert (value, low, high) == pytest.approx((1.58, 0.7001, 2.4599), abs=5e-5) and p == pytest.approx(0.002833, abs=5e-7)
    assert over_seeds([0.5, 0.25], [0.25, 0.0]) == (0.25, 0.25, 0.25, 0.0)  # no spread at all
    assert over_seeds([0.5, 0.25], [0.5, 0.25]) == (0, 0, 0, 1.0)


def test_bootstrap_of_a_paired_difference_is_agrestis_interval():
    """Approval of a prime minister in two surveys of the same 1,600 people: -0.04 with interval -0.06 to -0.02."""
    both, first, second, neither = 794, 150, 86, 570
    change = np.repeat([0.0, -1.0, 1.0, 0.0], [both, first, second, neither])
    value, low, high = bootstrap_interval(np.mean, change)
    assert value == pytest.approx(-0.04) and (low, high) == pytest.approx((-0.0587, -0.0213), abs=2e-3)


def test_fishers_exact_test_is_that_of_the_lady_tasting_tea():
    assert same_share(3, 4, 1, 4) == pytest.approx(0.4857, abs=5e-5) and same_share(4, 4, 0, 4) == pytest.approx(0.0286, abs=5e-5)


def test_one_more_run_is_compared_with_students_t():
    """By hand, m = 0.80 and s = 0.02 of three seeds.  On the same texts 0.75 has t = −0.05 / sqrt(0.0004 · 4/3) = −2.165064, and with two
    degrees of freedom p is 1 − |t| / sqrt(2 + t²).  On 300 of its own, ours 200: b = 0.1875/300 + 0.16/200 = 0.001425, t = −0.05 / sqrt(0.00195833)
    = −1.129865, with 2 · (0.00195833 / 0.00053333)² = 26.965 degrees of freedom."""
    ours = [0.78, 0.80, 0.82]
    assert as_one_more_run(0.75, 300, ours, 200, same_texts=True) == pytest.approx(1 - 2.165064 / (2 + 2.165064**2) ** 0.5, abs=1e-5)
    assert as_one_more_run(0.75, 300, ours, 200) == pytest.approx(2 * scipy.stats.t.sf(1.129865, 26.965), abs=1e-4)
    assert as_one_more_run(0.8, 300, ours, 200) == pytest.approx(1) and as_one_more_run(0.8, 300, [0.8] * 3, 200, same_texts=True) == 1
    assert as_one_more_run(0.7, 300, [0.8] * 3, 200, same_texts=True) == 0
    assert as_one_more_run(0.7, 300, [0.8] * 3, 200) == pytest.approx(2 * scipy.stats.norm.sf(0.1 / (0.0007 + 0.0008) ** 0.5))  # no spread: the texts alone


def test_adjustment_is_that_of_benjamini_and_hochberg_1995():
    """The fifteen p-values of their example, of which four are significant at 5 %."""
    ps = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    family = [Difference(0.1, 0.0, 0.2, p, 100, (0.1,), "a test") for p in ps]
    assert sum(one.sign for one in family) == 9 and sum(one.sign for one in adjusted(family)) == 4
    assert [one.adjusted for one in adjusted(family)[:4]] == pytest.approx([0.0015, 0.003, 0.0095, 0.035625])
    without = Difference(0.1, 0.05, 0.2, None, 100, (0.1, 0.1), "a test")
    assert adjusted([without]) == [without] and adjusted([without, family[3]]) == [without, adjusted([family[3]])[0]] and adjusted([]) == []
    assert "p = 0.0095, adjusted 0.0095" in str(adjusted(family[3:4])[0])


def test_two_seeds_count_both_and_have_to_agree():
    a = [saved(SST2, "baseline", seed, range(40)) for seed in range(2)]
    agree = [saved(SST2, "recurrent", seed, wrong) for seed, wrong in enumerate((range(5), range(35)))]
    both = difference(a, agree)
    assert (both.seeds, both.p, both.sign) == (2, None, -1) and both.value == pytest.approx(-0.1) and both.by_seed == pytest.approx((-0.175, -0.025))
    means = bootstrap_interval(np.mean, np.repeat([-1.0, -0.5, 0.0], [5, 30, 165]))  # of texts that both seeds tell apart, one does, none
    assert (both.low, both.high) == pytest.approx(means[1:], abs=0.01)
    f1 = difference(a, agree, "f1")
    assert (f1.seeds, f1.sign) == (2, -1) and f1.value == pytest.approx(np.mean([x["test"]["f1"] - y["test"]["f1"] for x, y in zip(a, agree)]))
    disagree = [agree[0], saved(SST2, "recurrent", 1, range(42))]
    both = difference(a, disagree)
    assert both.high < 0 and both.sign == 0 and "2 seeds: -17.50 and +1.00" in str(both)


def test_seeds_in_common_are_those_of_all():
    a, b, c = ([saved(SST2, model, seed) for seed in seeds] for model, seeds in
               (("baseline", (0, 1, 3)), ("recurrent", (3, 1, 4)), ("recurrent-wide", (1, 3))))  # fmt: skip
    assert [[record["seed"] for record in found] for found in common(a, b, c)] == [[1, 1, 1], [3, 3, 3]] and common(a, b[2:]) == []


def test_estimate_is_over_seeds_where_there_are_three():
    a, b = ([saved(SST2, model, seed, range(20 + seed * step)) for seed in range(3)] for model, step in (("baseline", 0), ("recurrent", 10)))
    ratio = lambda y, a, b, axis: (y == a).mean(axis) / (y == b).mean(axis)  # noqa: E731
    ratios = [0.9 / (0.9 - 0.05 * seed) for seed in range(3)]
    assert estimate(ratio, common(a, b)) == pytest.approx((*mean_interval(ratios), 3))
    value, low, high, seeds = estimate(ratio, common(a[1:], b[1:]))
    assert (value, seeds) == (pytest.approx(ratios[1]), 1) and low < value < high


def test_a_language_model_of_one_seed_is_not_better():
    assert Paired(0.2, 0.1, 0.3, (0.2,), None).sign == 0 and Paired(0.2, 0.1, 0.3, (0.1, 0.3), None).sign == 1


def test_difference_takes_one_common_seed_or_three():
    a = [saved(SST2, "baseline", seed, range(20 + seed)) for seed in range(3)]
    b = [saved(SST2, "recurrent", seed, range(40 + 2 * seed)) for seed in range(3)]
    one = difference(a[1:2], b)
    assert (one.seeds, one.n, one.value) == (1, 200, pytest.approx(21 / 200)) and one.p == compare(a[1], b[1])["p"] and one.sign == 1
    assert one.low < one.value < one.high and "McNemar" in one.test
    three = difference(a, b)
    assert (three.seeds, three.value) == (3, pytest.approx(21 / 200)) and "t-test" in three.test and three.sign == 1
    assert (three.low, three.high) == pytest.approx(mean_interval([20 / 200, 21 / 200, 22 / 200])[1:])
    assert difference(a, a).sign == 0
    with pytest.raises(RtxError, match="have no seed in common"):
        difference(a[:1], b[1:])


def test_difference_in_other_measures_is_scikit_learns():
    from sklearn.metrics import f1_score, precision_score, recall_score

    a, b = saved(SST2, "baseline", wrong=range(0, 60, 2)), saved(SST2, "recurrent", wrong=range(1, 90, 3))
    labels, guesses = a.predictions["labels"], [r.predictions["logits"].argmax(1) for r in (a, b)]
    for measure, score in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
        found = difference([a], [b], measure)
        assert found.value == pytest.approx(score(labels, guesses[0]) - score(labels, guesses[1])) and found.p is None
        assert found.low < found.value < found.high


def test_subsets_are_paired_by_their_test_part():
    a, b = saved(SST2, "baseline"), saved(SST2, "recurrent", data=content(SST2)["data"] | {"sha256": "e" * 64})
    with pytest.raises(RtxError, match="different data"):
        difference([a], [b])
    assert difference([a], [b], same_training=False).value == 0


def test_a_p_that_underflows_is_not_said_to_be_0():
    assert (equals(0.0123), equals(0.0), equals(1.0)) == ("= 0.012", "< 1e-99", "= 1")
