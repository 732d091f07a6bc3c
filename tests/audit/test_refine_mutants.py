"""Broken refiners, each of which the same few checks must catch.

Keys are fixed and printed by a failing assertion; the noise is held to its law at a chance of 1e-8 of a false alarm.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from accord.density.refine import StatisticsRefiner, statistics
from accord.density.refine import projection_counts as compiled_counts
from accord.density.refine.mixture_fit import NormalMixture
from accord.density.refine.projections import SHARE, BinnedProjections, UnitRecords
from accord.density.refine.statistics import noise_for
from accord.distributions import Normal
from accord.errors import InvalidParameter
from accord.randomness import PrivateRandomness, SharedRandomness

Floats = NDArray[np.float64]
CHANCE = 1e-8
OPENING = Normal([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])


def whole(units: list[Floats]) -> UnitRecords:
    codes = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    return UnitRecords(np.concatenate(units), units=codes, dimension=2)


def pairs() -> list[tuple[UnitRecords, UnitRecords]]:
    """Neighbours: a far record, a unit with many records, odd numbers, among units with parts of all sizes."""
    generator = np.random.default_rng(23)
    rest = [generator.standard_normal((int(size), 2)) for size in generator.integers(1, 9, size=40)]
    changed: list[Floats] = [
        np.array([[1e6, -1e6]]),
        np.full((500, 2), 30.0),
        np.array([[np.nan, 1.0], [-40.0, 40.0]]),
        np.full((3, 2), -1e200),
    ]
    usual = whole([*rest, np.zeros((1, 2))])
    return [(usual, whole([*rest, unit])) for unit in changed]


def counts_are_right() -> None:
    query = StatisticsRefiner(epsilon=1, delta="1e-6")._query(
        NormalMixture.of(OPENING), number=0, units=1000, shared=SharedRandomness(5)
    )
    for one, other in pairs():
        sums = query.sums(one), query.sums(other)
        assert all(total.dtype == np.int64 for total in sums)
        moved = sum(int(step) ** 2 for step in (sums[0] - sums[1]).ravel())
        assert moved <= query.sensitivity**2


def noise_is_right() -> None:
    """The noise of 20,000 counts has the variance that the budget needs, neither a tenth less nor more deviation."""
    refiner = StatisticsRefiner(epsilon="0.7", delta="1e-6", rounds=1)
    inner = np.linspace(-1, 1, 19_999)[None]
    query = BinnedProjections(directions=np.array([[1.0, 0.0]]), inner=inner)
    data = whole([np.zeros((1, 2))])
    exact = query.sums(data)
    released = refiner._release(query, data, number=0, randomness=PrivateRandomness())
    noise = released.counts * SHARE - exact
    # Balle and Wang's ratio for (0.7, 1e-6), found by another route than the code's.
    sigma = query.sensitivity / ratio_for(0.7, 1e-6)
    total = float(np.square(noise / sigma).sum())
    assert chi2.ppf(CHANCE, noise.size) < total < chi2.isf(CHANCE, noise.size)
    for wrong in (0.9, 1.1):  # what the comparison can see
        assert not chi2.ppf(CHANCE, noise.size) < total * wrong**2 < chi2.isf(CHANCE, noise.size)


def ratio_for(epsilon: float, delta: float) -> float:
    low, high = 1e-3, 10.0
    for _ in range(100):
        middle = (low + high) / 2
        phi = [
            0.5 * math.erfc(-x / math.sqrt(2)) for x in (middle / 2 - epsilon / middle, -middle / 2 - epsilon / middle)
        ]
        low, high = (middle, high) if phi[0] - math.exp(epsilon) * phi[1] <= delta else (low, middle)
    return low


CHECKS = [counts_are_right, noise_is_right]


@pytest.mark.parametrize("check", CHECKS)
def test_the_refiners_pass(check: Callable[[], None]) -> None:
    check()


# --- broken variants --------------------------------------------------------------------------------------------------


def every_direction_alone(self: BinnedProjections) -> int:
    """The sensitivity of one direction, for all."""
    return math.isqrt(2 * SHARE**2) + 1


def one_bin_only(self: BinnedProjections) -> int:
    """As if a unit left its bin and entered no other."""
    return math.isqrt(len(self.directions) * SHARE**2) + 1


def test_mutant_the_mean_over_records_is_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    original = compiled_counts.add_units
    monkeypatch.setattr(
        compiled_counts,
        "add_units",
        lambda records, starts, *rest: original(records, np.arange(len(records) + 1), *rest),
    )
    with pytest.raises(AssertionError):
        counts_are_right()


def test_mutant_counts_are_added_in_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_floats(self: BinnedProjections, data: UnitRecords) -> Any:
        total = np.zeros((len(self.directions), self.bins))
        for first, last in zip(data.starts, data.starts[1:], strict=False):
            own = UnitRecords(data.records[first:last], units=int(last - first), dimension=2)
            total += original(self, own) / (last - first)
        return total

    original = BinnedProjections.sums
    monkeypatch.setattr(BinnedProjections, "sums", in_floats)
    with pytest.raises(AssertionError):
        counts_are_right()


@pytest.mark.parametrize("sensitivity", [every_direction_alone, one_bin_only])
def test_mutant_the_sensitivity_is_too_small(monkeypatch: pytest.MonkeyPatch, sensitivity: Any) -> None:
    monkeypatch.setattr(BinnedProjections, "sensitivity", property(sensitivity))
    with pytest.raises(AssertionError):
        counts_are_right()


def test_mutant_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    original = noise_for
    monkeypatch.setattr(statistics, "noise_for", lambda *a, **k: [sigma / 2 for sigma in original(*a, **k)])
    with pytest.raises(AssertionError):
        noise_is_right()


def test_mutant_a_tenth_less_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    original = noise_for
    monkeypatch.setattr(
        statistics, "noise_for", lambda *a, **k: [Fraction(9, 10) * sigma for sigma in original(*a, **k)]
    )
    with pytest.raises(AssertionError):
        noise_is_right()


def test_mutant_every_round_gets_the_whole_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    refiner = StatisticsRefiner(epsilon=1, delta="1e-6", rounds=3)
    assert sum(refiner.shares) == 1
    monkeypatch.setattr(StatisticsRefiner, "shares", property(lambda self: (Fraction(1),) * 3))
    with pytest.raises(InvalidParameter):
        refiner.refine(OPENING, np.zeros((10, 2)), units=10)
