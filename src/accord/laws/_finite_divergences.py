"""Divergences of finite laws: exact, or between bounds that are narrowed until a float is decided."""

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from itertools import count

from accord.laws._pairs import Pair, best_event
from accord.laws._rounding import float_above, root_above

__all__ = ["finite_hellinger", "finite_kl_divergence", "finite_total_variation"]

_NARROW = Fraction(1, 2**60)
_DIGITS = 24
_ROOT_BITS = 64


def finite_total_variation(pair: Pair) -> Fraction:
    """Return the largest ``P(E) - Q(E)``, exactly."""
    one = Fraction(1)
    return best_event(pair, ratio=one).excess(one)


def finite_hellinger(pair: Pair) -> float:
    """Return ``h`` with ``h^2 = 1 - sum sqrt(p q)``, rounded up."""
    if _are_equal(pair):
        return 0.0
    for bits in (_ROOT_BITS << step for step in count()):
        least, most = _squared_hellinger(pair, bits=bits)
        if most - least <= most * _NARROW:
            return min(1.0, root_above(most))
    raise AssertionError  # pragma: no cover - the bounds close in on a number above 0


def _squared_hellinger(pair: Pair, *, bits: int) -> tuple[Fraction, Fraction]:
    """Return bounds of ``h^2`` from whole square roots of ``numbers * 4^bits``."""
    whole, missed = 0, 0
    for number, other in zip(pair.first, pair.second, strict=True):
        square = number * other << 2 * bits
        root = math.isqrt(square)
        whole += root
        missed += root * root < square
    square = pair.first_total * pair.second_total << 2 * bits
    root = math.isqrt(square)
    above = root + (root * root < square)
    return 1 - Fraction(whole + missed, root), 1 - Fraction(whole, above)


def finite_kl_divergence(pair: Pair) -> float:
    """Return ``sum p log(p / q)``, rounded up; infinite if p has mass where q has none."""
    if _are_equal(pair):
        return 0.0
    if any(number and not other for number, other in zip(pair.first, pair.second, strict=True)):
        return math.inf
    for digits in (_DIGITS << step for step in count()):
        least, most = _kl_bounds(pair, digits=digits)
        if most - least <= least * _NARROW:
            return float_above(most)
    raise AssertionError  # pragma: no cover - the bounds close in on a number above 0


def _kl_bounds(pair: Pair, *, digits: int) -> tuple[Fraction, Fraction]:
    """Return bounds from logarithms in units of 10^-digits.

    The error of each logarithm, in units, is at most 6 from the rounded ratio, 5 |log| from the rounded logarithm
    (`Decimal.ln` is correctly rounded) and 1 from the whole number. The sum, with weights p, has no larger one.
    """
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    total, largest = 0, Decimal(0)
    for number, other in zip(pair.first, pair.second, strict=True):
        if number:
            above, below = number * pair.second_total, other * pair.first_total
            log = context.ln(context.divide(Decimal(above), Decimal(below)))
            largest = max(largest, abs(log))
            total += number * int(log.scaleb(digits, context))
    unit = Fraction(1, 10**digits)
    error = 7 + 5 * math.ceil(largest)
    middle = Fraction(total, pair.first_total)
    return (middle - error) * unit, (middle + error) * unit


def _are_equal(pair: Pair) -> bool:
    return pair.first_total == pair.second_total and pair.first == pair.second
