"""How a law of accord becomes a law on a public grid: a function of this law and of public numbers alone."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from accord.couplings._grid_law import SHIFTS, WHOLE, Column, Component, GridLaw, Integers
from accord.couplings._label_bytes import label_bytes
from accord.distributions import Categorical, Mixture, Normal, OnALine, PointMass, Product, on_a_line
from accord.laws import FiniteLaw

__all__ = ["Reader", "shares"]

_FARTHEST = 1 << 52  # numbers of cells: exact as floats, with one half added too
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
        if abs(cell) >= _FARTHEST:
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
        if not (np.isfinite(factor).all() and (np.abs(mean) < _FARTHEST / 16).all()):
            raise ArithmeticError("a normal law is too far away for the step")
        columns = []
        for j in range(law.dimension):
            tables = 1 if j == 0 else SHIFTS
            deviation = float(factor[j, j])
            reach = math.ceil(min(_REACH * deviation, float(_FARTHEST))) + 2
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
    low, high = -_FARTHEST, _FARTHEST
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
