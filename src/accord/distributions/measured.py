"""What all families share: points and weights as they are given, and densities column by column."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from numbers import Real
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core.coupling import Distribution, Measure
from accord.core.errors import InvalidParameter
from accord.distributions.protocol import WithAtoms

__all__ = [
    "Continuous",
    "Flags",
    "Measured",
    "Points",
    "atom_columns",
    "box_corners",
    "common_measure",
    "every_column",
    "finite_floats",
    "finite_numbers",
    "inside_atoms",
    "log_density_at",
    "non_negative",
    "normalised",
    "outside_atoms",
    "own_log_density",
    "union",
]


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
            self._known["floats"] = _read_only(_floats_of_cells(self.raw))
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


def _floats_of_cells(raw: NDArray[Any]) -> _Floats:
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


Flags = NDArray[np.bool_] | None
"""Which columns of each record count as atoms, shape (n, d); None where no column of any record does."""


@runtime_checkable
class Measured(Protocol):
    """A law that knows its atoms column by column."""

    def atom_columns(self, points: Points) -> Flags:
        """Return in which columns the records have a value to which the law gives positive mass."""

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""


class Continuous:
    """A law on R^d with a density everywhere: what follows from `dimension` and `log_density_at` alone.

    Each family of such laws is a subclass.
    """

    __slots__ = ()

    @property
    def dimension(self) -> int:
        """Number of columns of a record, d."""
        raise NotImplementedError  # pragma: no cover - each family has its own

    @property
    def measure(self) -> Measure:
        """Lebesgue measure on R^d."""
        return Measure.LEBESGUE

    def log_density(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log density at each record, shape (n,); -inf at a record that is not finite.

        Parameters
        ----------
        x
            Shape (n, d); (n,) is accepted for d = 1.

        """
        return self.log_density_at(Points(x, dimension=self.dimension), None)

    def atom_columns(self, points: Points) -> Flags:  # noqa: ARG002 - there are none anywhere
        """Return None: there are no atoms."""
        return None

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        raise NotImplementedError  # pragma: no cover - each family has its own


def atom_columns(law: Distribution, points: Points) -> Flags:
    """Return in which columns of each record the law has atoms; a foreign law's atoms are whole records."""
    if isinstance(law, Measured):
        return law.atom_columns(points)
    if law.measure is Measure.LEBESGUE:
        return None
    mass = law.log_mass(points.copied()) if isinstance(law, WithAtoms) else law.log_density(points.copied())
    return _whole(_one_each(mass, points) > -np.inf, points.dimension)


def log_density_at(law: Distribution, points: Points, atoms: Flags) -> _Floats:
    """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
    if isinstance(law, Measured):
        return law.log_density_at(points, atoms)
    if law.measure is Measure.LEBESGUE:
        return outside_atoms(_one_each(law.log_density(points.copied()), points), atoms)
    has_mass = isinstance(law, WithAtoms)
    mass = law.log_mass(points.copied()) if isinstance(law, WithAtoms) else law.log_density(points.copied())
    mass = _one_each(mass, points)
    counted = np.zeros(len(points), dtype=bool) if atoms is None else atoms.all(axis=1)
    if law.measure is Measure.COUNTING or not has_mass:
        return np.where(counted, mass, -np.inf)
    density = np.where(mass > -np.inf, -np.inf, _one_each(law.log_density(points.copied()), points))
    return np.where(counted, mass, outside_atoms(density, atoms))


def own_log_density(law: Measured, points: Points) -> _Floats:
    """Return the log density of a law with respect to its own measure: its atoms count, no other value does."""
    return law.log_density_at(points, law.atom_columns(points))


def outside_atoms(density: _Floats, atoms: Flags) -> _Floats:
    """Return the density of a law without atoms: zero where a column counts."""
    return density if atoms is None else np.where(atoms.any(axis=1), -np.inf, density)


def inside_atoms(mass: _Floats, atoms: Flags) -> _Floats:
    """Return the density of a law on whole records: zero where a column does not count."""
    return np.full(len(mass), -np.inf) if atoms is None else np.where(atoms.all(axis=1), mass, -np.inf)


def every_column(points: Points) -> NDArray[np.bool_]:
    """Return the flags by which every column counts."""
    return np.ones(points.raw.shape, dtype=bool)


def union(flags: Iterable[Flags]) -> Flags:
    """Return the columns that count for at least one."""
    total: Flags = None
    for flag in flags:
        if flag is not None:
            total = flag if total is None else total | flag
    return total


def common_measure(laws: Iterable[Distribution]) -> Measure:
    """Return the measure of several laws together."""
    measures = {law.measure for law in laws}
    return measures.pop() if len(measures) == 1 else Measure.BOTH


def _one_each(values: object, points: Points) -> _Floats:
    """Return what a foreign law says as one float for each record, or refuse another shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (len(points),):
        raise InvalidParameter("log_density and log_mass must return one number for each record.")
    return array


def _whole(records: NDArray[Any], dimension: int) -> Flags:
    """Return the flags of atoms that are whole records."""
    return np.repeat(records[:, None], dimension, axis=1) if records.any() else None
