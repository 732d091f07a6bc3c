"""Integer answers of any size: read without loss, added to without wrap-around."""

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core.errors import InvalidParameter

__all__ = ["add_exactly", "is_masked", "read_integers"]

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
