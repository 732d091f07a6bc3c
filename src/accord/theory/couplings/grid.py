"""Laws on a grid of typed points: what a law gives to each, and the earliest point that it accepts."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from accord.core import check as _check
from accord.couplings.atom_race import label_bytes
from accord.distributions import Categorical, Mixture, Normal, OnALine, PointMass, Product, on_a_line
from accord.laws import FiniteLaw
from accord.theory.couplings.secret_stream import SecretStream

__all__ = [
    "BITS",
    "SHIFTS",
    "WHOLE",
    "Column",
    "Component",
    "GridLaw",
    "Integers",
    "Points",
    "Reader",
    "first_accepted",
    "margin",
    "shares",
]


BITS = 62
WHOLE = 1 << BITS
SHIFTS = 16
"""A table's place is rounded to this fraction of a cell where it depends on other columns."""

_FARTHEST = 2.0**50
_STEEPEST = 2.0**100  # products and sums of these and of numbers of cells are finite

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The law of one column, given the columns before it.

    Parameters
    ----------
    first
        The number of the first cell, before any move.
    cuts
        Shape (tables, cells + 1): from 0 to 2^62, rising.
    start
        The first of the earlier columns that matter; those from here to the column itself are read.
    centre, slopes
        The move is ``centre + sum_j slopes[j] * g_(start + j)`` cells. No slopes, no move, one table.
    names
        For labels, whose numbers have gaps: the number of each cell, rising; ``first`` is 0 then.

    """

    first: int
    cuts: Integers
    start: int = 0
    centre: float = 0.0
    slopes: tuple[float, ...] = ()
    names: Integers | None = None
    logs: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Add the logs of the weights, -inf outside the table on both sides."""
        weights = np.diff(self.cuts, axis=1)
        right = self.cuts.ndim == 2 and weights.size > 0 and bool((weights >= 0).all())
        if not right or (self.cuts[:, 0] != 0).any() or (self.cuts[:, -1] != WHOLE).any():
            raise ArithmeticError("cuts must rise from 0 to 2^62")
        if not (np.abs((self.centre, *self.slopes)) < _STEEPEST).all():
            raise ArithmeticError("a column must depend on the others by numbers of moderate size")
        logs = np.full((weights.shape[0], weights.shape[1] + 2), -np.inf)
        np.log(weights, out=logs[:, 1:-1], where=weights > 0)
        _check.store(self, logs=logs)

    def _move(self, cells: Integers) -> tuple[Integers | int, Integers | int]:
        """Return how far the table moves, and which table it is, at records of shape (d, n)."""
        if not self.slopes:
            return 0, 0
        place = np.full(cells.shape[1], self.centre)
        for slope, earlier in zip(self.slopes, cells[self.start :], strict=False):
            place = place + slope * earlier.astype(np.float64)
        whole = np.floor(np.clip(place, -_FARTHEST, _FARTHEST) * SHIFTS + 0.5).astype(np.int64)
        return whole // SHIFTS, whole % SHIFTS

    def _entries(self, number: int, cells: Integers) -> tuple[Integers | int, Integers]:
        """Return table and place in ``logs`` of column ``number`` of the records, the ends standing for outside."""
        if self.names is not None:
            place = np.searchsorted(self.names, cells[number])
            found = self.names[np.minimum(place, len(self.names) - 1)] == cells[number]
            return 0, np.where(found, place + 1, 0)
        move, table = self._move(cells)
        return table, np.clip(cells[number] - (move + (self.first - 1)), 0, self.cuts.shape[1])

    def log_weights(self, number: int, cells: Integers) -> Floats:
        """Return the log weight of column ``number`` of records of shape (d, n), given the columns before it."""
        table, entry = self._entries(number, cells)
        values: Floats = self.logs[table, entry]
        return values

    def weights(self, number: int, cells: Integers) -> Integers:
        """Return the weight, in units of 2^-62."""
        table, entry = self._entries(number, cells)
        inside = (entry > 0) & (entry < self.cuts.shape[1])
        left = np.where(inside, entry - 1, 0)
        return np.where(inside, self.cuts[table, left + 1] - self.cuts[table, left], 0)

    def find(self, draws: Integers, cells: Integers) -> Integers:
        """Return the cell into which each of the uniform integers below 2^62 falls, given the columns before it."""
        move, table = self._move(cells)
        if isinstance(table, int):
            taken = np.searchsorted(self.cuts[0], draws, side="right") - 1
            return self.first + taken if self.names is None else self.names[taken]
        places = np.empty(len(draws), dtype=np.int64)
        order = np.argsort(table, kind="stable")
        ends = np.searchsorted(table[order], np.arange(SHIFTS + 1))
        for shift, (low, high) in enumerate(pairwise(ends)):
            here = order[low:high]
            places[here] = np.searchsorted(self.cuts[shift], draws[here], side="right")
        return places + (move + (self.first - 1))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """One part of a mixture: its weight in units of 2^-62, and its columns."""

    weight: int
    columns: tuple[Column, ...]

    def log_weights(self, cells: Integers) -> Floats:
        """Return the log weight of each record, its share of the mixture left out, shape (n,) from (d, n)."""
        total: Floats = sum((c.log_weights(j, cells) for j, c in enumerate(self.columns)), np.zeros(cells.shape[1]))
        return total

    def weights(self, cells: Integers) -> list[int]:
        """Return the weight of each record, its share of the mixture left out, in units of 2^(-62 d)."""
        product = [1] * cells.shape[1]
        for number, column in enumerate(self.columns):
            product = [a * b for a, b in zip(product, column.weights(number, cells).tolist(), strict=True)]
        return product


@final
@dataclass(frozen=True, slots=True, eq=False)
class GridLaw:
    """A law on records of whole numbers: a mixture of components with the same kinds of columns.

    Parameters
    ----------
    kinds
        One letter a column: "n" for numbers, "l" for labels. Records of different kinds are different.
    components
        Their weights sum to 2^62.

    """

    kinds: str
    components: tuple[Component, ...]

    def __post_init__(self) -> None:
        """Check that it is a law."""
        fitting = all(len(part.columns) == len(self.kinds) for part in self.components)
        if not fitting or not self.kinds or sum(part.weight for part in self.components) != WHOLE:
            raise ArithmeticError("components must have the columns that kinds names, and weights that sum to 2^62")

    def log_weights(self, cells: Integers) -> Floats:
        """Return the log probability of each record up to a constant common to all laws, shape (n,) from (d, n)."""
        if len(self.components) == 1:
            return self.components[0].log_weights(cells)
        rows = [part.log_weights(cells) + np.log(part.weight / WHOLE) for part in self.components if part.weight]
        return np.asarray(np.logaddexp.reduce(rows, axis=0))

    def tuple_weight(self, cells: Integers) -> int:
        """Return the probability of a tuple of records, shape (d, l), in units of 2^(-62 l (d + 1))."""
        columns = [(part.weight, part.weights(cells)) for part in self.components if part.weight]
        product = 1
        for record in range(cells.shape[1]):
            product *= sum(share * weights[record] for share, weights in columns)
        return product

    def draw(self, choices: Integers, draws: Integers, cells: Integers) -> None:
        """Fill ``cells`` (d, n) with records picked by uniform integers below 2^62.

        Parameters
        ----------
        choices
            Shape (n,): pick the component; not read if there is one.
        draws
            Shape (at least d, n): pick the cells.
        cells
            Filled in the columns of this law.

        """
        picked = np.zeros(cells.shape[1], dtype=np.int64)
        if len(self.components) > 1:
            ends = np.cumsum([part.weight for part in self.components])
            picked = np.searchsorted(ends, choices, side="right")
        for number, part in enumerate(self.components):
            here = np.flatnonzero(picked == number) if len(self.components) > 1 else np.arange(len(picked))
            if len(here) == 0:
                continue
            own = np.zeros((len(self.kinds), len(here)), dtype=np.int64)
            for position, column in enumerate(part.columns):
                own[position] = column.find(draws[position, here], own)
            cells[: len(self.kinds), here] = own


_POINT, _HEIGHT, _AGAIN = range(3)  # what a word is for
_WORD = 64
_LARGEST_LOG = 43.0  # log 2^62
_UNIT = 2.0**-50

Flags = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """As many points of each of several draws; point p belongs to the draw at place ``p // batch_size``.

    Parameters
    ----------
    proposers
        Shape (points,): the law that each point was drawn from.
    heights
        Shape (points,): the first 64 bits of each point's height.
    cells
        Shape (d, points, l): the records, columns first; a column that the proposer lacks is 0.

    """

    laws: Sequence[GridLaw]
    draws: Integers
    batch: int
    stream: SecretStream
    proposers: Integers
    heights: NDArray[np.uint64]
    cells: Integers

    @staticmethod
    def batch_size(laws: int) -> int:
        """Return how many points of a draw are drawn at once: a matter of speed, no law depends on it."""
        return min(max(2 * laws, 8), 256)

    @classmethod
    def drawn(cls, laws: Sequence[GridLaw], *, records: int, draws: Integers, batch: int, stream: SecretStream) -> Self:
        """Draw a batch of points: a law, uniformly; a tuple of records from it; a height."""
        size, dimension = cls.batch_size(len(laws)), max(len(law.kinds) for law in laws)
        width = 2 + records * (dimension + 1)
        words = np.concatenate([stream.words(size * width, _POINT, int(draw), batch) for draw in draws])
        words = words.reshape(len(draws) * size, width)
        proposers = np.array(
            [
                _uniform(int(word), len(laws), stream=stream, labels=(int(draws[place // size]), batch, place % size))
                for place, word in enumerate(words[:, 0])
            ],
            dtype=np.int64,
        )
        numbers = (words[:, 2:] >> np.uint64(2)).astype(np.int64).reshape(len(words), dimension + 1, records)
        cells = np.zeros((dimension, len(words), records), dtype=np.int64)
        for number, law in enumerate(laws):
            here = np.flatnonzero(proposers == number)
            own = np.zeros((dimension, len(here) * records), dtype=np.int64)
            picks = numbers[here].transpose(1, 0, 2).reshape(dimension + 1, -1)
            law.draw(picks[0], picks[1:], own)
            cells[:, here] = own.reshape(dimension, len(here), records)
        return cls(laws, draws, batch, stream, proposers, words[:, 1].copy(), cells)

    def __len__(self) -> int:
        return len(self.proposers)

    def kinds(self, point: int) -> str:
        """Return the kinds of the columns of a point."""
        return self.laws[int(self.proposers[point])].kinds

    def tuple_of(self, point: int) -> Integers:
        """Return the records of a point, shape (d, l), in the columns that it has."""
        return self.cells[: len(self.kinds(point)), point]

    def log_weights(self) -> Floats:
        """Return the log probability of every point under every law, shape (laws, points), up to `margin`."""
        kinds = np.array([law.kinds for law in self.laws])
        logs = np.full((len(self.laws), len(self)), -np.inf)
        for kind in sorted(set(kinds.tolist())):
            here = np.flatnonzero(kinds[self.proposers] == kind)
            if len(here) == 0:
                continue
            records = np.ascontiguousarray(self.cells[: len(kind), here]).reshape(len(kind), -1)
            for number in np.flatnonzero(kinds == kind).tolist():
                logs[number, here] = self.laws[number].log_weights(records).reshape(len(here), -1).sum(axis=1)
        return logs

    def weights(self, point: int) -> list[int]:
        """Return the probability of one point under every law, exactly, in a common unit."""
        kind, records = self.kinds(point), self.tuple_of(point)
        return [law.tuple_weight(records) if law.kinds == kind else 0 for law in self.laws]

    def accepts(self, point: int, *, weight: int, total: int) -> bool:
        """Return whether the point's height is below ``weight / total``, reading as many of its bits as it takes."""
        height, bits = int(self.heights[point]), _WORD
        place, position = divmod(point, self.batch_size(len(self.laws)))
        depth = 0
        while True:
            if (height + 1) * total <= weight << bits:
                return True
            if height * total >= weight << bits:
                return False
            word = self.stream.words(1, _HEIGHT, int(self.draws[place]), self.batch, position, depth)[0]
            height, bits, depth = (height << _WORD) + int(word), bits + _WORD, depth + 1


def margin(laws: Sequence[GridLaw], *, records: int) -> float:
    """Return a bound, four times over, on the error of ``log P_i(y) - log sum_j P_j(y)`` as computed, where finite.

    A record has at most c = d + 1 factors and so a log of size at most 43 c; a tuple's is a sum of l of these.
    """
    factors = max(len(law.kinds) for law in laws) + 1
    parts = max(len(law.components) for law in laws)
    size = _LARGEST_LOG * factors * records
    return 4 * _UNIT * (size * (records + factors + 8) + (records + 1) * (parts + 8) + len(laws) + 8)


def first_accepted(laws: Sequence[GridLaw], points: Points, *, pending: Flags) -> Integers:
    """Return the first point that each law accepts in each draw, shape (laws, draws); -1 for none or not pending."""
    logs = points.log_weights()
    top = logs.max(axis=0)
    shares = logs - (top + np.log(np.exp(logs - top).sum(axis=0)))
    doubt = margin(laws, records=points.cells.shape[2])
    heights = points.heights.astype(np.float64)
    with np.errstate(divide="ignore"):
        above = np.log(heights + 1.0) - _WORD * np.log(2.0)
        below = np.log(heights) - _WORD * np.log(2.0)
    size = points.batch_size(len(laws))
    asked = np.repeat(pending, size, axis=1)
    accepted = asked & (above + doubt <= shares)
    unsure = asked & ~accepted & (below - doubt < shares) & (logs > -np.inf)
    for point in np.flatnonzero(unsure.any(axis=0)):
        weights = points.weights(int(point))
        for law in np.flatnonzero(unsure[:, point]):
            accepted[law, point] = points.accepts(int(point), weight=weights[law], total=sum(weights))
    grid = accepted.reshape(len(laws), -1, size)
    first = grid.argmax(axis=2) + np.arange(grid.shape[1]) * size
    return np.where(grid.any(axis=2), first, -1)


def _uniform(word: int, count: int, *, stream: SecretStream, labels: tuple[int, ...]) -> int:
    """Return a uniform number below ``count``: the word's, or that of the first further word that will do."""
    share = (1 << _WORD) // count
    tries = 0
    while word >= share * count:
        word = int(stream.words(1, _AGAIN, *labels, tries)[0])
        tries += 1
    return word // share


_FARTHEST_GRID_READER = 1 << 52  # numbers of cells: exact as floats, with one half added too
_TAILS = (0, 1 << 12, 1 << 22, 1 << 32)  # in units of 2^-62
_REACH = 9.3  # standard deviations: beyond, a normal tail is below 2^-62
_FANOUT = 64

_Cut = Callable[[Integers], Integers]
_Parts = list[Component]


@final
@dataclass(frozen=True, slots=True)
class Reader:
    """Reads laws, and numbers their labels.

    Parameters
    ----------
    steps
        Width of the cells: one number for every column, or one a column. Empty: no numbers are read.
    most_cells
        The most entries of one column's tables.
    names
        Number of each label met so far, by its bytes. A number is a name and nothing depends on which it is.

    """

    steps: tuple[float, ...]
    most_cells: int
    names: dict[bytes, int] = field(default_factory=dict)

    def read(self, law: object) -> GridLaw:
        """Return the law on the grid; anything that goes wrong is an exception."""
        with np.errstate(all="ignore"):
            kinds, parts = self._parts(law, 0)
        return GridLaw(kinds, tuple(parts))

    def _step(self, column: int) -> float:
        return self.steps[0] if len(self.steps) == 1 else self.steps[column]

    def _parts(self, law: object, start: int) -> tuple[str, _Parts]:
        """Return kinds and components of a law whose first column is number ``start``."""
        labelled = _labelled(law)
        if labelled is not None:
            return "l", _single([self._labels(*labelled)])
        columns = self._numbers(law, start)
        if columns is not None:
            return "n" * len(columns), _single(columns)
        if isinstance(law, Product):
            return self._product(law, start)
        if isinstance(law, Mixture):
            return self._mixture(law, start)
        raise TypeError("this law has no form on a grid")

    def _numbers(self, law: object, start: int) -> list[Column] | None:
        """Return the columns of a law of numbers, or None for other laws."""
        if isinstance(law, Normal):
            return self._normal(law, start)
        if isinstance(law, PointMass) and law.vector is not None:
            return [self._point(value, start + place) for place, value in enumerate(law.vector)]
        line = on_a_line(law)
        return None if line is None else [self._line(line, start)]

    def _product(self, law: Product, start: int) -> tuple[str, _Parts]:
        kinds, columns = "", list[Column]()
        for factor in law.factors:
            more, parts = self._parts(factor, start + len(kinds))
            columns += _only(parts)
            kinds += more
        return kinds, _single(columns)

    def _mixture(self, law: Mixture, start: int) -> tuple[str, _Parts]:
        read = [self._parts(part, start) for part, _ in law.positive]
        kinds = {more for more, _ in read}
        if len(kinds) != 1:
            raise TypeError("the components of a mixture must have the same kinds of columns")
        weights = shares(weight for _, weight in law.positive)
        parts = [Component(weight, tuple(_only(part))) for weight, (_, part) in zip(weights, read, strict=True)]
        return kinds.pop(), parts

    def _labels(self, labels: Sequence[Hashable], weights: Iterable[float | int]) -> Column:
        """Return a column of labels, in the order of their numbers; weights are cut in the law's own order."""
        numbers = [self.names.setdefault(label_bytes(label), len(self.names)) for label in labels]
        if len(set(numbers)) != len(numbers):
            raise ValueError("labels must be distinct")
        if len(numbers) > self.most_cells:
            raise ArithmeticError("too many labels")
        order = np.argsort(numbers)
        table = np.array(shares(weights), dtype=np.int64)[order]
        return Column(0, np.append(0, np.cumsum(table))[None, :], names=np.array(numbers, dtype=np.int64)[order])

    def _point(self, value: float, column: int) -> Column:
        """Return a column that is one number: the cell that holds it, ends by the rule of `_line`."""
        step = self._step(column)
        guess = round(Fraction(value) / Fraction(step))
        cell = next(g for g in range(guess - 1, guess + 3) if value <= (g + 0.5) * step)
        if abs(cell) >= _FARTHEST_GRID_READER:
            raise ArithmeticError("a number is too far away for the step")
        return Column(cell, np.array([[0, WHOLE]]))

    def _line(self, law: OnALine, column: int) -> Column:
        """Return a column with ``c(g) = floor(2^62 P(X <= (g + 1/2) step))``, made to rise."""
        step = self._step(column)

        def cut(cells: Integers) -> Integers:
            ends = (cells + 0.5) * step
            return _cuts(law.cdf(ends.copy()), law.interval(ends.copy(), np.full(len(ends), np.inf)))

        for tail in _TAILS:
            low, high = _first(cut, above=tail), _first(cut, above=WHOLE - tail - 1)
            if 0 <= high - low < self.most_cells:
                inner = cut(np.arange(low, high))
                return Column(low, _table(inner[None, :]))
        raise ArithmeticError("the law is too wide for the step")

    def _normal(self, law: Normal, start: int) -> list[Column]:
        """Return the columns of a normal law, each given those before it, through the Cholesky factor."""
        steps = np.array([self._step(start + j) for j in range(law.dimension)])
        factor, mean = law.cholesky / steps[:, None], np.array(law.mean) / steps
        if not (np.isfinite(factor).all() and (np.abs(mean) < _FARTHEST_GRID_READER / 16).all()):
            raise ArithmeticError("a normal law is too far away for the step")
        columns = []
        for j in range(law.dimension):
            tables = 1 if j == 0 else SHIFTS
            deviation = float(factor[j, j])
            reach = math.ceil(min(_REACH * deviation, float(_FARTHEST_GRID_READER))) + 2
            centre = math.floor(mean[0] + 0.5) if j == 0 else 0
            if deviation <= 0 or tables * (2 * reach + 1) > self.most_cells:
                raise ArithmeticError("a normal law is too wide for the step")
            moved = np.arange(tables)[:, None] / SHIFTS + (mean[0] - centre if j == 0 else 0.0)
            ends = (np.arange(-reach, reach)[None, :] + 0.5 - moved) / deviation
            cuts = _table(_cuts(ndtr(ends), ndtr(-ends)))
            if j == 0:
                columns.append(Column(centre - reach, cuts))
                continue
            # Given the columns before, the mean is mean_j + L_j L_<^-1 (g - mean_<).
            slopes = np.linalg.solve(factor[:j, :j].T, factor[j, :j])
            place = float(mean[j] - (slopes * mean[:j]).sum())
            columns.append(Column(-reach, cuts, start, place, tuple(slopes.tolist())))
        return columns


def _labelled(law: object) -> tuple[Sequence[Hashable], Iterable[float]] | None:
    """Return labels and weights of a law of labels, or None for other laws."""
    match law:
        case Categorical():
            return law.categories, law.probabilities
        case FiniteLaw():
            return law.outcomes, law.numerators
        case PointMass(vector=None, label=label):
            return [label], [1]
    return None


def shares(weights: Iterable[Any]) -> list[int]:
    """Return whole numbers that sum to 2^62, in proportion to the weights up to 1: differences of rounded-down sums."""
    exact = [Fraction(weight) for weight in weights]
    total = sum(exact, Fraction(0))
    if not exact or min(exact) < 0 or total <= 0:
        raise ArithmeticError("weights must be at least 0, with a positive sum")
    result, so_far, below = [], Fraction(0), 0
    for weight in exact:
        so_far += weight
        cut = math.floor(so_far * WHOLE / total)
        result.append(cut - below)
        below = cut
    return result


def _single(columns: Iterable[Column]) -> _Parts:
    return [Component(WHOLE, tuple(columns))]


def _only(parts: _Parts) -> tuple[Column, ...]:
    """Return the columns of a law that is no mixture."""
    if len(parts) != 1:
        raise TypeError("a mixture of laws on several columns cannot be a part of a product or of a mixture")
    return parts[0].columns


def _cuts(lower: NDArray[Any], upper: NDArray[Any]) -> Integers:
    """Return the cuts for probabilities of both tails, each rounded where it is small and so accurate."""
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if low.shape != high.shape or not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ArithmeticError("a law must give finite probabilities")
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    from_left = np.floor(low * WHOLE).astype(np.int64)
    from_right = WHOLE - np.floor(high * WHOLE).astype(np.int64)
    return np.where(low <= 0.5, from_left, from_right)


def _table(inner: Integers) -> Integers:
    """Return cuts with both ends added, made to rise."""
    ends = np.zeros((len(inner), 1), dtype=np.int64)
    return np.concatenate((ends, np.maximum.accumulate(inner, axis=1), ends + WHOLE), axis=1)


def _first(cut: _Cut, *, above: int) -> int:
    """Return the first cell whose cut is above a bound (one such, if the cuts do not rise)."""
    low, high = -_FARTHEST_GRID_READER, _FARTHEST_GRID_READER
    ends = cut(np.array([low, high])) > above
    if ends[0] or not ends[1]:
        raise ArithmeticError("the law is too far away for the step")
    while high - low > 1:
        probes = np.unique(np.linspace(low + 1, high - 1, min(_FANOUT, high - low - 1)).astype(np.int64))
        found = np.flatnonzero(cut(probes) > above)
        if len(found) == 0:
            low = int(probes[-1])
        else:
            high = int(probes[found[0]])
            low = int(probes[found[0] - 1]) if found[0] > 0 else low
    return high
