"""Declared tables: budgets, ends, atoms, and rows as declared."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.errors import InvalidParameter, NotEnoughRecords, NothingReleased
from accord.ledger import Ledger
from accord.marginals import NumericBinning
from accord.marginals.binning import private_ends, units_for_ends, with_atoms
from accord.marginals.quantiles import Sorted
from accord.privacy import ApproxDP
from accord.randomness import PrivateRandomness, SharedRandomness
from accord.synthesis import cuts
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


# --- ends -------------------------------------------------------------------------------------------------------------


PLACES = [(0.0, 1.0), (-52.0, 20.0), (1e9, 1e6), (0.0, 1e-15), (-1e15, 1e15)]


@pytest.mark.parametrize("units", [2000, 100_000])
@pytest.mark.parametrize(("place", "scale"), PLACES)
def test_ends_fit_numbers_of_every_scale(units: int, place: float, scale: float) -> None:
    """With the least budget that is not refused, ends are wrong with a chance below 4 in 100: ten in a row never."""
    values = np.random.default_rng(1).uniform(-1, 1, units) * scale + place
    numbers = Sorted.of(values, None, 1)
    epsilon = next(Fraction(step, 100) for step in range(1, 10_000) if units_for_ends(Fraction(step, 100)) <= units)
    good = 0
    for _ in range(10):
        low, high = private_ends(numbers, units=units, epsilon=epsilon, source=PrivateRandomness())
        inside = np.mean((values >= low) & (values <= high))
        width = max(scale, abs(place) / 64)
        good += int(inside >= 0.4 and high - low <= 20 * width + 1e-12)
    assert good >= 1
    easy = private_ends(numbers, units=units, epsilon=20 * epsilon, source=PrivateRandomness())
    assert np.mean((values >= easy[0]) & (values <= easy[1])) > 0.9


def test_atoms_get_cells_of_their_own() -> None:
    edges = np.array([0.0, 5.0, 10.0])
    assert with_atoms(edges, [5.0], step=1.0).tolist() == [0.0, 4.5, 5.5, 10.0]
    assert with_atoms(edges, [0.0, 12.0], step=None).tolist() == [
        0.0,
        np.nextafter(0.0, 1),
        5.0,
        10.0,
        12.0,
        np.nextafter(12.0, 13),
    ]
    assert with_atoms(edges, [], step=1.0).tolist() == edges.tolist()


@pytest.mark.parametrize("decimals", [None, 0, 2])
def test_zeros_and_round_numbers_come_back_exactly(decimals: int | None) -> None:
    generator = np.random.default_rng(1)
    values = np.where(generator.random(N) < 0.4, 0.0, generator.gamma(2, 500, N))
    values[generator.random(N) < 0.15] = 1000.0
    (made,) = rows_of(table((number(decimals=decimals, bounds=(0.0, 1e5)), values)), epsilon=3)
    assert np.mean(made == 0) == pytest.approx(np.mean(values == 0), abs=0.05)
    assert np.mean(made == 1000) == pytest.approx(0.15, abs=0.05)
    assert np.nanmedian(made) == pytest.approx(np.median(values), rel=0.15)


@pytest.mark.parametrize(
    ("place", "scale"), [(3.0, 0.0), (1e9, 1e-3), (-52.0, 20.0), (0.0, 1e-12), (1.7e9, 3e4), (0.0, 1e30)]
)
def test_columns_without_bounds_are_found_at_every_scale(place: float, scale: float) -> None:
    """At epsilon 4 no answer has a chance below 1e-3, of which three in a row below 1e-8."""
    values = np.random.default_rng(1).normal(place, scale, 20_000)
    given = table((number(), values))
    made = None
    for _ in range(3):
        try:
            (made,) = rows_of(given, epsilon=4)
        except NothingReleased:
            continue
        break
    assert made is not None
    present = made[~np.isnan(made)]
    assert len(present) > 0.95 * len(made)
    assert abs(np.median(present) - place) <= 0.2 * scale + 1e-9 * abs(place)
    assert np.quantile(np.abs(present - place), 0.9) <= 2.5 * scale + 1e-9 * abs(place)


def test_no_answer_names_the_columns_and_stays_charged(tmp_path: Path) -> None:
    """Numbers on all scales at once: no two blocks agree on a median."""
    values = np.exp(np.random.default_rng(1).uniform(-200, 200, N))
    given = table((number(name="wild"), values))
    with Ledger.create(tmp_path / "l.db", epsilon=2, delta="1e-5") as ledger:
        with pytest.raises(NothingReleased, match="wild") as caught:
            TableLearner(given.schema, epsilon=2, delta="1e-6").release(given, ledger=ledger)
        assert ledger.statement().spent.epsilon == 2
    assert caught.value.columns == ("wild",)


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_C2_locating_cuts_and_tables_add_up_to_the_promise() -> None:
    schema = Schema(
        columns=(LETTERS, number(), number(name="y", bounds=(0.0, 1.0)), number(name="z", edges=(0.0, 1.0, 2.0)))
    )
    plan = TableLearner(schema, epsilon=1, delta="1e-6").plan(10**6)
    assert [cut.how for cut in plan.cuts.cuts] == ["private quantiles", "private quantiles", "declared edges"]
    assert plan.cuts.located == ("x",)
    location = plan.cuts.location
    assert location is not None
    parts = [location.budget, *(cut.budget for cut in plan.cuts.cuts)]
    rest = plan.marginals.promised
    assert sum(part.epsilon for part in parts) + rest.epsilon == 1
    assert sum(part.delta for part in parts) + rest.delta == Fraction(1, 10**6)
    assert all(part.epsilon >= 0 and part.delta >= 0 for part in parts)
    assert plan.marginals.spent <= rest.epsilon
    assert plan.promised == ApproxDP(1, "1e-6")
    bounded = TableLearner(Schema(columns=(number(bounds=(0.0, 1.0)),)), epsilon=1, delta="1e-6").plan(10**6)
    assert bounded.cuts.cuts[0].budget.epsilon == Fraction(1, 10)
    assert bounded.cuts.location is None


def test_what_is_spent_is_what_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    private = NumericBinning.private.__func__  # type: ignore[attr-defined]

    def noted(cls: Any, values: Any, /, **options: Any) -> Any:
        seen.append(options["epsilon"])
        return private(cls, values, **options)

    monkeypatch.setattr(NumericBinning, "private", classmethod(noted))
    given = table((LETTERS, np.arange(N) % 2), (number(bounds=(0.0, 9.0)), np.arange(N) % 9.0))
    learner = TableLearner(given.schema, epsilon=1, delta="1e-6")
    assert learner.release(given).guarantee == ApproxDP(1, "1e-6")
    (cut,) = learner.plan(N).cuts.cuts
    assert seen == [cut.budget.epsilon * Fraction(3, 5)]


def test_a_plan_bounds_what_is_measured() -> None:
    given = table((number(), np.random.default_rng(1).normal(size=30_000)), (LETTERS, np.arange(30_000) % 2))
    learner = TableLearner(given.schema, epsilon=2, delta="1e-6")
    model = learner.release(given).value
    assert isinstance(model, TableModel)
    assert model.binnings[0] is not None
    assert model.binnings[0].cells <= learner.plan(30_000).cuts.cuts[0].most_cells


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


def test_whole_numbers_between_bounds_need_no_private_cut() -> None:
    month = number(name="month", kind="integer", decimals=0, bounds=(1.0, 12.0))
    given = table((month, np.arange(N) % 12 + 1.0))
    assert TableLearner(given.schema, epsilon=1, delta="1e-6").plan(N).cuts.cuts[0].budget.epsilon == 0
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
    with pytest.raises(NotEnoughRecords, match="state bounds") as caught:
        learner.plan(100)
    assert caught.value.needed > 100
    assert learner.plan(caught.value.needed).promised == ApproxDP(1, "1e-6")
    with pytest.raises(InvalidParameter, match="schema"):
        learner.release(table((LETTERS, np.zeros(5, dtype=np.int32))))
    for cells in (1, 3, 5000):
        with pytest.raises(InvalidParameter, match="cells"):
            TableLearner(Schema(columns=(number(),)), epsilon=1, delta="1e-6", cells=cells)


# --- constants --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [0.0, 7.3, -123456.789, 1e-9])
def test_J7_a_constant_without_bounds_comes_out_constant(constant: float) -> None:
    values = np.full(10_000, constant)
    letters = np.random.default_rng(5).integers(0, 2, 10_000)
    cells, _ = rows_of(table((number(), values), (LETTERS, letters.astype(np.int32))), epsilon=2)
    assert (cells[~np.isnan(cells)] == constant).all()
    assert np.isnan(cells).mean() < 0.02


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


def test_J7_more_goes_to_shared_values_only_where_that_finds_a_constant() -> None:
    shares = {}
    for decimals in (0, 1, 2, 3, None):
        for units in (200, 1000, 100_000):
            schema = Schema(columns=(number(bounds=(0, 100), decimals=decimals), number(name="y", bounds=(0, 1))))
            (cut, other) = TableLearner(schema, epsilon=1, delta="1e-6").plan(units).cuts.cuts
            assert other.frequent.epsilon == other.budget.epsilon * Fraction(2, 5)
            shares[decimals, units] = cut.frequent.epsilon / cut.budget.epsilon
    usual = Fraction(2, 5)
    more = {place for place, share in shares.items() if share != usual}
    assert more == {(1, 1000), (2, 1000)}  # 101 values are found without, and a constant of 200 never is
    assert all(usual < shares[place] <= Fraction(3, 5) for place in more)


@pytest.mark.parametrize(
    ("bounds", "decimals", "values"),
    [
        ((0, 1), 1, range(11)),
        ((0.05, 0.95), 1, range(1, 10)),
        ((-0.3, 0.3), 1, range(-3, 4)),
        ((0, 1000), -2, range(11)),
        ((0.2, 0.8), 0, None),
        ((0, 1e9), 2, None),
        ((0, 1), None, None),
        (None, 1, None),
    ],
)
def test_J7_declared_values_are_all_multiples_between_the_bounds(bounds: Any, decimals: Any, values: Any) -> None:
    assert cuts._multiples(number(bounds=bounds, decimals=decimals)) == values


@pytest.mark.parametrize(
    ("decimals", "edges", "cell"),
    [(None, [-1e-18, 0, 5e-324, 1e-18], (0, 5e-324)), (2, [-0.005, 0.005], (-0.005, 0.005))],
)
def test_J7_ends_a_hair_apart_are_one_cell(decimals: int | None, edges: list[float], cell: tuple[float, float]) -> None:
    binning = NumericBinning(edges, decimals=decimals, missing=True)
    found = cuts._constant(binning, (0.0, 0.0), decimals=decimals)
    assert found == NumericBinning(cell, decimals=decimals, missing=True)
    assert cuts._constant(binning, None, decimals=decimals) is None  # bounds were declared
    assert cuts._constant(binning, (0.0, 1.0), decimals=decimals) is None  # it was located with a spread
    wide = NumericBinning([*edges, 40.0], decimals=decimals, missing=True)
    assert cuts._constant(wide, (0.0, 0.0), decimals=decimals) is None
