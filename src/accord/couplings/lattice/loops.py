"""Compiled twins of `NormalCells`: list the cells of a normal law depth first, and run its race. For d >= 3.

Names as in `accord.couplings.lattice.cells`: a coordinate after the scales is entry ``row`` of a vector ``column`` (a
column of R, or m as column -1), ``frame`` is C, and ``shear`` takes residuals of earlier entries of a vector to those
of a later one.
"""

import math
from functools import cache
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from accord._compiled import absorb, compiled, mix_word, uniform_word, word_number
from accord.couplings.lattice.cells import MOST_CELLS, Chart, Floats, Integers, SeenLaw, scale_cells, too_far, too_many

__all__ = [
    "FAR",
    "MANY",
    "LawNumbers",
    "Words",
    "compile_loops",
    "list_cells",
    "listed",
    "numbers",
    "race",
    "run_race",
]


Words = NDArray[np.uint64]

FAR, MANY = -1, -2
"""What `list_cells` returns instead of a number of cells: a cell number too large, too many cells."""

_LARGEST_INDEX = 2.0**50
_BEST_EVERY = 256
_12 = np.uint64(12)


@final
class LawNumbers(NamedTuple):
    """One normal law and its chart as plain numbers, for loops.

    Parameters
    ----------
    column, row
        Shape (D - d,): which entry each coordinate after the scales is; column -1 is m.
    mean, unit, inverse
        The law: mean, unit part of its Cholesky factor, and the inverse of that part.
    log_spread, precision
        Shape (d,): log of the factor's diagonal, and ``sqrt(records)`` over it.
    constant
        Shape (d,): all that the log density has of constants for lambda_i, its cell width included.
    log_peak
        Shape (d,): all that it has for the entries of row i, at residual 0 and lambda_i at ``log_spread``.
    records, step, log_width
        The chart; ``step`` is that of an entry, over ``sqrt(records)``.

    """

    column: Integers
    row: Integers
    mean: Floats
    unit: Floats
    inverse: Floats
    log_spread: Floats
    precision: Floats
    constant: Floats
    log_peak: Floats
    records: float
    step: float
    log_width: float


@final
class _Room(NamedTuple):
    """What is known of the cell at hand, by vector (m last) and row, (d, d) each; ``frame`` is C, by row and column."""

    frame: Floats
    width: Floats
    target: Floats
    centre: Floats
    error: Floats
    shear: Floats  # (d, d, d): by vector, row and earlier row


@compiled
def _room(d: int) -> _Room:
    return _Room(np.eye(d), np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d, d)))


@compiled
def _enter_scales(law: LawNumbers, cells: Integers, place: int, room: _Room) -> None:
    """Write the cell widths of all entries, which the cell in lambda alone decides."""
    d = len(law.mean)
    for row in range(d):
        scale = math.exp((cells[place, row] + 0.5) * law.log_width)
        room.width[d - 1, row] = law.step * scale
        for column in range(row):
            room.width[column, row] = law.step * scale / math.exp((cells[place, column] + 0.5) * law.log_width)


@compiled
def _enter(law: LawNumbers, column: int, row: int, room: _Room) -> None:
    """Write the law's own entry in the frame, and row ``row`` of the shear, inverse @ frame."""
    line = column % len(law.mean)  # m, column -1, takes the line of the last column, which R does not use
    own = law.mean[row] if column < 0 else law.unit[row, column]
    for k in range(column + 1, row):
        own -= room.frame[row, k] * room.target[line, k]
        total = 0.0
        for j in range(k, row + 1):
            total += law.inverse[row, j] * room.frame[j, k]
        room.shear[line, row, k] = total
    room.target[line, row] = own


@compiled
def _cut(law: LawNumbers, column: int, row: int, index: int, room: _Room) -> None:
    """Write the centre of a cut entry, its distance from the law's own, and the entry of C that it gives."""
    line = column % len(law.mean)
    middle = (index + 0.5) * room.width[line, row]
    room.centre[line, row], room.error[line, row] = middle, middle - room.target[line, row]
    if column >= 0:
        total = middle
        for k in range(column + 1, row):
            total += room.frame[row, k] * room.centre[line, k]
        room.frame[row, column] = total


@compiled
def list_cells(  # noqa: C901, PLR0912, PLR0915, PLR0917 - one loop; compiled code has no keywords
    law: LawNumbers, scales: Integers, scale_bounds: Floats, depth: float, most: int, root: np.uint64
) -> tuple[int, Integers, Floats, Words]:
    """List the cells below the given cells in lambda whose bound reaches ``exp(-depth)``: count, cells, bounds, hashes.

    The same cells and bounds as `NormalCells.search` gives, in the order of a dictionary; the hash of a cell is that of
    `SharedRandomness.hash_rows`, from the word ``root``.
    """
    d, levels = len(law.mean), len(law.row)
    size = 1 << 14
    cells, bounds, hashes = (
        np.empty((size, d + levels), dtype=np.int64),
        np.empty(size),
        np.empty(size, dtype=np.uint64),
    )
    count = 0
    index, last = np.zeros(levels, dtype=np.int64), np.zeros(levels, dtype=np.int64)
    scale, carried, slack = np.empty(levels), np.empty(levels), np.empty(levels)
    bound, state = np.empty(levels + 1), np.empty(levels + 1, dtype=np.uint64)
    low = np.ones(d)
    room = _room(d)
    for start in range(len(scales)):
        state[0], bound[0] = root, scale_bounds[start]
        _enter_scales(law, scales, start, room)
        for i in range(d):
            low[i] = math.exp(scales[start, i] * law.log_width)
            state[0] = absorb(state[0], scales[start, i])
        level, fresh = 0, True
        while level >= 0:
            column, row = law.column[level], law.row[level]
            line = column % d
            width = room.width[line, row]
            if fresh:
                _enter(law, column, row, room)
                carried[level] = slack[level] = 0.0
                for k in range(column + 1, row):
                    carried[level] += room.shear[line, row, k] * room.error[line, k]
                    slack[level] += 0.5 * abs(room.shear[line, row, k]) * room.width[line, k]
                scale[level] = law.precision[row] * (low[column] if column >= 0 else 1.0)
                reach = math.sqrt(2.0 * (bound[level] + depth)) / scale[level] + slack[level]
                middle = room.target[line, row] - carried[level]
                first_cell, last_cell = math.floor((middle - reach) / width), math.floor((middle + reach) / width)
                if not (abs(first_cell) < _LARGEST_INDEX and abs(last_cell) < _LARGEST_INDEX):
                    return FAR, cells, bounds, hashes
                index[level], last[level] = int(first_cell), int(last_cell)
                if last[level] - index[level] > most:
                    return MANY, cells, bounds, hashes
                fresh = False
            if index[level] > last[level]:
                level -= 1
                if level >= 0:
                    index[level] += 1
                continue
            centre = (index[level] + 0.5) * width - room.target[line, row]
            distance = abs(centre + carried[level]) - 0.5 * width - slack[level]
            value = bound[level] - 0.5 * (scale[level] * max(distance, 0.0)) ** 2
            if not value >= -depth:
                index[level] += 1
                continue
            bound[level + 1], state[level + 1] = value, absorb(state[level], index[level])
            if level + 1 < levels:
                _cut(law, column, row, index[level], room)
                level, fresh = level + 1, True
                continue
            if count == size:
                if count >= most:
                    return MANY, cells, bounds, hashes
                size = min(2 * size, most)
                cells = np.concatenate((cells, np.empty((size - count, d + levels), dtype=np.int64)))
                bounds = np.concatenate((bounds, np.empty(size - count)))
                hashes = np.concatenate((hashes, np.empty(size - count, dtype=np.uint64)))
            for i in range(d):
                cells[count, i] = scales[start, i]
            for i in range(levels):
                cells[count, d + i] = index[i]
            bounds[count], hashes[count] = value, state[levels]
            count += 1
            index[level] += 1
    return count, cells[:count], bounds[:count], hashes[:count]


@compiled
def _offset(stream: np.uint64, number: int, size: int, coordinate: int) -> float:
    return uniform_word(word_number(stream, number * (size + 1) + 1 + coordinate))


@compiled
def log_density(  # noqa: PLR0917 - as above
    law: LawNumbers, cells: Integers, place: int, room: _Room, stream: np.uint64, number: int, least: float
) -> float:
    """Return the log density at a point of a cell that the room knows; -inf as soon as it must lie below ``least``."""
    d, size = len(law.mean), cells.shape[1]
    total = 0.0
    for i in range(d):
        index, offset = cells[place, i], _offset(stream, number, size, i)
        x = (index + offset) * law.log_width - law.log_spread[i]
        total += (law.records - 1.0 - i) * x - 0.5 * law.records * math.exp(2.0 * x) + law.constant[i]
        total += (1.0 + i) * ((index + 0.5) * law.log_width - law.log_spread[i]) + law.log_peak[i]
        total += (d - 1.0 - i) * (offset - 0.5) * law.log_width
    for level in range(len(law.row)):
        if not total >= least:
            return -math.inf
        column, row = law.column[level], law.row[level]
        line = column % d
        offset = _offset(stream, number, size, d + level)
        residual = (cells[place, d + level] + offset) * room.width[line, row] - room.target[line, row]
        room.error[line, row] = residual
        for k in range(column + 1, row):
            residual += room.shear[line, row, k] * room.error[line, k]
        residual *= law.precision[row]
        if column >= 0:
            residual *= math.exp((cells[place, column] + _offset(stream, number, size, column)) * law.log_width)
        total -= 0.5 * residual**2
    return total


@compiled
def see(law: LawNumbers, cells: Integers, place: int, room: _Room) -> None:
    """Write all that the room holds of one cell."""
    _enter_scales(law, cells, place, room)
    for level in range(len(law.row)):
        _enter(law, law.column[level], law.row[level], room)
        _cut(law, law.column[level], law.row[level], cells[place, len(law.mean) + level], room)


@compiled
def run_race(  # noqa: PLR0917 - as above
    law: LawNumbers,
    cells: Integers,
    bounds: Floats,
    hashes: Words,
    order: Integers,
    draws: Words,
    log_limit: float,
) -> tuple[Floats, Integers]:
    """Return the log of the least score in each draw (``log_limit`` where none is below it), and (cell, point), (n, 2).

    Cells are visited in the given order, best bounds first. The first arrival of every cell is read in every draw; its
    points are read while they can still win.
    """
    size = cells.shape[1]
    best = np.full(len(draws), log_limit)
    winner = np.zeros((len(draws), 2), dtype=np.int64)
    words = np.empty(len(draws), dtype=np.uint64)
    room = _room(len(law.mean))
    worst = math.exp(log_limit)
    for visit in range(len(order)):
        place = order[visit]
        bound, seen = bounds[place], False
        if visit % _BEST_EVERY == 0:
            worst = math.exp(best.max())
        # A first arrival can win only if its uniform is above exp(-worst * exp(bound)); one unit aside for rounding.
        least_word = np.uint64(max(math.exp(-worst * math.exp(bound)) * 2.0**52 - 2.0, 0.0))
        tag, some = hashes[place], False
        for draw in range(len(draws)):
            words[draw] = word_number(mix_word(tag ^ draws[draw]), 0)
            some |= (words[draw] >> _12) >= least_word
        if not some:
            continue
        for draw in range(len(draws)):
            if (words[draw] >> _12) < least_word:
                continue
            arrival, number, stream = -math.log(uniform_word(words[draw])), 0, mix_word(tag ^ draws[draw])
            log_arrival = math.log(arrival)
            while log_arrival - bound < best[draw]:
                if not seen:
                    see(law, cells, place, room)
                    seen = True
                density = log_density(law, cells, place, room, stream, number, log_arrival - best[draw])
                if log_arrival - density < best[draw]:
                    best[draw] = log_arrival - density
                    winner[draw, 0], winner[draw, 1] = place, number
                number += 1
                arrival -= math.log(uniform_word(word_number(stream, number * (size + 1))))
                log_arrival = math.log(arrival)
    return best, winner


def numbers(law: SeenLaw) -> LawNumbers:
    """Return what the loops need of a law."""
    chart = law.chart
    d = chart.dimension
    entries = [(column, row) for column, _ in chart.columns() for row in range(column + 1, d)]
    freedom = chart.records - 1.0 - np.arange(d)
    half = 0.5 * freedom
    constant = half * math.log(chart.records) - (half - 1.0) * math.log(2.0) - gammaln(half)
    return LawNumbers(
        column=np.array([column for column, _ in entries], dtype=np.int64),
        row=np.array([row for _, row in entries], dtype=np.int64),
        mean=np.ascontiguousarray(law.mean, dtype=np.float64),
        unit=np.ascontiguousarray(law.unit, dtype=np.float64),
        inverse=np.ascontiguousarray(np.linalg.inv(law.unit), dtype=np.float64),
        log_spread=np.log(law.spread),
        precision=np.sqrt(float(chart.records)) / law.spread,
        constant=np.asarray(constant + math.log(chart.log_scale_width)),
        log_peak=(1.0 + np.arange(d, dtype=np.float64)) * (math.log(chart.step) - 0.5 * math.log(2.0 * math.pi)),
        records=float(chart.records),
        step=chart.step / math.sqrt(chart.records),
        log_width=float(chart.log_scale_width),
    )


def listed(law: SeenLaw, *, root: np.uint64) -> tuple[Integers, Floats, Words]:
    """Return the cells of a law, their bounds, and their hashes from the word ``root``.

    Raises
    ------
    FitFailed
        If a cell number is beyond 2^50, or there are more than `MOST_CELLS`.

    """
    scales, bounds = scale_cells(law)
    most = MOST_CELLS[law.chart.dimension]
    count, cells, cell_bounds, hashes = list_cells(
        numbers(law), np.ascontiguousarray(scales), np.ascontiguousarray(bounds), law.depth, most, root
    )
    if count == FAR:
        raise too_far()
    if count == MANY:
        raise too_many()
    return cells, cell_bounds, hashes


def race(law: SeenLaw, *, root: np.uint64, draws: Words, log_limit: float) -> tuple[Integers, NDArray[np.bool_]]:
    """Return the point that a law takes in each draw, shape (n, D + 1), and whether there is one, shape (n,).

    Parameters
    ----------
    law
        The law, seen through its chart.
    root, draws
        Words that all laws share: of the cells, and of each draw.
    log_limit
        Scores are looked for below its exponential.

    """
    cells, bounds, hashes = listed(law, root=root)
    order = np.argsort(-bounds, kind="stable")
    best, winner = run_race(numbers(law), cells, bounds, hashes, order, draws, log_limit)
    return np.column_stack([cells[winner[:, 0]], winner[:, 1]]), best < log_limit


@cache
def compile_loops(dimension: int) -> None:
    """Run the loops once on a public law, so that a fault of the compiler is an error and no law's abstention."""
    law = SeenLaw.of(Chart(dimension=dimension, records=10_000), mean=np.zeros(dimension), cholesky=np.eye(dimension))
    scales, bounds = scale_cells(law)
    top = [int(np.argmax(bounds))]
    root, draws = np.uint64(0), np.zeros(1, dtype=np.uint64)
    count, cells, cell_bounds, hashes = list_cells(numbers(law), scales[top], bounds[top], 0.0, 1 << 10, root)
    if count > 0:
        run_race(numbers(law), cells, cell_bounds, hashes, np.arange(count), draws, 0.0)
