"""Columns of a table as codes of bins and labels, with a last code for missing cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.tables import Column

__all__ = ["Coding", "coding_of", "shares"]

_Floats = NDArray[np.float64]
_Codes = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """How the cells of one column become codes ``0 .. size - 1``; the last one is missing.

    ``cuts`` are the inner borders of bins of a column of numbers, empty for labels.
    """

    column: Column
    cuts: _Floats
    size: int

    def codes(self, values: NDArray[Any]) -> _Codes:
        """Return the codes of float64 values or of positions of labels."""
        last = self.size - 1
        if self.column.is_label:
            return np.where(values < 0, last, values).astype(np.int64)
        found = np.searchsorted(self.cuts, values, side="right")
        return np.where(np.isnan(values), last, found).astype(np.int64)


def coding_of(column: Column, values: NDArray[Any], *, bins: int) -> Coding:
    """Return the coding of a column: its labels, its declared edges, or bins of about equal shares of ``values``."""
    if column.is_label:
        return Coding(column, np.empty(0), len(column.categories) + 1)
    if column.edges:
        cuts = np.array(column.edges[1:-1])
    else:
        present = values[~np.isnan(values)]
        wanted = np.linspace(0, 1, bins + 1)[1:-1]
        cuts = np.unique(np.quantile(present, wanted)) if len(present) else np.empty(0)
    return Coding(column, cuts, len(cuts) + 2)


def shares(codings: Sequence[Coding], codes: Sequence[_Codes]) -> _Floats:
    """Return the share of records in each cell of the table of these columns."""
    shape = tuple(coding.size for coding in codings)
    flat = np.ravel_multi_index(tuple(codes), shape)
    counts = np.bincount(flat, minlength=int(np.prod(shape)))
    return counts / max(1, len(flat))
