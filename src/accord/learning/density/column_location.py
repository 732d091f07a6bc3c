"""Where the columns of a block lie and how wide they are: a few robust numbers a block, whatever is in it."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from accord.core.errors import FitFailed
from accord.core.records import table_of_numbers
from accord.distributions import PointMass

__all__ = ["CELL", "CONSTANT", "FALLBACK_QUANTILES", "UNUSABLE", "ColumnLocation", "as_float_table"]

_Floats = NDArray[np.float64]

CELL, CONSTANT, UNUSABLE = 0.0, 1.0, 2.0
"""What a block says of a column: a location with a scale; a single value; nothing of use."""

FALLBACK_QUANTILES = ((0.25, 0.75), (0.1, 0.9), (0.025, 0.975), (0.0, 1.0))
"""Pairs of quantiles, tried in this order until they differ: the spread of a column with many ties."""

_LARGEST = 1e140
"""Columns larger, narrower or wider than this have no variance in floats: they are unusable."""


@final
@dataclass(frozen=True, slots=True)
class ColumnLocation:
    """Describe each column by its median and the log of its scale, or as constant, or as unusable.

    The scale is a distance of two quantiles over what it is for a standard normal law; the first pair of
    `FALLBACK_QUANTILES` that differs is taken.

    Formal guarantees
    -----------------
    - Purity: a function of ``records`` alone; the seed is not read.
    - A cell that is missing, infinite or no number is left out of its column and changes nothing in other columns.
    - Not promised: a good scale for laws that nothing normal resembles; it is a start for what comes later.

    Source
    ------
    theory 7 (locate), S5; proof page ``docs/proofs/locate.md``.

    Examples
    --------
    >>> table = np.array([[1.0, 7.0, np.nan], [2.0, 7.0, np.nan], [3.0, 7.0, np.nan]])
    >>> np.array(ColumnLocation().fit(table, seed=0).vector).reshape(3, 3).round(3).tolist()
    [[0.0, -0.299, 2.0], [1.0, 0.0, 7.0], [2.0, 0.0, 0.0]]

    """

    def fit(self, records: NDArray[Any], *, seed: int) -> PointMass:  # noqa: ARG002 - nothing here is random
        """Return three numbers a column, one after the other: the kind, the log scale, the median or the constant.

        Parameters
        ----------
        records
            Shape (n, d).
        seed
            Not read.

        Raises
        ------
        FitFailed
            If there are no columns.

        """
        table = as_float_table(records)
        if table.shape[1] == 0:
            raise FitFailed("there are no columns to locate.")
        return PointMass(np.concatenate([_describe(column) for column in table.T]))


def as_float_table(records: NDArray[Any]) -> _Floats:
    """Return records as floats, shape (n, d); a cell that is no number is NaN, and no other cell notices.

    Examples
    --------
    >>> as_float_table(np.array([[1, "two"], [None, 4.0]], dtype=object)).tolist()
    [[1.0, nan], [nan, 4.0]]

    """
    return table_of_numbers(records)


def _describe(column: _Floats) -> _Floats:
    finite = column[np.isfinite(column)]
    if len(finite) == 0:
        return np.array([UNUSABLE, 0.0, 0.0])
    if finite.min() == finite.max():
        return np.array([CONSTANT, 0.0, finite[0] + 0.0])
    with np.errstate(all="ignore"):
        middle = float(np.quantile(finite, 0.5))
        scale = next((spread for pair in FALLBACK_QUANTILES if (spread := _spread(finite, *pair)) > 0), math.nan)
    if not (abs(middle) <= _LARGEST and 1 / _LARGEST <= scale <= _LARGEST):
        return np.array([UNUSABLE, 0.0, 0.0])
    return np.array([CELL, math.log(scale), middle])


def _spread(finite: _Floats, low: float, high: float) -> float:
    """Return the distance of two quantiles in units of the same distance for a standard normal law."""
    most = 1 - 0.5 / len(finite)  # about where the largest of n normal numbers lies
    return float(np.quantile(finite, high) - np.quantile(finite, low)) / (2 * float(ndtri(min(high, most))))
