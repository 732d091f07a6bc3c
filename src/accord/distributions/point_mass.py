"""All mass on one record."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.coupling import Measure
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions.categorical import as_labels, label_array, label_indices
from accord.distributions.measured import Flags, Points, every_column, inside_atoms
from accord.distributions.protocol import Rows

__all__ = ["PointMass"]

_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class PointMass:
    """The law of a constant: a vector of R^d, or a label.

    Formal guarantees
    -----------------
    - Value: immutable; equal values are equal laws with equal hashes; -0.0 is 0.0, True is not 1.
    - Not promised: any tolerance: a record that differs in the last bit has probability 0.

    Parameters
    ----------
    value
        A number (R^1) or a vector of finite numbers (R^d); any other hashable value, text or a boolean say, is a label.

    Raises
    ------
    InvalidParameter
        If it is missing, not finite, empty or not hashable. A label has no `cdf` and no `interval`, nor has a vector of
        several numbers.

    Source
    ------
    theory 1 (laws and densities).

    Examples
    --------
    >>> PointMass([1, 2]).log_density([[1, 2], [1, 3]]).tolist()
    [0.0, -inf]
    >>> PointMass("yes").log_density(["yes", "no"]).tolist()
    [0.0, -inf]

    """

    vector: tuple[float, ...] | None
    """The numbers, or None for a label."""
    label: Hashable
    """The label, or None for numbers."""

    def __init__(self, value: ArrayLike | Hashable) -> None:
        vector = _vector(value)
        _check.store(self, vector=vector)
        _check.store(self, label=None if vector is not None else as_labels([value])[0])  # type: ignore[list-item]

    @property
    def dimension(self) -> int:
        """Number of columns d of a record."""
        return 1 if self.vector is None else len(self.vector)

    @property
    def measure(self) -> Measure:
        """Counting measure on the value."""
        return Measure.COUNTING

    def sample(self, size: int, generator: Generator) -> Rows:  # noqa: ARG002 - nothing is random
        """Return the value ``size`` times, shape (size, d).

        Parameters
        ----------
        size
            At least 0.
        generator
            Not read.

        """
        count = _check.integer("size", size, least=0)
        row = label_array([self.label]) if self.vector is None else np.array(self.vector)
        records: Rows = np.repeat(row[None, :], count, axis=0)
        return records

    def log_density(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return 0 at the value and -inf elsewhere, shape (n,).

        Parameters
        ----------
        x
            Shape (n, d); (n,) is accepted for d = 1.

        """
        return self.log_mass(x)

    def log_mass(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return 0 at the value and -inf elsewhere, shape (n,)."""
        points = Points(x, dimension=self.dimension)
        return self.log_density_at(points, every_column(points))

    def atom_columns(self, points: Points) -> Flags:
        """Return the columns that count: all where the record is the value."""
        met = self._met(points)
        return np.repeat(met[:, None], self.dimension, axis=1) if met.any() else None

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        return inside_atoms(np.where(self._met(points), 0.0, -np.inf), atoms)

    def cdf(self, x: ArrayLike) -> _Floats:
        """Return P(X <= x), shape (n,), for a number."""
        return np.where(np.asarray(x, dtype=np.float64) >= self._number(), 1.0, 0.0)

    def interval(self, low: ArrayLike, high: ArrayLike) -> _Floats:
        """Return P(low < X <= high), shape (n,), for a number."""
        number = self._number()
        inside = (np.asarray(low, dtype=np.float64) < number) & (number <= np.asarray(high, dtype=np.float64))
        return np.where(inside, 1.0, 0.0)

    def _number(self) -> float:
        if self.vector is None or len(self.vector) != 1:
            raise InvalidParameter("a law of labels or of several columns is not on a line.")
        return self.vector[0]

    def _met(self, points: Points) -> NDArray[np.bool_]:
        if self.vector is None:
            return np.asarray(label_indices([self.label], points.raw.ravel()) == 0)
        met: NDArray[np.bool_] = (points.floats == np.array(self.vector)[:, None]).all(axis=0)
        return met

    def _key(self) -> tuple[Any, ...]:
        return self.vector, isinstance(self.label, bool), self.label

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PointMass):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _vector(value: object) -> tuple[float, ...] | None:
    """Return the numbers of a value, None for a label; numbers that are not finite are refused."""
    if isinstance(value, (str, bytes, bool, np.bool_)):
        return None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        return None
    if array.dtype.kind not in "iuf":
        return None
    if array.ndim > 1 or array.size == 0 or not np.isfinite(array).all():
        raise InvalidParameter("value must be a finite number, a vector of them, or a label.")
    return tuple((np.atleast_1d(array).astype(np.float64) + 0.0).tolist())
