"""Count records, each unit of privacy with the same weight, in whole numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.errors import DataError, InvalidParameter

__all__ = ["WHOLE", "Counted", "unit_weights"]

Ints = NDArray[np.int64]
WHOLE = 2520
"""What a unit's records weigh together where units are given: divisible by 1 to 10, so that few weights are uneven."""

_MOST_CELLS = 1 << 22


@final
@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Records whose tables are to be counted.

    Parameters
    ----------
    codes
        Shape (n, d), in the domain.
    shape
        Number of codes of each column.
    weights
        Whole numbers, shape (n,); None where each record weighs 1.
    total
        Sum of the weights, public.

    """

    codes: Ints
    shape: tuple[int, ...]
    weights: Ints | None
    total: int

    def table(self, columns: Sequence[int]) -> Ints:
        """Return the weight of each cell, flat; the last column changes fastest."""
        cells = 1
        place = np.zeros(len(self.codes), dtype=np.int64)
        for column in columns:
            place *= self.shape[column]
            place += self.codes[:, column]
            cells *= self.shape[column]
        if self.weights is None:
            return np.bincount(place, minlength=cells).astype(np.int64)
        # Sums of whole numbers below 2^53 are exact in floats.
        return np.bincount(place, weights=self.weights, minlength=cells).astype(np.int64)

    def product(self, left: int, right: int, scores: Sequence[Ints]) -> int:
        """Return the weighted sum of the product of two columns' scores."""
        products = scores[left][self.codes[:, left]] * scores[right][self.codes[:, right]]
        return int(products.sum() if self.weights is None else (products * self.weights).sum())

    def recoded(self, maps: Sequence[Ints], shape: tuple[int, ...]) -> "Counted":
        """Return the same records with codes replaced, column by column, and equal ones put together."""
        codes = [codes_of[self.codes[:, column]] for column, codes_of in enumerate(maps)]
        if math.prod(shape) > _MOST_CELLS:
            return Counted(np.stack(codes, axis=1), shape, self.weights, self.total)
        place = np.ravel_multi_index(codes, shape)
        cells = np.bincount(place, weights=self.weights, minlength=1)
        present = np.flatnonzero(cells)
        weights = cells[present].astype(np.int64)
        return Counted(np.stack(np.unravel_index(present, shape), axis=1), shape, weights, self.total)


def unit_weights(units: ArrayLike, *, records: int) -> tuple[Ints, int]:
    """Return the weight of each record and the number of units.

    The r records of a unit share `WHOLE` evenly in whole numbers, in the order of the file: record j of them weighs
    ``floor((j + 1) WHOLE / r) - floor(j WHOLE / r)``.

    Raises
    ------
    DataError
        If a unit is missing.
    InvalidParameter
        If there is not one name a record.

    """
    number = _numbers(units)
    if number.shape != (records,):
        raise InvalidParameter("units must name one unit a record.")
    counts = np.bincount(number)
    order = np.argsort(number, kind="stable")
    starts = np.cumsum(counts) - counts
    rank = np.empty(records, dtype=np.int64)
    rank[order] = np.arange(records) - np.repeat(starts, counts)
    size = counts[number]
    return (rank + 1) * WHOLE // size - rank * WHOLE // size, len(counts)


def _numbers(units: ArrayLike) -> Ints:
    """Return the number of each record's unit."""
    if isinstance(units, np.ma.MaskedArray) and np.ma.is_masked(units):
        raise DataError("a record has no unit of privacy: give every record one.")
    if isinstance(units, np.ndarray) and units.dtype.kind in "iu":
        return np.unique(units, return_inverse=True)[1].astype(np.int64).reshape(units.shape)
    known: dict[Any, int] = {}
    names = list(units) if isinstance(units, (list, tuple)) else np.asarray(units).tolist()
    if not isinstance(names, list):
        raise InvalidParameter("units must be one name a record, shape (n,).")
    return np.array([_number(name, known) for name in names], dtype=np.int64)


def _number(name: object, known: dict[Any, int]) -> int:
    try:
        missing = name is None or bool(name != name)  # noqa: PLR0124 - NaN and its like
        if not missing:
            return known.setdefault(name, len(known))
    except (TypeError, ValueError):
        raise DataError("a unit of privacy must be a plain name: text, a number or a tuple of these.") from None
    raise DataError("a record has no unit of privacy: give every record one.")
