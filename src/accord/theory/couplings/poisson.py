"""Couple I: one Poisson process over a public reference law gives every law its own tuple."""

import struct
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import ABSTAIN, Abstain, Distribution, Premises, Vote
from accord.core.errors import InvalidParameter
from accord.core.points import BatchedPoints, Points, PointsCoupling
from accord.core.shared import SharedRandomness, require_shared
from accord.couplings.reference import BATCH, IidReference, TupleReference
from accord.couplings.rows import Rows, groups, rows_apart
from accord.distributions import Categorical

__all__ = [
    "LAYER_BITS",
    "NONE",
    "PoissonCoupling",
    "earliest_point",
    "point_race",
    "stages",
]


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


LAYER_BITS = 40
"""A point's number is its layer times 2^40, plus its place in that layer."""

_FIRST_WINDOW, _WINDOW_GROWTH = 0.25, 1.3
_FEW_POINTS = 4.0


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
                end *= _WINDOW_GROWTH
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


_MOST_POINTS = 1 << 14
_RULES = {"race": point_race, "earliest": earliest_point}


@final
@dataclass(frozen=True, slots=True, init=False)
class PoissonCoupling(PointsCoupling):
    """Couple tuples along the points of a shared Poisson process, drawn from a public reference law nu.

    Points ``Y_1, Y_2, ...`` are independent tuples from nu, with arrival times ``T_1 < T_2 < ...`` of a process of unit
    rate. By the rule ``"race"`` a law with density f takes the point with the least ``T_j / f(Y_j)``. By the rule
    ``"earliest"`` each point also has a height s, and a law takes the earliest point with ``s <= f(y)``.

    Formal guarantees
    -----------------
    - Marginal: a block's tuple has law ``q^l``, if ``q^l`` has a bounded density with respect to nu and the bound is
      known; up to the rounding of floats. A part of q where nu has nothing is never taken: then it is q given the rest.
    - Agreement of the race: with probability ``int nu(dy) / int max(p(x)/p(y), q(x)/q(y)) nu(dx)``, at least
      ``(1 - TV) / (1 + TV)`` of the laws of tuples. Of the earliest point: ``(1 - TV) / (1 + TV)`` if nu has no atoms.
    - Isolation: by its form (`accord.core.PointsCoupling`).
    - Cost: a law reads ``M = sup f`` points on average; it abstains if it has not finished after ``most_points``, which
      has probability about ``exp(-most_points / M)``. Points are drawn once for all laws.
    - Where no bound of f is known, the race takes the best of exactly ``most_points`` points: its law is then that of
      self-normalised importance sampling, off by about ``E[f^2] / most_points`` in total variation (f^2 under nu), and
      nothing is promised where that is infinite. The earliest point abstains.
    - Not promised: any privacy; a bound of M for tuples, which is the power l of that of one record: for long tuples
      take a reference on a statistic, or close to the laws.

    Parameters
    ----------
    reference
        A `Distribution`, public, that is a probability: then a tuple is l independent records of it. Or any
        `TupleReference`. Uniform laws on boxes serve for Lebesgue measure, on lists for counting measure
        (`counting`).
    rule
        The race agrees more often and does not mind a density that is off by a factor. The earliest point is the
        original rule.
    most_points
        The most points that a law reads in a draw; for the earliest point, that it looks at. At most 2^40.

    Raises
    ------
    InvalidParameter
        If the reference is neither, or a parameter is out of its range.

    Source
    ------
    theory 4 (L1, L3, L4), 8 (S1, S2); Li and El Gamal (arXiv:1701.02827), Angel and Spinka (arXiv:1903.00632); proof
    page ``docs/proofs/poisson.md``.

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> coupling = PoissonCoupling(Normal(0, 9))
    >>> laws = [Normal(0, 1), Normal(0.01, 1), ABSTAIN]
    >>> coupled = coupling.couple(laws, records=1, draws=4, shared=SharedRandomness(1))
    >>> coupled.keys.shape, coupled.keys[0, 2], len(coupled.keys[0, 0])
    ((4, 3), ABSTAIN, 8)
    >>> [bool(a == b) for a, b, _ in coupled.keys]
    [True, True, True, True]
    >>> coupled.decode(0, coupled.keys[0, 0]).shape
    (1, 1)

    """

    reference: TupleReference
    rule: Literal["race", "earliest"]
    most_points: int

    def __init__(
        self,
        reference: Distribution | TupleReference,
        *,
        rule: Literal["race", "earliest"] = "race",
        most_points: int = _MOST_POINTS,
    ) -> None:
        if isinstance(reference, Distribution):
            reference = IidReference(reference)
        if not isinstance(reference, TupleReference):
            raise InvalidParameter("reference must be a public distribution, such as Normal, or a reference on tuples.")
        if not isinstance(rule, str) or rule not in _RULES:
            raise InvalidParameter("rule must be 'race' or 'earliest'.")
        _check.store(self, reference=reference, rule=rule)
        most = _check.integer("most_points", most_points, least=1, most=1 << LAYER_BITS)
        _check.store(self, most_points=most)

    @classmethod
    def counting(
        cls,
        categories: Iterable[Hashable],
        *,
        rule: Literal["race", "earliest"] = "race",
        most_points: int = _MOST_POINTS,
    ) -> Self:
        """Return the coupling over counting measure on a public list of labels."""
        labels = tuple(categories)
        return cls(Categorical(labels, np.ones(len(labels))), rule=rule, most_points=most_points)

    def premises(self, *, records: int) -> Premises:  # noqa: ARG002 - the same for all
        """Return marginals, and agreement by the total variation of tuples."""
        return Premises(marginals=True, agreement="tuples")

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> Points | BatchedPoints:
        """Return the process of all draws; laws are those that the reference can read.

        A law of which it sees nothing, and one that raises or is NaN, abstains.
        """
        size = _check.integer("records", records, least=1)
        return rows_apart(_Processes(self, size, draws, shared), reference=self.reference)

    def points_read(
        self, laws: Sequence[Distribution | Abstain], *, records: int, draws: int, shared: SharedRandomness
    ) -> NDArray[np.int64]:
        """Return how many points each law reads in each draw, shape (draws, k): its cost, which tells of the data."""
        size = _check.integer("records", records, least=1)
        rounds = _check.integer("draws", draws, least=1)
        return _Processes(self, size, rounds, require_shared(shared)).taken(laws)[1]


@final
@dataclass(frozen=True, slots=True)
class _Processes:
    """The points of a number of draws, and who takes which."""

    coupling: PoissonCoupling
    records: int
    draws: int
    shared: SharedRandomness

    def votes_of(self, given: Sequence[Distribution | Abstain]) -> list[list[Vote]]:
        """Return the number of the point that each law takes in each draw."""
        taken, _ = self.taken(given)
        return [[ABSTAIN if own == NONE else struct.pack("<q", own) for own in column] for column in taken.T.tolist()]

    def taken(self, laws: Sequence[Distribution | Abstain]) -> tuple[_Integers, _Integers]:
        """Return who takes which point, and how many points each law read; shape (draws, k)."""
        if len(laws) == 0:
            return np.empty((self.draws, 0), dtype=np.int64), np.empty((self.draws, 0), dtype=np.int64)
        reference = self.coupling.reference
        with np.errstate(all="ignore"):
            return _RULES[self.coupling.rule](
                Rows(laws, reference=reference, records=self.records),
                reference=reference,
                records=self.records,
                draws=self.draws,
                most_points=self.coupling.most_points,
                shared=self.shared,
            )

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        """Return the records of the point with a number, shape (l, d): its batch is drawn again."""
        (number,) = struct.unpack("<q", key)
        reference = self.coupling.reference
        batch = reference.points(int(draw), number // BATCH, records=self.records, shared=self.shared)
        point = batch[number % BATCH]
        return np.asarray(
            reference.decode(point, draw=int(draw), number=number, records=self.records, shared=self.shared)
        )
