"""Independent laws side by side."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.coupling import Distribution, Measure
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions.measured import (
    Flags,
    Points,
    atom_columns,
    box_corners,
    common_measure,
    every_column,
    log_density_at,
    own_log_density,
)
from accord.distributions.protocol import Rows, require_bounded, require_on_a_line

__all__ = ["Product"]

_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False)
class Product:
    """Independent factors, their columns side by side.

    Formal guarantees
    -----------------
    - Value: immutable; equal factors in the same order are equal laws with equal hashes.
    - Density: the sum of the factors' log densities, each with respect to the measure of its own columns; -inf where
      one factor has none, never NaN.
    - Labels and numbers stay what they are: columns of different kinds are kept as Python objects.
    - Not promised: that one factor of two columns and two factors of one column are equal laws.

    Parameters
    ----------
    factors
        At least one law.

    Raises
    ------
    InvalidParameter
        If a factor is no law. `cdf` and `interval` are refused unless there is a single factor that has them;
        `log_density_bound` is refused unless every factor has it.

    Source
    ------
    theory 1 (laws and densities).

    Examples
    --------
    >>> from accord.distributions import Categorical, Normal
    >>> law = Product([Normal(0, 1), Categorical(["no", "yes"], [1, 3])])
    >>> law.dimension
    2
    >>> law.log_density([[0.0, "yes"], [0.0, "perhaps"]]).round(6).tolist()
    [-1.206621, -inf]

    """

    factors: tuple[Distribution, ...]

    def __init__(self, factors: Iterable[Distribution]) -> None:
        parts = tuple(factors)
        _check.at_least_one("factors", parts)
        if not all(isinstance(part, Distribution) for part in parts):
            raise InvalidParameter("factors must be distributions, such as Normal or Categorical.")
        _check.store(self, factors=parts)

    @property
    def dimension(self) -> int:
        """Number of columns d of a record."""
        return sum(part.dimension for part in self.factors)

    @property
    def measure(self) -> Measure:
        """That of the factors; where they differ, counting and Lebesgue, each in its own columns."""
        return common_measure(self.factors)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """First column of each factor, and the one after its last."""
        ends = np.cumsum([0, *(part.dimension for part in self.factors)]).tolist()
        return tuple(pairwise(ends))

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` independent records, shape (size, d).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read by each factor in turn.

        """
        count = _check.integer("size", size, least=0)
        drawn = [part.sample(count, generator) for part in self.factors]
        kinds = {records.dtype for records in drawn}
        table: Rows = np.empty((count, self.dimension), dtype=kinds.pop() if len(kinds) == 1 else object)
        for (first, last), records in zip(self.spans, drawn, strict=True):
            table[:, first:last] = records
        return table

    def log_density(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log density at each record, shape (n,): masses count in a column whose value is an atom.

        Parameters
        ----------
        x
            Shape (n, d); (n,) is accepted for d = 1.

        """
        return own_log_density(self, Points(x, dimension=self.dimension))

    def log_mass(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log probability of each single record, shape (n,)."""
        points = Points(x, dimension=self.dimension)
        return self.log_density_at(points, every_column(points))

    def atom_columns(self, points: Points) -> Flags:
        """Return in which columns the records have atoms of their factor."""
        total: Flags = None
        for part, (first, last), columns in self._parts(points):
            flags = atom_columns(part, columns)
            if flags is not None:
                total = np.zeros((len(points), self.dimension), dtype=bool) if total is None else total
                total[:, first:last] = flags
        return total

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        total: _Floats | None = None
        for part, (first, last), columns in self._parts(points):
            flags = None if atoms is None else atoms[:, first:last]
            row = log_density_at(part, columns, flags if flags is not None and flags.any() else None)
            total = row if total is None else total + row
        return np.full(len(points), -np.inf) if total is None else total

    def cdf(self, x: ArrayLike) -> _Floats:
        """Return P(X <= x), shape (n,), for a single factor on a line."""
        return require_on_a_line(self._single()).cdf(x)

    def interval(self, low: ArrayLike, high: ArrayLike) -> _Floats:
        """Return P(low < X <= high), shape (n,), for a single factor on a line."""
        return require_on_a_line(self._single()).interval(low, high)

    def log_density_bound(self, low: _Floats, high: _Floats) -> _Floats:
        """Return an upper bound of the log density on each box, shape (n,) from corners of shape (n, d)."""
        corners = box_corners(low, high, dimension=self.dimension)
        total = np.zeros(len(corners[0]))
        for part, (first, last) in zip(self.factors, self.spans, strict=True):
            low_part, high_part = (corner[:, first:last] for corner in corners)
            total = total + require_bounded(part).log_density_bound(low_part, high_part)
        return total

    def _single(self) -> Distribution:
        if len(self.factors) != 1:
            raise InvalidParameter("a product of several laws is not on a line: it has no probabilities of intervals.")
        return self.factors[0]

    def _parts(self, points: Points) -> Iterator[tuple[Distribution, tuple[int, int], Points]]:
        for part, span in zip(self.factors, self.spans, strict=True):
            yield part, span, points.columns(*span)
