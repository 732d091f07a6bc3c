"""Public coordinates for the sufficient statistic of normal tuples, in which all normal laws have one shape.

The statistic of l records in R^d is their mean m and the Cholesky factor L of their scatter over l. It is written as
``L = R diag(exp(lambda))`` with R unit lower triangular. Space is cut into cells, each named by D = d + d (d + 1) / 2
integers and numbered by public rules alone:

- lambda_i is cut at multiples of one width; the cell's centre gives a public scale s_i;
- the columns of R, from right to left, then m, are sheared back by the frame C that the earlier cells define (the
  centres of the columns already cut) and cut at multiples of ``step / sqrt(l)`` times the public scales.

So a cell is about ``step`` standard deviations wide in every direction for every normal law, whatever its scale, place
or correlation: no bounds on the data are needed. The cells tile the space, and every cell has volume 1 in the reference
measure, which is Lebesgue measure times a public factor constant on each cell (theory S1: the race does not depend on
it).
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Chart", "Floats", "Integers"]

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
