"""What a distribution must offer."""

from enum import Enum
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.randomness import Generator

__all__ = ["Distribution", "Measure", "Records"]

Records = np.ndarray[tuple[int, int], np.dtype[Any]]
"""A table of records, shape (n, d)."""


class Measure(Enum):
    """What a density is taken with respect to."""

    COUNTING = "counting"
    LEBESGUE = "Lebesgue"
    BOTH = "counting and Lebesgue"


@runtime_checkable
class Distribution(Protocol):
    """A law on records: it can be sampled and its density can be read.

    Implementations are immutable values; equal parameters give equal behaviour.
    """

    @property
    def dimension(self) -> int:
        """Number of columns d of a record."""

    @property
    def measure(self) -> Measure:
        """What `log_density` is taken with respect to."""

    def sample(self, size: int, generator: Generator) -> Records:
        """Return ``size`` independent records, shape (size, d)."""

    def log_density(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the log density at each record of ``x`` (shape (n, d)), shape (n,)."""
