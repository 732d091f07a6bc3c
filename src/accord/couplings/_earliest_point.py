"""The earliest point under a law's density, among points with a height: Couple I as it was first stated."""

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from accord.core.shared import SharedRandomness
from accord.couplings._point_race import NONE
from accord.couplings._rows import Rows, groups
from accord.couplings.reference import BATCH, TupleReference

__all__ = ["LAYER_BITS", "earliest_point"]

LAYER_BITS = 40
"""A point's number is its layer times 2^40, plus its place in that layer."""

_FIRST_WINDOW, _GROWTH = 0.25, 1.3
_FEW_POINTS = 4.0

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]


def earliest_point(
    rows: Rows,
    *,
    reference: TupleReference,
    records: int,
    draws: int,
    most_points: int,
    shared: SharedRandomness,
) -> tuple[_Integers, _Integers]:
    """Return the number of the point that each law takes in each draw, `NONE` for none, and how many points it read.

    Points (y, s, t) have rate ``nu(dy) ds dt`` on s > 0. Layer 0 holds the heights s in (0, 1), layer i those in
    ``(2^(i-1), 2^i)``; each layer is a process of its own, so the points below any height are the same whatever
    envelope M a law has. A law looks at layers 0 to ``ceil(log2 M)`` and takes the earliest point with ``s <= f(y)``;
    it reads (evaluates, in effect) those with s < M. After ``most_points`` points of its layers it takes none.
    """
    bounds = rows.log_bounds()
    able = (bounds > -np.inf) & (bounds <= np.log(most_points))
    tops = np.zeros(len(bounds), dtype=np.int64)
    tops[able] = np.maximum(0, np.ceil(bounds[able] / np.log(2))).astype(np.int64)
    taken = np.full((draws, len(bounds)), NONE, dtype=np.int64)
    read = np.zeros((draws, len(bounds)), dtype=np.int64)
    size = max(1, reference.points(0, 0, records=records, shared=shared).size // BATCH)
    for top in sorted(set(tops[able].tolist())):
        laws = np.flatnonzero(able & (tops == top))
        for group in groups(draws, numbers=size << top):
            layers = [
                [_Layer(draw, layer, reference=reference, records=records, shared=shared) for layer in range(top + 1)]
                for draw in group
            ]
            search = _Search(laws, bounds[laws], draws=len(group), most_points=most_points)
            end = max(_FIRST_WINDOW, _FEW_POINTS / 2.0**top)
            while search.running.any():
                search.see(rows, [_merged([layer.window(end) for layer in draw]) for draw in layers])
                end *= _GROWTH
            taken[group.start : group.stop, laws] = search.taken
            read[group.start : group.stop, laws] = search.read
    return taken, read


class _Window(NamedTuple):
    """Points of a window of time, by time."""

    points: NDArray[Any]
    times: _Floats
    log_heights: _Floats
    numbers: _Integers

    def at(self, place: slice | NDArray[np.intp]) -> "_Window":
        """Return the points at these places."""
        return _Window(self.points[place], self.times[place], self.log_heights[place], self.numbers[place])

    def followed_by(self, *others: "_Window") -> "_Window":
        """Return the points of all, one after the other."""
        parts = (self, *others)
        return _Window(
            np.concatenate([part.points for part in parts]),
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.log_heights for part in parts]),
            np.concatenate([part.numbers for part in parts]),
        )

    def in_order(self) -> "_Window":
        """Return the points by time, by number among equals."""
        return self.at(np.lexsort((self.numbers, self.times)))


def _merged(windows: list[_Window]) -> _Window:
    first, *others = windows
    return first.followed_by(*others).in_order() if others else first


@final
class _Layer:
    """The points of one layer of heights in one draw, read forwards in time."""

    __slots__ = ("_ahead", "_draw", "_known", "_layer", "_records", "_reference", "_shared", "_time")

    def __init__(
        self, draw: int, layer: int, *, reference: TupleReference, records: int, shared: SharedRandomness
    ) -> None:
        self._draw = draw
        self._layer = layer
        self._reference = reference
        self._records = records
        self._shared = shared
        self._known = 0  # batches read
        self._time = 0.0  # of the last point read
        self._ahead: _Window | None = None

    def window(self, end: float) -> _Window:
        """Return the points after those returned before, up to this time."""
        ahead = self._batch() if self._ahead is None else self._ahead
        while ahead.times[-1] <= end:
            more = self._batch()
            ahead = ahead.followed_by(more)
        now = int(np.searchsorted(ahead.times, end, side="right"))
        self._ahead = ahead.at(slice(now, None))
        return ahead.at(slice(now))

    def _batch(self) -> _Window:
        batch = (self._layer << LAYER_BITS) // BATCH + self._known
        low, width = (0.0, 1.0) if self._layer == 0 else (2.0 ** (self._layer - 1),) * 2
        stream = self._shared.stream("poisson", "arrivals", self._draw, batch)
        times = self._time + np.cumsum(stream.standard_exponential(BATCH)) / width
        heights = low + width * stream.random(BATCH)
        points = self._reference.points(self._draw, batch, records=self._records, shared=self._shared)
        with np.errstate(divide="ignore"):
            logs = np.log(heights)
        self._known += 1
        self._time = float(times[-1])
        return _Window(points, times, logs, batch * BATCH + np.arange(BATCH, dtype=np.int64))


@final
class _Search:
    """Where each law stands in each draw of a group; a law's entries are a function of that law alone."""

    __slots__ = ("_bounds", "_laws", "_looked", "_most", "read", "running", "taken")

    def __init__(self, laws: NDArray[np.intp], bounds: _Floats, *, draws: int, most_points: int) -> None:
        shape = draws, len(laws)
        self._laws = laws
        self._bounds = bounds
        self._most = most_points
        self._looked = np.zeros(shape, dtype=np.int64)
        self.running = np.ones(shape, dtype=bool)
        self.taken = np.full(shape, NONE, dtype=np.int64)
        self.read = np.zeros(shape, dtype=np.int64)

    def see(self, rows: Rows, windows: list[_Window]) -> None:
        """Let the laws that still look in any of these draws see the next window of each."""
        needed = np.flatnonzero(self.running.any(axis=0))
        points = np.concatenate([window.points for window in windows])
        if len(points) == 0:
            return
        ratios = rows.log_ratios(points, self._laws[needed])
        start = 0
        for draw, window in enumerate(windows):
            stop = start + len(window.times)
            if stop > start:
                self._see_draw(draw, window, ratios[:, start:stop], needed)
            start = stop

    def _see_draw(self, draw: int, window: _Window, ratios: _Floats, needed: NDArray[np.intp]) -> None:
        count = len(window.times)
        accepted = (window.log_heights <= ratios) & (ratios > -np.inf)
        found = accepted.any(axis=1)
        first = np.where(found, accepted.argmax(axis=1), count - 1)
        below = np.cumsum(window.log_heights < self._bounds[needed][:, None], axis=1)
        running = self.running[draw, needed]
        self.read[draw, needed] += running * np.take_along_axis(below, first[:, None], axis=1)[:, 0]
        self._looked[draw, needed] += running * (first + 1)
        within = self._looked[draw, needed] <= self._most
        self.taken[draw, needed] = np.where(running & found & within, window.numbers[first], self.taken[draw, needed])
        self.running[draw, needed] = running & ~found & within
