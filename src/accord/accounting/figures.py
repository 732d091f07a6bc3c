"""Exact amounts as people read them: of any size, rounded to the careful side and never to nothing."""

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final

__all__ = ["as_float", "exact_text", "short_text"]

_DIGITS: Final = 12
_LONG_DIGITS: Final = 17
_MOST_BITS: Final = 14_000  # Python prints no int of over 4300 digits
_SAFE: Final = range(-300, 300)  # powers of ten at which a float holds all the digits shown


def short_text(value: Fraction, *, up: bool) -> str:
    """Return 12 significant digits, rounded up (what is spent) or down (what is left).

    Examples
    --------
    >>> short_text(Fraction(1, 3), up=True), short_text(Fraction(1, 3), up=False), short_text(Fraction("1e-5"), up=True)
    ('0.333333333334', '0.333333333333', '1e-05')

    """
    return _text(value, digits=_DIGITS, up=up)


def exact_text(value: Fraction, *, up: bool) -> str:
    """Return ``p/q``; of an amount that is too long to be printed, 17 significant digits."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) <= _MOST_BITS:
        return str(value)
    return _text(value, digits=_LONG_DIGITS, up=up)


def as_float(value: Fraction, *, up: bool) -> float | None:
    """Return the least float that is not below, or without ``up`` the nearest one; None if it is too large for that."""
    try:
        near = float(value)
    except OverflowError:
        return None
    return math.nextafter(near, math.inf) if up and near < value else near


def _text(value: Fraction, *, digits: int, up: bool) -> str:
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    context = Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    if rounded == 0 or (digits <= _DIGITS and rounded.adjusted() in _SAFE):
        return f"{float(rounded):.{digits}g}"
    return f"{rounded:e}".replace("e+", "e")
