"""How close laws fitted by counting are to the true one: bounds that hold for every law on d cells."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["ADDED", "records_for", "smoothed", "tuple_total_variation"]

ADDED = 0.25
"""What is added to each count (S6)."""

_ROUND_UP = 1.0 + 1e-12


def smoothed(cells: NDArray[np.int64], *, count: int) -> NDArray[np.float64]:
    """Return weights of ``count`` cells: how often each occurs, and a quarter."""
    weights: NDArray[np.float64] = np.bincount(cells, minlength=count).astype(np.float64) + ADDED
    return weights


def records_for(alpha: float, beta: float, *, cells: int) -> int:
    """Return a b from which on the law is within total variation alpha of any law on the cells, but for chance beta.

    The mean total variation is at most ``(sqrt((d - 1) b) / 2 + c (d - 1)) / (b + c d)``, one record moves it by at
    most ``1 / (b + c d)``, and McDiarmid's inequality does the rest.
    """
    rest = cells - 1
    spread = 0.5 * math.sqrt(rest) + math.sqrt(-math.log(beta) / 2)
    # alpha (b + c d) >= spread sqrt(b) + c (d - 1), a quadratic in sqrt(b): true from its larger root on.
    inside = spread**2 + 4 * alpha * ADDED * (rest - alpha * (rest + 1))
    root = (spread + math.sqrt(max(inside, 0.0))) / (2 * alpha)
    return max(1, math.ceil(root**2 * _ROUND_UP))


def tuple_total_variation(records: int, block_size: int, *, cells: int) -> float:
    """Return an upper bound on E TV(q^l, p^l), q fitted to b records of p.

    The lesser of ``l E TV`` and, by Hellinger, ``sqrt(1 - (1 - h)^(2 l))`` with h = E h^2 at most
    ``1 - sqrt(b / (b + c d)) + (d - 1) / (2 b)`` (theory L5, S6).
    """
    rest, all_added = cells - 1, ADDED * cells
    plain = records * (0.5 * math.sqrt(rest * block_size) + ADDED * rest) / (block_size + all_added)
    squared = 1 - math.sqrt(block_size / (block_size + all_added)) + rest / (2 * block_size)
    joint = math.sqrt(-math.expm1(2 * records * math.log1p(-squared))) if squared < 1 else 1.0
    return min(1.0, plain, joint)
