"""Put codes inside groups, column after column, so that numbers go along with the numbers already placed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accord.core.shared import Generator
from accord.marginals.domain import Column
from accord.marginals.errors import Grouping

__all__ = [
    "draw_within",
    "even_levels",
    "independent_levels",
    "latent_correlations",
    "place_within",
    "prediction_scores",
]


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def independent_levels(groups: Ints, generator: Generator) -> Floats:
    """Return an independent uniform level for each record, shape (n,)."""
    return generator.random(len(groups))


def even_levels(groups: Ints, generator: Generator) -> Floats:
    """Return levels that are uniform each, and within a group of r records one in each r-th of (0, 1), shape (n,)."""
    count = len(groups)
    shuffle = generator.permutation(count)
    order = shuffle[np.argsort(groups[shuffle], kind="stable")]
    sizes = np.bincount(groups)
    sizes = sizes[sizes > 0]
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    offset = np.repeat(generator.random(len(sizes)), sizes)
    levels = np.empty(count)
    levels[order] = (np.arange(count) - starts + offset) / np.repeat(sizes, sizes)
    return levels


def draw_within(grouping: Grouping, groups: Ints, generator: Generator) -> Ints:
    """Return an independent code of each group, shape (n,)."""
    if grouping.groups == len(grouping.group_of):
        return np.asarray(np.argsort(grouping.group_of)[groups], dtype=np.int64)
    order, starts, steps = _running(grouping)
    ends = np.append(starts[1:], len(order))
    place = np.searchsorted(steps, groups + generator.random(len(groups)), side="right")
    return order[np.clip(place, starts[groups], ends[groups] - 1)]


def place_within(grouping: Grouping, groups: Ints, scores: Floats) -> Ints:
    """Return codes of groups, their shares rounded; within a group lower scores get lower codes, shape (n,)."""
    if grouping.groups == len(grouping.group_of):
        return np.asarray(np.argsort(grouping.group_of)[groups], dtype=np.int64)
    order, starts, steps = _running(grouping)
    ends = np.append(starts[1:], len(order))
    rows = np.lexsort((scores, groups))
    counts = np.bincount(groups, minlength=grouping.groups)
    rank = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    level = (rank + 0.5) / counts[groups[rows]]
    place = np.searchsorted(steps, groups[rows] + level, side="right")
    codes = np.empty(len(groups), dtype=np.int64)
    codes[rows] = order[np.clip(place, starts[groups[rows]], ends[groups[rows]] - 1)]
    return codes


def _running(grouping: Grouping) -> tuple[Ints, Ints, Floats]:
    """Return codes sorted by group, where each group begins, and running sums to which the group's number is added."""
    order = np.argsort(grouping.group_of, kind="stable").astype(np.int64)
    starts = np.searchsorted(grouping.group_of[order], np.arange(grouping.groups)).astype(np.int64)
    sums = np.cumsum(grouping.within[order])
    before = np.concatenate([[0.0], sums])[starts]
    owner = grouping.group_of[order]
    return order, starts, owner + np.minimum(sums - before[owner], 1.0)


def prediction_scores(
    column: int, placed: Sequence[int], *, correlations: Floats, values: Floats, generator: Generator
) -> Floats:
    """Return scores by which a column of numbers goes along with those placed before, as for a normal law, shape (n,).

    Parameters
    ----------
    column
        The column that is placed next.
    placed
        Columns that have been placed.
    correlations
        Of all columns of numbers, by their positions in the domain.
    values
        Standardised numbers placed so far, one row a column of the domain.
    generator
        Where the part that the others do not tell comes from.

    """
    noise = np.asarray(generator.standard_normal(values.shape[1]), dtype=np.float64)
    if not placed:
        return noise
    among = correlations[np.ix_(placed, placed)] + 1e-3 * np.eye(len(placed))
    weights = np.linalg.solve(among, correlations[placed, column])
    explained = float(np.clip(weights @ correlations[placed, column], 0.0, 1.0))
    return np.asarray(weights @ values[list(placed)] + np.sqrt(1.0 - explained) * noise)


def latent_correlations(
    numbers: Sequence[int], columns: Sequence[Column], groupings: Sequence[Grouping], groups: Ints
) -> Floats:
    """Return correlations that the numbers would have had before they were put in groups, shape (d, d).

    Groups keep a share v of a column's variance; for a normal law the covariance of two columns' group means is that of
    the columns times both shares.

    Parameters
    ----------
    numbers
        Columns of numbers.
    columns, groupings
        Of every column.
    groups
        Records of the law, some ten thousands, shape (n, d): each pair is looked at where neither is missing.

    """
    found = np.eye(len(groupings))
    values, squares, present = (np.zeros((len(groups), len(numbers))) for _ in range(3))
    for place, column in enumerate(numbers):
        grouping, own = groupings[column], groups[:, column]
        there = own < grouping.groups - 1 if grouping.missing(columns[column]) else np.ones(len(own), dtype=np.bool_)
        middles = grouping.middles(columns[column])
        centre = float(middles[own[there]].mean()) if there.any() else 0.0
        values[there, place] = middles[own[there]] - centre
        ends = grouping.middles(columns[column], power=2)
        squares[there, place] = ends[own[there]] - 2 * centre * middles[own[there]] + centre**2
        present[:, place] = there
    both = np.maximum(present.T @ present, 1.0)
    means = values.T @ present / both
    kept = (values**2).T @ present / both - means**2
    whole = squares.T @ present / both - means**2
    covariance = values.T @ values / both - means * means.T
    valid = np.minimum(np.minimum(kept, kept.T), np.minimum(whole, whole.T)) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        latent = np.where(valid, covariance * np.sqrt(whole * whole.T) / (kept * kept.T), 0.0)
    found[np.ix_(numbers, numbers)] = np.clip(latent, -0.999, 0.999)
    np.fill_diagonal(found, 1.0)
    return found
