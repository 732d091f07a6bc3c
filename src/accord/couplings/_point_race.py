"""A race of laws along the points of one process: who takes which point, and when that is certain."""

from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.shared import SharedRandomness
from accord.couplings._rows import Rows, groups
from accord.couplings.reference import BATCH, TupleReference

__all__ = ["NONE", "point_race", "stages"]

NONE = -1
"""In place of a point's number, where a law takes none."""

_GROWTH = 4

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]


def stages(most_points: int) -> list[tuple[int, int]]:
    """Return the first and last (not included) numbers of points looked at together: 8, 8, 16, 32, then a quarter more.

    A function of public numbers, so which points are evaluated together says nothing about other laws.
    """
    ends = [0, 8, 16, 32, BATCH]
    while ends[-1] < most_points:
        ends.append(ends[-1] + BATCH * max(1, ends[-1] // BATCH // _GROWTH))
    ends = [end for end in ends if end < most_points] + [most_points]
    return list(pairwise(ends))


def point_race(
    rows: Rows,
    *,
    reference: TupleReference,
    records: int,
    draws: int,
    most_points: int,
    shared: SharedRandomness,
) -> tuple[_Integers, _Integers]:
    """Return the number of the point that each law takes in each draw, `NONE` for none, and how many points it read.

    With T_j the arrivals of a unit-rate process and r_j the law's log ratio at point j, it takes the least
    ``log T_j - r_j``, the first among equals. It reads point j only while ``log T_j - bound`` is below the best so far:
    no later point can do better. Where the bound is unknown it reads ``most_points`` points and takes the best.
    """
    bounds = rows.log_bounds()
    taken = np.full((draws, len(bounds)), NONE, dtype=np.int64)
    read = np.zeros((draws, len(bounds)), dtype=np.int64)
    size = max(1, reference.points(0, 0, records=records, shared=shared).size // BATCH)
    for group in groups(draws, numbers=BATCH * size):
        runners = _Runners(bounds, draws=len(group))
        processes = [_Process(draw, reference=reference, records=records, shared=shared) for draw in group]
        for first, last in stages(most_points):
            if not runners.running.any():
                break
            cut = [process.cut(first, last) for process in processes]
            for part in groups(len(group), numbers=size * (last - first)):
                runners.see(rows, [cut[place] for place in part], part, first=first)
        taken[group.start : group.stop] = runners.results()
        read[group.start : group.stop] = runners.read
    return taken, read


@final
class _Process:
    """The points and arrivals of one draw, read forwards; what lies behind is forgotten."""

    __slots__ = ("_arrivals", "_draw", "_known", "_points", "_records", "_reference", "_shared")

    def __init__(self, draw: int, *, reference: TupleReference, records: int, shared: SharedRandomness) -> None:
        self._draw = draw
        self._reference = reference
        self._records = records
        self._shared = shared
        self._known = 0  # batches read
        self._points: NDArray[Any] | None = None
        self._arrivals: _Floats = np.zeros(0)

    def cut(self, first: int, last: int) -> tuple[NDArray[Any], _Floats]:
        """Return points and log arrivals number ``first`` up to ``last``; starts never go backwards."""
        while self._known * BATCH < last:
            self._append()
        points = self._points
        if points is None:
            raise AssertionError("a cut of no points")
        offset = self._known * BATCH - len(points)
        self._points, self._arrivals = points[first - offset :], self._arrivals[first - offset :]
        return self._points[: last - first], np.log(self._arrivals[: last - first])

    def _append(self) -> None:
        gaps = self._shared.stream("poisson", "arrivals", self._draw, self._known).standard_exponential(BATCH)
        start = self._arrivals[-1] if len(self._arrivals) else 0.0
        arrivals = start + np.cumsum(gaps)
        points = self._reference.points(self._draw, self._known, records=self._records, shared=self._shared)
        self._arrivals = np.concatenate([self._arrivals, arrivals])
        self._points = points if self._points is None else np.concatenate([self._points, points])
        self._known += 1


@final
class _Runners:
    """Where each law stands in each draw of a group; a law's entries are a function of that law alone."""

    __slots__ = ("_best", "_bounded", "_bounds", "_winner", "read", "running")

    def __init__(self, bounds: _Floats, *, draws: int) -> None:
        shape = draws, len(bounds)
        self._bounds = bounds
        self._bounded = bounds < np.inf
        self._best: _Floats = np.full(shape, np.inf)
        self._winner = np.full(shape, NONE, dtype=np.int64)
        self.read = np.zeros(shape, dtype=np.int64)
        self.running: NDArray[np.bool_] = np.tile(bounds > -np.inf, (shape[0], 1))

    def see(self, rows: Rows, cut: list[tuple[NDArray[Any], _Floats]], part: range, *, first: int) -> None:
        """Let the laws that still run in any of these draws see the points that these draws have next."""
        here = slice(part.start, part.stop)
        needed = np.flatnonzero(self.running[here].any(axis=0))
        if len(needed) == 0:
            return
        points = np.concatenate([points for points, _ in cut])
        logs = np.array([arrivals for _, arrivals in cut])  # (draws, points)
        ratios = rows.log_ratios(points, needed).reshape(len(needed), *logs.shape).swapaxes(0, 1)
        scores = logs[:, None, :] - ratios
        # What is best before each point, and from where on no point can be better.
        best = np.minimum.accumulate(np.concatenate([self._best[here][:, needed, None], scores], axis=2), axis=2)
        ends = logs[:, None, :] - self._bounds[needed][None, :, None] >= best[:, :, :-1]
        ends &= self._bounded[needed][None, :, None]
        seen = np.where(ends.any(axis=2), ends.argmax(axis=2), logs.shape[1])
        seen *= self.running[here][:, needed]
        masked = np.where(np.arange(logs.shape[1]) < seen[:, :, None], scores, np.inf)
        place = masked.argmin(axis=2)
        score = np.take_along_axis(masked, place[:, :, None], axis=2)[:, :, 0]
        better = score < self._best[here][:, needed]
        box = np.ix_(np.arange(part.start, part.stop), needed)
        self._best[box] = np.where(better, score, self._best[box])
        self._winner[box] = np.where(better, first + place, self._winner[box])
        self.read[box] += seen
        self.running[box] &= seen == logs.shape[1]

    def results(self) -> _Integers:
        """Return who took what: a law with a known bound that has not finished takes nothing."""
        unfinished = self.running & self._bounded
        return np.where(unfinished, NONE, self._winner)
