"""Numbers that noise is added to: their checks, integers and grids."""

import decimal
import math
import numbers
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number, exp_lower, exp_upper, to_binary_fraction
from accord.core.guarantee import Sensitivity

__all__ = [
    "add_exactly",
    "as_sensitivity",
    "float_up",
    "from_steps",
    "is_masked",
    "laplace_tail",
    "least_integer",
    "miss",
    "read_integers",
    "read_reals",
    "to_steps",
]


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


_SAFE = 1 << 62
_INT64 = np.iinfo(np.int64)


def is_masked(value: object) -> bool:
    """Return whether ``value`` is a masked array or a list that holds one, at any depth: numpy would drop the mask."""
    if isinstance(value, np.ma.MaskedArray):
        return True
    if not isinstance(value, (list, tuple)) or set(map(type, value)) <= {int, float}:
        return False
    return any(is_masked(entry) for entry in value)


def read_integers(value: ArrayLike) -> NDArray[Any]:
    """Return integers as int64, or as Python ints if they need it; a float, a boolean or text is refused by name."""
    if is_masked(value):
        _refuse()
    array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
    if array.dtype.kind == "i" or (array.dtype.kind == "u" and array.max(initial=0) <= _INT64.max):
        return array.astype(np.int64)
    if array.dtype.kind not in "uO":
        _refuse()
    entries = array.ravel().tolist()
    if not all(isinstance(entry, numbers.Integral) and not isinstance(entry, (bool, np.bool_)) for entry in entries):
        _refuse()
    return _smallest(_objects([int(entry) for entry in entries], array.shape))


def add_exactly(values: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
    """Return the sum; its dtype (int64, or object with Python ints) is a function of the sum alone."""
    if values.dtype == noise.dtype == np.int64 and _is_small(values) and _is_small(noise):
        return np.asarray(values + noise)
    total = [left + right for left, right in zip(values.ravel().tolist(), noise.ravel().tolist(), strict=True)]
    return _smallest(_objects(total, values.shape))


def _is_small(array: NDArray[np.int64]) -> bool:
    return bool(array.min(initial=0) >= -_SAFE and array.max(initial=0) < _SAFE)


def _objects(entries: list[int], shape: tuple[int, ...]) -> NDArray[Any]:
    result = np.empty(len(entries), dtype=object)
    result[:] = entries
    return result.reshape(shape)


def _smallest(array: NDArray[Any]) -> NDArray[Any]:
    fits = all(_INT64.min <= entry <= _INT64.max for entry in array.ravel())
    return array.astype(np.int64) if fits else array


def _refuse() -> None:
    message = (
        "value must be an int or an array of ints, not masked: round it first, and state the sensitivity of what was "
        "rounded."
    )
    raise InvalidParameter(message)


_LARGEST = 1 << 62
_EXACT = 1 << 53
_HALF = Fraction(1, 2)


def read_reals(value: ArrayLike | Fraction | decimal.Decimal) -> NDArray[Any]:
    """Return finite reals as float64, or as exact Fractions where a float64 would round them; refuse others by name."""
    if is_masked(value):
        _refuse_value()
    array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        result = array.astype(np.float64)
        if not np.isfinite(result).all():
            _refuse_value()
        return result
    if array.dtype.kind not in "iuO":
        _refuse_value()
    if array.dtype.kind in "iu" and array.max(initial=0) <= _EXACT and array.min(initial=0) >= -_EXACT:
        return array.astype(np.float64)
    entries = array.ravel().tolist()
    if all(type(entry) is float for entry in entries):
        return read_reals(np.array(entries, dtype=np.float64).reshape(array.shape))
    result = np.empty(len(entries), dtype=object)
    result[:] = [_exact(entry) for entry in entries]
    return result.reshape(array.shape)


def _exact(entry: object) -> Fraction:
    if isinstance(entry, (bool, np.bool_, np.longdouble)) or not isinstance(entry, (numbers.Real, decimal.Decimal)):
        _refuse_value()
    try:
        return to_binary_fraction(entry)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        _refuse_value()
        raise


def to_steps(values: NDArray[Any], *, exponent: int) -> NDArray[Any]:
    """Return ``floor(value / 2^exponent + 1/2)`` exactly, as int64 or, where that is too small, as Python ints."""
    if values.dtype == np.float64:
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(values, -exponent)  # exact, but for what over- or underflows
        if (np.abs(scaled) < _LARGEST).all():
            below = np.floor(scaled)
            # The difference is exact for |scaled| < 2^52 down to -1/2; above -1/2 it may round, but not across 1/2.
            return np.asarray(below.astype(np.int64) + (scaled - below >= 0.5))
        values = values.astype(object)
    step = Fraction(2) ** exponent
    result = np.empty(values.size, dtype=object)
    result[:] = [math.floor(Fraction(entry) / step + _HALF) for entry in values.ravel().tolist()]
    return result.reshape(values.shape)


def from_steps(steps: NDArray[Any], *, exponent: int) -> NDArray[np.float64]:
    """Return ``steps * 2^exponent`` rounded to the nearest float; what is too large becomes the largest float."""
    if steps.dtype == np.int64:
        return np.asarray(np.ldexp(steps.astype(np.float64), exponent))
    return np.array([_float(entry, exponent) for entry in steps.ravel().tolist()], dtype=np.float64).reshape(
        steps.shape
    )


def _float(steps: int | Fraction, exponent: int) -> float:
    try:
        return float(steps / (1 << -exponent) if exponent < 0 else steps * (1 << exponent))
    except OverflowError:
        return sys.float_info.max if steps > 0 else -sys.float_info.max


def _refuse_value() -> None:
    message = "value must be a finite real number or an array of them: no NaN, infinity, boolean, text or mask."
    raise InvalidParameter(message)
