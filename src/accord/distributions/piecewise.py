"""A law with a constant density on each of several bins: a histogram."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions.measured import (
    Continuous,
    Flags,
    Points,
    box_corners,
    finite_numbers,
    normalised,
    outside_atoms,
)
from accord.distributions.protocol import Rows

__all__ = ["Piecewise"]

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, init=False)
class Piecewise(Continuous):
    """The density of a histogram on R: bin i is ``[edges[i], edges[i + 1])``, the last one with its upper end.

    Formal guarantees
    -----------------
    - Value: immutable; equal edges and masses are equal laws with equal hashes.
    - Intervals: sums of masses from the nearer end, so that both tails keep their digits.
    - Sampling: records lie between the first and the last edge, rounding included.
    - Not promised: that a bin split in two is an equal law.

    Parameters
    ----------
    edges
        Shape (m + 1,), finite and increasing.
    masses
        Shape (m,), non-negative with a positive sum; normalised here.

    Raises
    ------
    InvalidParameter
        If they are not as above.

    Source
    ------
    theory 1 (laws and densities).

    Examples
    --------
    >>> law = Piecewise([0, 1, 3], [1, 3])
    >>> law.log_density([0.5, 2.0, 5.0]).round(6).tolist()
    [-1.386294, -0.980829, -inf]
    >>> law.cdf([1.0, 2.0]).tolist()
    [0.25, 0.625]

    """

    edges: tuple[float, ...]
    masses: tuple[float, ...]

    def __init__(self, edges: ArrayLike, masses: ArrayLike) -> None:
        ends = finite_numbers("edges", edges)
        if ends.ndim != 1 or len(ends) < 2 or not (ends[:-1] < ends[1:]).all():
            raise InvalidParameter("edges must be at least two increasing numbers.")
        _check.store(
            self, edges=tuple(ends.tolist()), masses=normalised("masses", masses, count=len(ends) - 1, each="bin")
        )

    @property
    def dimension(self) -> int:
        """Number of columns of a record: 1."""
        return 1

    @property
    def log_heights(self) -> _Floats:
        """Log density in each bin, shape (m,)."""
        ends = np.array(self.edges)
        with np.errstate(divide="ignore", over="ignore"):
            widths = np.diff(ends)
            logs = np.where(np.isfinite(widths), np.log(widths), np.log(np.diff(ends / 2)) + math.log(2))
            heights: _Floats = np.log(np.array(self.masses)) - logs
        return heights

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` independent records, shape (size, 1).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read for ``2 size`` uniform numbers.

        """
        count = _check.integer("size", size, least=0)
        ends, steps = np.array(self.edges), np.cumsum(self.masses)
        picks = np.searchsorted(steps / steps[-1], generator.random(count), side="right")
        low, high, share = ends[picks], ends[picks + 1], generator.random(count)
        half = high / 2 - low / 2
        records: Rows = np.clip(low + half * share + half * share, low, high)[:, None]
        return records

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        bins: _Ints = points.remember("bins", self.edges, lambda: _bins(self.edges, points.floats[0]))
        heights = np.append(self.log_heights, -np.inf)
        return outside_atoms(heights[bins], atoms)

    def cdf(self, x: ArrayLike) -> _Floats:
        """Return P(X <= x), shape (n,)."""
        return self.interval(np.full(np.shape(x), -np.inf), x)

    def interval(self, low: ArrayLike, high: ArrayLike) -> _Floats:
        """Return P(low < X <= high), shape (n,)."""
        ends, masses = np.array(self.edges), np.array(self.masses)
        first = np.clip(np.asarray(low, dtype=np.float64), ends[0], ends[-1])
        last = np.maximum(np.clip(np.asarray(high, dtype=np.float64), ends[0], ends[-1]), first)
        start, stop = (np.clip(np.searchsorted(ends, at, side="right") - 1, 0, len(masses) - 1) for at in (first, last))
        widths = np.diff(ends / 2)
        same = masses[start] * ((last / 2 - first / 2) / widths[start])
        head = masses[start] * ((ends[start + 1] / 2 - first / 2) / widths[start])
        tail = masses[stop] * ((last / 2 - ends[stop] / 2) / widths[stop])
        left = np.concatenate([[0.0], np.cumsum(masses)])
        right = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])
        near_left = left[stop] <= right[np.minimum(start + 1, len(masses))]
        full = np.where(near_left, left[stop] - left[start + 1], right[start + 1] - right[stop])
        return np.asarray(np.clip(np.where(start == stop, same, head + np.maximum(full, 0.0) + tail), 0.0, 1.0))

    def log_density_bound(self, low: _Floats, high: _Floats) -> _Floats:
        """Return the largest log density on each interval, ends included, shape (n,) from corners of shape (n, 1)."""
        corners = box_corners(low, high, dimension=1)
        ends, heights = np.array(self.edges), self.log_heights
        first = np.searchsorted(ends, corners[0][:, 0], side="left") - 1
        last = np.searchsorted(ends, corners[1][:, 0], side="right") - 1
        met = (last >= 0) & (first < len(heights)) & (first <= last)
        start, stop = np.clip(first, 0, len(heights) - 1), np.clip(last, 0, len(heights) - 1)
        return np.where(met, _range_maximum(heights, start, np.maximum(stop, start)), -np.inf)


def _bins(edges: Sequence[float], column: _Floats) -> _Ints:
    """Return the bin of each number, shape (n,); the number of bins for one outside."""
    count = len(edges) - 1
    bins = np.searchsorted(np.array(edges), column, side="right") - 1
    bins = np.where(column == edges[-1], count - 1, bins)
    return np.where((bins >= 0) & (bins < count) & ~np.isnan(column), bins, count)


def _range_maximum(values: _Floats, start: _Ints, stop: _Ints) -> _Floats:
    """Return the maximum of ``values[start : stop + 1]`` for each pair, from maxima over powers of two."""
    levels = [values]
    while 2 ** len(levels) <= len(values):
        last, step = levels[-1], 2 ** (len(levels) - 1)
        levels.append(np.append(np.maximum(last[:-step], last[step:]), last[len(last) - step :]))
    level = np.frexp((stop - start + 1).astype(np.float64))[1] - 1
    table = np.stack(levels)
    found: _Floats = np.maximum(table[level, start], table[level, stop + 1 - 2**level])
    return found
