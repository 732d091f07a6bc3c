"""The exact total of Gaussian noise, however often: a closed form."""

import math
from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from scipy.special import log_ndtr

from accord.accounting.composition import DOWN, UP, common_relation, exp_below, lower, root_above, upper
from accord.accounting.noise_losses import GaussianLoss
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP

__all__ = [
    "gaussian_composition",
    "gaussian_delta",
    "tail_bounds",
]


def _context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


@lru_cache(maxsize=8)
def _root_of_two_pi(digits: int) -> Decimal:
    """Return sqrt(2 pi), correct to ``digits`` (pi by Machin's formula)."""
    scale = 10 ** (digits + 10)

    def arctan_inverse(n: int) -> int:
        term: int = scale // n
        total = term
        sign, k = -1, 3
        while term:
            term //= n * n
            total += sign * (term // k)
            sign, k = -sign, k + 2
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    context = _context(digits + 5, ROUND_FLOOR)
    return context.sqrt(context.divide(Decimal(2 * pi), Decimal(scale)))


def tail_bounds(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return ``(low, high)`` with ``low <= P[Z >= x] <= high``, Z standard normal, for |x| up to 200.

    ``P[Z <= x] - 1/2 = phi(x) (x + x^3 / 3 + x^5 / 15 + ..)``: positive terms, whose ratio ``x^2 / (2 k + 1)`` falls.
    The number of digits makes up for what the difference to 1/2 loses. 40 digits of the result are certain; it is
    widened by the 40th.
    """
    size = x.copy_abs()
    digits = 70 + int(0.22 * float(size) ** 2)
    context = _context(digits, ROUND_CEILING)
    square = context.multiply(x, x)
    term, total, k = size, Decimal(0), 1
    while term and term > context.scaleb(total, -digits):
        total = context.add(total, term)
        k += 2
        term = context.divide(context.multiply(term, square), Decimal(k))
    density = context.divide(context.exp(context.divide(square.copy_negate(), Decimal(2))), _root_of_two_pi(digits))
    half = context.multiply(density, total)
    tail = context.subtract(Decimal("0.5"), half) if x > 0 else context.add(Decimal("0.5"), half)
    slack = context.scaleb(tail.copy_abs(), -40)
    return context.subtract(tail, slack), context.add(tail, slack)


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
