"""Find where each column lies and how wide it is, privately and without bounds: how a private density begins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.aggregate import aggregate
from accord.core.best_of_draws import BestOfDraws
from accord.core.blocks import FarRecords, Progress, cut, fit_blocks
from accord.core.budget import Budget
from accord.core.coupling import Abstain, Distribution
from accord.core.errors import InvalidParameter, NotEnoughRecords
from accord.core.guarantee import ApproxDP
from accord.core.isolation import FarBlocks, Isolation
from accord.core.records import Records
from accord.core.release import NoAnswerType, named
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared
from accord.distributions import PointMass
from accord.location.curator import CuratorOnly
from accord.location.rounding import CELL, CONSTANT, ColumnLocation, LocationRounding

__all__ = ["Located", "LocationPlan", "locate", "location_plan"]

_Floats = NDArray[np.float64]

GROUP = 8
"""Most columns that vote together; more are located in several groups."""

_AGREEING = (0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.16)
"""Share of blocks that can be counted on in the best draw, by number of columns (``benchmarks/private_density.py``)."""
_LEAST_BLOCK = (10, 12, 14, 16, 20, 20, 24, 24)
_FEW_VOTES, _LEAST_FEW_BLOCK = 4, 5
_DRAWS = (100, 200, 300, 300, 300, 400, 500, 600)
_LEAST_SHARE = Fraction(2, 15)
_MOST_EPSILON = 300
_STEPS = 64
_FAILURE = Fraction(1, 100)
_LOCATION_SPREAD, _SCALE_SPREAD = 1.25, 1.2  # of median and log scale of normal records, times sqrt(block size)
_CELL, _WIDEST = 6.0, 2.0
_MOST_BLOCKS = 1_000_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocationPlan:
    """How columns are located: public numbers only.

    Parameters
    ----------
    budget
        What all groups spend together.
    groups
        Column numbers of each group; a group votes as one, with equal parts of the budget.
    blocks, draws
        k and R.
    widths
        Cells, in units of the scale's logarithm and of the scale.

    """

    budget: Budget
    groups: tuple[tuple[int, ...], ...]
    blocks: int
    draws: int
    widths: tuple[float, float]

    @property
    def mode(self) -> BestOfDraws:
        """The selection of one group."""
        part = self.budget.split(dict.fromkeys(self.groups, 1))[self.groups[0]]
        return BestOfDraws(epsilon=part.epsilon, delta=part.delta, draws=self.draws)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """What was released of the columns.

    Parameters
    ----------
    centre, scale
        Shape (d,); NaN where the column is constant or has no answer.
    constant
        Shape (d,); the value of a constant column, elsewhere NaN.
    guarantee
        Of the whole.
    agreement
        For the curator only: the share of blocks behind each group's release, None where there was none. Pickles,
        deep copies and texts leave it out.

    """

    centre: _Floats
    scale: _Floats
    constant: _Floats
    guarantee: ApproxDP
    agreement: CuratorOnly[tuple[float | None, ...]]

    @property
    def without_answer(self) -> tuple[int, ...]:
        """Columns for which nothing was released, or only that they hold no numbers."""
        return tuple(np.flatnonzero(np.isnan(self.centre) & np.isnan(self.constant)).tolist())

    @property
    def moving(self) -> tuple[int, ...]:
        """Columns with a location and a scale."""
        return tuple(np.flatnonzero(~np.isnan(self.centre)).tolist())


def location_plan(*, units: int, columns: int, budget: Budget) -> LocationPlan:
    """Return how to locate the columns of this many units: with as little of the epsilon given as the votes need.

    Blocks are as large as the votes allow, so cells are as narrow.

    Parameters
    ----------
    units
        Number of units of privacy.
    columns
        d, at least 1.
    budget
        What locating may spend, at most. Of its epsilon 2/15 at least is spent, and no more than 300.

    Raises
    ------
    NotEnoughRecords
        If the whole of it is too little for this many units. Its number is what is needed.

    Source
    ------
    theory S5, S9; proof page ``docs/proofs/locate.md``.

    Examples
    --------
    >>> budget = Budget("0.3", "5e-7")
    >>> plan = location_plan(units=10_000, columns=1, budget=budget)
    >>> plan.blocks, round(float(plan.budget.epsilon), 3), plan.budget.delta
    (982, 0.097, Fraction(1, 2000000))
    >>> location_plan(units=100, columns=1, budget=budget)
    Traceback (most recent call last):
    accord.errors.NotEnoughRecords: locating 1 column at this epsilon and delta needs 3200 records or units ...

    """
    given = budget.at_most(_MOST_EPSILON)
    number = _check.integer("columns", columns, least=1)
    present = _check.integer("units", units, least=0)
    parts = math.ceil(number / GROUP)
    size = math.ceil(number / parts)
    groups = tuple(tuple(range(start, min(start + size, number))) for start in range(0, number, size))
    draws = _DRAWS[size - 1]

    def spent_at(share: Fraction) -> Budget:
        epsilon = given.epsilon * share
        return Budget(epsilon, min(given.delta, epsilon / 2))  # a selection takes no more than exp(epsilon / 2) - 1

    def blocks_for(share: Fraction) -> int:
        part = spent_at(share).split(dict.fromkeys(groups, 1))[groups[0]]
        mode = BestOfDraws(epsilon=part.epsilon, delta=part.delta, draws=draws)
        votes = mode.votes_needed(failure=_FAILURE)
        return votes if votes <= _FEW_VOTES else math.ceil(votes / _AGREEING[size - 1])

    # So few blocks as a large epsilon needs all agree in some draw, even small ones.
    most_spent = blocks_for(Fraction(1))
    few = most_spent <= _FEW_VOTES
    least = _LEAST_FEW_BLOCK if few else _LEAST_BLOCK[size - 1]
    needed = least * most_spent
    if present < needed:
        message = (
            f"locating {number} column{'s' if number > 1 else ''} at this epsilon and delta needs {needed} records or "
            f"units of privacy, and there are {present}. Nothing was spent."
        )
        raise NotEnoughRecords(message, needed=needed, present=present)
    low, high = 0, _STEPS  # so many steps below the largest share; the votes needed grow with them
    while low < high:
        step = (low + high + 1) // 2
        low, high = (step, high) if least * blocks_for(_share(step)) <= present else (low, step - 1)
    share = _share(low)
    blocks = min(_MOST_BLOCKS, blocks_for(share))
    if blocks > present // least:
        raise AssertionError("the plan is larger than the data")
    root = math.sqrt(present // blocks)
    return LocationPlan(
        budget=spent_at(share),
        groups=groups,
        blocks=blocks,
        draws=draws,
        widths=(min(_WIDEST, _CELL * _SCALE_SPREAD / root), min(_WIDEST, _CELL * _LOCATION_SPREAD / root)),
    )


def _share(step: int) -> Fraction:
    return 1 - (1 - _LEAST_SHARE) * Fraction(step, _STEPS)


def locate(
    records: NDArray[Any] | FarRecords,
    plan: LocationPlan,
    *,
    numbers: int | NDArray[np.int64],
    word: str,
    shared: SharedRandomness | None = None,
    randomness: PrivateRandomness | None = None,
    progress: Progress | None = None,
    isolation: Isolation | None = None,
) -> Located:
    """Release location and scale of each column, the value of constant ones, or no answer, by groups of columns.

    Formal guarantees
    -----------------
    - Privacy: ``plan.budget`` under replacing one unit, the sum over the groups (theory C2). It rests on
      the partition, on blocks that read nothing of each other, and on `BestOfDraws`.
    - What is missing or infinite is left out within its block and column.
    - Not promised: an answer; a constant that is one for all records: it is one in most blocks.

    Parameters
    ----------
    records
        Shape (n, d), or on workers.
    plan
        From `location_plan`.
    numbers, word
        n, or each record's unit, and the guarantee's word for a unit: as in `Records`. Records on workers have units.
    shared, randomness, progress
        As in `PrivateSampler.release`.
    isolation
        How the fits of blocks are kept apart, and where they run; copies here by default.

    Source
    ------
    theory S5, S9; proof page ``docs/proofs/locate.md``.

    Examples
    --------
    >>> data = SharedRandomness(0).stream("example").normal([[3.0, 500.0]], [[1.0, 90.0]], size=(20_000, 2))
    >>> plan = location_plan(units=20_000, columns=2, budget=Budget("0.3", "5e-7"))
    >>> found = locate(data, plan, numbers=20_000, word="record")
    >>> bool((abs(found.centre - [3.0, 500.0]) < 2 * found.scale).all()), found.without_answer
    (True, ())

    """
    randomness, shared = require_private(randomness), require_shared(shared)
    columns = sum(len(group) for group in plan.groups)
    given = records if isinstance(records, FarRecords) else _given(records, numbers)
    if given is None or given.dimension != columns:
        raise InvalidParameter("records must have the number of columns of the plan.")
    if given.units < plan.blocks:
        raise NotEnoughRecords("there are fewer units than blocks.", needed=plan.blocks, present=given.units)
    blocks = cut(given, blocks=plan.blocks, randomness=randomness)
    described = np.full((columns, 3), np.nan)
    agreement: list[float | None] = []
    for place, group in enumerate(plan.groups):
        chosen = list(group)
        laws: list[Any] = fit_blocks(
            ColumnLocation(),
            given.rows[:, chosen] if isinstance(given, Records) else given,
            blocks=blocks.of_columns(chosen) if isinstance(blocks, FarBlocks) else blocks,
            shared=shared.child("learner"),
            isolation=isolation,
            progress=progress,
        )
        rounding = LocationRounding(columns=len(chosen), scale_width=plan.widths[0], location_width=plan.widths[1])
        with named("where columns are and how far they spread"):
            released = aggregate(
                laws,
                records=1,
                coupling=rounding,
                mode=plan.mode,
                shared=shared.child("coupling", place),
                randomness=randomness,
            )
        if isinstance(released.value, NoAnswerType):
            agreement.append(None)
        else:
            described[chosen] = np.asarray(released.value).reshape(len(chosen), 3)
            agreement.append(_agreement(laws, described[chosen], widths=plan.widths))
    kind = described[:, 0]
    with np.errstate(over="ignore"):
        scale = np.where(kind == CELL, np.exp(described[:, 1]), np.nan)
    return Located(
        centre=np.where(kind == CELL, described[:, 2], np.nan),
        scale=scale,
        constant=np.where(kind == CONSTANT, described[:, 2], np.nan),
        guarantee=ApproxDP(plan.budget.epsilon, plan.budget.delta, unit=word),
        agreement=CuratorOnly(tuple(agreement)),
    )


def _given(records: NDArray[Any], numbers: int | NDArray[np.int64]) -> Records | None:
    return Records.of(records, units=None if isinstance(numbers, int) else numbers) if records.ndim == 2 else None


def _agreement(laws: Sequence[Distribution | Abstain], released: _Floats, *, widths: tuple[float, float]) -> float:
    """Return the share of blocks in the released cells: within half a width of their centres. For the curator."""
    vectors = [law.vector for law in laws if isinstance(law, PointMass) and law.vector is not None]
    table = np.array(vectors).reshape(len(vectors), *released.shape)
    with np.errstate(all="ignore"):
        near_scale = np.abs(table[:, :, 1] - released[:, 1]) <= widths[0] / 2
        near_place = np.abs(table[:, :, 2] - released[:, 2]) <= widths[1] / 2 * np.exp(released[:, 1])
    same_kind = table[:, :, 0] == released[:, 0]
    same = np.where(released[:, 0] == CELL, near_scale & near_place, table[:, :, 2] == released[:, 2])
    return float((same & same_kind).all(axis=1).sum() / len(laws))
