"""Records as the families read them: checked once, and what several laws need of them computed once."""

from collections.abc import Callable, Hashable, Sequence
from numbers import Real
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core.errors import InvalidParameter

__all__ = ["Points", "box_corners"]

_Floats = NDArray[np.float64]


def box_corners(low: ArrayLike, high: ArrayLike, *, dimension: int) -> tuple[_Floats, _Floats]:
    """Return the corners of boxes as floats, shape (n, d) each, or refuse another shape."""
    corners = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    if any(corner.ndim != 2 or corner.shape[1] != dimension for corner in corners):
        raise InvalidParameter(f"corners must have shape (n, {dimension}).")
    return corners


@final
class Points:
    """Records of shape (n, d), with a memory of what was derived from them.

    What is remembered is a function of the records and of the values asked for (a list of labels, edges), so it is the
    same whoever asks first.

    Parameters
    ----------
    x
        Shape (n, d); (n,) is accepted for d = 1. Anything but an array is read as Python objects, so that a list of
        labels keeps their types.
    dimension
        The number of columns d.

    Raises
    ------
    InvalidParameter
        If the shape is another one.

    """

    __slots__ = ("_known", "_last", "raw")

    def __init__(self, x: ArrayLike | Sequence[Any], *, dimension: int) -> None:
        try:
            array = x if isinstance(x, np.ndarray) else np.asarray(x, dtype=object)
        except ValueError:
            array = np.empty((0, 0, 0))
        if array.ndim == 1 and (dimension == 1 or array.size == 0):
            array = array.reshape(-1, dimension)
        if array.ndim != 2 or array.shape[1] != dimension:
            raise InvalidParameter(f"records must have shape (n, {dimension}).")
        self.raw = _read_only(array.view(np.ndarray))
        self._known: dict[Hashable, Any] = {}
        self._last: dict[str, tuple[Hashable, NDArray[Any]]] = {}

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def dimension(self) -> int:
        """Number of columns d."""
        return int(self.raw.shape[1])

    def copied(self) -> NDArray[Any]:
        """Return the records for a law that is not accord's own: a copy, as it might write to them, others' too."""
        return self.raw.copy()

    @property
    def floats(self) -> _Floats:
        """The records as numbers, column by column, shape (d, n), contiguous; what is no number is NaN."""
        if "floats" not in self._known:
            self._known["floats"] = _read_only(_as_floats(self.raw))
        found: _Floats = self._known["floats"]
        return found

    def columns(self, first: int, last: int) -> "Points":
        """Return the columns from ``first`` up to ``last``, not included."""
        if (first, last) == (0, self.dimension):
            return self
        if (first, last) not in self._known:
            self._known[first, last] = Points(self.raw[:, first:last], dimension=last - first)
        found: Points = self._known[first, last]
        return found

    def remember(self, kind: str, key: Hashable, compute: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return ``compute()``, a function of the records, kind and key; the last value of each kind is kept."""
        known = self._last.get(kind)
        if known is not None and known[0] == key:
            return known[1]
        value = _read_only(compute())
        self._last[kind] = key, value
        return value


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, which no law may write to: others read it too."""
    array.flags.writeable = False
    return array


def _as_floats(raw: NDArray[Any]) -> _Floats:
    """Return numbers of shape (d, n); NaN for what is no real number, text that reads as a number included."""
    if raw.dtype.kind in "iufb":
        return np.array(raw.T, dtype=np.float64, order="C")
    if raw.dtype.kind != "O":
        return np.full(raw.shape[::-1], np.nan)
    return np.array([[_as_float(value) for value in column] for column in raw.T.tolist()]).reshape(raw.shape[::-1])


def _as_float(value: object) -> float:
    if type(value) is float:
        return value
    try:
        return float(value) if isinstance(value, Real) else float("nan")
    except (OverflowError, ValueError, TypeError):
        return float("nan")
