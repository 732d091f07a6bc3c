"""Numbers rounded outward at 60 digits: a bound may be too large, never too small."""

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf, nextafter

__all__ = [
    "DOWN",
    "UP",
    "exp_above",
    "exp_below",
    "log_above",
    "log_below",
    "lower",
    "power_below",
    "root_above",
    "rounded_up",
    "upper",
]

_DIGITS = 60


def contexts(digits: int) -> tuple[Context, Context]:
    """Return decimal contexts that round up and down."""
    up, down = (
        Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
        for rounding in (ROUND_CEILING, ROUND_FLOOR)
    )
    return up, down


UP, DOWN = contexts(_DIGITS)


def upper(value: Fraction) -> Decimal:
    """Return the least 60-digit decimal that is not below ``value``."""
    return UP.divide(Decimal(value.numerator), Decimal(value.denominator))


def lower(value: Fraction) -> Decimal:
    """Return the largest 60-digit decimal that is not above ``value``."""
    return DOWN.divide(Decimal(value.numerator), Decimal(value.denominator))


def exp_above(x: Decimal) -> Decimal:
    """Return a decimal not below ``exp(x)``: ``Decimal.exp`` is correctly rounded, and the next one is above."""
    return Decimal(1) if x == 0 else UP.exp(x).next_plus(UP)


def exp_below(x: Decimal) -> Decimal:
    """Return a decimal not above ``exp(x)``."""
    return Decimal(1) if x == 0 else DOWN.exp(x).next_minus(DOWN)


def log_above(x: Decimal) -> Decimal:
    """Return a decimal not below ``log(x)``, for x above 0."""
    return Decimal(0) if x == 1 else UP.ln(x).next_plus(UP)


def log_below(x: Decimal) -> Decimal:
    """Return a decimal not above ``log(x)``, for x above 0."""
    return Decimal(0) if x == 1 else DOWN.ln(x).next_minus(DOWN)


def root_above(x: Decimal) -> Decimal:
    """Return a decimal not below the square root of x, for x at least 0."""
    return UP.sqrt(x).next_plus(UP) if x else Decimal(0)


def power_below(base: Decimal, exponent: int, *, context: Context) -> Decimal:
    """Return a decimal not above ``base ** exponent``, for a base and an exponent of at least 0."""
    result = Decimal(1)
    while exponent:
        if exponent & 1:
            result = context.multiply(result, base)
        base = context.multiply(base, base)
        exponent >>= 1
    return result


def rounded_up(value: Decimal | Fraction) -> Fraction:
    """Return the least float at or above ``value`` (at least 0), as a fraction; beyond the floats, ``value`` itself.

    Examples
    --------
    >>> rounded_up(Fraction(1, 10)) == Fraction(0.1)
    True
    >>> float(rounded_up(Fraction(1, 3))), rounded_up(Fraction(1, 3)) > Fraction(1, 3)
    (0.33333333333333337, True)

    """
    exact = Fraction(value)
    try:
        nearest = exact.numerator / exact.denominator  # correctly rounded for whole numbers
    except OverflowError:
        return exact
    if Fraction(nearest) < exact:
        nearest = nextafter(nearest, inf)
    return exact if nearest == inf else Fraction(nearest)
