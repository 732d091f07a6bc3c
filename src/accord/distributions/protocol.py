"""What a distribution may offer besides what every one does."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core.alone import alone
from accord.core.coupling import Distribution
from accord.core.errors import InvalidParameter

__all__ = [
    "Bounded",
    "OnALine",
    "Rows",
    "WithAtoms",
    "bounded",
    "on_a_line",
    "require_bounded",
    "require_on_a_line",
]


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


_Answer = TypeVar("_Answer")
_WITHOUT_PARTS = frozenset(
    f"accord.distributions.{name}" for name in ("exponential", "gamma", "normal", "piecewise", "scipy_law", "uniform")
)


def on_a_line(law: object) -> OnALine | None:
    """Return the law if it knows the probabilities of intervals, else None.

    An isinstance check does not suffice: a normal law has `interval` for one column only, a mixture if its components
    have it. So the law is asked.

    Parameters
    ----------
    law
        Anything.

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> on_a_line(Normal(0, 1)) is not None, on_a_line(Normal([0, 0], [[1, 0], [0, 1]])) is not None
    (True, False)

    """
    probe = np.zeros(1)

    def ask() -> OnALine | None:
        if not isinstance(law, OnALine) or law.dimension != 1:
            return None
        answers = [np.asarray(law.cdf(probe)), np.asarray(law.interval(probe, probe))]
        usable = all(answer.shape == (1,) and 0 <= float(answer[0]) <= 1 for answer in answers)
        return law if usable else None

    return _asked(law, ask)


def _asked(law: object, ask: Callable[[], _Answer | None]) -> _Answer | None:
    """Return ``ask()``, None where it fails; accord's families without parts run no code of others: asked directly."""
    if type(law).__module__ not in _WITHOUT_PARTS:
        return alone(ask, failed=None)
    try:
        return ask()
    except Exception:  # noqa: BLE001 - a law may fail in any way; then it is none
        return None


def bounded(law: object) -> Bounded | None:
    """Return the law if it knows a bound of its density on boxes, else None; it is asked, as in `on_a_line`."""

    def ask() -> Bounded | None:
        if not isinstance(law, Bounded):
            return None
        corner = np.zeros((1, law.dimension))
        answer = np.asarray(law.log_density_bound(corner, corner))
        usable = answer.shape == (1,) and not np.isnan(float(answer[0]))
        return law if usable else None

    return _asked(law, ask)


def require_on_a_line(law: Distribution) -> OnALine:
    """Return the law if it knows the probabilities of intervals, else refuse it."""
    found = on_a_line(law)
    if found is None:
        raise InvalidParameter("the law (or a part of it) is not on a line: it has no probabilities of intervals.")
    return found


def require_bounded(law: Distribution) -> Bounded:
    """Return the law if it knows a bound of its density on boxes, else refuse it."""
    found = bounded(law)
    if found is None:
        raise InvalidParameter("the law (or a part of it) has no known bound of its density on boxes.")
    return found
