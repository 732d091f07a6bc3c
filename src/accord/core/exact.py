"""Exact numbers: what the user wrote, and rational bounds of the exponential function."""

import numbers
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

__all__ = ["Number", "exp_lower", "exp_upper", "to_binary_fraction", "to_fraction"]

Number = int | float | Fraction | Decimal | str

_DIGITS = 60
_LARGEST_EXPONENT = 10_000


def to_fraction(value: Number) -> Fraction:
    """Return the number that was written: ``"0.1"`` and the float ``0.1`` are both 1/10.

    A float is read by the shortest decimal that stands for it in its own type, which is what Python prints: ten times
    0.1 is 1, and ``numpy.float32(0.1)`` is 1/10 too. A float that was computed, and whose binary value matters, is made
    a ``Fraction`` before.

    Raises
    ------
    TypeError
        If ``value`` is not a number (a boolean is not a number here).
    ValueError
        If it is a NaN, an infinity, a string that is no number, or of absurd size.

    Examples
    --------
    >>> to_fraction("0.1")
    Fraction(1, 10)
    >>> to_fraction(0.1)
    Fraction(1, 10)
    >>> to_fraction(2 / 3)
    Fraction(3333333333333333, 5000000000000000)

    """
    if isinstance(value, bool):
        message = "is a boolean, not a number"
        raise TypeError(message)
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, Decimal):
        return _from_decimal(value)
    if isinstance(value, Fraction):
        return value
    if isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, numbers.Real):  # a numpy float prints the shortest decimal of its own type
        return _from_decimal(Decimal(str(value) if isinstance(value, np.floating) else repr(float(value))))
    message = "is not a number"
    raise TypeError(message)


def to_binary_fraction(value: Number) -> Fraction:
    """Return the exact value of a number that was measured or computed: a float counts as its binary value.

    For data (scores, values, weights of a law), of which arrays of floats are read; for what a user writes down as a
    parameter, `to_fraction`. Raises as that does.

    Examples
    --------
    >>> to_binary_fraction(0.5), to_binary_fraction(0.1) == to_fraction("0.1")
    (Fraction(1, 2), False)

    """
    if isinstance(value, float | np.floating):
        return _from_decimal(Decimal(float(value)))
    return to_fraction(value)


def _from_text(text: str) -> Fraction:
    if not text.isascii() or "_" in text:
        raise ValueError("is not written as a number")
    numerator, slash, denominator = text.partition("/")
    try:
        value = _from_decimal(Decimal(numerator.strip()))
        if not slash:
            return value
        return value / _from_decimal(Decimal(denominator.strip()))
    except (InvalidOperation, ZeroDivisionError):
        message = "is not written as a number"
        raise ValueError(message) from None


def _from_decimal(value: Decimal) -> Fraction:
    if not value.is_finite():
        message = "is not finite"
        raise ValueError(message)
    if value and abs(value.adjusted()) > _LARGEST_EXPONENT:
        message = "is absurdly large or small"
        raise ValueError(message)
    return Fraction(value)


def _context(rounding: str) -> Context:
    return Context(prec=_DIGITS, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def exp_lower(x: Fraction) -> Fraction:
    """Return a rational ``r`` with ``r <= exp(x)``, close to one part in 10^56 up to ``|x|`` = 1000.

    For x >= 0 it is at least 1. ``Decimal.exp`` is correctly rounded, so one step below it is a lower bound.

    Examples
    --------
    >>> float(exp_lower(Fraction(1)))
    2.718281828459045

    """
    if x == 0:
        return Fraction(1)
    floor = _context(ROUND_FLOOR).divide(Decimal(x.numerator), Decimal(x.denominator))
    below = Fraction(_context(ROUND_HALF_EVEN).exp(floor).next_minus(_context(ROUND_FLOOR)))
    return max(below, Fraction(1)) if x > 0 else below


def exp_upper(x: Fraction) -> Fraction:
    """Return a rational ``r`` with ``exp(x) <= r``, as close as `exp_lower`; for x <= 0 it is at most 1."""
    if x == 0:
        return Fraction(1)
    ceiling = _context(ROUND_CEILING).divide(Decimal(x.numerator), Decimal(x.denominator))
    above = Fraction(_context(ROUND_HALF_EVEN).exp(ceiling).next_plus(_context(ROUND_CEILING)))
    return min(above, Fraction(1)) if x < 0 else above
