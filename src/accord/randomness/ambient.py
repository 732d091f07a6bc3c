"""Give code that reads global generators a seed of its own for a moment."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from accord.core.turns import turn

__all__ = ["ambient_seed"]

_legacy: Any = np.random  # these functions are in some versions of its stubs and not in others


@contextmanager
def ambient_seed(seed: int) -> Iterator[None]:
    """Seed Python's and numpy's global generators inside the block, and restore them afterwards.

    A learner that reads them in secret then depends on its own seed alone, not on how much the learner of another block
    has read. Both belong to the whole process, so this is done within a `turn`.

    Parameters
    ----------
    seed
        From 0 to 2^32 - 1.

    Examples
    --------
    >>> with ambient_seed(3):
    ...     first = random.random()
    >>> with ambient_seed(3):
    ...     first == random.random()
    True

    """
    with turn():
        python_state, numpy_generator = random.getstate(), _legacy.get_bit_generator()
        numpy_state = _legacy.get_state(legacy=False)  # a normal number that is kept for the next call, besides
        random.seed(seed)
        _legacy.set_bit_generator(np.random.MT19937(seed))
        try:
            yield
        finally:
            random.setstate(python_state)
            _legacy.set_bit_generator(numpy_generator)
            _legacy.set_state(numpy_state)
