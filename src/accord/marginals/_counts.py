"""Count records, each unit of privacy with the same weight, in whole numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core.records import Records

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


def unit_weights(records: Records) -> Ints | None:
    """Return the weight of each record, shape (n,); None where each is a unit of its own and weighs 1.

    The r records of a unit share `WHOLE` evenly in whole numbers, in the order of the file: record j of them weighs
    ``floor((j + 1) WHOLE / r) - floor(j WHOLE / r)``.
    """
    if records.owners is None:
        return None
    counts = np.bincount(records.owners)
    order = np.argsort(records.owners, kind="stable")
    starts = np.cumsum(counts) - counts
    rank = np.empty(records.size, dtype=np.int64)
    rank[order] = np.arange(records.size) - np.repeat(starts, counts)
    size = counts[records.owners]
    return (rank + 1) * WHOLE // size - rank * WHOLE // size
