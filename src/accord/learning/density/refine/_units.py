"""Put the records of each unit side by side."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import DataError, InvalidParameter

__all__ = ["UnitRecords"]

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
        object.__setattr__(self, "records", table)
        object.__setattr__(self, "starts", starts)

    @property
    def count(self) -> int:
        """The number of units, which is public."""
        return len(self.starts) - 1

    def pieces(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """Yield records and starts of so many whole units at once that integers cannot overflow."""
        for first in range(0, self.count, _AT_ONCE):
            starts = self.starts[first : first + _AT_ONCE + 1]
            yield self.records[starts[0] : starts[-1]], starts - starts[0]
