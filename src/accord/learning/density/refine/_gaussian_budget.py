"""How much discrete Gaussian noise a budget needs, split over rounds fixed in advance."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt

from accord.accounting import GaussianLoss, gaussian_composition
from accord.errors import InvalidParameter
from accord.privacy import Neighbouring

__all__ = ["CONTINUOUS_PART", "LEAST_SIGMA", "noise_for", "squared_budget", "total_epsilon"]

CONTINUOUS_PART = 16
"""s^2: noise of parameter sigma^2 is continuous Gaussian noise of variance sigma^2 - s^2, rounded at random."""

LEAST_SIGMA = 1 << 10
_MARGIN = Fraction(1, 2**100)
_STEPS = 48
_SMALLEST, _LARGEST = Fraction(1, 10**10), Fraction(10**3)


def total_epsilon(squared: Fraction, *, delta: Fraction) -> Fraction:
    """Return an upper bound of the total epsilon at ``delta`` for rounds whose ``(S / tau)^2`` add up to ``squared``.

    ``tau^2 = sigma^2 - s^2``. Up to 10^10 noisy integers in all rounds, each with sigma at least `LEAST_SIGMA`.
    Proof page refine, "Vectors of integers": the discrete law is within a factor exp(+-2^-200) of a function of the
    continuous one for each integer, which the margins cover.
    """
    tightened = delta * (1 - _MARGIN)
    # GaussianLoss takes ratios; one Gaussian stands for all rounds, as their squares add.
    ratio = _root_above(squared)
    loss = GaussianLoss(sigma=1, sensitivity=ratio, neighbouring=Neighbouring.REPLACE_ONE)
    return gaussian_composition([loss], delta=tightened).epsilon + _MARGIN


@lru_cache(maxsize=256)
def squared_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return nearly the largest sum of ``(S / tau)^2`` for which the total is (epsilon, delta)-DP.

    Raises
    ------
    InvalidParameter
        If the budget is too small for any useful noise.

    """
    low, high = _SMALLEST, _LARGEST
    if total_epsilon(low, delta=delta) > epsilon:
        raise InvalidParameter("epsilon is too small to refine with: give at least 0.001.")
    if total_epsilon(high, delta=delta) <= epsilon:
        return high
    for _ in range(_STEPS):
        middle = Fraction(float(low + high) / 2) if high < 4 * low else Fraction((float(low) * float(high)) ** 0.5)
        if total_epsilon(middle, delta=delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def noise_for(sensitivity: int, *, epsilon: Fraction, delta: Fraction, shares: Sequence[Fraction]) -> list[Fraction]:
    """Return the sigma of each round, for integers with this L2 sensitivity and shares of the squared budget.

    Parameters
    ----------
    sensitivity
        L2, the same in all rounds.
    shares
        Positive, adding up to at most 1.

    """
    if not all(share > 0 for share in shares) or sum(shares) > 1:
        raise InvalidParameter("shares must be positive and add up to at most 1.")
    squared = squared_budget(epsilon, delta)
    sigmas = []
    for share in shares:
        variance = Fraction(sensitivity) ** 2 / (squared * share) + CONTINUOUS_PART
        sigmas.append(Fraction(isqrt(ceil(variance)) + 1))
    if min(sigmas) < LEAST_SIGMA:
        raise InvalidParameter("the noise is too small for the grid: epsilon is too large to refine with.")
    return sigmas


def _root_above(value: Fraction) -> Fraction:
    """Return a fraction at least the square root, and very near to it."""
    scale = 1 << 120
    return Fraction(isqrt(value.numerator * scale * scale // value.denominator) + 1, scale)
