"""Sets on which one candidate is greater than another, as unions of cells, and what each candidate gives them.

There is one set for each pair i < j of candidates: the cells to which candidate i gives more than candidate j. Where
the cells are the points of a finite space, these are the Yatracos sets themselves.
"""

from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

__all__ = ["CellSets", "Cells", "PublicSets", "cell_sets"]

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class PublicSets(Protocol):
    """A family of sets, fixed before any record is seen."""

    @property
    def measures(self) -> _Floats:
        """What each of N candidates gives each of S sets, shape (N, S)."""

    @property
    def error(self) -> float:
        """Bound on the error of each entry of `measures`."""

    @property
    def gap(self) -> float:
        """For all i < j: TV(q_i, q_j) is at most ``q_i(A) - q_j(A)`` plus this, A being the pair's set."""

    @property
    def ends(self) -> int | None:
        """Most ends of intervals that make up a set, where the sets lie on a line."""

    def frequencies(self, records: NDArray[Any]) -> _Floats:
        """Return the share of the records in each set, shape (S,); at least one record."""


class Cells(Protocol):
    """A partition of the space; records may be in no cell."""

    @property
    def count(self) -> int:
        """The number G of cells."""

    def places(self, records: NDArray[Any]) -> _Ints:
        """Return the cell of each record, shape (n,), and -1 for one in no cell."""


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CellSets:
    """Sets that are unions of cells.

    Parameters
    ----------
    cells
        G cells in a fixed order.
    steps
        Shape (S, G + 1): +1 where a run of cells in the set ends, -1 where one begins.
    measures, error, gap, ends
        See `PublicSets`.

    """

    cells: Cells
    steps: csr_matrix
    measures: _Floats
    error: float
    gap: float
    ends: int | None

    def frequencies(self, records: NDArray[Any]) -> _Floats:
        """Return the share of the records in each set, shape (S,); a record in no cell is in no set."""
        places = self.cells.places(records)
        counts = np.bincount(places[places >= 0], minlength=self.cells.count)
        below = np.concatenate(([0], np.cumsum(counts)))
        shares: _Floats = (self.steps @ below) / len(places)
        return shares


def cell_sets(cells: Cells, masses: _Floats, *, error: float, gap: float, least: float = 0.0) -> CellSets:
    """Return the sets of all pairs of candidates with these masses of cells, shape (N, G).

    A cell is in the set of i < j if candidate i gives it more than candidate j. Where the difference is at most
    ``least``, the cell goes with the one before it, so that rounding far out in a tail breaks no set into pieces.
    """
    below = np.concatenate((np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)), axis=1)
    steps, measures = [], []
    for first in range(len(masses) - 1):
        inside = np.pad(_members(masses[first] - masses[first + 1 :], least), ((0, 0), (1, 1))).astype(np.int8)
        turns = csr_matrix(inside[:, :-1] - inside[:, 1:])
        steps.append(turns)
        measures.append((turns @ below.T).T)
    empty = csr_matrix(np.zeros((0, masses.shape[1] + 1), dtype=np.int8))
    joined = csr_matrix(vstack([empty, *steps]))
    inner = joined[:, 1:-1]
    ends = int(np.diff(inner.indptr).max(initial=0))
    table = np.concatenate([np.zeros((len(masses), 0)), *measures], axis=1)
    table.flags.writeable = False
    return CellSets(cells=cells, steps=joined, measures=table, error=error, gap=gap, ends=ends)


def _members(differences: _Floats, least: float) -> NDArray[np.bool_]:
    """Return which cells are in each set, shape (m, G); see `cell_sets`."""
    more = differences > 0
    if least == 0:
        return more
    clear = np.abs(differences) > least
    last = np.maximum.accumulate(np.where(clear, np.arange(differences.shape[1]), -1), axis=1)
    leader = np.where(last < 0, clear.argmax(axis=1)[:, None], last)
    return np.take_along_axis(more, leader, axis=1)
