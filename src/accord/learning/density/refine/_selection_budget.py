"""The epsilon of each of several selections by the exponential mechanism."""

from fractions import Fraction
from functools import lru_cache

from accord.accounting import ExponentialLoss, PrivacyAccountant
from accord.core.errors import InvalidParameter

__all__ = ["GROWTH", "epsilons_of", "total_of"]

GROWTH = Fraction(3, 2)
"""A round's epsilon over that of the round before: later candidates are nearer to each other."""

_LEAST_EPSILON = Fraction(1, 2**30)
_COARSE_STEPS, _FINE_STEPS = 40, 8
_GAP = Fraction(6, 5)


@lru_cache(maxsize=256)
def epsilons_of(epsilon: Fraction, delta: Fraction, rounds: int) -> tuple[Fraction, ...]:
    """Return the epsilon of each round, growing by `GROWTH`, nearly the largest with an (epsilon, delta)-DP total.

    The total is the least of all valid bounds: sums, advanced composition, and the law of the loss of mechanisms of
    bounded range. With delta 0 it is the sum.

    Raises
    ------
    InvalidParameter
        If the first would be below 2^-30.

    """
    weights = [GROWTH**number for number in range(rounds)]
    low = epsilon / sum(weights)
    if delta > 0 and rounds > 1 and epsilon >= _LEAST_EPSILON:
        low = _largest(low, epsilon / weights[-1], weights, epsilon, delta, steps=_COARSE_STEPS, fine=False)
        low = _largest(
            low, min(_GAP * low, epsilon / weights[-1]), weights, epsilon, delta, steps=_FINE_STEPS, fine=True
        )
    if low < _LEAST_EPSILON:
        raise InvalidParameter("epsilon is too small for so many rounds.")
    return tuple(low * weight for weight in weights)


def total_of(epsilons: tuple[Fraction, ...], *, delta: Fraction, fine: bool = True) -> Fraction | float:
    """Return an upper bound of the total epsilon of selections with these epsilons."""
    accountant = PrivacyAccountant()
    for each in epsilons:
        accountant.charge(ExponentialLoss(each))
    return (accountant.total if fine else accountant.bound)(delta=delta).epsilon


def _largest(
    low: Fraction,
    high: Fraction,
    weights: list[Fraction],
    epsilon: Fraction,
    delta: Fraction,
    *,
    steps: int,
    fine: bool,
) -> Fraction:
    """Return the largest factor of the weights found by bisection between one that is allowed and another."""
    for _ in range(steps):
        middle = Fraction(float(low + high) / 2)
        if not low < middle < high:
            break
        if total_of(tuple(middle * weight for weight in weights), delta=delta, fine=fine) <= epsilon:
            low = middle
        else:
            high = middle
    return low
