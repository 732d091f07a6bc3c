"""A junction tree for a list of tables: which columns are kept together, and along which they meet."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import final

__all__ = ["JunctionTree", "junction_tree"]


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
    order, parents = [0], [-1]
    rest = set(range(1, len(cliques)))
    while rest:
        size, child, place = max(
            (len(cliques[child] & cliques[order[place]]), -child, -place)
            for child in rest
            for place in range(len(order))
        )
        del size
        order.append(-child)
        parents.append(-place)
        rest.discard(-child)
    separators = [
        () if parent < 0 else tuple(sorted(cliques[clique] & cliques[order[parent]]))
        for clique, parent in zip(order, parents, strict=True)
    ]
    return JunctionTree(tuple(tuple(sorted(cliques[one])) for one in order), tuple(parents), tuple(separators))
