"""Laws of whole numbers with whole-number probabilities: what is drawn and what is weighed are one law, exactly.

A column of a record is a number g of a public grid, or of a label. Its law is a table of cuts
``0 = c_0 <= c_1 <= ... <= c_n = 2^62``: a uniform integer u below 2^62 falls between two cuts and so picks a cell, and
``c_(i+1) - c_i`` is the cell's weight. Floats decide what the cuts are, once; everything after is integers.

In a column that depends on earlier ones (a normal law on R^d) the table is moved by a whole number of cells and one of
`SHIFTS` tables is taken, for the fraction; both are functions of the earlier numbers by correctly rounded products and
sums, taken one after the other, so that they are the same for whoever computes them, alone or in a batch.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["BITS", "SHIFTS", "WHOLE", "Column", "Component", "GridLaw", "Integers"]

BITS = 62
WHOLE = 1 << BITS
SHIFTS = 16
"""A table's place is rounded to this fraction of a cell where it depends on other columns."""

_FARTHEST = 2.0**50
_STEEPEST = 2.0**100  # products and sums of these and of numbers of cells are finite

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The law of one column, given the columns before it.

    Parameters
    ----------
    first
        The number of the first cell, before any move.
    cuts
        Shape (tables, cells + 1): from 0 to 2^62, rising.
    start
        The first of the earlier columns that matter; those from here to the column itself are read.
    centre, slopes
        The move is ``centre + sum_j slopes[j] * g_(start + j)`` cells. No slopes, no move, one table.
    names
        For labels, whose numbers have gaps: the number of each cell, rising; ``first`` is 0 then.

    """

    first: int
    cuts: Integers
    start: int = 0
    centre: float = 0.0
    slopes: tuple[float, ...] = ()
    names: Integers | None = None
    logs: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Add the logs of the weights, -inf outside the table on both sides."""
        weights = np.diff(self.cuts, axis=1)
        right = self.cuts.ndim == 2 and weights.size > 0 and bool((weights >= 0).all())
        if not right or (self.cuts[:, 0] != 0).any() or (self.cuts[:, -1] != WHOLE).any():
            raise ArithmeticError("cuts must rise from 0 to 2^62")
        if not (np.abs((self.centre, *self.slopes)) < _STEEPEST).all():
            raise ArithmeticError("a column must depend on the others by numbers of moderate size")
        logs = np.full((weights.shape[0], weights.shape[1] + 2), -np.inf)
        np.log(weights, out=logs[:, 1:-1], where=weights > 0)
        object.__setattr__(self, "logs", logs)

    def _move(self, cells: Integers) -> tuple[Integers | int, Integers | int]:
        """Return how far the table moves, and which table it is, at records of shape (d, n)."""
        if not self.slopes:
            return 0, 0
        place = np.full(cells.shape[1], self.centre)
        for slope, earlier in zip(self.slopes, cells[self.start :], strict=False):
            place = place + slope * earlier.astype(np.float64)
        whole = np.floor(np.clip(place, -_FARTHEST, _FARTHEST) * SHIFTS + 0.5).astype(np.int64)
        return whole // SHIFTS, whole % SHIFTS

    def _entries(self, number: int, cells: Integers) -> tuple[Integers | int, Integers]:
        """Return table and place in ``logs`` of column ``number`` of the records, the ends standing for outside."""
        if self.names is not None:
            place = np.searchsorted(self.names, cells[number])
            found = self.names[np.minimum(place, len(self.names) - 1)] == cells[number]
            return 0, np.where(found, place + 1, 0)
        move, table = self._move(cells)
        return table, np.clip(cells[number] - (move + (self.first - 1)), 0, self.cuts.shape[1])

    def log_weights(self, number: int, cells: Integers) -> Floats:
        """Return the log weight of column ``number`` of records of shape (d, n), given the columns before it."""
        table, entry = self._entries(number, cells)
        values: Floats = self.logs[table, entry]
        return values

    def weights(self, number: int, cells: Integers) -> Integers:
        """Return the weight, in units of 2^-62."""
        table, entry = self._entries(number, cells)
        inside = (entry > 0) & (entry < self.cuts.shape[1])
        left = np.where(inside, entry - 1, 0)
        return np.where(inside, self.cuts[table, left + 1] - self.cuts[table, left], 0)

    def find(self, draws: Integers, cells: Integers) -> Integers:
        """Return the cell into which each of the uniform integers below 2^62 falls, given the columns before it."""
        move, table = self._move(cells)
        if isinstance(table, int):
            taken = np.searchsorted(self.cuts[0], draws, side="right") - 1
            return self.first + taken if self.names is None else self.names[taken]
        places = np.empty(len(draws), dtype=np.int64)
        order = np.argsort(table, kind="stable")
        ends = np.searchsorted(table[order], np.arange(SHIFTS + 1))
        for shift, (low, high) in enumerate(pairwise(ends)):
            here = order[low:high]
            places[here] = np.searchsorted(self.cuts[shift], draws[here], side="right")
        return places + (move + (self.first - 1))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """One part of a mixture: its weight in units of 2^-62, and its columns."""

    weight: int
    columns: tuple[Column, ...]

    def log_weights(self, cells: Integers) -> Floats:
        """Return the log weight of each record, its share of the mixture left out, shape (n,) from (d, n)."""
        total: Floats = sum((c.log_weights(j, cells) for j, c in enumerate(self.columns)), np.zeros(cells.shape[1]))
        return total

    def weights(self, cells: Integers) -> list[int]:
        """Return the weight of each record, its share of the mixture left out, in units of 2^(-62 d)."""
        product = [1] * cells.shape[1]
        for number, column in enumerate(self.columns):
            product = [a * b for a, b in zip(product, column.weights(number, cells).tolist(), strict=True)]
        return product


@final
@dataclass(frozen=True, slots=True, eq=False)
class GridLaw:
    """A law on records of whole numbers: a mixture of components with the same kinds of columns.

    Parameters
    ----------
    kinds
        One letter a column: "n" for numbers, "l" for labels. Records of different kinds are different.
    components
        Their weights sum to 2^62.

    """

    kinds: str
    components: tuple[Component, ...]

    def __post_init__(self) -> None:
        """Check that it is a law."""
        fitting = all(len(part.columns) == len(self.kinds) for part in self.components)
        if not fitting or not self.kinds or sum(part.weight for part in self.components) != WHOLE:
            raise ArithmeticError("components must have the columns that kinds names, and weights that sum to 2^62")

    def log_weights(self, cells: Integers) -> Floats:
        """Return the log probability of each record up to a constant common to all laws, shape (n,) from (d, n)."""
        if len(self.components) == 1:
            return self.components[0].log_weights(cells)
        rows = [part.log_weights(cells) + np.log(part.weight / WHOLE) for part in self.components if part.weight]
        return np.asarray(np.logaddexp.reduce(rows, axis=0))

    def tuple_weight(self, cells: Integers) -> int:
        """Return the probability of a tuple of records, shape (d, l), in units of 2^(-62 l (d + 1))."""
        columns = [(part.weight, part.weights(cells)) for part in self.components if part.weight]
        product = 1
        for record in range(cells.shape[1]):
            product *= sum(share * weights[record] for share, weights in columns)
        return product

    def draw(self, choices: Integers, draws: Integers, cells: Integers) -> None:
        """Fill ``cells`` (d, n) with records picked by uniform integers below 2^62.

        Parameters
        ----------
        choices
            Shape (n,): pick the component; not read if there is one.
        draws
            Shape (at least d, n): pick the cells.
        cells
            Filled in the columns of this law.

        """
        picked = np.zeros(cells.shape[1], dtype=np.int64)
        if len(self.components) > 1:
            ends = np.cumsum([part.weight for part in self.components])
            picked = np.searchsorted(ends, choices, side="right")
        for number, part in enumerate(self.components):
            here = np.flatnonzero(picked == number) if len(self.components) > 1 else np.arange(len(picked))
            if len(here) == 0:
                continue
            own = np.zeros((len(self.kinds), len(here)), dtype=np.int64)
            for position, column in enumerate(part.columns):
                own[position] = column.find(draws[position, here], own)
            cells[: len(self.kinds), here] = own
