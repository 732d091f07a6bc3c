"""Cells of one column of numbers, found by counting public cells, and counting finer where records are.

Everything here is a function of the grid, which is public, and of noisy counts that were released: `learn_cells` asks
for the counts of a number of partitions that the grid states beforehand, each with fresh noise.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.marginals.grid import WAYS, Grid

__all__ = ["Cells", "consistent", "held", "learn_cells"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_WORTH = 3.0
"""So many deviations of the next counts each part of a cell that is cut holds on average, at least."""
_MOST_CUT = 256
"""At most about so many cells are cut at once: those with a larger share than its inverse."""
_MOST, _FINE, _STANDS = 0.5, 64, 6.0
_STEEP = 4.0
_NOISE, _MEAN_SIZE = 2.0, math.sqrt(2 / math.pi)
_FADING = 2.0
_FURTHER = 3.0
_FEWER, _LEAST_HELD = 4.0, 0.01


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The released cells of a column.

    Parameters
    ----------
    starts
        First code of each cell, increasing.
    end
        Where the last one ends. Numbers below the first and above the last cell belong to these.
    counts, deviations
        Noisy counts and the standard deviation of their noise, shape (cells,), or (cells + 1,) with missing cells last.

    """

    starts: Ints
    end: int
    counts: Floats
    deviations: Floats

    def edges(self, grid: Grid) -> Floats:
        """Return where cells begin and end, in numbers; a narrow cell with nothing around it is the value it has."""
        found = grid.ends(np.append(self.starts, self.end))
        empty = np.concatenate([[True], self.counts[: len(self.starts)] <= 0, [True]])
        for place in np.flatnonzero(~empty[1:-1] & empty[:-2] & empty[2:]).tolist():
            value = grid.shared_value(int(self.starts[place]), int(np.append(self.starts, self.end)[place + 1]))
            if value is not None:
                found[place : place + 2] = value, np.nextafter(value, np.inf)
        return found


def learn_cells(
    grid: Grid, measure: Callable[[Ints], Floats], *, deviations: Sequence[float], total: float, missing: bool
) -> Cells:
    """Return cells that are fine where records are.

    Parameters
    ----------
    grid
        Public.
    measure
        Releases the counts of the cells with these first codes, and of missing cells if these are counted.
        It is called ``len(deviations)`` times, whatever comes out.
    deviations
        Of the noise, each time.
    total
        Number of all records, public: what the true counts add up to, unless some records have no number.
    missing
        Whether missing cells are counted.

    """
    partitions, noisy = [grid.first_cells()], [measure(grid.first_cells())]
    total = held(noisy[0], deviations[0], total=total)
    counts, spread = consistent(partitions, noisy, deviations[:1], total=total, missing=missing)
    for done, deviation in enumerate(deviations[1:], start=2):
        starts = partitions[-1]
        starts = _cut(grid, starts, counts[: len(starts)], deviation=deviation, total=total)
        partitions.append(starts)
        noisy.append(measure(starts))
        counts, spread = consistent(partitions, noisy, deviations[:done], total=total, missing=missing)
    return _tidy(grid, partitions[-1], counts, spread)


def held(counts: Floats, deviation: float, *, total: float) -> float:
    """Return what counts of one table add up to: all records, unless they are clearly fewer, which some add to none."""
    found = float(counts.sum())
    fewer = found < total - _FEWER * deviation * math.sqrt(len(counts))
    return max(found, total * _LEAST_HELD) if fewer else total


def _cut(grid: Grid, starts: Ints, counts: Floats, *, deviation: float, total: float) -> Ints:
    """Return the cells with the heavy ones cut, into as many parts as can be told from the noise to come.

    One that holds most of all records may hold a single value: it is cut finer, since a value stands out of any number
    of parts.
    """
    ends = [*starts[1:].tolist(), grid.size]
    ways = np.where(counts >= total / _MOST_CUT, counts / (_WORTH * deviation), 0).astype(np.int64)
    most = (counts >= total * _MOST) & (counts >= _STANDS * deviation)
    ways[most] = np.maximum(ways[most], _FINE)
    found: list[int] = []
    for low, high, parts in zip(starts.tolist(), ends, ways.tolist(), strict=True):
        found.extend(grid.split(low, high, ways=min(parts, WAYS)) if parts > 1 else [low])
    return grid.told_apart(np.array(found, dtype=np.int64))


def consistent(
    partitions: Sequence[Ints], noisy: Sequence[Floats], deviations: Sequence[float], *, total: float, missing: bool
) -> tuple[Floats, Floats]:
    """Return the counts of the last partition by least squares on all of them, and their standard deviations.

    Each partition refines the one before. Counts of a cell's parts and of the cell itself are two measurements of the
    same number: they are averaged by their precisions from the finest to the coarsest, and what is gained is shared out
    again on the way down. All counts together are ``total``.

    Parameters
    ----------
    partitions
        First codes of the cells, the coarsest first.
    noisy, deviations
        Counts of each partition, the missing cells last if there are any, and the deviation of their noise.
    total
        Of the true counts, public.
    missing
        Whether the last count is that of missing cells.

    """
    parents = [
        np.concatenate([np.searchsorted(above, below, side="right") - 1, [len(above)] * missing]).astype(np.int64)
        for above, below in pairwise(partitions)
    ]
    parents.insert(0, np.zeros(len(noisy[0]), dtype=np.int64))
    value, variance = noisy[-1], np.full(len(noisy[-1]), float(deviations[-1]) ** 2)
    levels = []
    for level in range(len(partitions) - 1, -1, -1):
        sums = np.bincount(parents[level], weights=value)
        spread = np.bincount(parents[level], weights=variance)
        levels.append((value, variance, sums, spread))
        if level:
            own = float(deviations[level - 1]) ** 2
            value = (noisy[level - 1] / own + sums / spread) / (1 / own + 1 / spread)
            variance = 1 / (1 / own + 1 / spread)
    above, left = np.array([total]), np.zeros(1)
    for parent, (value, variance, sums, spread) in zip(parents, reversed(levels), strict=True):
        share = variance / spread[parent]
        above = value + (above - sums)[parent] * share
        left = np.maximum(variance * (1 - share), 0) + left[parent] * share**2
    return above, np.sqrt(left)


def _tidy(grid: Grid, starts: Ints, counts: Floats, deviations: Floats) -> Cells:
    """Return the cells from the first to the last one that noise does not explain, with what is noise put together."""
    cells = len(starts)
    values, spread = counts[:cells], np.maximum(deviations[:cells], 1e-9)
    edges = np.append(starts, grid.size)
    if grid.rounds > 1:
        edges, values, spread = _supported(grid, edges, values, spread)
        edges, values, spread = _without_noise(edges, values, spread)
    return Cells(
        starts=edges[:-1],
        end=int(edges[-1]),
        counts=np.concatenate([values, counts[cells:]]),
        deviations=np.concatenate([spread, deviations[cells:]]),
    )


def _supported(grid: Grid, edges: Ints, values: Floats, spread: Floats) -> tuple[Ints, Floats, Floats]:
    """Return the cells between the outermost ones that noise alone reaches nowhere, and what fades out next to them.

    A far cell that noise has lifted would take a mean, or a bound, along with it: a tail hangs together with the body.
    """
    clear = math.sqrt(2 * math.log(50 * len(values)))
    standing = np.flatnonzero(values >= clear * spread)
    if len(standing) == 0:
        standing = np.array([int(np.argmax(values / spread))])
    first, last = int(standing[0]), int(standing[-1]) + 1
    ends = grid.ends(edges)
    above, low_end = _fading(ends[last - 1 :], values[last - 1 :], spread[last - 1 :], clear=clear)
    below, high_end = _fading(
        -ends[: first + 2][::-1], values[: first + 1][::-1], spread[: first + 1][::-1], clear=clear
    )
    codes = edges[first : last + 1].tolist()
    if not below and -high_end != ends[first]:
        codes[0] = min(_code_at(grid, -high_end), codes[1] - 1)
    if not above and low_end != ends[last]:
        codes[-1] = max(_code_at(grid, low_end), codes[-2] + 1)
    sums, noise = values[first:last].tolist(), spread[first:last].tolist()
    for tail in above:
        codes.append(_code_at(grid, tail.end))
        sums.append(tail.value)
        noise.append(tail.deviation)
    for tail in below:
        codes.insert(0, _code_at(grid, -tail.end))
        sums.insert(0, tail.value)
        noise.insert(0, tail.deviation)
    borders, begin = np.array(codes, dtype=np.int64), len(below)  # a tail too narrow for a code of its own is none
    borders[begin:] = np.maximum.accumulate(borders[begin:])
    borders[: begin + 1] = np.minimum.accumulate(borders[begin::-1])[::-1]
    kept = np.flatnonzero(np.diff(grid.ends(borders)) > 0)
    return np.append(borders[kept], borders[-1]), np.array(sums)[kept], np.array(noise)[kept]


@final
@dataclass(frozen=True, slots=True)
class _Tail:
    """A part of a tail: where it ends, and what was counted in it with what noise."""

    end: float
    value: float
    deviation: float


def _fading(ends: Floats, values: Floats, spread: Floats, *, clear: float) -> tuple[list[_Tail], float]:
    """Return the parts of a tail behind its last clear cell, outwards, and where that cell ends if there are none.

    A last cell that stands high above the noise is an end. Behind one that hardly does, parts of three times the width
    before are kept as long as what was counted in them stands out at all, and falls; the last one kept may be empty.

    Parameters
    ----------
    ends, values, spread
        Of the last clear cell and of those behind it, outwards.
    clear
        How many deviations are clear.

    """
    begin, end = float(ends[0]), float(ends[1])
    if begin > 0:
        end = min(end, _STEEP * begin)
    found: list[_Tail] = []
    if end < ends[1] or len(values) < 2 or values[0] >= _FADING * clear * spread[0]:
        return found, end
    before, width, place = float(values[0]), end - begin, 1
    while place < len(values):
        stop = end + _FURTHER * width
        last = max(place + 1, int(np.searchsorted(ends, stop, side="right")) - 1)
        value = float(values[place:last].sum())
        deviation = float(np.sqrt((spread[place:last] ** 2).sum()))
        stop = min(float(ends[last]), stop)
        found.append(_Tail(stop, min(max(value, 0.0), before), deviation))
        if value < deviation:
            break
        before, width, end, place = found[-1].value, stop - end, stop, last
    return found, end


def _code_at(grid: Grid, number: float) -> int:
    """Return the code that begins about at a number."""
    if number >= grid.ends([grid.size]).item():
        return grid.size
    half = 0.5 * 10.0 ** -(grid.decimals or 0) if grid.kind == "multiples" else 0.0
    return int(grid.encode([number + half])[0])


def _without_noise(edges: Ints, values: Floats, spread: Floats) -> tuple[Ints, Floats, Floats]:
    """Put neighbouring cells together none of which stands out of the noise, and say zero if all of them do not.

    A cell by itself, between others that stand out among all, needs to do so too; any other needs two deviations.

    Where all cells but a few clear ones hold together no more than noise would, they hold nothing.
    """
    light = values < (math.sqrt(2 * math.log(max(len(values), 2))) + 1) * spread
    if light.any() and not light.all():
        most = min(_NOISE * math.sqrt(float((spread[light] ** 2).sum())), _MEAN_SIZE * float(spread[light].sum()))
        if float(values[light].sum()) <= most:
            values = np.where(light, 0.0, values)
    noise = values < _NOISE * spread
    standing = np.flatnonzero(values >= math.sqrt(2 * math.log(max(len(values), 2))) * spread)
    if len(standing):
        first, last = int(standing[0]), int(standing[-1])
        beside = np.concatenate([[True], noise, [True]])
        alone = beside[:-2] & beside[2:]
        alone[standing] = False
        noise[first:last] |= alone[first:last]
    begins = np.flatnonzero(~noise | np.concatenate([[True], ~noise[:-1]]))
    together = np.add.reduceat(values, begins)
    deviations = np.sqrt(np.add.reduceat(spread**2, begins))
    several = np.diff(np.append(begins, len(values))) > 1
    empty = noise[begins] & (together < np.where(several, _NOISE, 0.0) * deviations)
    together[empty] = 0.0
    return np.append(edges[begins], edges[-1]), together, deviations
