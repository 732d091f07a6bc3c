"""Tables of three to six columns at a few released groups a column: which there are, and how they lie in finer ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.marginals.domain import Column, ColumnKind
from accord.marginals.errors import Grouping

__all__ = ["Coarse", "cell_of", "coarse_tables", "coarser"]

Ints = NDArray[np.int64]
Table = tuple[int, ...]
_LEVELS = ((2, 6), (4, 4))
"""How many groups a column has at most, and of how many columns a table is at most, three or more."""
_MOST_TABLES = 8_000
_MOST_FINE = 1 << 16


@final
@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """One level: the coarse group of each group of each column, and how many coarse groups each column has.

    Parameters
    ----------
    maps
        For each column, the coarse group of each group.
    most
        Columns that a table of this level has at most.

    """

    maps: tuple[Ints, ...]
    most: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of coarse groups of each column."""
        return tuple(int(one.max(initial=0)) + 1 for one in self.maps)

    def keeps(self, table: Table) -> bool:
        """Whether nothing is put together in the columns of a table."""
        return all(len(self.maps[column]) == self.shape[column] for column in table)

    @staticmethod
    def levels(columns: Sequence[Column], groupings: Sequence[Grouping]) -> tuple["Coarse", ...]:
        """Return all levels of these groups: a function of released counts."""
        return tuple(
            Coarse(tuple(coarser(column, one, groups) for column, one in zip(columns, groupings, strict=True)), most)
            for groups, most in _LEVELS
        )


def coarser(column: Column, grouping: Grouping, most: int) -> Ints:
    """Return the coarse group of each group.

    Labels: the heaviest stay alone, the others are one group. Runs of neighbours otherwise, of noisy counts as equal as
    the groups allow; missing cells, where they are a group, stay alone.

    Parameters
    ----------
    column, grouping
        Of one column.
    most
        At most so many groups, besides that of missing cells.

    """
    size = grouping.groups
    if size <= most:
        return np.arange(size, dtype=np.int64)
    counts = np.maximum(grouping.counts, 0.0)
    if column.kind is ColumnKind.CATEGORY:
        found = np.full(size, most - 1, dtype=np.int64)
        found[np.argsort(-counts, kind="stable")[: most - 1]] = np.arange(most - 1)
        return found
    values = size - grouping.missing(column)
    steps = np.cumsum(counts[:values])
    marks = steps[-1] * np.arange(1, most) / most
    # The end of a run is the border nearest to its mark; borders stay apart.
    cuts = np.unique(np.clip([int(np.argmin(np.abs(steps - mark))) + 1 for mark in marks], 1, values - 1))
    runs = np.searchsorted(cuts, np.arange(values), side="right")
    return np.concatenate([runs, np.full(size - values, len(cuts) + 1)]).astype(np.int64)


def cell_of(table: Table, maps: Sequence[Ints], shape: Sequence[int]) -> Ints:
    """Return the cell of a table at coarse groups in which each cell of the table at all groups lies, flat.

    Parameters
    ----------
    table
        Columns.
    maps, shape
        Coarse group of each group of each column, and how many coarse groups it has.

    Examples
    --------
    >>> cell_of((0, 1), [np.array([0, 0, 1]), np.array([0, 1])], (2, 2)).tolist()
    [0, 1, 0, 1, 2, 3]

    """
    found = np.zeros(1, dtype=np.int64)
    for column in table:
        found = (found[:, None] * shape[column] + maps[column]).ravel()
    return found


def coarse_tables(levels: Sequence[Coarse], shape: Sequence[int]) -> list[tuple[int, Table]]:
    """Return tables of three to six columns with their level, as long as they are not many, small ones first.

    A level's number is its position and 1; 0 stands for all groups: so does a level that puts nothing together in a
    table. Tables of more cells than a fit should hold are left out, and columns of one group, which tell nothing.
    """
    useful = [column for column, size in enumerate(shape) if size > 1]
    seen: set[tuple[int, Table]] = set()
    for way in range(3, max(most for _, most in _LEVELS) + 1):
        sets = list(combinations(useful, way)) if math.comb(len(useful), way) <= _MOST_TABLES else []
        for number, level in enumerate(levels, start=1):
            if way > level.most or len(seen) + len(sets) > _MOST_TABLES:
                continue
            coarse = level.shape
            plain = [len(one) == size for one, size in zip(level.maps, coarse, strict=True)]
            for table in sets:
                if math.prod(shape[column] for column in table) <= _MOST_FINE:
                    seen.add((0 if all(plain[column] for column in table) else number, table))
        if not sets:
            break
    return sorted(seen, key=lambda one: (len(one[1]), one))
