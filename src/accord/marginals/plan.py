"""What a release from marginals will do, and how well, before a record is read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accord.core.guarantee import ApproxDP
from accord.marginals._budget import Step

__all__ = ["LARGEST_SCORE", "SCORE", "ExpectedError", "MarginalPlan", "Mode", "expected_error", "sizes_of"]

Mode = str
_MEAN_SIZE = math.sqrt(2 / math.pi)
SCORE = 2
"""Standard scores are in halves."""
LARGEST_SCORE = 2 * SCORE
"""They are cut off at two."""


@final
@dataclass(frozen=True, slots=True)
class ExpectedError:
    """How far the noise that is planned for one table moves it at most, before a record is read.

    The model is fitted to all tables together and shrinks what is rare, which makes it less; rare codes that are put
    together are in it as if each was counted. What came out, a model's ``errors`` say.

    Parameters
    ----------
    columns
        Names of the table's columns.
    cells
        Of the table.
    error
        Mean total variation distance by noise, at most 1.

    """

    columns: tuple[str, ...]
    cells: int
    error: float

    @property
    def way(self) -> int:
        """Number of columns."""
        return len(self.columns)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalPlan:
    """All steps of a release, their noise, and the error to expect.

    Parameters
    ----------
    mode
        "full": the table of all columns at once. "pairs": all pairs, then chosen triples. "rounds": chosen tables.
    units
        n, the number of units of privacy.
    whole
        What a unit weighs: 1 for one record.
    steps
        In order; later ones may depend on what earlier ones released.
    promised
        The guarantee.
    spent
        The epsilon that the steps add up to, at most the promised one.
    most_groups
        Into how many groups an ordered column's codes are put at most.
    number_groups
        The same for numbers: so few that the noise of two such columns' table is not large for n.
    errors
        Expected error of each column, and of each table of more columns that is measured for certain.

    """

    mode: Mode
    units: int
    whole: int
    steps: tuple[Step, ...]
    promised: ApproxDP
    spent: Fraction
    most_groups: int
    number_groups: int
    errors: tuple[ExpectedError, ...]

    def step(self, what: str) -> Step | None:
        """Return the step with this name, or None."""
        return next((step for step in self.steps if step.what == what), None)

    def lines(self) -> list[str]:
        """Return the plan in words and numbers."""
        found = [
            (
                f"mode {self.mode}: {self.units} units; epsilon {float(self.promised.epsilon):g}, of which "
                f"{float(self.spent):.6g} is spent, and delta {float(self.promised.delta):g}"
            )
        ]
        found.extend(f"{step.times} x {step.what}: {step.noise.value}, {step.words(self.whole)}" for step in self.steps)
        found.extend(
            f"{' by '.join(error.columns)}: {error.cells} cells, mean total variation by noise at most "
            f"{error.error:.4f}"
            for error in self.errors
        )
        return found


def sizes_of(shape: Sequence[int], tables: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the number of cells of tables."""
    return [math.prod(shape[column] for column in table) for table in tables]


def noise_size(cells: float, deviation: float) -> float:
    """Return the mean L1 size of Gaussian noise of this deviation."""
    return cells * deviation * _MEAN_SIZE


def expected_error(cells: float, deviation: float, *, units: int) -> float:
    """Return the mean total variation by Gaussian noise of this deviation."""
    return min(1.0, noise_size(cells, deviation) / (2 * units))
