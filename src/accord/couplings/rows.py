"""Laws read at points of a public reference: in rows, one a law."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.coupling import ABSTAIN, Abstain, Distribution
from accord.core.points import BatchedPoints, Points, Votes
from accord.couplings.model_reference import ModelReference
from accord.couplings.normal_reference import NormalReference
from accord.couplings.reference import IidReference, TupleReference

__all__ = [
    "Rows",
    "groups",
    "rows_apart",
]


_OWN = frozenset({IidReference, ModelReference, NormalReference})


def rows_apart(points: BatchedPoints, *, reference: TupleReference) -> Points | BatchedPoints:
    """Return points that read laws together only if a row of the reference's ratios is known to be its law's alone.

    It is for accord's own, by their proofs. Any other reference is shown one law at a time, so that a coupling over it
    is isolated whatever it does with several.
    """
    return points if type(reference) in _OWN else _LawByLaw(points)


@final
@dataclass(frozen=True, slots=True)
class _LawByLaw:
    points: BatchedPoints

    def votes(self, law: object) -> Votes:
        return self.points.votes_of([law])[0]

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        return self.points.decode(draw, key)


_Floats = NDArray[np.float64]
_NUMBERS_AT_ONCE = 1024


@final
class Rows:
    """Laws in their places, read through a reference.

    A row is a function of its law and the points: laws that have no need of a row are called `ABSTAIN`, so that the
    places of the others stay, and with them the shapes of all products.
    """

    __slots__ = ("_laws", "_records", "_reference")

    def __init__(self, laws: Sequence[Distribution | Abstain], *, reference: TupleReference, records: int) -> None:
        self._laws = list(laws)
        self._reference = reference
        self._records = records

    def log_bounds(self) -> _Floats:
        """Return an upper bound of each row, shape (laws,): inf where unknown, -inf for a law that fails."""
        found = self._reference.log_bounds(self._laws, records=self._records)
        bounds = np.asarray(found, dtype=np.float64).reshape(len(self._laws))
        return np.where(np.isnan(bounds), -np.inf, bounds)

    def log_ratios(self, points: NDArray[Any], needed: NDArray[np.intp]) -> _Floats:
        """Return the rows of the laws in these places, shape (needed, points): -inf where nothing can be selected."""
        wanted = set(needed.tolist())
        given = [law if place in wanted else ABSTAIN for place, law in enumerate(self._laws)]
        found = self._reference.log_ratios(given, points, records=self._records)
        rows = np.asarray(found, dtype=np.float64).reshape(len(self._laws), len(points))[needed]
        # A density that is infinite or NaN at a single point is taken as 0 there: the point is rejected.
        return np.where(rows < np.inf, rows, -np.inf)


def groups(draws: int, *, numbers: int) -> list[range]:
    """Cut the draws into runs that are evaluated at once, for a number of floats each: a function of public sizes."""
    together = max(1, _NUMBERS_AT_ONCE // max(1, numbers))
    return [range(start, min(start + together, draws)) for start in range(0, draws, together)]
