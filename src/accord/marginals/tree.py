"""Exact tables of a log-linear model by passing messages along a junction tree."""

import math
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from string import ascii_letters
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core.shared import Generator
from accord.marginals.dense import Levels, Tables

__all__ = [
    "GrowingTree",
    "JunctionTree",
    "TreeEngine",
    "junction_tree",
]
_SHORT, _LONG = 16, 256
_FEW_CELLS, _DENSE_FASTER = 1 << 13, 8


@final
@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Cliques in an order in which each one's parent comes before it.

    Parameters
    ----------
    cliques
        Columns of each clique, increasing. Every table lies in one of them.
    parents
        Position of each one's parent, -1 for the first clique.
    separators
        Columns that a clique shares with its parent, increasing: all that it shares with the cliques before it.

    """

    cliques: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]
    separators: tuple[tuple[int, ...], ...]

    def cells(self, shape: tuple[int, ...]) -> int:
        """Return the number of cells of all cliques together."""
        return sum(math.prod(shape[column] for column in clique) for clique in self.cliques)


def junction_tree(shape: tuple[int, ...], tables: Iterable[tuple[int, ...]]) -> JunctionTree:
    """Return a junction tree of tables on columns with these numbers of codes.

    Columns are eliminated in the order of least fill-in, then of fewest cells (a heuristic: the least tree is hard to
    find). The cliques that come about are joined by a spanning tree with the largest separators, which for the cliques
    of a chordal graph has the running intersection property.

    Examples
    --------
    >>> tree = junction_tree((2, 3, 4, 5), [(0, 1), (1, 2), (2, 3)])
    >>> sorted(tree.cliques), tree.cells((2, 3, 4, 5))
    ([(0, 1), (1, 2), (2, 3)], 38)

    """
    near: list[set[int]] = [set() for _ in shape]
    for table in tables:
        for left, right in combinations(table, 2):
            near[left].add(right)
            near[right].add(left)
    left_over = set(range(len(shape)))
    found: list[frozenset[int]] = []
    while left_over:
        column = min(left_over, key=lambda one: (_fill(near, one), _log_cells(shape, near[one] | {one}), one))
        clique = frozenset(near[column] | {column})
        if not any(clique <= other for other in found):
            found.append(clique)
        for left, right in combinations(near[column], 2):
            near[left].add(right)
            near[right].add(left)
        for other in near[column]:
            near[other].discard(column)
        near[column] = set()
        left_over.discard(column)
    return _spanning_tree(found)


def _fill(near: list[set[int]], column: int) -> int:
    return sum(right not in near[left] for left, right in combinations(near[column], 2))


def _log_cells(shape: tuple[int, ...], columns: Iterable[int]) -> float:
    return sum(math.log(shape[column]) for column in columns)


def _spanning_tree(cliques: list[frozenset[int]]) -> JunctionTree:
    """Join cliques one after the other, each time the one that shares most with a clique that is in: Prim's way."""
    order, parents = [0], [-1]
    holders = np.zeros((len(cliques), 1 + max(max(clique) for clique in cliques)), dtype=np.int64)
    for place, clique in enumerate(cliques):
        holders[place, list(clique)] = 1
    shared = holders @ holders[0]
    nearest = np.zeros(len(cliques), dtype=np.int64)
    shared[0] = -1
    for place in range(1, len(cliques)):
        child = int(np.argmax(shared))
        order.append(child)
        parents.append(int(nearest[child]))
        now = holders @ holders[child]
        closer = (now > shared) & (shared >= 0)
        shared[closer], nearest[closer] = now[closer], place
        shared[child] = -1
    separators = [
        () if parent < 0 else tuple(sorted(cliques[clique] & cliques[order[parent]]))
        for clique, parent in zip(order, parents, strict=True)
    ]
    return JunctionTree(tuple(tuple(sorted(cliques[one])) for one in order), tuple(parents), tuple(separators))


@final
class GrowingTree:
    """A junction tree that takes further pairs of columns without being built anew, and says what each would cost.

    A pair gets a clique of its own by taking one of its columns along the path of cliques to the other: what comes out
    is a junction tree again, because the cliques that hold that column still hang together. It may be larger than one
    built anew, never invalid.

    Parameters
    ----------
    shape
        Number of codes of each column.
    tables
        That it holds at first.

    """

    __slots__ = ("_cells", "_cliques", "_links", "_shape")

    def __init__(self, shape: tuple[int, ...], tables: Iterable[tuple[int, ...]]) -> None:
        tree = junction_tree(shape, tables)
        self._shape = np.array(shape, dtype=np.float64)
        self._cliques = [set(clique) for clique in tree.cliques]
        self._links: list[list[int]] = [[] for _ in tree.cliques]
        for child, parent in enumerate(tree.parents):
            if parent >= 0:
                self._links[child].append(parent)
                self._links[parent].append(child)
        self._cells = np.array([math.prod(shape[column] for column in clique) for clique in tree.cliques], dtype=float)

    @property
    def cells(self) -> float:
        """Number of cells of all cliques together."""
        return float(self._cells.sum())

    def with_table(self, table: Iterable[int]) -> "GrowingTree":
        """Return a tree that holds all pairs of some columns, and so a clique of all of them."""
        found = deepcopy(self)
        for left, right in combinations(table, 2):
            found.take(left, right)
        return found

    def costs(self) -> NDArray[np.float64]:
        """Return how many cells each pair of columns would add, shape (d, d)."""
        size = len(self._shape)
        found = np.full((size, size), np.inf)
        for column in range(size):
            for clique, cost in self._reached(column).items():
                others = list(self._cliques[clique])
                found[column, others] = np.minimum(found[column, others], cost[0])
        return np.asarray(np.minimum(found, found.T))

    def _reached(self, column: int) -> dict[int, tuple[float, int]]:
        """Return what taking a column to each clique adds, and the clique before it on the way; -1 at the start."""
        found = {place: (0.0, -1) for place, clique in enumerate(self._cliques) if column in clique}
        waiting = list(found)
        while waiting:
            place = waiting.pop()
            for other in self._links[place]:
                if other not in found:
                    found[other] = (found[place][0] + self._cells[other] * (self._shape[column] - 1), place)
                    waiting.append(other)
        return found

    def take(self, left: int, right: int) -> None:
        """Add a pair, by whichever of its columns costs less to take to the other."""
        ways = []
        for column, goal in ((left, right), (right, left)):
            reached = self._reached(column)
            ends = [place for place, clique in enumerate(self._cliques) if goal in clique]
            end = min(ends, key=lambda place: reached[place][0])
            ways.append((reached[end][0], column, end, reached))
        _, column, place, reached = min(ways, key=lambda way: way[0])
        while reached[place][1] >= 0:
            self._cliques[place].add(column)
            self._cells[place] *= self._shape[column]
            place = reached[place][1]


Floats = NDArray[np.float64]


@final
class TreeEngine:
    """Tables of ``p(x)`` proportional to ``exp(sum of potentials)``, each clique of a junction tree on its own.

    Parameters
    ----------
    shape
        Number of codes of each column.
    tables
        Column positions of each potential, increasing.

    """

    __slots__ = ("_children", "_homes", "_tree", "shape", "tables")

    def __init__(self, shape: tuple[int, ...], tables: Tables) -> None:
        self.shape = shape
        self.tables = tables
        self._tree = junction_tree(shape, tables)
        sets = [set(clique) for clique in self._tree.cliques]
        self._homes = [
            min(
                (place for place, clique in enumerate(sets) if set(table) <= clique),
                key=lambda place: math.prod(shape[column] for column in sets[place]),
            )
            for table in tables
        ]
        self._children: list[list[int]] = [[] for _ in sets]
        for child, parent in enumerate(self._tree.parents):
            if parent >= 0:
                self._children[parent].append(child)

    @property
    def cells(self) -> int:
        """Number of cells of all cliques."""
        return self._tree.cells(self.shape)

    @property
    def slower_than_dense(self) -> bool:
        """Whether all cells at once take less time: where they are few, or not many more than those of the cliques."""
        return math.prod(self.shape) <= max(_FEW_CELLS, _DENSE_FASTER * self.cells)

    def _sizes(self, columns: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.shape[column] for column in columns)

    def _along(self, array: Floats, columns: Sequence[int], clique: Sequence[int]) -> Floats:
        """Return an array on some columns with one axis for each column of the clique; both increase."""
        return array.reshape([self.shape[column] if column in columns else 1 for column in clique])

    def _beliefs(self, potentials: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return the log of the total weight and each clique's probabilities."""
        tree = self._tree
        logs = [np.zeros(self._sizes(clique)) for clique in tree.cliques]
        for table, potential, home in zip(self.tables, potentials, self._homes, strict=True):
            logs[home] += self._along(potential, table, tree.cliques[home])
        log_total = 0.0
        weights, upward = [], [np.ones(())] * len(logs)
        for array in logs:
            peak = float(array.max())
            log_total += peak
            weights.append(np.exp(array - peak))
        for place in reversed(range(len(weights))):  # children before parents
            message = self._onto(weights[place], tree.cliques[place], tree.separators[place])
            peak = float(message.max())
            if peak <= 0:  # a clique and its children want cells that are too far apart for floats
                return self._beliefs_by_logs(logs)
            log_total += math.log(peak)
            upward[place] = message / peak
            weights[place] /= peak
            parent = tree.parents[place]
            if parent >= 0:
                weights[parent] *= self._along(upward[place], tree.separators[place], tree.cliques[parent])
        # The first clique's separator is empty: its message is its total, and it is normalised now.
        for place, parent in enumerate(tree.parents):
            if parent < 0:
                continue
            above = self._onto(weights[parent], tree.cliques[parent], tree.separators[place])
            with np.errstate(over="ignore"):
                ratio = np.divide(above, upward[place], out=np.zeros_like(above), where=upward[place] > 0)
            if not np.isfinite(ratio).all():
                return self._beliefs_by_logs(logs)
            weights[place] *= self._along(ratio, tree.separators[place], tree.cliques[place])
        return log_total, weights

    def _beliefs_by_logs(self, logs: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return the same by sums of logs, which takes longer and reaches any potentials."""
        tree = self._tree
        sums, upward = list(logs), [np.zeros(())] * len(logs)
        for place in reversed(range(len(sums))):
            upward[place] = self._log_onto(sums[place], tree.cliques[place], tree.separators[place])
            parent = tree.parents[place]
            if parent >= 0:
                sums[parent] = sums[parent] + self._along(upward[place], tree.separators[place], tree.cliques[parent])
        log_total = float(upward[0])
        sums[0] = sums[0] - log_total
        for place, parent in enumerate(tree.parents):
            if parent >= 0:
                above = self._log_onto(sums[parent], tree.cliques[parent], tree.separators[place])
                shift = above - upward[place]
                sums[place] = sums[place] + self._along(shift, tree.separators[place], tree.cliques[place])
        return log_total, [np.exp(one) for one in sums]

    def _log_onto(self, logs: Floats, clique: Sequence[int], columns: Sequence[int]) -> Floats:
        """Return the logs of sums of exponentials over the columns that are not kept."""
        over = tuple(axis for axis, column in enumerate(clique) if column not in columns)
        peaks = logs.max(axis=over, keepdims=True)
        summed = np.exp(logs - peaks).sum(axis=over)
        return np.asarray(np.log(summed) + peaks.reshape(summed.shape))

    def _onto(self, array: Floats, clique: Sequence[int], columns: Sequence[int]) -> Floats:
        return _summed(array, [column in columns for column in clique])

    def solve(self, potentials: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return the log of the total weight, and the probabilities of each table, flat."""
        log_total, beliefs = self._beliefs(potentials)
        found = [
            self._onto(beliefs[home], self._tree.cliques[home], table).ravel()
            for table, home in zip(self.tables, self._homes, strict=True)
        ]
        return log_total, found

    def table(self, potentials: Sequence[Floats], columns: tuple[int, ...]) -> Floats:
        """Return the probabilities of any table, flat, in the order given: cliques over separators, summed out."""
        return self.several(potentials, [columns])[0]

    def several(self, potentials: Sequence[Floats], tables: Sequence[tuple[int, ...]]) -> list[Floats]:
        """Return the probabilities of any tables: one pass of messages for all of them."""
        beliefs = self._beliefs(potentials)[1]
        return [self._any(beliefs, columns) for columns in tables]

    def _any(self, beliefs: list[Floats], columns: tuple[int, ...]) -> Floats:
        tree = self._tree
        for belief, clique in zip(beliefs, tree.cliques, strict=True):
            if set(columns) <= set(clique):
                ordered = tuple(sorted(columns))
                shaped = self._onto(belief, clique, ordered)
                return shaped.transpose([ordered.index(column) for column in columns]).ravel()
        needed = self._subtree(set(columns))
        terms: dict[int, tuple[Floats, tuple[int, ...]]] = {}
        for place in sorted(needed):
            clique, belief = tree.cliques[place], beliefs[place]
            if tree.parents[place] in needed:  # given the separator
                below = self._onto(belief, clique, tree.separators[place])
                given = self._along(below, tree.separators[place], clique)
                belief = np.divide(belief, given, out=np.zeros_like(belief), where=given > 0)
            terms[place] = (belief, clique)
        for place in sorted(needed, reverse=True):  # children into parents, keeping the asked columns
            parent = tree.parents[place]
            if parent not in needed:
                continue
            belief, axes = terms.pop(place)
            keep = [axis for axis in axes if axis in columns or axis in tree.separators[place]]
            above, above_axes = terms[parent]
            message = _einsum(keep, (belief, axes))
            ahead = [tree.separators[other] for other in terms if tree.parents[other] == parent]
            if tree.parents[parent] in needed:
                ahead.append(tree.separators[parent])
            wanted = [
                axis
                for axis in dict.fromkeys([*above_axes, *keep])
                if axis in columns or any(axis in separator for separator in ahead)
            ]
            terms[parent] = (_einsum(wanted, (above, above_axes), (message, keep)), tuple(wanted))
        ((belief, axes),) = terms.values()
        return _einsum(columns, (belief, axes)).ravel()

    def _subtree(self, columns: set[int]) -> set[int]:
        """Return cliques that together hold the columns and hang together: all, less leaves that are not needed."""
        tree = self._tree
        needed = set(range(len(tree.cliques)))
        changed = True
        while changed:
            changed = False
            for place in sorted(needed, reverse=True):
                links = [other for other in needed if tree.parents[other] == place or tree.parents[place] == other]
                others = {column for other in needed - {place} for column in tree.cliques[other]}
                if len(links) <= 1 and len(needed) > 1 and (set(tree.cliques[place]) & columns) <= others:
                    needed.discard(place)
                    changed = True
        return needed

    def sample(
        self, potentials: Sequence[Floats], size: int, levels: Levels, generator: Generator
    ) -> NDArray[np.int64]:
        """Return records of the law, shape (size, d): each clique's new columns given those it shares."""
        beliefs = self._beliefs(potentials)[1]
        tree = self._tree
        records = np.zeros((size, len(self.shape)), dtype=np.int64)
        for clique, belief, shared in zip(tree.cliques, beliefs, tree.separators, strict=True):
            new = [column for column in clique if column not in shared]
            rows = belief.transpose([clique.index(column) for column in [*shared, *new]])
            rows = rows.reshape(math.prod(self._sizes(shared)), -1)
            given = np.zeros(size, dtype=np.int64)
            for column in shared:
                given = given * self.shape[column] + records[:, column]
            cell = _draw_rows(rows, given, levels(given, generator))
            for column, place in zip(new, np.unravel_index(cell, self._sizes(new)), strict=True):
                records[:, column] = place
        return records


def _summed(array: Floats, kept: Sequence[bool]) -> Floats:
    """Return the sums over the axes that are not kept, by matrix products where numpy's own loops would be short."""
    shape = [size for size, stays in zip(array.shape, kept, strict=True) if stays]
    after = 1  # cells of what is kept behind an axis
    runs: list[tuple[int, int]] = []
    dropped = 1
    for size, stays in zip(reversed(array.shape), reversed(kept), strict=True):
        if not stays:
            dropped *= size
        else:
            if dropped > 1:
                runs.append((dropped, after))
                dropped = 1
            after *= size
    if dropped > 1:
        runs.append((dropped, after))
    for dropped, after in runs:
        if after == 1:
            array = array.reshape(-1, dropped) @ np.ones(dropped)
        elif dropped >= _LONG or array.size == dropped * after:
            array = np.ones(dropped) @ array.reshape(-1, dropped, after)
        elif after <= _SHORT:
            array = array.reshape(-1, dropped * after) @ _columns_sum(dropped, after)
        else:
            array = array.reshape(-1, dropped, after).sum(axis=1)
    return np.asarray(array).reshape(shape)


@lru_cache(maxsize=256)
def _columns_sum(dropped: int, after: int) -> Floats:
    """Return the matrix that adds each of so many columns of every row of ``dropped`` times ``after``."""
    return np.tile(np.eye(after), (dropped, 1))


def _einsum(kept: Sequence[int], *terms: tuple[Floats, Sequence[int]]) -> Floats:
    """Return the product of arrays whose axes are columns, summed over the columns that are not kept.

    Columns of one code are left out on the way: there may be more of them than numpy has letters for.
    """
    sizes = {column: size for array, axes in terms for column, size in zip(axes, array.shape, strict=True)}
    letters = dict(zip((column for column, size in sizes.items() if size > 1), ascii_letters, strict=False))
    inputs = ",".join("".join(letters[column] for column in axes if column in letters) for _, axes in terms)
    output = "".join(letters[column] for column in kept if column in letters)
    arrays = [array.reshape([size for size in array.shape if size > 1]) for array, _ in terms]
    product = np.einsum(f"{inputs}->{output}", *arrays)
    return np.asarray(product).reshape([sizes[column] for column in kept])


def _draw_rows(rows: Floats, given: NDArray[np.int64], uniform: Floats) -> NDArray[np.int64]:
    """Return one position in each of the rows ``given``, with chances as its entries."""
    steps = np.cumsum(rows, axis=1)
    ends = steps[:, -1:]
    steps = np.divide(steps, ends, out=np.ones_like(steps), where=ends > 0)
    flat = (steps + np.arange(len(rows))[:, None]).ravel()
    found = np.searchsorted(flat, given + uniform, side="right") - given * rows.shape[1]
    return np.asarray(np.clip(found, 0, rows.shape[1] - 1), dtype=np.int64)
