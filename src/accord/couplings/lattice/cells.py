"""Cells of the lattice of normal laws, and the race over them."""

import math
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from accord.core.coupling import ABSTAIN, Vote
from accord.core.errors import FitFailed
from accord.core.shared import SharedRandomness, mix, uniform_open, word_at

__all__ = [
    "LOG_LIMIT",
    "MOST_CELLS",
    "CellRace",
    "Chart",
    "Floats",
    "Integers",
    "NormalCells",
    "Points",
    "Reach",
    "SeenLaw",
    "Words",
    "centred_basis",
    "depth_of",
    "scale_cells",
    "too_far",
    "too_many",
]


def centred_basis(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return B with columns of mean 0 and ``B^T B = I``, shape (l, d) as the noise.

    For standard normal noise B is uniform among all such matrices and independent of the noise's mean and scatter, so
    ``m + sqrt(l) B L^T`` are l records of a normal law, given that their mean is m and their scatter over l is L L^T.
    """
    basis, triangle = np.linalg.qr(noise - noise.mean(axis=0))
    basis *= np.sign(np.diag(triangle))
    return basis


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The public cells for tuples of ``records`` records in R^``dimension``.

    Coordinates of a cell, in order: lambda_1 .. lambda_d; the entries of R below its diagonal, column d - 1 first and
    each from top to bottom; m_1 .. m_d in the frame.
    """

    dimension: int
    records: int

    @property
    def size(self) -> int:
        """D, the number of coordinates."""
        return self.dimension + self.dimension * (self.dimension + 1) // 2

    @property
    def step(self) -> float:
        """Width of a cell in standard deviations; a trade between cells to list and points to try, found by timing."""
        return {1: 2.0, 2: 3.5, 3: 3.3}[self.dimension]

    @property
    def log_scale_width(self) -> float:
        """Width of a cell in lambda."""
        return min(1.0, self.step / math.sqrt(2.0 * self.records))

    def log_scales(self, cells: Integers) -> Floats:
        """Return log s_i, the centres in lambda, shape (n, d), for cells of shape (n, D)."""
        return np.asarray((cells[:, : self.dimension] + 0.5) * self.log_scale_width, dtype=np.float64)

    def columns(self) -> list[tuple[int, int]]:
        """Return (column, first coordinate) for the columns of R in the order of cutting, then (-1, ..) for m."""
        d = self.dimension
        places, first = [], d
        for column in range(d - 2, -1, -1):
            places.append((column, first))
            first += d - 1 - column
        return [*places, (-1, first)]

    def width(self, column: int, row: int, log_scales: Floats) -> Floats:
        """Return the cell width of entry ``row`` of a column of R (or of m, column -1), shape (n,)."""
        relative = log_scales[:, row] - (log_scales[:, column] if column >= 0 else 0.0)
        return self.step / math.sqrt(self.records) * np.exp(relative)

    def place(self, cells: Integers, offsets: Floats) -> tuple[Floats, Floats]:
        """Return the statistic (m, L) at ``offsets`` in [0, 1)^D inside ``cells``; shapes (n, d) and (n, d, d)."""
        d = self.dimension
        log_scales = self.log_scales(cells)
        frame, unit = self.identity(len(cells)), self.identity(len(cells))
        mean = np.empty((len(cells), d))
        for column, first in self.columns():
            rows = range(column + 1, d)
            point = np.empty((len(cells), len(rows)))
            centre = np.empty_like(point)
            for position, row in enumerate(rows):
                width = self.width(column, row, log_scales)
                index = cells[:, first + position]
                point[:, position] = (index + offsets[:, first + position]) * width
                centre[:, position] = (index + 0.5) * width
            shear = frame[:, column + 1 :, column + 1 :]
            if column < 0:
                mean = np.einsum("nij,nj->ni", shear, point)
            else:
                unit[:, column + 1 :, column] = np.einsum("nij,nj->ni", shear, point)
                frame[:, column + 1 :, column] = np.einsum("nij,nj->ni", shear, centre)
        scale = np.exp((cells[:, :d] + offsets[:, :d]) * self.log_scale_width)
        return mean, unit * scale[:, None, :]

    def identity(self, count: int) -> Floats:
        """Return ``count`` identity matrices."""
        return np.broadcast_to(np.eye(self.dimension), (count, self.dimension, self.dimension)).copy()


MOST_CELLS = {1: 400_000, 2: 400_000, 3: 3_000_000}
"""By dimension: a law that needs more cells abstains."""

_LARGEST_INDEX = 2.0**50
_LOG_NORMAL = -0.5 * math.log(2.0 * math.pi)


def depth_of(dimension: int) -> float:
    """Return s: cells whose density (per cell) stays below exp(-s) everywhere are left out.

    Together they hold less than 1e-10 of the law at d <= 2, less than 2e-6 of it at d = 3.
    """
    return 32.0 if dimension <= 2 else 26.0


def too_far() -> FitFailed:
    """Return the error for a cell number beyond 2^50."""
    return FitFailed("the law is too concentrated for double precision at its distance from zero")


def too_many() -> FitFailed:
    """Return the error for a law that needs more than `MOST_CELLS`."""
    return FitFailed("the law needs too many cells")


@final
@dataclass(frozen=True, slots=True)
class _Vector:
    """A column of R (or m, column -1) seen from one law, for n cells; m is the number of its entries.

    The standardised residual of entry i is ``scale_i * exp(lambda_column) * (e_i + sum_k<i shear_ik e_k)`` with
    ``e = entry - target``; it is a standard normal under the law, given lambda.
    """

    column: int
    first: int
    width: Floats
    target: Floats
    shear: Floats
    scale: Floats

    @classmethod
    def seen_from(cls, law: "SeenLaw", column: int, first: int, cells: Integers, frame: Floats) -> "_Vector":
        chart = law.chart
        rows = slice(column + 1, chart.dimension)
        log_scales = chart.log_scales(cells)
        width = np.stack([chart.width(column, row, log_scales) for row in range(column + 1, chart.dimension)], axis=1)
        place = law.mean if column < 0 else law.unit[rows, column]
        local = frame[:, rows, rows]
        target = np.empty_like(width)
        for i in range(width.shape[1]):
            target[:, i] = place[i] - np.einsum("nk,nk->n", local[:, i, :i], target[:, :i])
        shear = np.linalg.inv(law.unit[rows, rows]) @ local
        return cls(column, first, width, target, shear, math.sqrt(chart.records) / law.spread[rows])

    def log_scale_factor(self, log_scale: Floats) -> Floats:
        """Return lambda of the column (0 for m), shape (n,), from the array of all lambdas."""
        return log_scale[:, self.column] if self.column >= 0 else np.zeros(len(log_scale))


@final
@dataclass(frozen=True, slots=True)
class SeenLaw:
    """A normal law as the search needs it: mean, diagonal and unit part of its Cholesky factor."""

    chart: Chart
    mean: Floats
    spread: Floats
    unit: Floats

    @classmethod
    def of(cls, chart: Chart, *, mean: Floats, cholesky: Floats) -> "SeenLaw":
        """Return the law with this mean and lower triangular factor."""
        spread = np.diag(cholesky).copy()
        return cls(chart, mean, spread, cholesky / spread)

    @property
    def depth(self) -> float:
        """How deep the search goes."""
        return depth_of(self.chart.dimension)

    def log_scale_density(self, log_scale: Floats) -> Floats:
        """Return the log density of each lambda_i (per cell width), shape (n, d): a log-chi law, log-concave."""
        freedom = self.chart.records - 1.0 - np.arange(self.chart.dimension)
        x = log_scale - np.log(self.spread) + 0.5 * math.log(self.chart.records)
        constant = (0.5 * freedom - 1.0) * math.log(2.0) + gammaln(0.5 * freedom)
        result: Floats = freedom * x - 0.5 * np.exp(2.0 * x) - constant + math.log(self.chart.log_scale_width)
        return result

    def log_scale_mode(self) -> Floats:
        """Return the mode of each lambda_i, shape (d,)."""
        freedom = self.chart.records - 1.0 - np.arange(self.chart.dimension)
        return 0.5 * np.log(freedom / self.chart.records) + np.log(self.spread)

    def log_peaks(self, cells: Integers) -> Floats:
        """Return the sum of the log densities of all normal entries at residual 0, with lambda at the cell's centre."""
        d = self.chart.dimension
        offset = self.chart.log_scales(cells) - np.log(self.spread)
        entries = 1.0 + np.arange(d, dtype=np.float64)
        peaks: Floats = entries * (offset + _LOG_NORMAL + math.log(self.chart.step))
        return peaks @ np.ones(d)


@final
@dataclass(frozen=True, slots=True)
class NormalCells:
    """The cells of a `Chart` that a normal law can reach, with the density of the tuple's statistic.

    A function of the law and of public numbers alone. Densities are with respect to the reference measure that gives
    each cell volume 1.

    Parameters
    ----------
    cells
        Shape (n, D), the integers that name each cell.
    log_bound
        Shape (n,), at least the log density anywhere in the cell.

    """

    law: SeenLaw
    cells: Integers
    log_bound: Floats
    vectors: tuple[_Vector, ...]

    @classmethod
    def search(cls, chart: Chart, *, mean: Floats, cholesky: Floats) -> "NormalCells":
        """List the cells, coordinate after coordinate, keeping those whose bound can still exceed exp(-depth).

        Raises
        ------
        FitFailed
            If the law is degenerate at double precision (a cell number beyond 2^50) or needs too many cells.

        """
        law = SeenLaw.of(chart, mean=mean, cholesky=cholesky)
        cells, bound = scale_cells(law)
        frame = chart.identity(len(cells))
        for column, first in chart.columns():
            vector = _Vector.seen_from(law, column, first, cells, frame)
            corner = (cells[:, : chart.dimension] * chart.log_scale_width).astype(np.float64)
            low = np.exp(vector.log_scale_factor(corner))
            error = np.zeros((len(cells), 0))
            kept = np.arange(len(cells))
            for i in range(vector.width.shape[1]):
                source, index, bound, centre = _extend(law, vector, i, kept, low=low, error=error, bound=bound)
                kept = kept[source]
                error = np.column_stack([error[source], centre])
                cells = np.column_stack([cells[source], index])
            frame = frame[kept]
            if column >= 0:
                rows = slice(column + 1, chart.dimension)
                frame[:, rows, column] = np.einsum("nij,nj->ni", frame[:, rows, rows], error + vector.target[kept])
        vectors = tuple(_Vector.seen_from(law, column, first, cells, frame) for column, first in chart.columns())
        return cls(law, cells, bound, vectors)

    def log_density(self, which: Integers, offsets: Floats) -> Floats:
        """Return the log density at ``offsets`` (shape (n, D), in [0, 1)) inside the cells numbered ``which``."""
        chart = self.law.chart
        log_scale = (self.cells[which, : chart.dimension] + offsets[:, : chart.dimension]) * chart.log_scale_width
        result: Floats = self.law.log_scale_density(log_scale).sum(axis=1) + self.law.log_peaks(self.cells[which])
        centre = chart.log_scales(self.cells[which])
        for vector in self.vectors:
            factor = vector.log_scale_factor(log_scale)
            entries = vector.width.shape[1]
            index = self.cells[which, vector.first : vector.first + entries]
            place = (index + offsets[:, vector.first : vector.first + entries]) * vector.width[which]
            sheared = np.einsum("nij,nj->ni", vector.shear[which], place - vector.target[which])
            residual = vector.scale * np.exp(factor)[:, None] * sheared
            result += entries * (factor - vector.log_scale_factor(centre)) - 0.5 * (residual**2).sum(axis=1)
        return result


def scale_cells(law: SeenLaw) -> tuple[Integers, Floats]:
    """List the cells in lambda_1 .. lambda_d with the bound of everything: log-chi peaks and all normal peaks."""
    chart, width = law.chart, law.chart.log_scale_width
    cells = np.zeros((1, 0), dtype=np.int64)
    bound = np.zeros(1)
    mode = law.log_scale_mode()
    for i in range(chart.dimension):
        freedom = chart.records - 1.0 - i
        middle = math.floor(mode[i] / width)
        below = int((law.depth + 30.0) / freedom / width) + int(12.0 / math.sqrt(freedom) / width) + 2
        above = int((5.0 if freedom < 20 else 12.0 / math.sqrt(freedom)) / width) + 2
        index = np.arange(middle - below, middle + above + 1)
        peak = np.clip(mode[i], index * width, (index + 1) * width)
        value = law.log_scale_density(np.broadcast_to(peak[:, None], (len(peak), chart.dimension)))[:, i]
        cells = np.column_stack([np.repeat(cells, len(index), axis=0), np.tile(index, len(bound))])
        bound = (bound[:, None] + value[None, :]).ravel()
    normal_factors = 0.5 * width * chart.dimension * (chart.dimension - 1) / 2
    bound = bound + law.log_peaks(cells) + normal_factors
    return cells[bound >= -law.depth], bound[bound >= -law.depth]


def _extend(
    law: SeenLaw, vector: _Vector, i: int, kept: Integers, *, low: Floats, error: Floats, bound: Floats
) -> tuple[Integers, Integers, Floats, Floats]:
    """Cut entry ``i`` of a vector: for each row so far the cells that its remaining depth allows.

    Returns the row each new cell came from, its index, its bound, and the distance of its centre from the target.
    """
    width, target = vector.width[kept, i], vector.target[kept, i]
    shear = vector.shear[kept, i, :i]
    carried = np.einsum("nk,nk->n", shear, error)
    slack = 0.5 * np.einsum("nk,nk->n", np.abs(shear), vector.width[kept, :i])
    scale = vector.scale[i] * low[kept]
    reach = np.sqrt(2.0 * (bound + law.depth)) / scale + slack
    first = np.floor((target - carried - reach) / width)
    last = np.floor((target - carried + reach) / width)
    if not (np.abs(first).max(initial=0.0) < _LARGEST_INDEX and np.abs(last).max(initial=0.0) < _LARGEST_INDEX):
        raise too_far()
    count = (last - first).astype(np.int64) + 1
    if count.sum() > MOST_CELLS[law.chart.dimension]:
        raise too_many()
    source = np.repeat(np.arange(len(count)), count)
    step = np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count)
    index = first.astype(np.int64)[source] + step
    centre = (index + 0.5) * width[source] - target[source]
    distance = np.maximum(np.abs(centre + carried[source]) - 0.5 * width[source] - slack[source], 0.0)
    value = bound[source] - 0.5 * (scale[source] * distance) ** 2
    near = value >= -law.depth
    return source[near], index[near], value[near], centre[near]


Words = NDArray[np.uint64]

_ARRIVALS_AT_ONCE = 1 << 20
_LOG_ROUNDS = np.log([2.0, 6.0, 18.0, 54.0])
"""Scores are looked for below 2, then 6, ...; the winner's score is Exp(1), so beyond 54 there is none (exp(-54))."""

LOG_LIMIT = float(_LOG_ROUNDS[-1])


@final
@dataclass(frozen=True, slots=True)
class Points:
    """Some shared points, one a row: the integers of their cells, the streams of these, and their numbers in them."""

    cells: Integers
    streams: Words
    numbers: Integers
    width: int

    def uniforms(self, first: int, count: int) -> Floats:
        """Return ``count`` of each point's own uniforms from number ``first`` on, shape (n, count)."""
        counter = self.numbers[:, None] * self.width + 1 + first + np.arange(count)
        return uniform_open(word_at(self.streams[:, None], counter))


class Reach(Protocol):
    """What one law can reach: cells, and its density with respect to the measure that gives each cell volume 1."""

    @property
    def cells(self) -> Integers:
        """Shape (n, D): the integers that name each cell."""

    @property
    def log_bound(self) -> Floats:
        """Shape (n,): at least the log density anywhere in the cell."""

    def log_density(self, which: Integers, points: Points) -> Floats:
        """Return the log density at points in the cells numbered ``which``, shape (len(which),)."""

    def key(self, points: Points) -> bytes:
        """Return the canonical bytes of the value of a single point."""


@final
class CellRace:
    """The shared points: unit rate in every cell, in every draw, as a function of the key.

    Parameters
    ----------
    shared
        The key, which no other race with the same labels may use.
    draws
        Number of independent draws.
    uniforms
        How many uniforms each point has of its own.
    labels
        Under which this race's words hang from the key.

    """

    __slots__ = ("_labels", "_shared", "_width", "draws")

    def __init__(self, shared: SharedRandomness, *, draws: int, uniforms: int, labels: tuple[str, ...] = ()) -> None:
        self._shared = shared
        self._labels = labels
        self._width = uniforms + 1
        self.draws = np.array([self._word(draw) for draw in range(draws)], dtype=np.uint64)
        """One word a draw, shape (draws,)."""

    def _word(self, draw: int) -> np.uint64:
        return self._shared.word(*self._labels, "draw", draw)

    def _tags(self, cells: Integers) -> Words:
        return self._shared.hash_rows(cells, *self._labels, "cell")

    def point(self, draw: int, cell: Integers, number: int) -> Points:
        """Return one point again, from its name."""
        streams = mix(self._tags(cell[None, :]) ^ np.array([self._word(draw)], dtype=np.uint64))
        return Points(cell[None, :], streams, np.array([number], dtype=np.int64), self._width)

    def votes(self, reach: Reach) -> list[Vote]:
        """Return the key of the point with the least arrival over density, in each draw."""
        together = max(1, _ARRIVALS_AT_ONCE // max(1, len(reach.cells)))
        tags = self._tags(reach.cells)
        votes: list[Vote] = []
        for start in range(0, len(self.draws), together):
            streams = mix(tags[None, :] ^ self.draws[start : start + together, None])
            votes += self._race(reach, streams)
        return votes

    def _race(self, reach: Reach, streams: Words) -> list[Vote]:
        """Points come by arrival in each cell; cells in which none can win any more are left alone."""
        bounds = reach.log_bound
        first = uniform_open(word_at(streams, np.zeros(1, dtype=np.int64)))
        draw, cell = np.nonzero(first > np.exp(-np.exp(LOG_LIMIT + bounds)))
        stream, arrival, bound = streams[draw, cell], -np.log(first[draw, cell]), bounds[cell]
        number = np.zeros(len(draw), dtype=np.int64)
        least = np.log(arrival) - bound
        best = np.full(len(streams), np.inf)
        winner = np.zeros((len(streams), 2), dtype=np.int64)
        for level in _LOG_ROUNDS:
            while len(now := np.nonzero(least < np.minimum(best[draw], level))[0]):
                points = Points(reach.cells[cell[now]], stream[now], number[now], self._width)
                score = least[now] + bound[now] - reach.log_density(cell[now], points)
                order = np.lexsort((number[now], cell[now], score, draw[now]))
                found, place = np.unique(draw[now][order], return_index=True)
                leader = order[place]
                better = score[leader] < best[found]
                found, leader = found[better], leader[better]
                best[found] = score[leader]
                winner[found, 0], winner[found, 1] = cell[now][leader], number[now][leader]
                number[now] += 1
                arrival[now] -= np.log(uniform_open(word_at(stream[now], number[now] * self._width)))
                least[now] = np.log(arrival[now]) - bound[now]
        return [
            reach.key(Points(reach.cells[[place]], row[[place]], np.array([which]), self._width))
            if np.isfinite(score)
            else ABSTAIN
            for row, (place, which), score in zip(streams, winner.tolist(), best.tolist(), strict=True)
        ]
