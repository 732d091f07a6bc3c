"""The log ratios of laws at points of a public reference, whatever goes wrong inside one law or in one batch."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.coupling import ABSTAIN, Abstain, Distribution
from accord.couplings.model_reference import ModelReference
from accord.couplings.normal_reference import NormalReference
from accord.couplings.reference import IidReference, TupleReference

__all__ = [
    "Rows",
    "groups",
    "keeps_rows_apart",
]


_OWN = frozenset({IidReference, ModelReference, NormalReference})


def keeps_rows_apart(reference: TupleReference) -> bool:
    """Return whether it is known that a row of the reference's ratios does not depend on the other laws.

    It is for accord's own, by their proofs. Any other reference is shown one law at a time, so that a coupling over it
    is isolated whatever it does with several.
    """
    return type(reference) in _OWN


_Floats = NDArray[np.float64]
_NUMBERS_AT_ONCE = 1024


@final
class Rows:
    """Laws in their places, read through a reference.

    A row is a function of its law, its place and the points: laws that have no need of a row are called `ABSTAIN`, so
    that the places of the others stay. Where a reference raises for all, and wherever it is somebody else's, each law
    is asked alone.
    """

    __slots__ = ("_laws", "_records", "_reference", "_together")

    def __init__(self, laws: Sequence[Distribution | Abstain], *, reference: TupleReference, records: int) -> None:
        self._laws = list(laws)
        self._reference = reference
        self._records = records
        self._together = keeps_rows_apart(reference)

    def log_bounds(self) -> _Floats:
        """Return an upper bound of each row, shape (laws,): inf where unknown, -inf for a law that fails."""

        def ask(laws: Sequence[Distribution | Abstain]) -> _Floats:
            bounds = np.asarray(self._reference.log_bounds(laws, records=self._records), dtype=np.float64)
            return bounds.reshape(len(self._laws), 1)

        bounds = self._ask(ask, np.arange(len(self._laws)), width=1)[:, 0]
        return np.where(np.isnan(bounds), -np.inf, bounds)

    def log_ratios(self, points: NDArray[Any], needed: NDArray[np.intp]) -> _Floats:
        """Return the rows of the laws in these places, shape (needed, points): -inf where nothing can be selected."""

        def ask(laws: Sequence[Distribution | Abstain]) -> _Floats:
            rows = self._reference.log_ratios(laws, points, records=self._records)
            return np.asarray(rows, dtype=np.float64).reshape(len(self._laws), len(points))

        rows = self._ask(ask, needed, width=len(points))
        # A density that is infinite or NaN at a single point is taken as 0 there: the point is rejected.
        return np.where(rows < np.inf, rows, -np.inf)

    def _ask(self, ask: Any, needed: NDArray[np.intp], *, width: int) -> _Floats:  # noqa: ANN401 - a local function
        wanted = set(needed.tolist())
        given = [law if place in wanted else ABSTAIN for place, law in enumerate(self._laws)]
        rows: _Floats | None = alone(lambda: ask(given)[needed], failed=None) if self._together else None
        if rows is None:  # find out whose failure it is, or look at one law at a time anyway
            rows = np.full((len(needed), width), -np.inf)
            for row, place in enumerate(needed.tolist()):
                rows[row] = self._alone(ask, place)
        return rows

    def _alone(self, ask: Any, place: int) -> Any:  # noqa: ANN401
        given: list[Distribution | Abstain] = [ABSTAIN] * len(self._laws)
        given[place] = self._laws[place]
        return alone(lambda: ask(given)[place], failed=-np.inf)


def groups(draws: int, *, numbers: int) -> list[range]:
    """Cut the draws into runs that are evaluated at once, for a number of floats each: a function of public sizes."""
    together = max(1, _NUMBERS_AT_ONCE // max(1, numbers))
    return [range(start, min(start + together, draws)) for start in range(0, draws, together)]
