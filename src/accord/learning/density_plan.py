"""How a private density divides its budget: public numbers only, before a record is read."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accord import _check
from accord._exact import Number
from accord.learning.density_family import BlackBox, DensityFamily
from accord.learning.locate import LocationPlan, location_plan

__all__ = ["Budget", "DensityPlan", "density_plan"]

_SKETCH_SHARE = Fraction(2, 5)

Budget = tuple[Fraction, Fraction]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DensityPlan:
    """The stages and their budgets, which add up to (epsilon, delta) exactly.

    Parameters
    ----------
    epsilon, delta
        Of everything.
    location
        The first stage.
    sketch
        The budget of a mixture of normals that opens the way for a black box; None for mixtures of normals.
    refining
        The budget of the last stage.

    """

    epsilon: Fraction
    delta: Fraction
    location: LocationPlan
    sketch: Budget | None
    refining: Budget


def density_plan(family: DensityFamily, *, units: int, columns: int, epsilon: Number, delta: Number) -> DensityPlan:
    """Return the plan for so many units and columns.

    Parameters
    ----------
    family
        Of the estimator.
    units, columns
        Public under "replace one".
    epsilon, delta
        Of everything.

    Raises
    ------
    NotEnoughRecords
        If there are too few units to locate the columns; nothing is spent.

    Source
    ------
    theory 7, C2; proof page ``docs/proofs/private-density.md``.

    Examples
    --------
    >>> from accord.learning.density_family import NormalMixtures
    >>> plan = density_plan(NormalMixtures(components=3), units=100_000, columns=1, epsilon=1, delta="1e-6")
    >>> plan.location.epsilon + plan.refining[0], plan.sketch
    (Fraction(1, 1), None)

    """
    total, slack = _check.epsilon(epsilon), _check.delta(delta)
    location = location_plan(units=units, columns=columns, epsilon=total, delta=slack)
    left, left_slack = total - location.epsilon, slack - location.delta
    sketch: Budget | None = None
    refining = (left, left_slack)
    if isinstance(family, BlackBox):
        sketch = (left * _SKETCH_SHARE, left_slack / 2)
        refining = (left - sketch[0], left_slack - sketch[1])
    return DensityPlan(epsilon=total, delta=slack, location=location, sketch=sketch, refining=refining)
