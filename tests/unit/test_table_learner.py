"""Declared tables: steps, cells, shared values, and rows as declared."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core.release import leaves
from accord.errors import InvalidParameter
from accord.ledger import Ledger
from accord.privacy import ApproxDP
from accord.randomness import SharedRandomness
from accord.synthesis.learner import TableLearner
from accord.synthesis.model import TableModel
from accord.tables import Column, Schema, Table

N = 6000
LETTERS = Column(name="letter", kind="category", categories=("a", "b"))


def number(**changes: Any) -> Column:
    return Column(**{"name": "x", "kind": "number", **changes})


def table(*pairs: tuple[Column, Any], units: Any = None, unit: str | None = None) -> Table:
    schema = Schema(columns=tuple(column for column, _ in pairs), unit=unit)
    return Table(columns=tuple(np.asarray(values) for _, values in pairs), units=units, schema=schema)


def rows_of(given: Table, *, epsilon: Any = 2, count: int = 4000, seed: int = 1, **options: Any) -> tuple[Any, ...]:
    release = TableLearner(given.schema, epsilon=epsilon, delta="1e-6", **options).release(given)
    assert isinstance(release.value, TableModel)
    return release.value.rows(count, SharedRandomness(seed).stream("rows"))


# --- steps ------------------------------------------------------------------------------------------------------------


def test_C2_all_counts_are_in_one_account_that_keeps_the_promise() -> None:
    schema = Schema(
        columns=(LETTERS, number(), number(name="y", bounds=(0.0, 1.0)), number(name="z", edges=(0.0, 1.0, 2.0)))
    )
    plan = TableLearner(schema, epsilon=1, delta="1e-6").plan(10**6)
    assert plan.promised == ApproxDP(1, "1e-6")
    assert Fraction(99, 100) < plan.spent <= 1
    rounds = {step.what: step.times for step in plan.steps if step.single}
    assert rounds == {"table of letter": 1, "cells of x": 4, "cells of y": 3, "table of z": 1}


def test_what_is_counted_is_what_is_planned() -> None:
    given = table((LETTERS, np.arange(N) % 2), (number(bounds=(0.0, 9.0)), np.arange(N) % 9.0))
    learner = TableLearner(given.schema, epsilon=1, delta="1e-6")
    release = learner.release(given)
    assert release.guarantee == ApproxDP(1, "1e-6")
    planned = sum(step.times for step in learner.plan(N).steps)
    assert sum(1 for stage in release.stages for _ in leaves(stage)) == planned


@pytest.mark.parametrize("values", [np.full(N, np.nan), np.full(N, 1e300), np.zeros(N)])
def test_numbers_however_odd_have_an_answer(values: Any) -> None:
    """How often cells are counted, and with what noise, is public; what is in them decides nothing else."""
    made = rows_of(table((number(), values), (LETTERS, np.arange(N) % 2)))[0]
    assert (np.isnan(made) == np.isnan(values[0])).mean() > 0.95


def test_numbers_on_all_scales_at_once_have_an_answer() -> None:
    """Blocks that had to agree on a place found none here."""
    values = np.exp(np.random.default_rng(1).uniform(-200, 200, N))
    made = rows_of(table((number(name="wild"), values)))[0]
    levels = np.log(made[np.isfinite(made) & (made > 0)])
    assert np.quantile(levels, [0.1, 0.5, 0.9]) == pytest.approx([-160, 0, 160], abs=30)


def test_a_ledger_and_units(tmp_path: Path) -> None:
    units = np.arange(N) // 2
    given = table((LETTERS, np.arange(N) % 2), units=units, unit="person")
    with Ledger.create(tmp_path / "l.db", epsilon=2, delta="1e-5", unit="person") as ledger:
        release = TableLearner(given.schema, epsilon=2, delta="1e-6").release(given, ledger=ledger)
        assert ledger.statement().charges == 1
    assert release.guarantee == ApproxDP(2, "1e-6", unit="person")


# --- rows -------------------------------------------------------------------------------------------------------------


def test_rows_are_as_declared() -> None:
    generator = np.random.default_rng(1)
    letters = generator.integers(-1, 2, N).astype(np.int32)
    values = np.where(letters == 1, generator.normal(10, 1, N), generator.normal(0, 1, N))
    values[generator.random(N) < 0.2] = np.nan
    made = rows_of(table((LETTERS, letters), (number(bounds=(-5.0, 15.0)), values)))
    assert made[0].dtype == np.int32
    assert set(np.unique(made[0])) == {-1, 0, 1}
    assert np.mean(np.isnan(made[1])) == pytest.approx(0.2, abs=0.03)
    assert np.nanmin(made[1]) >= -5
    assert np.nanmax(made[1]) <= 15
    assert np.nanmean(made[1][made[0] == 1]) == pytest.approx(10, abs=1)
    assert np.nanmean(made[1][made[0] == 0]) == pytest.approx(0, abs=1)


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_E62_a_required_column_is_never_missing(share: float) -> None:
    generator = np.random.default_rng(1)
    letters = np.where(generator.random(N) < share, -1, generator.integers(0, 2, N)).astype(np.int32)
    required = Column(name="letter", kind="category", categories=("a", "b"), required=True, unreadable="missing")
    (made,) = rows_of(table((required, letters)))
    assert set(np.unique(made)) <= {0, 1}


def test_whole_numbers_between_bounds_are_counted_one_by_one() -> None:
    month = number(name="month", kind="integer", decimals=0, bounds=(1.0, 12.0))
    given = table((month, np.arange(N) % 12 + 1.0))
    assert [step.times for step in TableLearner(given.schema, epsilon=1, delta="1e-6").plan(N).steps] == [1]
    (made,) = rows_of(given)
    assert set(np.unique(made[~np.isnan(made)])) == set(range(1, 13))


def test_independent_rows_follow_the_same_law() -> None:
    given = table((LETTERS, (np.arange(N) % 4 == 0).astype(np.int32)))
    model = TableLearner(given.schema, epsilon=2, delta="1e-6").release(given).value
    assert isinstance(model, TableModel)
    for rounded in (True, False):
        (made,) = model.rows(4000, SharedRandomness(2).stream("rows"), rounded=rounded)
        assert np.mean(made == 1) == pytest.approx(0.25, abs=0.05)


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="schema"):
        TableLearner("x", epsilon=1, delta="1e-6")  # type: ignore[arg-type]
    learner = TableLearner(Schema(columns=(number(),)), epsilon=1, delta="1e-6")
    assert learner.plan(100).expected_errors["x"] > 0.1
    with pytest.raises(InvalidParameter, match="schema"):
        learner.release(table((LETTERS, np.zeros(5, dtype=np.int32))))


# --- constants --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [0.0, 7.3, -123457.0, 1e-9])
def test_J7_a_constant_without_bounds_comes_out_constant(constant: float) -> None:
    values = np.full(10_000, constant)
    letters = np.random.default_rng(5).integers(0, 2, 10_000)
    cells, _ = rows_of(table((number(), values), (LETTERS, letters.astype(np.int32))), epsilon=2)
    assert (cells[~np.isnan(cells)] == constant).all()
    assert np.isnan(cells).mean() < 0.02


def test_J7_a_constant_of_many_digits_comes_out_constant_to_a_millionth() -> None:
    """With decimals it is exact; without, codes are the first twenty binary digits of a number."""
    cells, _ = rows_of(table((number(), np.full(10_000, -123456.789)), (LETTERS, np.arange(10_000) % 2)))
    assert len(np.unique(cells[~np.isnan(cells)])) == 1
    assert np.nanmean(cells) == pytest.approx(-123456.789, rel=1e-5)
    decimals = number(decimals=3, bounds=(-1e6, 1e6))
    exact, _ = rows_of(table((decimals, np.full(10_000, -123456.789)), (LETTERS, np.arange(10_000) % 2)))
    assert np.nanmedian(exact) == pytest.approx(-123456.789, abs=0.1)


def test_J7_a_constant_has_no_missing_cells_that_are_noise() -> None:
    """The interval of a share of 0 begins above 0 with a chance of at most 5 in 100: five in a row never do."""
    given = table((number(), np.zeros(10_000)))
    assert any((rows_of(given, seed=seed)[0] == 0).all() for seed in range(5))


def test_J7_missing_cells_of_a_constant_stay() -> None:
    values = np.full(10_000, 5.0)
    values[:3000] = np.nan
    cells = rows_of(table((number(), values)))[0]
    assert 0.25 < np.isnan(cells).mean() < 0.35
    assert (cells[~np.isnan(cells)] == 5).all()


def test_J7_a_second_value_that_many_share_is_no_constant() -> None:
    """A quarter of the blocks holds one value; three quarters agree, and no answer has a chance of 1e-8."""
    values = np.where(np.arange(20_000) % 10 == 0, 40.0, 0.0)
    cells = rows_of(table((number(), values)), epsilon=10)[0]
    assert 0.05 < (cells == 40).mean() < 0.15
    assert (cells == 0).mean() > 0.7


def shared_exactly(values: NDArray[Any], *, declared: Column, releases: int) -> float:
    """Return the share of cells, over some releases beside two other columns, that are one of the values."""
    size, shares = len(values), []
    for seed in range(releases):
        generator = np.random.default_rng(seed)
        other = number(name="other", bounds=(0, 30), decimals=3)
        pairs = ((other, np.clip(generator.normal(12, 3, size), 0, 30)), (LETTERS, generator.integers(0, 2, size)))
        given = table((declared, values), *((column, cells.astype(column_type(column))) for column, cells in pairs))
        made = rows_of(given, epsilon=1, count=1000, seed=seed)[0]
        shares.append(np.isin(made, np.unique(values)).mean())
    return float(np.median(shares))


def column_type(column: Column) -> type:
    return np.float64 if column.is_number else np.int32


@pytest.mark.parametrize("values", [[37.0], [0.0, 20.0]])
@pytest.mark.parametrize("given", [{"decimals": 0}, {"decimals": 1}, {"decimals": 2}, {}, {"kind": "integer"}], ids=str)
def test_J7_a_constant_with_bounds_comes_out_constant(given: dict[str, Any], values: list[float]) -> None:
    """Noise is taken for records in about 1 of 40 releases, and then in few rows: never in five of nine."""
    declared = number(name="constant", bounds=(0, 100), **given)
    cells = np.resize(np.array(values), 10_000)
    assert shared_exactly(cells, declared=declared, releases=9) >= 0.995


@pytest.mark.parametrize("given", [{"decimals": 0}, {"decimals": 1}, {"decimals": 2}, {"kind": "integer"}], ids=str)
def test_J7_a_constant_of_a_thousand_records_is_found_among_declared_values(given: dict[str, Any]) -> None:
    """It is missed in about 1 of 50 releases, and then noise puts some rows elsewhere: never in five of nine."""
    declared = number(name="constant", bounds=(0, 100), **given)
    assert shared_exactly(np.full(1000, 37.0), declared=declared, releases=9) >= 0.95
