"""A public law of candidate tuples, for couplings whose points are drawn rather than laid out."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from accord.core.coupling import Abstain
from accord.core.shared import SharedRandomness
from accord.distributions import Distribution

__all__ = ["BATCH", "TupleReference"]

BATCH = 64
"""Points come in batches of this many: batch b of a draw is a function of key, draw and b."""


@runtime_checkable
class TupleReference(Protocol):
    """A public probability nu on tuples of ``records`` records, and the densities of laws with respect to it.

    Everything is a function of its arguments and public parameters. Points are opaque arrays with the number of the
    point along the first axis.
    """

    def points(self, draw: int, batch: int, *, records: int, shared: SharedRandomness) -> NDArray[Any]:
        """Return the ``BATCH`` independent points number ``batch * BATCH`` and following of a draw."""

    def log_ratios(self, laws: Sequence[Distribution | Abstain], points: NDArray[Any], *, records: int) -> NDArray[Any]:
        """Return ``log dq^l/dnu`` of each law at each point, shape (laws, points); -inf for a law that fails.

        Row i is a function of law i, of its place and of the points. A factor that is constant in the point may be
        left out of a row (theory S1). Accord's own references see all laws at once; any other is shown one at a time,
        the others being `ABSTAIN`, so that isolation does not hang on it.
        """

    def log_bounds(self, laws: Sequence[Distribution | Abstain], *, records: int) -> NDArray[Any]:
        """Return an upper bound on each row of `log_ratios`, the same factors left out; inf where unknown."""

    def decode(
        self, point: NDArray[Any], *, draw: int, number: int, records: int, shared: SharedRandomness
    ) -> NDArray[Any]:
        """Return the records of one point, shape (records, d)."""
