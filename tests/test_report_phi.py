"""The worth of a pass, on curves whose exponent is known."""

import numpy as np
import pytest

from rtx_core.report.phi import LoopedLosses, equal_size, mean_phi, phi, pooled_phi

SIZES = np.array([50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000])


def loss_of(size):
    """A law as language models follow, in nats."""
    return 1.2 + 8 * np.asarray(size, float) ** -0.2


def a_looped(exponent: float, recurrent=100_000, passes=4, noise=(0.0,)) -> LoopedLosses:
    loss = loss_of(passes**exponent * recurrent)
    return LoopedLosses([loss + shift for shift in noise], recurrent, passes)


@pytest.mark.parametrize("exponent", [0.0, 0.46, 1.0])
@pytest.mark.parametrize("passes", [2, 3, 6])
def test_a_known_exponent_is_found(exponent, passes):
    looped = a_looped(exponent, passes=passes)
    assert phi(looped.losses[0], looped, SIZES, loss_of(SIZES)) == pytest.approx(exponent, abs=0.03)


def test_a_size_between_two_is_interpolated_and_none_is_extrapolated():
    losses = [3.0, 2.0, 1.0]
    assert equal_size(2.0, [100, 1000, 10_000], losses) == pytest.approx(1000)
    assert equal_size(1.5, [100, 1000, 10_000], losses) == pytest.approx(1000 * 10**0.5)
    assert np.isnan(equal_size(3.1, [100, 1000, 10_000], losses))
    assert np.isnan(equal_size(0.9, [100, 1000, 10_000], losses))


def test_the_interval_over_seeds_holds_the_exponent_and_grows_with_their_spread():
    shifts = np.array([-1.0, 0.2, 0.8, -0.3, 0.3])
    widths = []  # of the standard models' seeds, shifted as well
    for spread in (0.002, 0.01):
        standard = loss_of(SIZES)[:, None] + spread * np.roll(shifts, 2)
        looped = [a_looped(0.46, size, noise=spread * shifts) for size in (60_000, 150_000)]
        value, low, high = mean_phi(looped, SIZES, standard)
        assert low < 0.46 < high and value == pytest.approx(0.46, abs=0.03)
        widths.append(high - low)
    assert widths[1] > 3 * widths[0]


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_the_interval_holds_the_exponent_as_often_as_it_says(seeds):
    random, held = np.random.default_rng(seeds), []
    for _ in range(2000):
        standard = loss_of(SIZES)[:, None] + random.normal(0, 0.004, (len(SIZES), seeds))
        looped = [a_looped(0.46, size, noise=random.normal(0, 0.004, seeds)) for size in (60_000, 150_000)]
        truth = mean_phi([a_looped(0.46, size) for size in (60_000, 150_000)], SIZES, loss_of(SIZES)[:, None])[0]
        _, low, high = mean_phi(looped, SIZES, standard)
        held.append(low <= truth <= high)
    assert 0.93 <= np.mean(held) <= 0.97


def test_a_seed_is_set_beside_the_curve_of_its_own_seed():
    """A shift that all models of a seed share cancels."""
    shifts = np.array([-0.05, 0.0, 0.05])
    standard = loss_of(SIZES)[:, None] + shifts
    value, low, high = mean_phi([a_looped(0.46, noise=shifts)], SIZES, standard)
    assert high - low < 1e-9 and value == pytest.approx(0.46, abs=0.03)


def test_one_seed_has_no_interval_and_a_model_out_of_range_no_part_in_the_mean():
    standard = loss_of(SIZES)[:, None]
    value, low, high = mean_phi([a_looped(0.5), LoopedLosses([9.0], 10, 2)], SIZES, standard)
    assert value == pytest.approx(0.5, abs=0.03) and np.isnan(low) and np.isnan(high)
    assert np.isnan(mean_phi([LoopedLosses([9.0], 10, 2)], SIZES, standard)[0])


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_the_interval_of_means_holds_the_exponent_as_often_as_it_says(seeds):
    random, held = np.random.default_rng(seeds), []
    truth = phi(loss_of(4**0.46 * 100_000), a_looped(0.46), SIZES, loss_of(SIZES))
    for _ in range(2000):
        standard = loss_of(SIZES)[:, None] + random.normal(0, 0.004, (len(SIZES), seeds))
        losses = a_looped(0.46, noise=random.normal(0, 0.004, seeds)).losses
        _, low, high = pooled_phi(losses, 100_000, 4, SIZES, standard)
        held.append(low <= truth <= high)
    assert 0.93 <= np.mean(held) <= 0.97


def test_a_mean_outside_of_the_standard_ones_has_no_exponent():
    standard = loss_of(SIZES)[:, None] + np.array([-0.01, 0.0, 0.01])
    assert np.isnan(pooled_phi([0.5, 0.5, 0.5], 100_000, 4, SIZES, standard)).all()
