"""How a private density divides its budget: public numbers only, before a record is read."""

from dataclasses import dataclass
from typing import final

from accord.core.budget import Budget
from accord.density.refine.statistics import squared_budget
from accord.location.locate import LocationPlan, location_plan

__all__ = ["DensityPlan", "density_plan"]

_SPLIT = {"locate": (3, 1), "rest": (7, 1)}  # locating spends at most this, and what it leaves is for the rest
_MOST_EPSILON = 20  # of a stage of noise; beyond it the noise is far below everything else


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DensityPlan:
    """The stages and their budgets, which add up to (epsilon, delta); to less where epsilon is beyond all use.

    Parameters
    ----------
    budget
        Of everything.
    location
        The first stage.
    rest
        The budget of what comes after it.

    """

    budget: Budget
    location: LocationPlan
    rest: Budget


def density_plan(*, units: int, columns: int, budget: Budget) -> DensityPlan:
    """Return the plan for so many units and columns.

    Parameters
    ----------
    units, columns
        Public under "replace one".
    budget
        Of everything.

    Raises
    ------
    NotEnoughRecords
        If there are too few units to locate the columns; nothing is spent.
    InvalidParameter
        If epsilon is too small for any useful noise.

    Source
    ------
    theory 7, C2; proof page ``docs/proofs/private-density.md``.

    Examples
    --------
    >>> plan = density_plan(units=100_000, columns=1, budget=Budget(1, "1e-6"))
    >>> plan.location.budget + plan.rest
    Budget(epsilon=Fraction(1, 1), delta=Fraction(1, 1000000))

    """
    location = location_plan(units=units, columns=columns, budget=budget.split(_SPLIT)["locate"])
    rest = (budget - location.budget).at_most(_MOST_EPSILON)
    squared_budget(rest.epsilon, rest.delta)  # refuses what is too little to go on with, before anything is spent
    return DensityPlan(budget=budget, location=location, rest=rest)
