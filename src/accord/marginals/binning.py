"""Numbers as codes of cells, and back: declared edges, equal cells, or the cells that a release found."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.records import table_of_numbers
from accord.core.shared import Generator
from accord.marginals.domain import Column, ColumnKind

__all__ = ["NumericBinning"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_MOST_CELLS = 1 << 15
_MOST_STEPS = 1 << 40


@final
@dataclass(frozen=True, slots=True, init=False)
class NumericBinning:
    """Cells ``[edges[i], edges[i + 1])`` of a column of numbers, the last one with its upper end.

    Formal guarantees
    -----------------
    - Each cell of the table alone decides what it becomes: a number outside goes to the nearest cell, what is no finite
      number to the code for missing cells, or to the last cell if there is none.
    - Decoded numbers lie in their cell, and are multiples of ``10^-decimals`` where the cell has some.
    - Not promised: that records lie inside a cell as the data do. They follow a density that is linear in each cell.

    Parameters
    ----------
    edges
        Shape (m + 1,), finite, increasing; public.
    decimals
        Numbers are multiples of ``10^-decimals``, from -9 to 12; None for real numbers.
    missing
        Whether there is a code, the last, for missing cells.

    Raises
    ------
    InvalidParameter
        If they are not as above.

    Examples
    --------
    >>> binning = NumericBinning.equal(0, 100, cells=4, decimals=0, missing=True)
    >>> binning.encode([3, 99, 1000, float("nan"), "?"]).tolist()
    [0, 3, 3, 4, 4]
    >>> binning.column("age").size
    5

    """

    edges: tuple[float, ...]
    decimals: int | None
    missing: bool

    def __init__(
        self, edges: Sequence[float] | ArrayLike, *, decimals: int | None = None, missing: bool = False
    ) -> None:
        ends = np.asarray(edges, dtype=np.float64)
        if ends.ndim != 1 or not 2 <= len(ends) <= _MOST_CELLS + 1:
            raise InvalidParameter("edges must be two or more increasing numbers, at most 32769.")
        if not np.isfinite(ends).all() or not (ends[:-1] < ends[1:]).all():
            raise InvalidParameter("edges must be finite and increasing.")
        _check.store(self, edges=tuple(ends.tolist()), decimals=_decimals(decimals), missing=bool(missing))

    @classmethod
    def equal(
        cls, low: float, high: float, *, cells: int, decimals: int | None = None, missing: bool = False
    ) -> "NumericBinning":
        """Return cells of equal width between public bounds."""
        count = _check.integer("cells", cells, least=1, most=_MOST_CELLS)
        if not -np.inf < low < high < np.inf:
            raise InvalidParameter("low must be below high, both finite.")
        return cls(np.linspace(low, high, count + 1), decimals=decimals, missing=missing)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.edges) - 1

    def column(self, name: str, *, uncounted: bool = False) -> Column:
        """Return the column of a `Domain` that these codes make; with ``uncounted``, missing cells add to no table."""
        ends = np.array(self.edges)
        middles = ends[:-1] + np.diff(ends) / 2
        apart = bool((middles[:-1] < middles[1:]).all())  # else two cells of neighbouring floats have one middle
        return Column(
            name,
            self.cells + (self.missing and not uncounted),
            kind=ColumnKind.NUMBER,
            positions=middles if apart else ends[:-1],
            missing=self.missing and not uncounted,
            uncounted=uncounted,
        )

    def encode(self, values: ArrayLike) -> Ints:
        """Return the code of each number, shape (n,)."""
        numbers = _numbers(values)
        if self.decimals is not None:
            numbers = np.round(numbers, self.decimals)
        codes = np.searchsorted(np.array(self.edges[1:-1]), numbers, side="right")
        return np.where(np.isnan(numbers), self.cells - (not self.missing), codes).astype(np.int64)

    def decode(
        self,
        codes: ArrayLike,
        generator: Generator,
        *,
        masses: ArrayLike | None = None,
        ranges: Sequence[tuple[float, float]] = (),
    ) -> Floats:
        """Return a number for each code, NaN for missing ones, shape (n,).

        Parameters
        ----------
        codes
            Shape (n,), as from `encode` or a model.
        generator
            Where the places inside cells come from.
        masses
            Probability of each code, to draw from a density that is linear in each cell and leans as the neighbours
            do; constant in each cell by default.
        ranges
            Where numbers must be, pairs of ends that are apart; anywhere by default. Each code must have numbers there.

        """
        places = np.asarray(codes, dtype=np.int64)
        if ((places < 0) | (places >= self.cells + self.missing)).any():
            raise InvalidParameter(f"codes must be from 0 to {self.cells + self.missing - 1}.")
        absent = places >= self.cells
        cell = np.where(absent, 0, places)
        slopes = np.zeros(self.cells) if masses is None else self._slopes(np.asarray(masses, dtype=np.float64))
        level = _leaning(self._levels(cell, generator, masses=masses, ranges=ranges), slopes[cell])
        ends = np.array(self.edges)
        low, high = ends[cell], ends[cell + 1]
        found = np.where(np.nextafter(low, np.inf) >= high, low, low + level * (high - low))  # a cell of one float
        if self.decimals is not None:
            found = _snapped(found, low, high, step=10.0**-self.decimals, decimals=self.decimals)
        return np.where(absent, np.nan, np.clip(found, low, high))

    def _levels(
        self, cell: Ints, generator: Generator, *, masses: ArrayLike | None, ranges: Sequence[tuple[float, float]]
    ) -> Floats:
        """Return a uniform level for each cell, of those that belong to the ranges."""
        level = np.asarray(generator.random(len(cell)), dtype=np.float64)
        if not ranges:
            return level
        low, high = (
            np.stack(one) for one in zip(*(self.levels_between(*one, masses=masses) for one in ranges), strict=True)
        )
        steps = np.cumsum(high - low, axis=0)[:, cell]
        reach = level * steps[-1]
        which = np.minimum((reach >= steps).sum(axis=0), len(ranges) - 1)
        before = np.where(which > 0, np.take_along_axis(steps, np.maximum(which - 1, 0)[None], axis=0)[0], 0.0)
        return np.asarray(np.clip(low[which, cell] + reach - before, low[which, cell], high[which, cell]))

    def levels_between(self, low: float, high: float, *, masses: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return between which levels `decode` makes numbers from ``low`` to ``high``, shape (cells,) each.

        A cell's share of such numbers is the difference of the two.

        Examples
        --------
        >>> low, high = NumericBinning.equal(0, 20, cells=2, decimals=0).levels_between(9, 9)
        >>> (high - low).round(6).tolist()
        [0.1, 0.0]

        """
        slopes = np.zeros(self.cells) if masses is None else self._slopes(np.asarray(masses, dtype=np.float64))
        ends = np.array(self.edges)
        begin, width = ends[:-1], np.diff(ends)
        levels = [np.clip((limit - begin) / width, 0.0, 1.0) for limit in (low, high)]
        if self.decimals is not None:
            step = 10.0**-self.decimals
            first, count = _multiples(begin, ends[1:], step=step)
            last = _last_multiple(high, step=step, decimals=self.decimals)
            ranks = [-_last_multiple(-low, step=step, decimals=self.decimals) - first, last + 1 - first]
            levels = [
                np.where(count >= 1, np.clip(rank / np.maximum(count, 1), 0.0, 1.0), level)
                for rank, level in zip(ranks, levels, strict=True)
            ]
        single = np.nextafter(begin, np.inf) >= ends[1:]
        inside = (low <= begin) & (begin <= high)
        below, above = (_reached(level, slopes) for level in levels)
        return np.where(single, 0.0, below), np.where(single, inside, np.maximum(above, below)).astype(np.float64)

    def _slopes(self, masses: Floats) -> Floats:
        """Return how much the density rises across each cell, over its mean: as towards the gentler neighbour."""
        if masses.shape[0] < self.cells:
            raise InvalidParameter("masses must be one probability a code.")
        if self.cells == 1:
            return np.zeros(1)
        ends = np.array(self.edges)
        ends = ends / (float(np.abs(ends).max()) or 1.0)  # no width or height overflows, and slopes have no unit
        widths = np.maximum(np.diff(ends), (ends[-1] - ends[0]) * 1e-9)  # a cell may be a single float
        heights = masses[: self.cells] / widths
        middles = ends[:-1] + widths / 2
        rises = np.diff(heights) / np.diff(middles)
        before, after = np.concatenate([[0.0], rises]), np.concatenate([rises, [0.0]])
        gentle = np.where(before * after > 0, np.sign(before) * np.minimum(np.abs(before), np.abs(after)), 0.0)
        relative = np.divide(gentle * widths, heights, out=np.zeros(self.cells), where=heights > 0)
        return np.asarray(np.clip(relative, -2.0, 2.0))


def _decimals(decimals: int | None) -> int | None:
    if decimals is None:
        return None
    return _check.integer("decimals", decimals, least=-9, most=12)


def _numbers(values: ArrayLike) -> Floats:
    """Return a column as floats, each cell read on its own: NaN for what is no finite number."""
    table = table_of_numbers(values, columns=1)
    if table.shape[1] != 1:
        raise InvalidParameter("values must have shape (n,).")
    return np.where(np.isfinite(table[:, 0]), table[:, 0], np.nan)


def _reached(place: Floats, slope: Floats) -> Floats:
    """Return the level that the law with density ``1 + slope (u - 1/2)`` on (0, 1) has at a place."""
    return np.asarray(place + slope * (place**2 - place) / 2)


def _multiples(low: Floats, high: Floats, *, step: float) -> tuple[Floats, Floats]:
    """Return the first multiple of a step in each cell, in steps, and how many it has."""
    first = np.ceil(np.round(low / step, 6))
    last = np.ceil(np.round(high / step, 6)) - 1
    return first, np.minimum(last - first + 1, float(_MOST_STEPS))


def _last_multiple(limit: float, *, step: float, decimals: int) -> float:
    """Return the last multiple of a step, in steps, that is not above a limit, as multiples are written in floats."""
    if not math.isfinite(limit):
        return limit
    near = math.floor(limit / step) + 1
    while round(near * step, decimals) > limit:
        near -= 1
    return near


def _leaning(level: Floats, slope: Floats) -> Floats:
    """Return where the law with density ``1 + slope (u - 1/2)`` on (0, 1) reaches a level."""
    straight = np.abs(slope) < 1e-9
    bend = np.where(straight, 1.0, slope)
    base = 1 - bend / 2
    root = (np.sqrt(np.maximum(base**2 + 2 * bend * level, 0.0)) - base) / bend
    return np.where(straight, level, np.clip(root, 0.0, 1.0))


def _snapped(found: Floats, low: Floats, high: Floats, *, step: float, decimals: int) -> Floats:
    """Return the multiple of a step in each cell that stands for the stretch of the cell a number lies in."""
    first, count = _multiples(low, high, step=step)
    level = (found - low) / (high - low)
    rank = np.floor(np.clip(level, 0.0, 1 - 1e-12) * count)
    return np.where(count >= 1, np.round((first + rank) * step, decimals), found)
