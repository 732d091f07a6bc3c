"""Exact tables of a log-linear model on all cells at once, without ever writing down all cells.

Two inner columns, the largest, are kept apart from the outer ones: with F over (outer, first), G over (outer, second)
and K over (some outer, first, second), the weight of a cell is F G K, and each table is a sum over two of the three
factors that a matrix product gives.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core.shared import Generator

__all__ = ["DenseEngine", "Levels", "Tables"]

Floats = NDArray[np.float64]
Levels = Callable[[NDArray[np.int64], Generator], NDArray[np.float64]]
Tables = tuple[tuple[int, ...], ...]
_CHUNK = 1 << 16


@final
@dataclass(frozen=True, slots=True)
class _Factors:
    """What a set of potentials comes to: sums over the second, over the first, and over the outer columns."""

    log_total: float
    first: Floats
    """P(outer, first), in the engine's order of the outer columns."""
    second: Floats
    """P(outer, second)."""
    both: Floats
    """P(shared outer, first, second)."""
    g: Floats
    k: Floats


@final
class DenseEngine:
    """Tables of ``p(x)`` proportional to ``exp(sum of potentials)`` for a fixed list of tables.

    Parameters
    ----------
    shape
        Number of codes of each column.
    tables
        Column positions of each potential, increasing.

    """

    __slots__ = ("_first", "_homes", "_leading", "_outer", "_second", "_shared", "shape", "tables")

    def __init__(self, shape: tuple[int, ...], tables: Tables) -> None:
        self.shape = shape
        self.tables = tables
        order = sorted(range(len(shape)), key=lambda column: (-shape[column], column))
        # A table of one or two columns gets inner columns with a single code.
        self._first = order[0]
        self._second = order[1] if len(order) > 1 else None
        inner = {self._first, self._second}
        together = [table for table in tables if self._second is not None and inner <= set(table)]
        self._shared = sorted({column for table in together for column in table} - inner)
        rest = [column for column in range(len(shape)) if column not in inner and column not in self._shared]
        self._outer = [*self._shared, *rest]
        self._leading = math.prod(shape[column] for column in self._shared)
        self._homes = [self._home(table) for table in tables]

    def _home(self, table: Sequence[int]) -> str:
        has_first, has_second = self._first in table, self._second is not None and self._second in table
        if has_first and has_second:
            return "both"
        return "second" if has_second else "first"

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    def _axes(self, home: str) -> list[int | None]:
        """Columns of a factor; None stands for an inner column that is not there."""
        if home == "both":
            return [*self._shared, self._first, self._second]
        return [*self._outer, self._first if home == "first" else self._second]

    def _sizes(self, axes: Sequence[int | None]) -> tuple[int, ...]:
        return tuple(1 if axis is None else self.shape[axis] for axis in axes)

    def _spread(self, table: tuple[int, ...], potential: Floats, axes: Sequence[int | None]) -> Floats:
        """Return a potential with one axis for each of ``axes``, of length 1 where it does not depend on it."""
        present = [axis for axis in axes if axis in table]
        ordered = potential.reshape([self.shape[column] for column in table]).transpose(
            [table.index(axis) for axis in present if axis is not None]
        )
        return ordered.reshape([self.shape[axis] if axis in table and axis is not None else 1 for axis in axes])

    def _logs(self, potentials: Sequence[Floats]) -> dict[str, Floats]:
        logs = {home: np.zeros(self._sizes(self._axes(home))) for home in ("first", "second", "both")}
        for table, potential, home in zip(self.tables, potentials, self._homes, strict=True):
            logs[home] += self._spread(table, potential, self._axes(home))
        return logs

    def _factors(self, potentials: Sequence[Floats]) -> _Factors:
        logs = self._logs(potentials)
        lead = self._leading
        f = logs["first"].reshape(lead, -1, logs["first"].shape[-1])
        g = logs["second"].reshape(lead, -1, logs["second"].shape[-1])
        k = logs["both"].reshape(lead, *logs["both"].shape[-2:])
        tops = g.max(axis=2, keepdims=True)
        peaks = k.max(axis=(1, 2), keepdims=True)
        f = f + tops + peaks
        peak = float(f.max())
        f, g, k = np.exp(f - peak), np.exp(g - tops), np.exp(k - peaks)
        first = f * np.matmul(g, k.transpose(0, 2, 1))
        second = g * np.matmul(f, k)
        both = k * np.matmul(f.transpose(0, 2, 1), g)
        # Where no cell is near the bound that all are measured by, nothing is left of them in floats: noise alone.
        total = max(float(first.sum()), np.finfo(np.float64).tiny)
        return _Factors(math.log(total) + peak, first / total, second / total, both / total, g, k)

    def solve(self, potentials: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return the log of the total weight, and the probabilities of each table, flat."""
        factors = self._factors(potentials)
        arrays = {
            home: getattr(factors, home).reshape(self._sizes(self._axes(home))) for home in ("first", "second", "both")
        }
        sums: dict[tuple[str, frozenset[int]], Floats] = {}
        found = [
            self._table(table, home, arrays[home], sums) for table, home in zip(self.tables, self._homes, strict=True)
        ]
        return factors.log_total, found

    def _table(
        self, table: tuple[int, ...], home: str, array: Floats, sums: dict[tuple[str, frozenset[int]], Floats]
    ) -> Floats:
        """Sum a factor over what is not in the table, one column after the other, and keep the partial sums."""
        axes = self._axes(home)
        here = array
        gone: frozenset[int] = frozenset()
        drop = [place for place in reversed(range(len(axes))) if axes[place] is not None and axes[place] not in table]
        # Columns are summed out in one order for all tables, so that they share the large partial sums.
        for place in drop:
            gone |= {place}
            key = (home, gone)
            if key not in sums:
                sums[key] = here.sum(axis=place, keepdims=True)
            here = sums[key]
        present = [axis for axis in axes if axis is not None and axis in table]
        kept = here.reshape([self.shape[axis] for axis in present])
        return kept.transpose([present.index(column) for column in table]).ravel()

    def table(self, potentials: Sequence[Floats], columns: tuple[int, ...]) -> Floats:
        """Return the probabilities of any table, flat, in the order given."""
        return self.several(potentials, [columns])[0]

    def several(self, potentials: Sequence[Floats], tables: Sequence[tuple[int, ...]]) -> list[Floats]:
        """Return the probabilities of any tables, each flat."""
        ordered = [tuple(sorted(columns)) for columns in tables]
        engine = DenseEngine(self.shape, (*self.tables, *dict.fromkeys(ordered)))
        nothing = [np.zeros(math.prod(self.shape[column] for column in table)) for table in dict.fromkeys(ordered)]
        solved = dict(zip(engine.tables, engine.solve([*potentials, *nothing])[1], strict=True))
        return [
            solved[table]
            .reshape([self.shape[column] for column in table])
            .transpose([table.index(column) for column in columns])
            .ravel()
            for table, columns in zip(ordered, tables, strict=True)
        ]

    def sample(
        self, potentials: Sequence[Floats], size: int, levels: Levels, generator: Generator
    ) -> NDArray[np.int64]:
        """Return records of the law, shape (size, d): the second inner column last, given the others."""
        factors = self._factors(potentials)
        firsts = factors.first.shape[2]
        records = np.empty((size, len(self.shape)), dtype=np.int64)
        cell = _draw(factors.first.ravel(), levels(np.zeros(size, dtype=np.int64), generator))
        outer, inner = np.divmod(cell, firsts)
        records[:, self._first] = inner
        if self._outer:
            places = np.unravel_index(outer, [self.shape[column] for column in self._outer])
            for column, place in zip(self._outer, places, strict=True):
                records[:, column] = place
        if self._second is not None:
            g = factors.g.reshape(-1, factors.g.shape[2])
            lead = outer // max(1, g.shape[0] // self._leading)
            uniform = levels(cell, generator)
            for start in range(0, size, _CHUNK):
                piece = slice(start, start + _CHUNK)
                steps = np.cumsum(g[outer[piece]] * factors.k[lead[piece], inner[piece]], axis=1)
                passed = steps <= uniform[piece, None] * steps[:, -1:]
                records[piece, self._second] = np.minimum(passed.sum(axis=1), steps.shape[1] - 1)
        return records


def _draw(weights: Floats, uniform: Floats) -> NDArray[np.int64]:
    steps = np.cumsum(weights)
    found = np.searchsorted(steps, uniform * steps[-1], side="right")
    return np.asarray(np.minimum(found, len(steps) - 1), dtype=np.int64)
