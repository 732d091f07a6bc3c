"""Refining: whole contributions on neighbours, the noise that a budget needs, and how the discrete noise is counted."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from accord.density.refine import StatisticsRefiner
from accord.density.refine.mixture_fit import NormalMixture
from accord.density.refine.projections import SHARE, BinnedProjections, UnitRecords
from accord.density.refine.statistics import CONTINUOUS_PART, LEAST_SIGMA, noise_for, squared_budget
from accord.distributions import Distribution, Mixture, Normal
from accord.randomness import SharedRandomness
from accord.testing import ReplayRandomness

Floats = NDArray[np.float64]
MODEL = Mixture([Normal([0.0, 0.0], [[1.0, 0.3], [0.3, 1.0]]), Normal([2.0, -1.0], [[0.5, 0.0], [0.0, 2.0]])], [2, 1])
ODD = [
    np.array([[np.nan, 0.0]]),
    np.array([[np.inf, -np.inf], [0.0, 0.0], [0.0, 0.0]]),
    np.array([[1e308, -1e308]]),
    np.array([[1e-308, 0.0]] * 7),
    np.array([[-0.0, 0.0], [1e300, 1.0], [np.nan, np.nan], [3.0, 3.0], [-3.0, 50.0]]),
]


def query_of(refiner: StatisticsRefiner, model: Distribution, *, units: int) -> BinnedProjections:
    return refiner._query(NormalMixture.of(model), number=0, units=units, shared=SharedRandomness(1))


def datasets(seed: int) -> list[tuple[list[Floats], list[Floats]]]:
    """Pairs of datasets that differ in one unit, which may have another number of records."""
    generator = np.random.default_rng(seed)

    def unit() -> Floats:
        kind = int(generator.integers(4))
        if kind == 3:
            return ODD[int(generator.integers(len(ODD)))]
        return generator.standard_normal((1 + kind * 3, 2)) * 10.0 ** generator.integers(-2, 3)

    pairs = []
    for _ in range(40):
        one = [unit() for _ in range(int(generator.integers(1, 12)))]
        other = list(one)
        other[int(generator.integers(len(one)))] = unit()
        pairs.append((one, other))
    return pairs


def whole(units: list[Floats]) -> UnitRecords:
    codes = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    return UnitRecords(np.concatenate(units), units=codes, dimension=2)


def squared(values: NDArray[Any]) -> int:
    return sum(int(value) ** 2 for value in values.ravel())


# --- counts of projections --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["full", "diag"])
def test_neighbours_move_counts_by_at_most_the_sensitivity(covariance: Any) -> None:
    refiner = StatisticsRefiner(epsilon=1, delta="1e-6", components=2, covariance=covariance)
    query = query_of(refiner, MODEL, units=1000)
    for one, other in datasets(11):
        moved = query.sums(whole(one)) - query.sums(whole(other))
        assert squared(moved) <= query.sensitivity**2


def test_the_sensitivity_is_reached() -> None:
    query = query_of(StatisticsRefiner(epsilon=1, delta="1e-6", components=2), MODEL, units=1000)
    moved = query.sums(whole([np.array([[1e6, 1e6]])])) - query.sums(whole([np.array([[-1e6, -1.1e6]])]))
    assert math.isqrt(squared(moved)) + 1 == query.sensitivity


def test_sums_are_added_unit_by_unit_exactly() -> None:
    # 40,000 units go through several pieces; a unit's part must not depend on its place or on those beside it.
    query = query_of(StatisticsRefiner(epsilon=1, delta="1e-6", components=2), MODEL, units=1000)
    records = np.random.default_rng(3).standard_normal((40_000, 2)) * 3
    total = query.sums(UnitRecords(records, units=len(records), dimension=2))
    turned = query.sums(UnitRecords(records[::-1], units=len(records), dimension=2))
    assert (total == turned).all()
    assert total.sum(axis=1).tolist() == [SHARE * len(records)] * len(query.directions)
    parts = sum(query.sums(UnitRecords(part, units=len(part), dimension=2)) for part in np.array_split(records, 7))
    assert (total == parts).all()


def test_a_unit_counts_by_the_mean_of_its_records_rounded_down() -> None:
    query = BinnedProjections(directions=np.array([[1.0, 0.0]]), inner=np.array([[0.0, 1.0]]))
    unit = np.array([[-1.0, 0.0], [0.0, 5.0], [0.5, 5.0], [1.0, 0.0], [7.0, 0.0], [7.0, 0.0], [np.nan, 0.0]])
    sums = query.sums(whole([unit, unit[:1]]))
    assert sums.tolist() == [[SHARE * 1 // 7 + SHARE, SHARE * 2 // 7, SHARE * 3 // 7]]
    shuffled = query.sums(whole([unit[::-1], unit[:1]]))
    assert (sums == shuffled).all()


def test_with_frozen_noise_releases_differ_as_the_sums_do() -> None:
    refiner = StatisticsRefiner(epsilon=1, delta="1e-6", components=2)
    query = query_of(refiner, MODEL, units=1000)
    one, other = datasets(5)[0]
    released = [
        refiner._release(query, whole(units), number=0, randomness=ReplayRandomness("same")).counts
        for units in (one, other)
    ]
    moved = np.rint((released[0] - released[1]) * SHARE).astype(np.int64)
    assert (moved == query.sums(whole(one)) - query.sums(whole(other))).all()


# --- budgets ----------------------------------------------------------------------------------------------------------


def gaussian_delta(squared_ratio: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """Balle and Wang (2018), Theorem 8, in 60 digits."""
    with mpmath.workdps(60):
        ratio = mpmath.sqrt(mpmath.mpf(squared_ratio.numerator) / squared_ratio.denominator)
        loss = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        return mpmath.ncdf(ratio / 2 - loss / ratio) - mpmath.exp(loss) * mpmath.ncdf(-ratio / 2 - loss / ratio)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.05", "1e-9"), ("0.5", "1e-6"), ("1", "1e-6"), ("8", "1e-5"), ("0.5", "1e-30")]
)
def test_the_noise_of_all_rounds_costs_the_budget_and_little_less(epsilon: str, delta: str) -> None:
    shares = [Fraction(1, 4), Fraction(3, 8), Fraction(3, 8)]
    sensitivity = 7 * SHARE
    sigmas = noise_for(sensitivity, epsilon=Fraction(epsilon), delta=Fraction(delta), shares=shares)
    used = sum(Fraction(sensitivity) ** 2 / (sigma**2 - CONTINUOUS_PART) for sigma in sigmas)
    assert isinstance(used, Fraction)
    allowed = float(Fraction(delta))
    assert gaussian_delta(used, Fraction(epsilon)) <= allowed
    assert gaussian_delta(used * Fraction(101, 100), Fraction(epsilon)) > allowed
    assert used <= squared_budget(Fraction(epsilon), Fraction(delta))
    assert min(sigmas) >= LEAST_SIGMA


def test_discrete_noise_is_continuous_noise_rounded_at_random() -> None:
    # sum over z of exp(-(z - y)^2 / (2 s^2)) / (s sqrt(2 pi)) is 1 up to 2^-400, for every y: proof page refine.
    with mpmath.workdps(200):
        s = mpmath.sqrt(CONTINUOUS_PART)
        worst = mpmath.mpf(0)
        for y in (mpmath.mpf(0), mpmath.mpf(1) / 4, mpmath.mpf(1) / 2, mpmath.mpf(1) / 3):
            total = mpmath.fsum(mpmath.exp(-((z - y) ** 2) / (2 * s**2)) for z in range(-140, 141))
            worst = max(worst, abs(total / (s * mpmath.sqrt(2 * mpmath.pi)) - 1))
        assert worst < mpmath.mpf(2) ** -400
        # With a smaller s it would not be: the constant does work.
        coarse = mpmath.fsum(mpmath.exp(-(z**2) * mpmath.mpf(2)) for z in range(-40, 41)) / mpmath.sqrt(mpmath.pi / 2)
        assert abs(coarse - 1) > 0.01
