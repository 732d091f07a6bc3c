"""Log densities of private records, one record at a time as far as failures go, and their clipped ratios in steps."""

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.distributions import Distribution

__all__ = ["STEPS", "log_density_rows", "ratio_steps"]

Floats = NDArray[np.float64]
STEPS = 1 << 36
"""Steps in a clipped log ratio of full size."""


def log_density_rows(law: Distribution, records: Floats) -> Floats:
    """Return the log density of each record, shape (n,); NaN where the law fails on that record.

    Where a law raises, or answers in another shape, the records are halved until the failing ones stand alone: a
    record on which it fails takes no other with it.
    """

    def ask() -> Floats:
        return np.array(law.log_density(records.copy()), dtype=np.float64)

    found = alone(ask, failed=None)
    if found is not None and found.shape == (len(records),):
        return found
    if len(records) == 1:
        return np.full(1, np.nan)
    middle = len(records) // 2
    return np.concatenate([log_density_rows(law, records[:middle]), log_density_rows(law, records[middle:])])


def ratio_steps(ratios: Floats, starts: NDArray[np.int64], *, clip: float) -> NDArray[np.int64]:
    """Return for each unit the mean clipped ratio in whole steps, from -`STEPS` to `STEPS`, shape (u,).

    A ratio that is no number counts as 0; an infinite one is clipped.
    """
    with np.errstate(all="ignore"):
        scaled = np.clip(np.where(np.isnan(ratios), 0.0, ratios / clip), -1.0, 1.0)
    sizes = np.diff(starts)
    means = scaled if len(scaled) == len(sizes) else np.add.reduceat(scaled, starts[:-1]) / sizes
    whole: NDArray[np.int64] = np.clip(np.rint(means * STEPS), -STEPS, STEPS).astype(np.int64)
    return whole
