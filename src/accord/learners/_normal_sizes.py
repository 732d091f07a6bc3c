"""From the chance of failure at some numbers of records to all numbers in between: a bound that is proved.

Nobody has shown that more records always make a normal fit less likely to be far off, so the chances at b do not bound
those at b + 1 by themselves. But the laws of the fits (mean and covariance) at b and b' are close: their divergence is
at most ``(b - b')^2 stiffness(min(b, b'))``, and an event of chance p at b has at b' a chance p' with
``kl(p' || p) <= KL(b' || b)``. Proof: docs/proofs/learners.md.
"""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

__all__ = ["geometric_sizes", "least_size", "stiffness"]

_Floats = NDArray[np.float64]
_Sizes = NDArray[np.int64]
_LARGEST = 1 << 53


def geometric_sizes(least: int, most: int, *, ratio: float) -> _Sizes:
    """Return a fixed grid of numbers of records from ``least`` on: every one at first, then by about the ratio.

    The grid does not depend on ``most``, but for its last entry, the first that is at least ``most``.
    """
    sizes = [least]
    while sizes[-1] < most and sizes[-1] < _LARGEST:
        sizes.append(max(sizes[-1] + 1, math.floor(sizes[-1] * ratio)))
    return np.array(sizes)


def least_size(sizes: _Sizes, chances: _Floats, beta: float, *, dimension: int) -> int | None:
    """Return the least of the sizes from which on, up to the last of them, the chance of failure is at most beta.

    Parameters
    ----------
    sizes
        Increasing numbers of records, each above the dimension, shape (n,).
    chances
        Upper bounds of the chance of failure at each, shape (n,).
    beta
        Strictly between 0 and 1.

    Returns
    -------
    int or None
        None if the last size is not good enough.

    """
    room = np.where(chances < beta, _divergence(beta, np.clip(chances, 1e-300, beta)), -1.0)
    if not room[-1] >= 0:
        return None
    best = int(sizes[-1])
    for (low, low_room), (high, high_room) in reversed(list(pairwise(zip(sizes.tolist(), room, strict=True)))):
        if low_room < 0:
            break
        up = math.sqrt(low_room / stiffness(low, dimension=dimension))
        down = math.sqrt(high_room / stiffness(low, dimension=dimension))
        if math.floor(up * (1 - 1e-9)) + math.floor(down * (1 - 1e-9)) < high - low - 1:
            break
        best = low
    return best


def stiffness(records: int, *, dimension: int) -> float:
    """Return C with ``KL(fit at b' || fit at b) <= C (b - b')^2`` for all b and b' of at least ``records``."""
    freedom = records - 1
    places = freedom - np.arange(dimension, dtype=np.float64)
    if places[-1] <= 0:
        return math.inf
    spread = np.arange(dimension) / (2 * freedom * places) + 1 / (2 * places**2) + 1 / (3 * places**3)
    return (float(np.sum(spread)) / 2 + dimension / (4 * records**2)) * (1 + 1e-9)


def _divergence(p: float, q: _Floats) -> _Floats:
    """Return ``kl(p || q)`` of two coins, rounded down."""
    value = xlogy(p, p / q) + xlog1py(1 - p, -(p - q) / (1 - q))
    return np.asarray(np.maximum(value * (1 - 1e-9) - 1e-15, 0.0))
