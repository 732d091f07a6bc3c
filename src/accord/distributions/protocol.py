"""What a distribution must offer."""

from enum import Enum
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.randomness import Generator

__all__ = ["Bounded", "Distribution", "Measure", "OnALine", "Records", "WithAtoms"]

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


@runtime_checkable
class OnALine(Distribution, Protocol):
    """A law of one column that knows the probability of intervals."""

    def interval(self, low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
        """Return P(low < X <= high), shape (n,) from (n,) each; accurate in both tails; infinite ends allowed."""

    def cdf(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return P(X <= x), shape (n,)."""


@runtime_checkable
class WithAtoms(Distribution, Protocol):
    """A law that may give single records a positive probability: what it is with respect to both measures.

    Its `log_density` is the log probability at its own atoms and the log density with respect to Lebesgue measure
    elsewhere.
    """

    def log_mass(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return log P({x}) at each record of ``x`` (shape (n, d)), shape (n,); -inf where there is no atom."""


@runtime_checkable
class Bounded(Distribution, Protocol):
    """A law whose density is bounded on boxes."""

    def log_density_bound(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an upper bound of the log density on each box, shape (n,) from corners of shape (n, d)."""
