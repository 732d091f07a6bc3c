"""What a distribution may offer besides what every one does."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core.coupling import Distribution

__all__ = ["Bounded", "OnALine", "Rows", "WithAtoms"]

Rows = np.ndarray[tuple[int, int], np.dtype[Any]]
"""A table of records, shape (n, d)."""


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
