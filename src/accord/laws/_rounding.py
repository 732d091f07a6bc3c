"""Rationals to floats, rounded outward."""

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction

from accord.core.exact import to_fraction

__all__ = ["float_above", "log_above", "root_above"]

_DIGITS = 40
_BITS = 80


def float_above(value: Fraction) -> float:
    """Return the least float that is not below ``value`` (at least 0), nor is its shortest decimal.

    A float that is given back is read by its shortest decimal. Infinity beyond the largest one.
    """
    try:
        nearest = value.numerator / value.denominator  # correctly rounded for whole numbers
    except OverflowError:
        return math.inf
    while math.isfinite(nearest) and min(Fraction(nearest), to_fraction(nearest)) < value:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def root_above(value: Fraction) -> float:
    """Return a float not below the square root of ``value`` (at least 0), within three units in the last place."""
    if value == 0:
        return 0.0
    shift = max(0, _BITS + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    scaled = -(-(value.numerator << 2 * shift) // value.denominator)
    root = math.isqrt(scaled)
    return float_above(Fraction(root + (root * root < scaled), 1 << shift))


def log_above(value: Fraction) -> float:
    """Return a float not below the logarithm of ``value`` (at least 1), within three units in the last place."""
    if value == 1:
        return 0.0
    beyond = value - 1
    extra = max(0, beyond.denominator.bit_length() - beyond.numerator.bit_length()) // 3
    context = Context(prec=_DIGITS + extra, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return float_above(Fraction(context.ln(quotient).next_plus(context)))
