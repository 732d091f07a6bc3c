"""The compiled loops of the counting engine."""

import numpy as np
from numpy.typing import NDArray

from accord._compiled import compiled

__all__ = ["add_counts"]

Ints = NDArray[np.int64]


@compiled
def add_counts(  # noqa: PLR0917 - compiled: plain arrays, positions only
    groups: NDArray[np.uint32], weights: Ints, axes: Ints, strides: Ints, starts: Ints, counts: Ints
) -> None:
    """Add some records to tables that stand one after the other in ``counts``.

    Parameters
    ----------
    groups
        Shape (columns, at least n).
    weights
        Of each record, shape (n,).
    axes, strides
        The row of ``groups`` of each table's columns, -1 behind the last, and how far one group of it is from the next.
    starts
        Where each table begins in ``counts``.

    """
    for table in range(len(axes)):
        ways = 0
        while ways < axes.shape[1] and axes[table, ways] >= 0:
            ways += 1
        if ways == 2:
            _add_pair(
                groups[axes[table, 0]], groups[axes[table, 1]], strides[table, 0], weights, counts[starts[table] :]
            )
        else:
            _add_any(groups, axes[table, :ways], strides[table, :ways], weights, counts[starts[table] :])


@compiled
def _add_pair(first: NDArray[np.uint32], second: NDArray[np.uint32], stride: int, weights: Ints, counts: Ints) -> None:
    for row in range(len(weights)):
        counts[first[row] * stride + second[row]] += weights[row]


@compiled
def _add_any(groups: NDArray[np.uint32], axes: Ints, strides: Ints, weights: Ints, counts: Ints) -> None:
    places = np.zeros(len(weights), dtype=np.int64)
    for axis in range(len(axes)):
        column, stride = groups[axes[axis]], strides[axis]
        for row in range(len(weights)):
            places[row] += column[row] * stride
    for row in range(len(weights)):
        counts[places[row]] += weights[row]
