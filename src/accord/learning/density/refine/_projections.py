"""Which projections are counted in which bins: public numbers, and the sensitivity of the counts."""

from dataclasses import dataclass
from math import isqrt
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.learning.density.refine._units import UnitRecords

__all__ = ["SHARE", "BinnedProjections", "NoisyCounts"]

Floats = NDArray[np.float64]
SHARE = 1 << 20
"""What a unit adds to the bin that holds all its records."""

_MOST_RECORDS = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedProjections:
    """J directions, each cut into B bins; a query of J B whole numbers.

    Formal guarantees
    -----------------
    - Sensitivity: replacing one unit moves the J B sums by at most `sensitivity` in L2, in whole numbers, however
      floats are rounded, how many records the old and the new unit have, and wherever they stand.

    Parameters
    ----------
    directions
        Shape (J, d).
    inner
        Rising edges between bins, shape (J, B - 1); the outer bins are unbounded.

    Source
    ------
    docs/proofs/refine.md.

    """

    directions: Floats
    inner: Floats

    @property
    def bins(self) -> int:
        """B."""
        return int(self.inner.shape[1]) + 1

    @property
    def sensitivity(self) -> int:
        """``SHARE sqrt(2 J)``, rounded up: entries are at least 0 and add up to at most `SHARE` for each direction."""
        return isqrt(2 * len(self.directions) * SHARE**2) + 1

    def sums(self, data: UnitRecords) -> NDArray[np.int64]:
        """Return the exact sums over units, shape (J, B)."""
        from accord.learning.density.refine._projection_counts import add_units  # noqa: PLC0415 - compiled: slow to import

        total = np.zeros((len(self.directions), self.inner.shape[1] + 1), dtype=np.int64)
        for records, starts in data.pieces():
            total += add_units(records, starts, self.directions, self.inner, SHARE, _MOST_RECORDS)
        return total


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCounts:
    """What was released of one query, in units.

    Parameters
    ----------
    query
        The query.
    counts
        Shape (J, B).
    variance
        Of the noise of each count.

    """

    query: BinnedProjections
    counts: Floats
    variance: float

    @classmethod
    def of(cls, query: BinnedProjections, released: NDArray[Any], *, sigma: float) -> "NoisyCounts":
        """Read a release."""
        return cls(query=query, counts=np.asarray(released, dtype=np.float64) / SHARE, variance=(sigma / SHARE) ** 2)
