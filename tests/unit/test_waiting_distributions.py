"""Poisson, exponential and gamma laws against scipy and 50-digit numbers, in the middle and far in the tails."""

import copy
import math
import pickle
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats

from accord.distributions import Distribution, Exponential, Gamma, Measure, Poisson, bounded, log_densities, on_a_line
from accord.errors import InvalidParameter
from accord.randomness import SharedRandomness

LAWS: list[Any] = [
    Poisson(0.3),
    Poisson(4),
    Poisson(1e6),
    Exponential(1e-3),
    Exponential(7),
    Gamma(0.2, 3),
    Gamma(40, 2),
]


def peer(law: Any) -> Any:
    match law:
        case Poisson():
            return scipy.stats.poisson(law.rate)
        case Exponential():
            return scipy.stats.expon(scale=law.scale)
        case _:
            return scipy.stats.gamma(law.shape, scale=law.scale)


@pytest.mark.parametrize("law", LAWS)
def test_densities_and_probabilities_are_scipys(law: Any) -> None:
    other = peer(law)
    levels = other.ppf([1e-9, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-6])
    density = other.logpmf(levels) if isinstance(law, Poisson) else other.logpdf(levels)
    np.testing.assert_allclose(law.log_density(levels), density, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(law.cdf(levels), other.cdf(levels), rtol=1e-9)
    np.testing.assert_allclose(law.interval(np.full(6, -np.inf), levels), other.cdf(levels), rtol=1e-9)
    np.testing.assert_allclose(law.interval(levels, np.full(6, np.inf)), other.sf(levels), rtol=1e-8, atol=0)
    assert isinstance(law, Distribution)
    assert (on_a_line(law) is law) is True
    assert law == pickle.loads(pickle.dumps(law)) == copy.copy(law)  # noqa: S301 - our own bytes
    assert hash(law) == hash(copy.copy(law))
    assert law.measure is (Measure.COUNTING if isinstance(law, Poisson) else Measure.LEBESGUE)


@pytest.mark.parametrize("law", LAWS)
def test_samples_follow_the_law(law: Any) -> None:
    """Kolmogorov's statistic below 3.4 (failure 2e-10), and above it for a law 10 % wider."""
    size = 100_000
    found = law.sample(size, SharedRandomness(3).stream("sample"))
    assert found.shape == (size, 1)
    u = SharedRandomness(4).stream("ties").random(size)
    values = found[:, 0]
    mass = np.exp(law.log_density(values)) if isinstance(law, Poisson) else np.zeros(size)

    def distance(scale: float) -> float:
        level = peer(law).cdf(values * scale) if scale != 1 else law.cdf(values) - u * mass
        return float(math.sqrt(size) * scipy.stats.kstest(level, "uniform").statistic)

    assert distance(1.0) < 3.4
    assert distance(1.1) > 3.4


def test_narrow_intervals_and_far_tails_keep_their_digits() -> None:
    mpmath.mp.dps = 50
    for shape, low, width in [(3.0, 40.0, 1e-9), (0.2, 1e-8, 1e-12), (500.0, 700.0, 0.3), (2.5, 2.0, 4.0)]:
        truth = mpmath.gammainc(shape, low, mpmath.mpf(low) + width, regularized=True)
        top = low + width
        exact = mpmath.gammainc(shape, low, top, regularized=True)
        found = float(Gamma(shape, 1.0).interval([low], [top])[0])
        assert abs(found / float(exact) - 1) < 1e-10, (shape, low, float(truth))
    assert float(Exponential(1.0).interval([600.0], [601.0])[0]) == pytest.approx(math.exp(-600) * -math.expm1(-1))
    assert float(Poisson(5.0).interval([59.0], [60.0])[0]) == pytest.approx(scipy.stats.poisson(5).pmf(60), rel=1e-10)
    assert float(Poisson(5.0).interval([59.0], [np.inf])[0]) == pytest.approx(scipy.stats.poisson(5).sf(59), rel=1e-10)


@pytest.mark.parametrize("law", [Exponential(2.0), Gamma(0.5, 2.0), Gamma(1.0, 2.0), Gamma(6.0, 0.5)])
def test_bounds_hold_on_boxes_and_are_met(law: Any) -> None:
    low = np.array([-3.0, -1.0, 0.0, 0.5, 1.0, 4.0])
    high = np.array([-2.0, 0.5, 2.0, 0.6, 9.0, np.inf])
    bound = law.log_density_bound(low[:, None], high[:, None])
    assert (bounded(law) is law) is True
    for start, end, limit in zip(low, high, bound, strict=True):
        inner = np.linspace(start, min(end, 50.0), 100_001)
        best = law.log_density(inner).max()
        assert best <= limit + 1e-12
        assert limit == math.inf or best == limit == -math.inf or limit - best < 1e-3


@pytest.mark.parametrize("family", [Poisson, Exponential, lambda x: Gamma(x, 1), lambda x: Gamma(1, x)])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", True, None, [1.0], 10**400, 1j])
def test_parameters_that_are_none_are_refused(family: Any, value: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"rate|scale|shape"):
        family(value)


def test_odd_records_have_density_zero_and_never_nan() -> None:
    odd = np.array([-1.0, math.nan, math.inf, -math.inf, 0.5, "x", None], dtype=object)
    assert log_densities([Poisson(1.0)], odd[:, None]).tolist() == [[-math.inf] * 7]
    for law in (Exponential(1.0), Gamma(0.5, 1.0), Gamma(3.0, 1.0)):
        found = law.log_density(odd)
        assert [math.isfinite(value) for value in found] == [False] * 4 + [True] + [False] * 2
        assert not np.isnan(found).any()
    assert Gamma(0.5, 1.0).log_density([0.0]).tolist() == [-math.inf]
    assert Gamma(1.0, 1.0).log_density([0.0]).tolist() == [0.0]
