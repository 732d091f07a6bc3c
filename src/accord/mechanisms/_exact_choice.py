"""Choose by weights, exactly, with a fixed number of random bits."""

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import AccordError
from accord.core.secret import PrivateRandomness
from accord.mechanisms._score_weights import LOWEST_BIT
from accord.mechanisms._scores import BLOCK, blocks

__all__ = ["Cumulative", "choose", "uniform_index", "whole_weights"]

_BITS = 256
_MORE = 64
_MOST_BITS = 8192
_LIMBS, _WIDTH = 4, 45  # 4 * 45 = LOWEST_BIT; a block's sum of one limb is below 2^(13 + 45)


def choose(below: Callable[[int], int], total: int, *, randomness: PrivateRandomness) -> int:
    """Return ``below(floor(U * total))`` for a uniform real U in [0, 1).

    256 bits of U are read; the next 64 only if they leave the result open, which happens with a chance of at most
    2^-256 for each place where ``below`` changes.

    Parameters
    ----------
    below
        A function on 0 .. total - 1 that never falls.
    total
        At least 1.
    randomness
        The secret source.

    Raises
    ------
    AccordError
        If the source gives the same bits for ever.

    """
    value, bits = randomness.bits(_BITS), _BITS
    while bits < _MOST_BITS:
        first = below(value * total >> bits)
        if first == below(((value + 1) * total - 1) >> bits):
            return first
        value, bits = value << _MORE | randomness.bits(_MORE), bits + _MORE
    # A true source comes here with a chance below 2^-8000.
    raise AccordError("the source of randomness repeats itself: nothing was released.")


def uniform_index(count: int, *, randomness: PrivateRandomness) -> int:
    """Return a uniform index from 0 to ``count - 1``, exactly."""
    return choose(lambda position: position, count, randomness=randomness)


def whole_weights(weights: NDArray[np.float64]) -> list[int]:
    """Return weights from 0 to 1 as whole numbers over 2^180, exactly."""
    return [int(weight * 2.0**LOWEST_BIT) for weight in weights.tolist()]


@final
class Cumulative:
    """Running sums of weights, multiples of 2^-180 from 0 to 1, in whole numbers."""

    __slots__ = ("_ends", "_weights")

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self._weights = weights
        totals = (_whole(_limbs(weights[block]).sum(axis=1)) for block in blocks(weights.size))
        self._ends = list(accumulate(totals))

    def choose(self, *, randomness: PrivateRandomness) -> int:
        """Return an index with probability exactly its weight over the total."""
        return choose(self._holder, self._ends[-1], randomness=randomness)

    def _holder(self, position: int) -> int:
        """Return the first index at which the running sum exceeds ``position``."""
        block = bisect_right(self._ends, position)
        before = self._ends[block - 1] if block else 0
        sums = np.cumsum(_limbs(self._weights[BLOCK * block : BLOCK * (block + 1)]), axis=1)
        inside = bisect_right(range(sums.shape[1]), position - before, key=lambda index: _whole(sums[:, index]))
        return BLOCK * block + inside


def _limbs(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the binary digits of weights in groups of 45, shape (4, n); every step is exact."""
    rest = weights.copy()
    groups = np.empty((_LIMBS, weights.size), dtype=np.int64)
    for group in groups:
        rest *= 2.0**_WIDTH
        whole = np.floor(rest)
        rest -= whole
        group[:] = whole
    return groups


def _whole(limbs: NDArray[Any]) -> int:
    """Join limbs (or sums of them) to one number."""
    result = 0
    for limb in limbs.tolist():
        result = (result << _WIDTH) + limb
    return result
