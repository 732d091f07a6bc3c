"""Laws on labels as methods B and D of the planner have them: what is rounded, and the law that a cell stands for."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accord.core.cells import Cells
from accord.core.errors import FitFailed
from accord.core.shared import SharedRandomness
from accord.distributions import Categorical, PointMass
from accord.distributions.categorical import label_indices

__all__ = ["CellModel", "Frequencies", "RootModel", "Roots"]

_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Frequencies:
    """Fit the frequencies of a public list of labels, as a point mass that `ParameterRounding` can round.

    With two labels it is the frequency of the first, else all of them. A record that is not in the list is left out.

    Source: planning, method B; proof page ``docs/proofs/planning.md``.
    """

    categories: tuple[Hashable, ...]
    cells: ClassVar[Cells] = "labels"

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


@final
@dataclass(frozen=True, slots=True)
class Roots:
    """Fit ``sqrt(X + 1/4)`` for every label, X a Poisson count of mean ``mean_size p + floor``, as a point mass.

    Poisson(mean_size) of the records are used, the first ones, and each label gets Poisson(floor) counts of its own:
    the counts of labels are then independent. A block whose number is beyond its records has no vote.

    Source: planning, method D; proof page ``docs/proofs/planning.md``.
    """

    categories: tuple[Hashable, ...]
    mean_size: float
    floor: float
    cells: ClassVar[Cells] = "labels"

    def fit(self, records: NDArray[Any], *, seed: int) -> PointMass:
        """Return the roots; `FitFailed` if there are fewer records than the seed asks for."""
        source = SharedRandomness(seed).stream("rounded roots")
        used = int(source.poisson(self.mean_size))
        labels = np.asarray(records).ravel()
        if used > len(labels):
            raise FitFailed("no roots of counts can be fitted: the block has too few records for its seed.")
        found = label_indices(self.categories, labels[:used])
        counts = np.bincount(found[found >= 0], minlength=len(self.categories))
        added = source.poisson(self.floor, size=len(self.categories))
        return PointMass(np.sqrt(counts + added + 0.25))


@final
@dataclass(frozen=True, slots=True)
class RootModel:
    """Make a law of the centre of a cell of roots: see part D of the proof page."""

    categories: tuple[Hashable, ...]
    mean_size: float
    floor: float

    def fit(self, records: NDArray[Any], *, seed: int) -> Categorical:  # noqa: ARG002 - nothing here is random
        """Return the law, from a table whose first row is the centre."""
        squares = np.maximum(np.asarray(records, dtype=np.float64)[0] ** 2 * (np.asarray(records)[0] > 0), self.floor)
        means = _scaled(squares, total=self.mean_size + len(squares) * self.floor, floor=self.floor)
        return Categorical(self.categories, np.maximum(means - self.floor, 0.0) / (means - self.floor).sum())


def _scaled(squares: _Floats, *, total: float, floor: float) -> _Floats:
    """Multiply by one number, then raise to the floor what fell below it, so that the sum is ``total``."""
    ordered = np.sort(squares)[::-1]
    sums = np.cumsum(ordered)
    below = np.arange(len(squares) - 1, -1, -1)
    factors = (total - below * floor) / sums
    # Keep the most coordinates that stay above the floor; if all do, this is a plain change of scale.
    kept = np.nonzero(factors * ordered >= floor)[0]
    return np.asarray(np.maximum(squares * factors[kept[-1]], floor))


def _on_simplex(point: _Floats) -> _Floats:
    """Return the nearest point of the simplex, in the Euclidean distance."""
    ordered = np.sort(point)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(point) + 1)
    return np.asarray(np.maximum(point - excess[ordered > excess][-1], 0.0))
