"""The uniform law on a box."""

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

__all__ = ["Uniform"]

_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False)
class Uniform(Continuous):
    """The uniform law on a box of R^d, its faces included.

    Formal guarantees
    -----------------
    - Value: immutable; equal boxes are equal laws with equal hashes.
    - Density: constant on the box, in logs (it may exceed 1), -inf elsewhere.
    - Sampling: records lie in the box, rounding included.
    - Not promised: more different values in a narrow side than floats it holds.

    Parameters
    ----------
    low, high
        Corners, shape (d,), finite, with low < high in every entry; numbers stand for d = 1.

    Raises
    ------
    InvalidParameter
        If the shapes differ, a number is not finite, or a side is empty. `cdf` and `interval` are refused for d > 1.

    Source
    ------
    theory 1 (laws and densities).

    Examples
    --------
    >>> law = Uniform(0, 0.5)
    >>> law.log_density([0.25, 0.75]).round(6).tolist()
    [0.693147, -inf]
    >>> law.interval([0.1], [math.inf]).round(6).tolist()
    [0.8]

    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        below, above = np.atleast_1d(finite_numbers("low", low)), np.atleast_1d(finite_numbers("high", high))
        if below.ndim != 1 or below.shape != above.shape or len(below) == 0:
            raise InvalidParameter("low and high must be numbers, or vectors of one length.")
        if not (below < above).all():
            raise InvalidParameter("low must be below high in every entry.")
        _check.store(self, low=tuple(below.tolist()), high=tuple(above.tolist()))

    @property
    def dimension(self) -> int:
        """Number of columns d of a record."""
        return len(self.low)

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume of the box."""
        return math.fsum(_log_width(low, high) for low, high in zip(self.low, self.high, strict=True))

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` independent records, shape (size, d).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read for ``size * d`` uniform numbers.

        """
        count = _check.integer("size", size, least=0)
        share = generator.random((count, self.dimension))
        low, high = np.array(self.low), np.array(self.high)
        half = high / 2 - low / 2
        records: Rows = np.clip(low + half * share + half * share, low, high)
        return records

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        columns = points.floats
        inside = np.ones(len(points), dtype=bool)
        for column, low, high in zip(columns, self.low, self.high, strict=True):
            inside &= (column >= low) & (column <= high)
        return outside_atoms(np.where(inside, -self.log_volume, -np.inf), atoms)

    def cdf(self, x: ArrayLike) -> _Floats:
        """Return P(X <= x), shape (n,), for d = 1."""
        return self.interval(np.full(np.shape(x), -np.inf), x)

    def interval(self, low: ArrayLike, high: ArrayLike) -> _Floats:
        """Return P(low < X <= high), shape (n,), for d = 1."""
        if self.dimension != 1:
            raise InvalidParameter("a law of several columns is not on a line: it has no probabilities of intervals.")
        start, end = self.low[0], self.high[0]
        first = np.clip(np.asarray(low, dtype=np.float64), start, end)
        last = np.clip(np.asarray(high, dtype=np.float64), start, end)
        return np.asarray(np.maximum(last / 2 - first / 2, 0.0) / (end / 2 - start / 2))

    def log_density_bound(self, low: _Floats, high: _Floats) -> _Floats:
        """Return the largest log density on each box, shape (n,) from corners of shape (n, d)."""
        corners = box_corners(low, high, dimension=self.dimension)
        met = ((corners[0] <= np.array(self.high)) & (corners[1] >= np.array(self.low))).all(axis=1)
        return np.where(met, -self.log_volume, -np.inf)


def _log_width(low: float, high: float) -> float:
    """Return ``log(high - low)`` without overflow."""
    width = high - low
    return math.log(width) if math.isfinite(width) else math.log(high / 2 - low / 2) + math.log(2)
