"""Weights: non-negative numbers, normalised without overflow."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core.errors import InvalidParameter

__all__ = ["finite_floats", "finite_numbers", "non_negative", "normalised"]

_NORMALISED = 2.0**-51
_Floats = NDArray[np.float64]


def _as_floats(value: ArrayLike) -> _Floats | None:
    """Return ``value`` as floats, None if it does not consist of numbers; truth values are none."""
    try:
        given = np.asarray(value)
        return given.astype(np.float64) if given.dtype.kind in "iufO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def finite_floats(name: str, value: ArrayLike) -> _Floats:
    """Return ``value`` as finite floats, or refuse it by name."""
    array = _as_floats(value)
    if array is None or not np.isfinite(array).all():
        raise InvalidParameter(f"{name} must consist of finite numbers.")
    return array


def finite_numbers(name: str, value: ArrayLike) -> _Floats:
    """Return ``value`` as finite floats without a negative zero, or refuse it by name."""
    return np.asarray(finite_floats(name, value) + 0.0)


def non_negative(name: str, weights: ArrayLike, *, count: int, each: str) -> _Floats:
    """Return ``count`` finite numbers of at least 0, shape (count,), or refuse them by name."""
    array = _as_floats(weights)
    if array is None or array.shape != (count,):
        raise InvalidParameter(f"{name} must be numbers, one for each {each}.")
    if not (np.isfinite(array) & (array >= 0)).all():
        raise InvalidParameter(f"{name} must be finite and at least 0, with a positive sum.")
    return np.asarray(array + 0.0)


def normalised(name: str, weights: ArrayLike, *, count: int, each: str) -> tuple[float, ...]:
    """Return weights divided by their sum; weights that sum to 1 up to rounding come back unchanged."""
    array = non_negative(name, weights, count=count, each=each)
    if not array.max() > 0:
        raise InvalidParameter(f"{name} must be finite and at least 0, with a positive sum.")
    if array.max() <= 1 and abs(math.fsum(array) - 1) <= _NORMALISED:
        return tuple(array.tolist())
    shares = np.ldexp(array, -int(np.frexp(array.max())[1]))  # exact, and the sum cannot overflow
    return tuple((shares / math.fsum(shares) + 0.0).tolist())
