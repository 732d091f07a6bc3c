"""A law of some columns, with constants in the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.blocks import FarRecords
from accord.core.coupling import Distribution, Measure
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.density.family import NormalParameters
from accord.density.refine.projections import FarUnits
from accord.distributions import PointMass
from accord.distributions.protocol import Rows
from accord.location.locate import Located
from accord.location.rounding import as_float_table

__all__ = [
    "ColumnFrame",
    "ConstantColumns",
]


_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


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
        _check.store(self, law=law, columns=places, constants=tuple((values + 0.0).tolist()))

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


_CHUNK = 1 << 18


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Standard:
    """The change of units alone, which travels: released numbers."""

    columns: tuple[int, ...]
    centre: _Floats
    scale: _Floats

    def __call__(self, records: NDArray[Any]) -> _Floats:
        table = np.empty((len(records), len(self.columns)))
        with np.errstate(all="ignore"):
            for start in range(0, len(records), _CHUNK):
                rows = slice(start, start + _CHUNK)
                table[rows] = (as_float_table(records[rows][:, list(self.columns)]) - self.centre) / self.scale
        return table


@final
@dataclass(frozen=True, slots=True, eq=False)
class _FarStandard:
    """Records on workers, in standard units."""

    records: FarRecords
    standard: _Standard

    @property
    def units(self) -> int:
        return self.records.units

    @property
    def dimension(self) -> int:
        return len(self.standard.columns)

    def sums(self, task: Callable[[_Floats, _Ints | int], _Ints]) -> _Ints:
        return self.records.sums(partial(_of_standard, task, self.standard))


def _of_standard(
    task: Callable[[_Floats, _Ints | int], _Ints], standard: _Standard, rows: NDArray[Any], units: _Ints | int
) -> _Ints:
    return task(standard(rows), units)


@final
@dataclass(frozen=True, slots=True)
class ColumnFrame:
    """What was located, as a change of units: columns that move are shifted and scaled, constant ones are put aside.

    Formal guarantees
    -----------------
    - Row by row: what becomes of a record is a function of that record and of what was released.
    - Laws are moved exactly, up to rounding: `to_law` is what the records of a law of the standard columns become.
    - Not promised: that records meet the constants; `to_standard` does not look at them.

    Parameters
    ----------
    located
        With an answer in each column.

    Examples
    --------
    >>> from accord.location.curator import CuratorOnly
    >>> from accord.privacy import ApproxDP
    >>> nan = float("nan")
    >>> columns = [np.array(column) for column in ([5.0, nan], [2.0, nan], [nan, 7.0])]
    >>> located = Located(
    ...     centre=columns[0],
    ...     scale=columns[1],
    ...     constant=columns[2],
    ...     guarantee=ApproxDP(1, "1e-6"),
    ...     agreement=CuratorOnly((None,)),
    ... )
    >>> frame = ColumnFrame(located)
    >>> frame.to_standard(np.array([[9.0, 7.0]])).tolist()
    [[2.0]]

    """

    located: Located

    @property
    def columns(self) -> list[int]:
        """Numbers of the columns that move."""
        return list(self.located.moving)

    def to_standard(self, records: NDArray[Any]) -> _Floats:
        """Return the moving columns of records (n, d) in units of about 1, shape (n, m); what is no number is NaN."""
        return self._standard(records)

    def standard(self, records: NDArray[Any] | FarRecords) -> "_Floats | FarUnits":
        """Do the same with records here or on workers, where they stay."""
        return self._standard(records) if isinstance(records, np.ndarray) else _FarStandard(records, self._standard)

    @property
    def _standard(self) -> "_Standard":
        chosen = self.columns
        return _Standard(tuple(chosen), self.located.centre[chosen], self.located.scale[chosen])

    def to_own_units(self, standard: _Floats) -> _Floats:
        """Return standard columns (n, m) in their own units."""
        chosen = self.columns
        return self.located.centre[chosen] + self.located.scale[chosen] * standard

    def normals(self, standard: NormalParameters) -> NormalParameters:
        """Return a mixture of normal laws of the standard columns in the columns' own units."""
        chosen = self.columns
        return standard.moved(centre=self.located.centre[chosen], scale=self.located.scale[chosen])

    def with_constants(self, law: Distribution | None) -> Distribution:
        """Return the law of whole records, from that of the moving columns, None if there are none."""
        chosen = self.columns
        if law is None:
            return PointMass(self.located.constant)
        if len(chosen) == len(self.located.constant):
            return law
        return ConstantColumns(law, columns=chosen, constants=self.located.constant)
