"""Noise has the stated law: accepted when it is true, rejected when the scale is 10 % off.

The test is the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant, which holds for every n and every
law, discrete ones too: P[sup |F_n - F| > c] <= 2 exp(-2 n c^2). With n = 200,000 and c = 0.0075 a true law is rejected
with a chance below 4e-10. A scale 10 % off moves F by at least 0.0169, so it is accepted with a chance below
2 exp(-2 n 0.0094^2) = 1e-15. There are fewer than 100 such comparisons: the file fails by chance with less than 1e-7.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.mechanisms import DiscreteGaussian, DiscreteLaplace, Laplace

N = 200_000
CRITICAL = 0.0075
LEAST_SHIFT = 0.0169
Cdf = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def gaussian_cdf(sigma: Fraction) -> Cdf:
    """Sum the pmf on the integers, or on every 1/200 of sigma where sigma is large (error below 1e-4)."""
    width = 9 * float(sigma) + 2
    if sigma > 2000:
        grid = np.linspace(-width, width, 200_001)
        density = np.exp(-(grid**2) / (2 * float(sigma) ** 2))
    else:
        grid = np.arange(-math.ceil(width), math.ceil(width) + 1, dtype=np.float64)
        density = np.exp(-(grid**2) / (2 * float(sigma) ** 2))
    total = np.cumsum(density / density.sum())
    return lambda z: np.concatenate([[0.0], total])[np.searchsorted(grid, z, side="right")]


def distance(draws: NDArray[Any], cdf: Cdf) -> float:
    """Return sup |F_n - F| over the points that were drawn, from the right and just below."""
    points, counts = np.unique(draws.astype(np.float64), return_counts=True)
    empirical = np.cumsum(counts) / draws.size
    right = np.abs(empirical - cdf(points)).max()
    below = np.abs(empirical - counts / draws.size - cdf(np.nextafter(points, -np.inf))).max()
    return float(max(right, below))


def check(draws: NDArray[Any], law: Callable[[Fraction], Cdf], scale: Fraction) -> None:
    assert draws.size == N
    assert distance(draws, law(scale)) <= CRITICAL
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        assert distance(draws, law(scale * factor)) > CRITICAL


def test_a_wrong_scale_is_far_enough_away() -> None:
    """The constant of the module's text, for each law that is tested."""
    x = np.linspace(-5, 5, 10_001)
    laws: list[tuple[Callable[[Fraction], Cdf], Fraction]] = [
        (lambda s: Laplace(sensitivity=s, epsilon=1).cdf, Fraction(1)),
        (lambda s: DiscreteLaplace(sensitivity=1, scale=s).cdf, Fraction(1)),
        (lambda s: DiscreteLaplace(sensitivity=1, scale=s).cdf, Fraction(20)),
        (gaussian_cdf, Fraction(1)),
        (gaussian_cdf, Fraction(20)),
    ]
    for law, scale in laws:
        for factor in (Fraction(9, 10), Fraction(11, 10)):
            points = x * float(scale)
            assert np.abs(law(scale)(points) - law(scale * factor)(points)).max() > LEAST_SHIFT
    assert CRITICAL + 0.0094 <= LEAST_SHIFT


@pytest.mark.parametrize("scale", ["1", "3/2", "20", "1000", "1000000007/3"])
@pytest.mark.parametrize("pieces", [1, 200])
def test_discrete_laplace_law(scale: str, pieces: int) -> None:
    mechanism: Any = DiscreteLaplace(sensitivity=1, scale=scale)
    zeros = np.zeros(N // pieces, dtype=np.int64)
    draws = np.concatenate([mechanism.release(zeros).value for _ in range(pieces)])
    check(draws, lambda s: DiscreteLaplace(sensitivity=1, scale=s).cdf, mechanism.scale)


@pytest.mark.parametrize(("sensitivity", "epsilon"), [("1", "1"), ("3", "0.7"), ("1e-200", "1"), ("1e200", "3")])
def test_M2_laplace_law(sensitivity: str, epsilon: str) -> None:
    mechanism: Any = Laplace(sensitivity=sensitivity, epsilon=epsilon)
    draws = mechanism.release(np.zeros(N)).value
    check(draws, lambda s: Laplace(sensitivity=s * mechanism.epsilon, epsilon=epsilon).cdf, mechanism.scale)


@pytest.mark.parametrize("sigma", ["1", "3/2", "20", "1000", "1000000007/3"])
@pytest.mark.parametrize("pieces", [1, 200])
def test_discrete_gaussian_law(sigma: str, pieces: int) -> None:
    mechanism: Any = DiscreteGaussian(sensitivity=1, sigma=sigma)
    zeros = np.zeros(N // pieces, dtype=np.int64)
    draws = np.concatenate([mechanism.release(zeros, delta="0.01").value for _ in range(pieces)])
    check(draws, gaussian_cdf, mechanism.sigma)


def test_E14_noise_does_not_shrink_with_the_number_of_entries() -> None:
    """Mean |noise| at scale 2 is 1.92, whatever the number of entries; 100,000 draws pin it to 3 % (9 deviations)."""
    mechanism: Any = DiscreteLaplace(sensitivity=1, scale=2)
    truth = float((mechanism.pmf(np.arange(-400, 401)) * np.abs(np.arange(-400, 401))).sum())
    for entries in (1000, 50_000):
        zeros = np.zeros(entries, dtype=np.int64)
        draws = np.concatenate([mechanism.release(zeros).value for _ in range(100_000 // entries)])
        assert np.abs(draws).mean() == pytest.approx(truth, rel=0.03)


def test_entries_are_independent() -> None:
    """Correlations of neighbouring entries, and of low and high digits, within 6 deviations (chance 2e-9 each)."""
    mechanism: Any = DiscreteLaplace(sensitivity=1, scale=5000)
    draws = mechanism.release(np.zeros(N, dtype=np.int64)).value
    size = np.abs(draws)
    for left, right in [(draws[:-1], draws[1:]), (size % 32, size // 32), (size % 2, size // 2 % 2)]:
        assert abs(np.corrcoef(left, right)[0, 1]) < 6 / math.sqrt(N)
