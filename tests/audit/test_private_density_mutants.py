"""Broken variants of the stages of a private density, each caught by the test that guards the true one."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core.blocks import fit_blocks, partition
from accord.core.budget import Budget
from accord.density.family import NormalMixtures
from accord.density.plan import DensityPlan, density_plan
from accord.density.release import PrivateModel, release_density
from accord.density.sketch import LineSketch
from accord.distributions import PointMass
from accord.location.rounding import CELL, ColumnLocation, LocationRounding
from accord.privacy import ApproxDP
from accord.randomness import SharedRandomness
from accord.testing import CouplingCase, CouplingFault, check_coupling

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Contributions = Callable[[Floats, Floats, Any], Ints]

SEED = 40
SKETCH = LineSketch(epsilon=1, delta="1e-6")
EDGES = SKETCH.edges(200)


# --- what one person can move -----------------------------------------------------------------------------------------


def largest_move(contributions: Contributions) -> float:
    """Largest L2 distance over neighbours in which one person's records are replaced, in units of the sensitivity."""
    draw = np.random.default_rng(SEED)
    most = 0.0
    for _ in range(40):
        units = np.concatenate([np.arange(200), np.full(30, 7), draw.integers(0, 200, 100)])
        table = draw.normal(size=(len(units), 1))
        other = table.copy()
        other[units == 7] = draw.choice([0.0, 50.0, np.nan])
        table[units == 7] = -3.0
        moved = contributions(table, EDGES, units) - contributions(other, EDGES, units)
        most = max(most, sum(int(step) ** 2 for step in moved) ** 0.5 / SKETCH.sensitivity)
    return most


def true_contributions(table: Floats, edges: Floats, units: Any) -> Ints:
    return SKETCH.contributions(table, edges, units=units)


def each_record_counts(table: Floats, edges: Floats, units: Any) -> Ints:
    """Forget that a person's records share one contribution."""
    return SKETCH.contributions(table, edges, units=len(table))


def shares_of_usable_records(table: Floats, edges: Floats, units: Any) -> Ints:
    """Divide by the person's usable records of the wrong person: a pooled mean."""
    usable = ~np.isnan(table[:, 0])
    return SKETCH.contributions(table[usable], edges, units=int(usable.sum())) * 200 // int(usable.sum())


def test_the_true_contributions_keep_within_the_sensitivity_and_reach_it() -> None:
    assert 0.99 < largest_move(true_contributions) <= 1


@pytest.mark.parametrize("broken", [each_record_counts, shares_of_usable_records])
def test_broken_contributions_are_caught(broken: Contributions) -> None:
    assert largest_move(broken) > 1


# --- blocks that look at each other -----------------------------------------------------------------------------------


def changed_blocks(describe: Callable[[Floats, list[Ints]], list[Any]]) -> int:
    """How many blocks describe themselves otherwise after one record was replaced."""
    table = np.random.default_rng(SEED).normal(size=(600, 2))
    blocks = list(partition(600, blocks=30, in_place_key=SharedRandomness(1)))
    other = table.copy()
    other[5] = [1e6, np.nan]
    pairs = zip(describe(table, blocks), describe(other, blocks), strict=True)
    return sum(before != after for before, after in pairs)


def alone(table: Floats, blocks: list[Ints]) -> list[Any]:
    return list(fit_blocks(ColumnLocation(), table, blocks=blocks, shared=SharedRandomness(2)))


def standardised_together(table: Floats, blocks: list[Ints]) -> list[Any]:
    """Bring all columns to a common mean and spread first."""
    with np.errstate(all="ignore"):
        return alone((table - np.nanmean(table, axis=0)) / np.nanstd(table, axis=0), blocks)


def dropped_before_cutting(table: Floats, blocks: list[Ints]) -> list[Any]:
    """Drop rows with gaps before the cut into blocks."""
    kept = table[~np.isnan(table).any(axis=1)]
    return alone(kept, [block[block < len(kept)] for block in blocks])


def test_one_record_changes_one_block() -> None:
    assert changed_blocks(alone) <= 1


@pytest.mark.parametrize("broken", [standardised_together, dropped_before_cutting])
def test_blocks_that_are_not_alone_are_caught(broken: Callable[[Floats, list[Ints]], list[Any]]) -> None:
    assert changed_blocks(broken) > 1


class WidthFromAll:
    """Rounding whose width comes from the spread of all blocks."""

    isolated = True

    def couple(self, laws: Any, *, records: int, draws: int, shared: SharedRandomness) -> Any:
        places = [law.vector[2] for law in laws if type(law) is PointMass and law.vector and len(law.vector) == 3]
        width = 0.1 + float(np.std(places)) if places else 1.0
        rounding = LocationRounding(columns=1, scale_width=0.8, location_width=width)
        return rounding.couple(laws, records=records, draws=draws, shared=shared)


def test_cells_that_depend_on_all_blocks_are_caught() -> None:
    laws = [PointMass([CELL, 0.0, place]) for place in (5.0, 5.05, 9.0)]
    with pytest.raises(CouplingFault):
        check_coupling(CouplingCase(coupling=WidthFromAll(), laws=laws, least_agreement=0.0), runs=1000)


# --- budgets ----------------------------------------------------------------------------------------------------------


def within(plan: DensityPlan) -> bool:
    """Run the stages and compare what they say they cost with what was asked."""
    table = np.random.default_rng(SEED).normal(size=(4000, 1))
    try:
        found: PrivateModel = release_density(table, plan, NormalMixtures(components=1), numbers=4000, word="record")
    except AssertionError as refusal:  # the release adds up its own stages
        assert "spend more than is promised" in str(refusal)  # noqa: PT017 - any other is this test's failure
        return False
    assert len(found.guarantees) == 2
    asked = ApproxDP(plan.budget.epsilon, plan.budget.delta)
    return found.guarantee.epsilon <= asked.epsilon and found.guarantee.delta <= asked.delta


def test_a_stage_that_takes_the_whole_budget_again_is_caught() -> None:
    plan = density_plan(units=4000, columns=1, budget=Budget(2, "1e-6"))
    assert within(plan)
    assert not within(replace(plan, rest=Budget(plan.budget.epsilon, plan.rest.delta)))
    assert not within(replace(plan, rest=Budget(plan.rest.epsilon, plan.budget.delta)))
    assert not within(
        replace(plan, location=replace(plan.location, budget=plan.location.budget + Budget(Fraction(1, 100), 0)))
    )
