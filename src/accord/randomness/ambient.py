"""Give code that reads global generators a seed of its own for a moment."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["ambient_seed"]


@contextmanager
def ambient_seed(seed: int) -> Iterator[None]:
    """Seed Python's and numpy's global generators inside the block, and restore them afterwards.

    A learner that reads them in secret then depends on its own seed alone, not on how much the learner of another block
    has read.

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
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002 - what a learner may read
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
