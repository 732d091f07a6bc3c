"""Compiled: in which bins each unit falls along public directions, as whole numbers, added up exactly.

Imported at its first use only: slow. What a unit adds is a function of its own records and of public numbers, found
record by record in a plain loop: docs/proofs/refine.md.
"""

import math

import numpy as np
from numpy.typing import NDArray

from accord._compiled import compiled

__all__ = ["add_units"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled
def _finite(record: Floats) -> bool:
    for entry in record:  # noqa: SIM110 - compiled: a generator would not be
        if not math.isfinite(entry):
            return False
    return True


@compiled
def _bin(record: Floats, direction: Floats, inner: Floats) -> int:
    """Return how many of the inner edges are at most the projection; -1 if it is no number."""
    value = 0.0
    for column in range(record.size):
        value += record[column] * direction[column]
    if math.isnan(value):
        return -1
    low, high = 0, inner.size
    while low < high:
        middle = (low + high) // 2
        if inner[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def add_units(records: Floats, starts: Integers, directions: Floats, inner: Floats, share: int, most: int) -> Integers:  # noqa: PLR0917 - compiled
    """Return the sum over units, shape (J, B), of ``floor(share * c / m)``: c of the unit's m records are in the bin.

    Records beyond the first ``most`` of a unit do not count; a record that is not finite is in no bin.

    Parameters
    ----------
    records
        Shape (n, d).
    starts
        Unit u has the records from ``starts[u]`` up to ``starts[u + 1]``, not included.
    directions
        Shape (J, d).
    inner
        Edges between bins, rising, shape (J, B - 1).
    share, most
        At least 1; ``share * most`` and ``share`` times the number of units are below 2^62.

    """
    count, bins = inner.shape[0], inner.shape[1] + 1
    total = np.zeros((count, bins), dtype=np.int64)
    own = np.zeros(bins, dtype=np.int64)
    places = np.empty(most, dtype=np.int64)
    finite = np.empty(len(records), dtype=np.bool_)
    for at in range(len(records)):
        finite[at] = _finite(records[at])
    for j in range(count):
        for unit in range(starts.size - 1):
            size = min(starts[unit + 1] - starts[unit], most)
            if size == 1:
                at = starts[unit]
                place = _bin(records[at], directions[j], inner[j]) if finite[at] else -1
                if place >= 0:
                    total[j, place] += share
                continue
            for step in range(size):
                at = starts[unit] + step
                places[step] = _bin(records[at], directions[j], inner[j]) if finite[at] else -1
                if places[step] >= 0:
                    own[places[step]] += 1
            for step in range(size):
                place = places[step]
                if place >= 0 and own[place] > 0:
                    total[j, place] += share * own[place] // size
                    own[place] = 0
    return total
