"""How much discrete Gaussian noise a budget needs, split over rounds fixed in advance."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt

from accord.accounting.of_stages import CONTINUOUS_PART, LEAST_SIGMA
from accord.accounting.of_stages import vectors_epsilon as total_epsilon
from accord.core.errors import InvalidParameter

__all__ = ["CONTINUOUS_PART", "LEAST_SIGMA", "noise_for", "squared_budget", "total_epsilon"]

_STEPS = 48
_SMALLEST, _LARGEST = Fraction(1, 10**10), Fraction(10**3)


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
