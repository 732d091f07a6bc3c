"""A law of some columns, with constants in the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions import Distribution, Measure
from accord.distributions.protocol import Rows

__all__ = ["ConstantColumns"]

_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False)
class ConstantColumns:
    """Rows whose columns are constant but for those that follow a law.

    Formal guarantees
    -----------------
    - Value: immutable; equal laws in the same places with equal constants are equal.
    - Density: that of the law in its columns, where all constants are met; -inf elsewhere.
    - Not promised: any tolerance in a constant column.

    Parameters
    ----------
    law
        Of the columns that move.
    columns
        Their numbers, in the order of the law's columns.
    constants
        Shape (d,), finite where a column is constant; what stands in the places of ``columns`` is not read.

    Source
    ------
    theory 1 (laws and densities).

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> law = ConstantColumns(Normal(0, 1), columns=[1], constants=[7.0, 0.0])
    >>> law.log_density([[7.0, 0.0], [8.0, 0.0]]).round(3).tolist()
    [-0.919, -inf]

    """

    law: Distribution
    columns: tuple[int, ...]
    constants: tuple[float, ...]

    def __init__(self, law: Distribution, *, columns: Sequence[int], constants: ArrayLike) -> None:
        values = np.array(constants, dtype=np.float64)
        places = tuple(int(column) for column in columns)
        if len(set(places)) != law.dimension or not all(0 <= place < len(values) for place in places):
            raise InvalidParameter("columns must name a place for each column of the law.")
        values[list(places)] = 0.0
        if not np.isfinite(values).all():
            raise InvalidParameter("constants must be finite.")
        object.__setattr__(self, "law", law)
        object.__setattr__(self, "columns", places)
        object.__setattr__(self, "constants", tuple((values + 0.0).tolist()))

    @property
    def dimension(self) -> int:
        """Number of columns d of a record."""
        return len(self.constants)

    @property
    def measure(self) -> Measure:
        """Counting measure in the constant columns, that of the law in the others."""
        return self.law.measure if len(self.columns) == self.dimension else Measure.BOTH

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` independent records, shape (size, d).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read by the law.

        """
        count = _check.integer("size", size, least=0)
        table: Rows = np.tile(np.array(self.constants), (count, 1))
        table[:, list(self.columns)] = self.law.sample(count, generator)
        return table

    def log_density(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log density at each record, shape (n,).

        Parameters
        ----------
        x
            Shape (n, d).

        """
        table = np.asarray(x, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != self.dimension:
            raise InvalidParameter(f"x must have shape (n, {self.dimension}).")
        fixed = np.setdiff1d(np.arange(self.dimension), self.columns)
        met = (table[:, fixed] == np.array(self.constants)[fixed]).all(axis=1)
        density = self.law.log_density(table[:, list(self.columns)])
        return np.where(met, density, -np.inf)
