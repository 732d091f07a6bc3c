"""How a private density divides its budget: public numbers only, before a record is read."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accord.core import check as _check
from accord.core.exact import Number
from accord.density.refine.statistics import squared_budget
from accord.location.locate import LocationPlan, location_plan

__all__ = ["Budget", "DensityPlan", "density_plan"]

_MOST_EPSILON = Fraction(20)  # of a stage of noise; beyond it the noise is far below everything else

Budget = tuple[Fraction, Fraction]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DensityPlan:
    """The stages and their budgets, which add up to (epsilon, delta); to less where epsilon is beyond all use.

    Parameters
    ----------
    epsilon, delta
        Of everything.
    location
        The first stage.
    rest
        The budget of what comes after it.

    """

    epsilon: Fraction
    delta: Fraction
    location: LocationPlan
    rest: Budget


def density_plan(*, units: int, columns: int, epsilon: Number, delta: Number) -> DensityPlan:
    """Return the plan for so many units and columns.

    Parameters
    ----------
    units, columns
        Public under "replace one".
    epsilon, delta
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
    >>> plan = density_plan(units=100_000, columns=1, epsilon=1, delta="1e-6")
    >>> plan.location.epsilon + plan.rest[0], plan.location.delta + plan.rest[1]
    (Fraction(1, 1), Fraction(1, 1000000))

    """
    total, slack = _check.epsilon(epsilon), _check.delta(delta)
    location = location_plan(units=units, columns=columns, epsilon=total, delta=slack)
    rest = (min(_MOST_EPSILON, total - location.epsilon), slack - location.delta)
    squared_budget(*rest)  # refuses what is too little to go on with, before anything is spent
    return DensityPlan(epsilon=total, delta=slack, location=location, rest=rest)
