"""Weights as whole numbers over one denominator: exact, and fast enough for 1e5 atoms."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number

__all__ = ["whole_numbers"]

_MOST_BITS = 2**31
_LARGEST_FLOAT_EXPONENT = 1023
_MANTISSA_BITS = 53


def whole_numbers(weights: Iterable[Number]) -> tuple[int, ...]:
    """Return whole numbers without a common factor, in the same ratios as ``weights``.

    Raises
    ------
    InvalidParameter
        If a weight is not a finite number at least 0, all are 0, there are none, or their denominators have no common
        multiple of a size that memory can hold.

    """
    if isinstance(weights, (str, bytes)) or not isinstance(weights, Iterable):
        raise InvalidParameter("weights must be numbers, one for each outcome.")
    given = tuple(weights)
    _check.at_least_one("weights", given)
    numbers = _from_floats(given) if {float, np.float64}.issuperset(map(type, given)) else _from_numbers(given)
    if min(numbers) < 0:
        raise InvalidParameter("weights must be at least 0.")
    common = math.gcd(*numbers)
    if common == 0:
        raise InvalidParameter("weights must have a positive sum: all of them are 0.")
    return tuple(numbers) if common == 1 else tuple(number // common for number in numbers)


def _from_floats(weights: Sequence[Number]) -> Sequence[int]:
    """Return the exact binary values times one power of two."""
    array: NDArray[np.float64] = np.array(weights, dtype=np.float64)
    if not np.isfinite(array).all():
        raise InvalidParameter("weights must be finite: NaN and infinity are no weights.")
    exponents = np.frexp(array[array != 0])[1]
    if exponents.size == 0:
        return [0] * len(array)
    shift = _MANTISSA_BITS - int(exponents.min())
    if int(exponents.max()) + shift > _LARGEST_FLOAT_EXPONENT:
        return _from_numbers(weights)
    # ldexp is exact in two steps: every product stays below the largest float, and is a whole number at the end.
    scaled = np.ldexp(np.ldexp(array, shift // 2), shift - shift // 2)
    return [int(number) for number in scaled.tolist()]


def _from_numbers(weights: Sequence[Number]) -> Sequence[int]:
    if {int}.issuperset(map(type, weights)):
        return [int(number) for number in weights]
    exact = [_check.exact_data("weights", weight) for weight in weights]
    common = _common_multiple({weight.denominator for weight in exact}, count=len(exact))
    return [_times(weight, common) for weight in exact]


def _common_multiple(denominators: Iterable[int], *, count: int) -> int:
    common = 1
    for denominator in denominators:
        common = math.lcm(common, denominator)
        if common.bit_length() * count > _MOST_BITS:
            raise InvalidParameter("weights have too many different denominators: give them over a common one.")
    return common


def _times(weight: Fraction, common: int) -> int:
    return weight.numerator * (common // weight.denominator)
