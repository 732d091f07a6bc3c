"""The exact total of Gaussian noise, however often: a closed form."""

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from scipy.special import log_ndtr

from accord.accounting._normal import tail_bounds
from accord.accounting.noise_losses import GaussianLoss
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP
from accord.privacy._relation import common_relation
from accord.privacy._upper import DOWN, UP, exp_below, lower, root_above, upper

__all__ = ["gaussian_composition", "gaussian_delta"]


def gaussian_delta(epsilon: Fraction, *, squared: Fraction) -> Decimal:
    """Return an upper bound of ``P[Z >= epsilon / m - m / 2] - e^epsilon P[Z >= epsilon / m + m / 2]``, m^2 = squared.

    It rises with m, so m is rounded up first and then taken as exact.
    """
    m = root_above(upper(squared))
    half = UP.divide(m, Decimal(2))
    low, high = DOWN.divide(lower(epsilon), m), UP.divide(upper(epsilon), m)
    first = tail_bounds(DOWN.subtract(low, half))[1]
    second = tail_bounds(UP.add(high, half))[0]
    return max(Decimal(0), UP.subtract(first, DOWN.multiply(exp_below(lower(epsilon)), second)))


def gaussian_composition(losses: Iterable[GaussianLoss], *, delta: Number) -> PureDP | ApproxDP:
    """Return the least epsilon of any number of Gaussian releases together, rounded up.

    Formal guarantees
    -----------------
    - Privacy: Gaussian mechanisms, each free to depend on all earlier outputs, with noise fixed in advance, are
      together (epsilon, delta)-DP with the epsilon that is returned.
    - Optimality: no smaller epsilon holds, up to a few units in the last place of a float.

    Source
    ------
    Balle and Wang (2018), Theorem 8; Dong, Roth and Su (2022); docs/proofs/privacy-loss.md.

    Examples
    --------
    >>> round(float(gaussian_composition([GaussianLoss(sigma=50)] * 1000, delta="1e-6").epsilon), 8)
    2.92160059

    """
    found = list(losses)
    _check.at_least_one("losses", found)
    return gaussian_total(found, squared=sum((loss.squared for loss in found), start=Fraction(0)), delta=delta)


def gaussian_total(losses: Iterable[GaussianLoss], *, squared: Fraction, delta: Number) -> PureDP | ApproxDP:
    """Return the total for a sum of squares; ``losses`` give relation and unit."""
    allowed = _check.exact("delta", delta)
    if not Fraction(1, 10**300) <= allowed < 1:
        raise InvalidParameter("delta must be from 1e-300 to below 1 for Gaussian noise.")
    relation = common_relation([PureDP(0, loss.neighbouring, loss.unit) for loss in losses])
    if squared == 0:
        return relation.guarantee(Fraction(0), Fraction(0))
    if squared > 10**4:
        raise InvalidParameter("sensitivity / sigma of all Gaussian rounds together must be at most 100.")
    epsilon = _guess(math.sqrt(squared), math.log(allowed.numerator) - math.log(allowed.denominator))
    limit, nudge = lower(allowed), 2.0**-52
    while gaussian_delta(Fraction(epsilon), squared=squared) > limit:
        epsilon, nudge = epsilon * (1 + nudge) + 2.0**-1000, 2 * nudge
    return relation.guarantee(Fraction(epsilon), allowed)


def _guess(m: float, log_delta: float) -> float:
    """Return the root in floats. Nothing rests on it."""

    def log_spent(epsilon: float) -> float:
        first, second = float(log_ndtr(m / 2 - epsilon / m)), epsilon + float(log_ndtr(-m / 2 - epsilon / m))
        return first + math.log(-math.expm1(second - first)) if second < first else -math.inf

    if log_spent(0.0) <= log_delta:
        return 0.0
    low, high = 0.0, m * m / 2 + m * math.sqrt(-2 * log_delta) + m
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if log_spent(middle) > log_delta else (low, middle)
    return low
