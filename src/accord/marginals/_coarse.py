"""Put rare codes together before tables of several columns are measured. Works on released counts only."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.marginals._dense import DenseEngine
from accord.marginals._fit import Noisy, fit
from accord.marginals.domain import Column, ColumnKind

__all__ = ["Grouping", "grouped"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_MOST_SLOTS = 2048


@final
@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The groups of one column's codes.

    Parameters
    ----------
    group_of
        Group of each code, shape (size,).
    within
        Probability of each code given its group, shape (size,).
    counts, deviations
        Noisy count of each group, and the standard deviation of its noise, shape (groups,).

    """

    group_of: Ints
    within: Floats
    counts: Floats
    deviations: Floats

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.counts)


def grouped(column: Column, counts: Floats, *, deviation: float, total: float, threshold: float, most: int) -> Grouping:
    """Return groups that hold at least ``threshold`` by the noisy counts, where they can, and the law inside each.

    Parameters
    ----------
    column
        Ordered columns get runs of neighbouring codes; otherwise all rare codes make up one group.
    counts, deviation
        Noisy counts, shape (size,), and the standard deviation of their noise.
    total
        n.
    threshold
        Least noisy count.
    most
        At most so many groups of an ordered column.

    """
    group_of = (
        _rare_together(counts, threshold)
        if column.kind is ColumnKind.CATEGORY
        else _runs(counts, threshold=threshold, most=most)
    )
    law = smooth_law(counts, deviation=deviation, total=total)
    sums = np.bincount(group_of, weights=law)
    sizes = np.bincount(group_of).astype(np.float64)
    within = np.where(sums[group_of] > 0, law / np.maximum(sums[group_of], 1e-300), 1 / sizes[group_of])
    return Grouping(
        group_of, within, np.bincount(group_of, weights=counts).astype(np.float64), deviation * np.sqrt(sizes)
    )


def smooth_law(counts: Floats, *, deviation: float, total: float) -> Floats:
    """Return the law of greatest entropy for one noisy column."""
    engine = DenseEngine((len(counts),), ((0,),))
    noisy = Noisy((0,), counts, np.full(len(counts), deviation))
    return engine.solve(fit(engine, [noisy], total=total).potentials)[1][0]


def _rare_together(counts: Floats, threshold: float) -> Ints:
    rare = counts < threshold
    if rare.sum() < 2:
        return np.arange(len(counts))
    group_of = np.cumsum(~rare) - 1
    group_of[rare] = group_of.max() + 1
    return group_of.astype(np.int64)


def _runs(counts: Floats, *, threshold: float, most: int) -> Ints:
    """Merge the lightest run with its lighter neighbour until all are heavy enough and few enough."""
    starts = _first_starts(counts)
    weights = np.add.reduceat(counts, starts).tolist()
    ends = [*starts[1:].tolist(), len(counts)]
    while len(weights) > 1 and (len(weights) > most or min(weights) < threshold):
        light = int(np.argmin(weights))
        left = weights[light - 1] if light > 0 else np.inf
        right = weights[light + 1] if light + 1 < len(weights) else np.inf
        low = light - 1 if left <= right else light
        weights[low : low + 2] = [weights[low] + weights[low + 1]]
        del ends[low]
    return np.repeat(np.arange(len(ends)), np.diff([0, *ends])).astype(np.int64)


def _first_starts(counts: Floats) -> Ints:
    """Return where runs begin: at each code, or, with very many codes, at equal shares of the noisy counts."""
    if len(counts) <= _MOST_SLOTS:
        return np.arange(len(counts), dtype=np.int64)
    steps = np.cumsum(np.maximum(counts, 0) + 1e-9)
    marks = np.floor(steps / steps[-1] * _MOST_SLOTS * (1 - 1e-12))
    return np.flatnonzero(np.concatenate([[True], np.diff(marks) > 0])).astype(np.int64)
