"""Statistics: intervals and comparisons as in textbooks."""

import numpy as np
import pytest
from factory import SST2, content, predictions, saved

from rtx_core.errors import RtxError
from rtx_core.results import store
from rtx_core.results.record import Record
from rtx_core.results.statistics import accuracy_interval, compare, mean_interval


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
    other_labels = store.save(content(SST2, "recurrent"), logits, 1 - labels)
    with pytest.raises(RtxError, match="different data"):
        compare(a, other_labels)
    shorter = store.save(content(SST2, "recurrent"), logits[:-1], labels[:-1])
    with pytest.raises(RtxError, match="different data"):
        compare(a, shorter)
