"""Laws on labels as method B of the planner has them: frequencies are rounded, and the released cell is a law."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.distributions import Categorical, PointMass
from accord.distributions.categorical import label_indices
from accord.errors import FitFailed

__all__ = ["CellModel", "Frequencies"]

_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Frequencies:
    """Fit the frequencies of a public list of labels, as a point mass that `ParameterRounding` can round.

    With two labels it is the frequency of the first, else all of them. A record that is not in the list is left out.

    Source: planning, method B; proof page ``docs/proofs/planning.md``.
    """

    categories: tuple[Hashable, ...]

    @property
    def coordinates(self) -> int:
        """How many frequencies the point mass has."""
        return 1 if len(self.categories) == 2 else len(self.categories)

    def fit(self, records: NDArray[Any], *, seed: int) -> PointMass:  # noqa: ARG002 - nothing here is random
        """Return the frequencies; `FitFailed` if no record is in the list."""
        found = label_indices(self.categories, np.asarray(records).ravel())
        counts = np.bincount(found[found >= 0], minlength=len(self.categories))
        if counts.sum() == 0:
            raise FitFailed("no frequencies can be fitted: no record is in the list of categories.")
        return PointMass((counts / counts.sum())[: self.coordinates])


@final
@dataclass(frozen=True, slots=True)
class CellModel:
    """Make a law of the centre of a cell: the nearest point of the simplex."""

    categories: tuple[Hashable, ...]

    def fit(self, records: NDArray[Any], *, seed: int) -> Categorical:  # noqa: ARG002 - nothing here is random
        """Return the law, from a table whose first row is the centre."""
        centre = np.asarray(records, dtype=np.float64)[0]
        if len(self.categories) == 2:
            centre = np.array([centre[0], 1.0 - centre[0]])
        return Categorical(self.categories, _on_simplex(centre))


def _on_simplex(point: _Floats) -> _Floats:
    """Return the nearest point of the simplex, in the Euclidean distance."""
    ordered = np.sort(point)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(point) + 1)
    return np.asarray(np.maximum(point - excess[ordered > excess][-1], 0.0))
