"""Cut the line into cells fine enough to tell candidates apart as well as their densities do, up to a proved gap."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from accord.core.coupling import Distribution, Measure
from accord.core.shared import SharedRandomness
from accord.distributions import Bounded, OnALine, bounded, on_a_line

__all__ = [
    "CellSets",
    "Cells",
    "LineCells",
    "PublicSets",
    "cell_sets",
    "cut_line",
    "line_laws",
]


_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

_KEY = "minimum distance: where the candidates are"
_FIRST_DRAWS = 64
_FIRST_CUTS = 256
_FEW_CELLS = 1 << 13
_CELLS_FOR_GAP = 24
_ROUNDS = 200
_SHARE = 0.3
_ROUNDING = 1e-11


@final
@dataclass(frozen=True, slots=True, eq=False)
class LineCells:
    """The cells ``(cut, next cut]``, and a ray at each end.

    Parameters
    ----------
    cuts
        Increasing, shape (G - 1,).

    """

    cuts: _Floats

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self.cuts) + 1

    def places(self, records: NDArray[Any]) -> _Ints:
        """Return the cell of each number, -1 for NaN and infinities, shape (n,) from (n,)."""
        return np.where(np.isfinite(records), np.searchsorted(self.cuts, records, side="left"), -1)


def line_laws(laws: Sequence[Distribution]) -> list[tuple[OnALine, Bounded]] | None:
    """Return the laws if each has a density on the line with known masses of intervals and bounds, else None."""
    found = []
    for law in laws:
        line, bound = on_a_line(law), bounded(law)
        if line is None or bound is None or law.measure is not Measure.LEBESGUE:
            return None
        found.append((line, bound))
    return found


def cut_line(laws: Sequence[tuple[OnALine, Bounded]], *, gap: float) -> tuple[LineCells, _Floats, float]:
    """Return cells, the mass of each under each law, shape (N, G), and the gap.

    Let e be, for a law and a cell, the lesser of its mass and of width times greatest density minus mass. By choosing
    the cells where one law's mass is greater, instead of the points where its density is, a pair loses in a cell at
    most the greater of their two e: the gap is the sum of the two greatest totals of e. Cells with a great e are halved
    and rays cut until the gap is what was asked for, or there are 8192 cells (or ``24 / gap``, if that is more).
    """
    most = max(_FEW_CELLS, math.ceil(_CELLS_FOR_GAP / gap))
    stream = SharedRandomness(_KEY)
    drawn = [np.asarray(law.sample(_FIRST_DRAWS, stream.stream(i))).ravel() for i, (law, _) in enumerate(laws)]
    pool = np.unique(np.concatenate(drawn).astype(np.float64))
    cuts = pool[np.unique(np.linspace(0, len(pool) - 1, _FIRST_CUTS).astype(int))]
    masses, losses = _measured(laws, cuts)
    for _ in range(_ROUNDS):
        room = most - len(cuts) - 1
        if _two_greatest(losses) <= gap or room <= 0 or len(laws) == 1:
            break
        open_laws = losses.sum(axis=1) > gap / 2
        finer = _refined(cuts, losses[open_laws].max(axis=0), room=room)
        if len(finer) == len(cuts):
            break
        cuts = finer
        masses, losses = _measured(laws, cuts)
    return LineCells(cuts), masses, _two_greatest(losses) + _ROUNDING


def _two_greatest(losses: _Floats) -> float:
    """Return the sum of the two greatest totals of a law's losses."""
    return float(np.sort(losses.sum(axis=1))[-2:].sum())


def _measured(laws: Sequence[tuple[OnALine, Bounded]], cuts: _Floats) -> tuple[_Floats, _Floats]:
    """Return mass and greatest loss of each cell under each law, shape (N, G) each."""
    ends = np.concatenate(([-np.inf], cuts, [np.inf]))
    low, high = cuts[:-1], cuts[1:]
    masses = np.array([law.interval(ends[:-1], ends[1:]) for law, _ in laws])
    losses = masses.copy()
    with np.errstate(all="ignore"):
        widths = np.log(high - low)
        for row, (_, law) in enumerate(laws):
            most = np.exp(law.log_density_bound(low[:, None], high[:, None]) + widths)
            spare = np.fmin(np.where(np.isnan(most), np.inf, most) - masses[row, 1:-1], masses[row, 1:-1])
            losses[row, 1:-1] = np.maximum(spare, 0.0)
    return masses, losses


def _refined(cuts: _Floats, loss: _Floats, *, room: int) -> _Floats:
    """Return more cuts: the cells that make up most of the loss are halved, a ray is cut a span farther out."""
    order = np.argsort(-loss, kind="stable")
    wanted = int(np.searchsorted(np.cumsum(loss[order]), _SHARE * loss.sum())) + 1
    chosen = order[: min(wanted, room)]
    span = max(float(cuts[-1] - cuts[0]), abs(float(cuts[0])) * 1e-6, 1e-300)
    fresh = [(cuts[at - 1] / 2 + cuts[at] / 2) for at in chosen if 0 < at < len(cuts)]
    fresh += [cuts[0] - span] if 0 in chosen else []
    fresh += [cuts[-1] + span] if len(cuts) in chosen else []
    added = np.array(fresh, dtype=np.float64)
    return np.unique(np.concatenate((cuts, added[np.isfinite(added)])))


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
