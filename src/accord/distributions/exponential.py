"""The exponential law on the half-line."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions.measured import Continuous, Flags, Points, box_corners, finite_numbers, outside_atoms
from accord.distributions.protocol import Rows

__all__ = ["Exponential"]

_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False)
class Exponential(Continuous):
    """The law of a waiting time without memory, of mean ``scale``.

    Formal guarantees
    -----------------
    - Value: immutable; equal scales are equal laws with equal hashes.
    - Density: in logs; -inf below 0 and where a record is not finite; never NaN.
    - Intervals: full relative accuracy, narrow or far away.
    - Not promised: records above the largest float.

    Parameters
    ----------
    scale
        The mean: positive and finite.

    Raises
    ------
    InvalidParameter
        If it is anything else.

    Source
    ------
    theory 1 (laws and densities).

    Examples
    --------
    >>> law = Exponential(2)
    >>> law.log_density([0, 2, -1]).round(6).tolist()
    [-0.693147, -1.693147, -inf]
    >>> law.interval([0.0], [math.inf]).tolist()
    [1.0]

    """

    scale: float

    def __init__(self, scale: float) -> None:
        number = finite_numbers("scale", scale)
        if number.ndim != 0 or not number > 0:
            raise InvalidParameter("scale must be a positive finite number.")
        _check.store(self, scale=float(number))

    @property
    def dimension(self) -> int:
        """Number of columns of a record: 1."""
        return 1

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` independent records, shape (size, 1).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read for ``size`` standard exponentials.

        """
        count = _check.integer("size", size, least=0)
        records: Rows = self.scale * generator.standard_exponential((count, 1))
        return records

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        values = points.floats[0]
        with np.errstate(all="ignore"):
            logs = -values / self.scale - math.log(self.scale)
            return outside_atoms(np.where((values >= 0) & np.isfinite(values), logs, -np.inf), atoms)

    def cdf(self, x: ArrayLike) -> _Floats:
        """Return P(X <= x), shape (n,)."""
        return np.asarray(-np.expm1(-self._standard(x)))

    def interval(self, low: ArrayLike, high: ArrayLike) -> _Floats:
        """Return P(low < X <= high), shape (n,)."""
        first, start = self._standard(low), np.maximum(np.asarray(low, dtype=np.float64), 0.0)
        with np.errstate(all="ignore"):
            width = np.maximum(np.asarray(high, dtype=np.float64) - start, 0.0) / self.scale
            found = np.exp(-first) * -np.expm1(-width)
        return np.where(np.isfinite(first) & (width > 0), found, 0.0)

    def log_density_bound(self, low: _Floats, high: _Floats) -> _Floats:
        """Return the largest log density on each box, shape (n,) from corners of shape (n, 1)."""
        corners = box_corners(low, high, dimension=1)
        nearest = self._standard(corners[0][:, 0])
        return np.where(corners[1][:, 0] >= 0, -nearest - math.log(self.scale), -np.inf)

    def _standard(self, x: ArrayLike) -> _Floats:
        with np.errstate(over="ignore"):
            standard: _Floats = np.maximum(np.asarray(x, dtype=np.float64), 0.0) / self.scale
        return standard
