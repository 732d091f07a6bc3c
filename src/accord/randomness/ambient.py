"""Give code that reads global generators a seed of its own for a moment."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, final

import numpy as np

from accord.core.turns import turn

__all__ = ["ambient_seed"]

_legacy: Any = np.random  # these functions are in some versions of its stubs and not in others
_WORDS = 624
"""Of the state of a Mersenne twister."""


@lru_cache(maxsize=64)
def _words(seed: int) -> Any:  # noqa: ANN401 - an array, whose type numpy states in another way in each version
    return np.random.SeedSequence(seed).generate_state(_WORDS)


@final
class _Remembered(np.random.SeedSequence):
    """A seed whose words for a Mersenne twister are worked out once: that takes longer than most questions."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:  # noqa: ANN401 - as numpy has it
        if n_words != _WORDS or dtype is not np.uint32 or self.spawn_key:
            return super().generate_state(n_words, dtype)
        return _words(self.entropy).copy()


@contextmanager
def ambient_seed(seed: int) -> Iterator[None]:
    """Seed Python's and numpy's global generators inside the block, and restore them afterwards.

    A learner that reads them in secret then depends on its own seed alone, not on how much the learner of another block
    has read. Both belong to the whole process, so this is done within a `turn`. Every call makes a new generator: one
    that somebody keeps is read by nobody else.

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
        _legacy.set_bit_generator(np.random.MT19937(_Remembered(seed)))
        try:
            yield
        finally:
            random.setstate(python_state)
            _legacy.set_bit_generator(numpy_generator)
            if numpy_state["has_gauss"]:  # else the generator that is put back is as it was
                _legacy.set_state(numpy_state)
