"""Real vectors as whole steps of a power of two, and back: each direction rounds once, the same way everywhere."""

import decimal
import math
import numbers
import sys
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core.errors import InvalidParameter
from accord.core.exact import to_binary_fraction
from accord.mechanisms._integers import is_masked

__all__ = ["from_steps", "read_reals", "to_steps"]

_LARGEST = 1 << 62
_EXACT = 1 << 53
_HALF = Fraction(1, 2)


def read_reals(value: ArrayLike | Fraction | decimal.Decimal) -> NDArray[Any]:
    """Return finite reals as float64, or as exact Fractions where a float64 would round them; refuse others by name."""
    if is_masked(value):
        _refuse()
    array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        result = array.astype(np.float64)
        if not np.isfinite(result).all():
            _refuse()
        return result
    if array.dtype.kind not in "iuO":
        _refuse()
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
        _refuse()
    try:
        return to_binary_fraction(entry)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        _refuse()
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


def _refuse() -> None:
    message = "value must be a finite real number or an array of them: no NaN, infinity, boolean, text or mask."
    raise InvalidParameter(message)
