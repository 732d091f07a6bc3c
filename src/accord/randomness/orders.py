"""A secret order of n things: every one of the n! orders has the same chance, exactly."""

import numpy as np
from numpy.typing import NDArray

from accord.randomness._table import stuck
from accord.randomness.private import PrivateRandomness

__all__ = ["uniform_order"]

_MOST_ROUNDS = 64


def uniform_order(count: int, *, randomness: PrivateRandomness) -> NDArray[np.int64]:
    """Return the numbers 0 .. count - 1 in a uniformly random order, shape (count,).

    Each number gets a secret 64-bit key and all are sorted by it. If two keys are equal, all are drawn again: given
    that they differ, every order of independent keys with one law is equally likely.

    Formal guarantees
    -----------------
    - Law: uniform on all orders, exactly; no float and no pseudo-random generator occurs.
    - How much is read depends on ``count`` and on the source alone: once more with a chance below
      ``count^2 / 2^65`` each time.

    Parameters
    ----------
    count
        At least 0.
    randomness
        The secret source.

    Source
    ------
    docs/proofs/partition.md.

    Examples
    --------
    >>> sorted(uniform_order(4, randomness=PrivateRandomness()).tolist())
    [0, 1, 2, 3]

    """
    for _ in range(_MOST_ROUNDS):
        keys = randomness.words(count)
        order = np.argsort(keys).astype(np.int64, copy=False)
        arranged = keys[order]
        if (arranged[1:] != arranged[:-1]).all():
            break
    else:
        stuck()
    return order
