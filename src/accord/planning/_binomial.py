"""Binomial chances by the incomplete beta function: importing scipy.stats would cost half a second at every start."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammaln, xlog1py, xlogy

__all__ = ["at_least", "at_most", "law"]

_Floats = NDArray[np.float64]


def at_least(count: ArrayLike, *, size: int, chance: ArrayLike) -> _Floats:
    """Return P[Bin(size, chance) >= count], whole counts of any sign."""
    least = np.asarray(count, dtype=np.float64)
    inside = np.clip(least, 1, size)
    tail = betainc(inside, size - inside + 1, np.asarray(chance, dtype=np.float64))
    return np.asarray(np.where(least <= 0, 1.0, np.where(least > size, 0.0, tail)), dtype=np.float64)


def at_most(count: ArrayLike, *, size: int, chance: ArrayLike) -> _Floats:
    """Return P[Bin(size, chance) <= count]: failures instead of successes, so that small chances keep their digits."""
    most = np.asarray(count, dtype=np.float64)
    return at_least(size - most, size=size, chance=1 - np.asarray(chance, dtype=np.float64))


def law(size: int, chances: _Floats) -> _Floats:
    """Return the chances of 0 .. size, one row for each chance."""
    counts = np.arange(size + 1)
    ways = gammaln(size + 1) - gammaln(counts + 1) - gammaln(size - counts + 1)
    logs = ways + xlogy(counts, chances[:, None]) + xlog1py(size - counts, -chances[:, None])
    return np.asarray(np.exp(logs), dtype=np.float64)
