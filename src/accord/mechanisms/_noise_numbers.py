"""Numbers about noise: rounded to the safe side, or exact."""

import math
from collections.abc import Callable
from fractions import Fraction

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number, exp_lower, exp_upper
from accord.core.guarantee import Sensitivity

__all__ = ["as_sensitivity", "float_up", "laplace_tail", "least_integer", "miss"]

_FAR = Fraction(5000)


def as_sensitivity(value: Sensitivity | Number) -> Sensitivity:
    """Return a sensitivity; a bare number is the bound under "replace one"."""
    if isinstance(value, Sensitivity):
        return value
    bound = _check.exact("sensitivity", value)
    if bound < 0:
        message = "sensitivity must be at least 0 (0 says that the query does not depend on the data)."
        raise InvalidParameter(message)
    return Sensitivity(bound)


def float_up(value: Fraction) -> float:
    """Return the least float at or above ``value``, a number from 0 to 1.

    Examples
    --------
    >>> float_up(Fraction(1, 3)) >= Fraction(1, 3)
    True

    """
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def laplace_tail(least: int, *, scale: Fraction, dimension: int) -> Fraction:
    """Return an upper bound of P[some |Z_i| >= least] for ``dimension`` discrete Laplace variables.

    For one variable the chance is ``2 q^least / (1 + q)``, q = exp(-1/scale), for ``least >= 1``.
    """
    if least <= 0:
        return Fraction(1)
    # Beyond exp(-5000) a larger bound does as well, and is printed faster.
    power = exp_upper(-min(least / scale, _FAR))
    return min(Fraction(1), dimension * 2 * power / (1 + exp_lower(-min(1 / scale, _FAR))))


def miss(confidence: Number) -> Fraction:
    """Return ``1 - confidence``."""
    return 1 - _check.probability("confidence", confidence)


def least_integer(enough: Callable[[int], bool]) -> int:
    """Return the least n >= 0 with ``enough(n)``, which stays true once it is true."""
    short, good = -1, 0
    while not enough(good):
        short, good = good, 2 * good + 1
    while good - short > 1:
        middle = (good + short) // 2
        short, good = (short, middle) if enough(middle) else (middle, good)
    return good
