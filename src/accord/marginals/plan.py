"""What a release from marginals will do, and how well, before a record is read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accord.marginals._budget import Step
from accord.privacy import ApproxDP

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
    """How far the noise alone moves a table, before all tables are fitted together, which makes it less.

    Parameters
    ----------
    way
        Number of columns.
    tables
        How many such tables are measured.
    error
        Mean total variation distance by noise, at most 1.

    """

    way: int
    tables: int
    error: float


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
        Expected errors of the tables that are measured for certain, and of chosen ones as if each was as likely.

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
            f"{error.tables} tables of {error.way} columns: mean total variation by noise at most {error.error:.4f}"
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
