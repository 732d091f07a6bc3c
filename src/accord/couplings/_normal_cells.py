"""For one normal law: the public cells that matter to it, its density, and a bound of it on each cell."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import gammaln

from accord.core.errors import FitFailed
from accord.couplings._chart import Chart, Floats, Integers

__all__ = ["MOST_CELLS", "NormalCells", "SeenLaw", "depth_of", "scale_cells", "too_far", "too_many"]

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
