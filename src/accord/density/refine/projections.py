"""Put the records of each unit side by side."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import DataError, InvalidParameter

__all__ = [
    "SHARE",
    "BinnedProjections",
    "FarUnits",
    "NoisyCounts",
    "UnitRecords",
]


_AT_ONCE = 1 << 14


@final
@dataclass(frozen=True, slots=True, init=False)
class UnitRecords:
    """Records in the order of their units, within a unit in the order given.

    Parameters
    ----------
    records
        Shape (n, d), float64.
    starts
        Unit u has the records from ``starts[u]`` up to ``starts[u + 1]``, shape (m + 1,).

    """

    records: NDArray[np.float64]
    starts: NDArray[np.int64]

    def __init__(self, records: ArrayLike, *, units: ArrayLike | int, dimension: int) -> None:
        table = np.asarray(records)
        if table.dtype.kind not in "biuf" or table.ndim != 2 or table.shape[1] != dimension:
            raise InvalidParameter(f"records must be an array of numbers of shape (n, {dimension}).")
        if len(table) == 0:
            raise DataError("there are no records.")
        table = np.ascontiguousarray(table, dtype=np.float64)
        codes = np.asarray(units)
        if codes.ndim == 0:
            count = _check.integer("units", units, least=1)
            if count != len(table):
                raise InvalidParameter("units, as a number, must be that of the records: one each.")
            starts = np.arange(count + 1, dtype=np.int64)
        else:
            if codes.shape != (len(table),) or codes.dtype.kind not in "iu":
                raise InvalidParameter("units must be one whole number a record, shape (n,), or their count.")
            order = np.argsort(codes, kind="stable")
            ordered = codes[order]
            first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
            starts = np.concatenate([first, [len(table)]]).astype(np.int64)
            table = table[order]
        _check.store(self, records=table, starts=starts)

    @property
    def count(self) -> int:
        """The number of units, which is public."""
        return len(self.starts) - 1

    def pieces(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """Yield records and starts of so many whole units at once that integers cannot overflow."""
        for first in range(0, self.count, _AT_ONCE):
            starts = self.starts[first : first + _AT_ONCE + 1]
            yield self.records[starts[0] : starts[-1]], starts - starts[0]


Floats = NDArray[np.float64]


@runtime_checkable
class FarUnits(Protocol):
    """Records on workers; what is added up over units is added up there, as `accord.core.blocks.FarRecords` says."""

    @property
    def units(self) -> int:
        """How many units there are."""

    @property
    def dimension(self) -> int:
        """Number of columns."""

    def sums(self, task: Callable[[Floats, NDArray[np.int64] | int], NDArray[np.int64]], /) -> NDArray[np.int64]:
        """Return the sum of ``task(rows, units)`` over groups of whole units."""


SHARE = 1 << 20
"""What a unit adds to the bin that holds all its records."""

_MOST_RECORDS = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedProjections:
    """J directions, each cut into B bins; a query of J B whole numbers.

    Formal guarantees
    -----------------
    - Sensitivity: replacing one unit moves the J B sums by at most `sensitivity` in L2, in whole numbers, however
      floats are rounded, how many records the old and the new unit have, and wherever they stand.

    Parameters
    ----------
    directions
        Shape (J, d).
    inner
        Rising edges between bins, shape (J, B - 1); the outer bins are unbounded.

    Source
    ------
    docs/proofs/refine.md.

    """

    directions: Floats
    inner: Floats

    @property
    def bins(self) -> int:
        """B."""
        return int(self.inner.shape[1]) + 1

    @property
    def sensitivity(self) -> int:
        """``SHARE sqrt(2 J)``, rounded up: entries are at least 0 and add up to at most `SHARE` for each direction."""
        return isqrt(2 * len(self.directions) * SHARE**2) + 1

    def sums(self, data: UnitRecords | FarUnits) -> NDArray[np.int64]:
        """Return the exact sums over units, shape (J, B)."""
        if not isinstance(data, UnitRecords):
            return data.sums(self._of_some)
        from accord.density.refine.projection_counts import add_units  # noqa: PLC0415 - compiled: slow to import

        total = np.zeros((len(self.directions), self.inner.shape[1] + 1), dtype=np.int64)
        for records, starts in data.pieces():
            total += add_units(records, starts, self.directions, self.inner, SHARE, _MOST_RECORDS)
        return total

    def _of_some(self, records: Floats, units: NDArray[np.int64] | int) -> NDArray[np.int64]:
        return self.sums(UnitRecords(records, units=units, dimension=self.directions.shape[1]))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCounts:
    """What was released of one query, in units.

    Parameters
    ----------
    query
        The query.
    counts
        Shape (J, B).
    variance
        Of the noise of each count.

    """

    query: BinnedProjections
    counts: Floats
    variance: float

    @classmethod
    def of(cls, query: BinnedProjections, released: NDArray[Any], *, sigma: float) -> "NoisyCounts":
        """Read a release."""
        return cls(query=query, counts=np.asarray(released, dtype=np.float64) / SHARE, variance=(sigma / SHARE) ** 2)
