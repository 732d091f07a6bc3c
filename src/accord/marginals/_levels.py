"""Levels in (0, 1) at which laws are inverted: independent, or spread evenly within groups of records."""

import numpy as np
from numpy.typing import NDArray

from accord.core.shared import Generator

__all__ = ["even_levels", "independent_levels"]

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
