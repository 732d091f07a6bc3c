"""`accord.marginals` piece by piece: what it reads, refuses, plans and returns."""

import pickle
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.distributions import Distribution
from accord.errors import BudgetExceeded, DataError, InvalidParameter, NotEnoughRecords, WrongRandomness
from accord.ledger import Ledger
from accord.marginals import Column, ColumnKind, Domain, MarginalLearner, MarginalModel, NumericBinning
from accord.marginals.cells import Cells
from accord.marginals.errors import grouped, grouped_cells, nearest_law, told_apart
from accord.marginals.fit import Noisy, noise_alone
from accord.marginals.looks import Look
from accord.marginals.placing import even_levels
from accord.privacy import ApproxDP
from accord.randomness import SharedRandomness
from accord.testing import ReplayRandomness

DELTA = "1e-6"


def made(domain: Domain, codes: Any, *, epsilon: float = 100, key: str = "unit", **given: Any) -> MarginalModel:
    """A model with next to no noise, the same in each run."""
    learner = MarginalLearner(domain, epsilon=epsilon, delta=DELTA, **given)
    model = learner.release(codes, randomness=ReplayRandomness(key)).value
    assert isinstance(model, MarginalModel)
    return model


def chain(rows: int, *sizes: int, key: int = 1) -> np.ndarray:
    """Columns that go along with the one before."""
    generator = SharedRandomness(key).stream("chain")
    columns = [generator.integers(0, sizes[0], rows)]
    for before, size in pairwise(sizes):
        follow = columns[-1] * size // before
        columns.append(np.where(generator.random(rows) < 0.7, follow, generator.integers(0, size, rows)))
    return np.stack(columns, axis=1)


# --- domain -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: Column("", 3),
        lambda: Column("a", 0),
        lambda: Column("a", 1 << 17),
        lambda: Column("a", 3, kind="colour"),
        lambda: Column("a", 3, positions=[0, 1]),
        lambda: Column("a", 3, positions=[0, 2, 1]),
        lambda: Column("a", 3, positions=[0, 1, float("nan")]),
        lambda: Column("a", 3, other=3),
        lambda: Column("a", 1, missing=True),
        lambda: Domain([]),
        lambda: Domain([Column("a", 2), Column("a", 3)]),
        lambda: Domain(["a"]),  # type: ignore[list-item]
        lambda: Domain([Column("a", 2)]).places(["b"]),
        lambda: Domain([Column("a", 2)]).places([1]),
        lambda: Domain([Column("a", 2)]).places([]),
        lambda: Domain([Column("a", 2), Column("b", 2)]).places(["a", 0]),
    ],
)
def test_what_is_no_domain_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_a_column_with_missing_cells_has_a_number_for_all_other_codes() -> None:
    column = Column("age", 4, kind="number", positions=[1, 2, 9], missing=True)
    assert (column.values, column.other, column.kind) == (3, 3, ColumnKind.NUMBER)


ODD_CELLS: list[Any] = [None, float("nan"), float("inf"), -1, 3, 10**30, 0.5, "1", b"1", [1], {}, True, np.int8(2), 2.0]


@pytest.mark.parametrize("odd", ODD_CELLS, ids=repr)
def test_an_odd_cell_changes_no_other_cell_and_raises_nothing(odd: Any) -> None:
    domain = Domain([Column("a", 3, other=1), Column("b", 3)])
    rows = [[0, 2], [odd, 1], [2, 0]]
    read = domain.read(rows)
    assert read[[0, 2]].tolist() == [[0, 2], [2, 0]]
    assert read[1, 1] == 1
    valid = odd in (True, 2, 2.0) and not isinstance(odd, (str, bytes))
    assert read[1, 0] == (int(odd) if valid else 1)


def test_arrays_of_floats_and_small_integers_are_read_alike() -> None:
    domain = Domain([Column("a", 3)])
    for kind in (np.int8, np.uint8, np.int64, np.float32, np.float64):
        assert domain.read(np.array([0, 2, 7], dtype=kind)).ravel().tolist() == [0, 2, 2]
    masked = np.ma.masked_array([[0], [1], [1]], mask=[[False], [True], [False]])
    assert domain.read(masked).ravel().tolist() == [0, 2, 1]
    with pytest.raises(DataError):
        domain.read(np.zeros((3, 2)))
    assert domain.read([[1], [1, 2], [0]]).ravel().tolist() == [1, 2, 0]  # a row of another length is missing


# --- learner: refusals ------------------------------------------------------------------------------------------------


PAIR = Domain([Column("a", 3), Column("b", 4)])


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 0},
        {"epsilon": 1001},
        {"delta": 0},
        {"delta": 1},
        {"max_cells": 1},
        {"tree_cells": 1 << 30},
        {"triples": 1},
        {"triples": -0.1},
        {"rounds": 0},
        {"domain": "ab"},
    ],
)
def test_settings_outside_their_range_are_refused(given: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"domain": PAIR, "epsilon": 1, "delta": DELTA, **given}
    with pytest.raises(InvalidParameter):
        MarginalLearner(settings.pop("domain"), **settings)


def test_what_cannot_be_released_spends_nothing(tmp_path: Path) -> None:
    learner = MarginalLearner(PAIR, epsilon=1, delta=DELTA)
    codes = [[0, 1], [2, 3]]
    ledger = Ledger.create(tmp_path / "ledger", epsilon="0.5", delta=DELTA)
    refused: list[tuple[type[Exception], Any]] = [
        (NotEnoughRecords, lambda: learner.release(np.zeros((0, 2), dtype=int), ledger=ledger)),
        (InvalidParameter, lambda: learner.release(codes, unit="person", ledger=ledger)),
        (InvalidParameter, lambda: learner.release(codes, units=["x"], ledger=ledger)),
        (DataError, lambda: learner.release(codes, units=np.array(["x", None]), ledger=ledger)),
        (DataError, lambda: learner.release(codes, units=np.array([1.0, np.nan]), ledger=ledger)),
        (DataError, lambda: learner.release(np.array([[1, 2, 3]]), ledger=ledger)),
        (WrongRandomness, lambda: learner.release(codes, randomness=7, ledger=ledger)),  # type: ignore[arg-type]
        (BudgetExceeded, lambda: learner.release(codes, ledger=ledger)),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()
    assert ledger.spent.epsilon == 0


def test_the_guarantee_names_the_unit() -> None:
    learner = MarginalLearner(PAIR, epsilon="0.5", delta=DELTA)
    release = learner.release([[0, 1], [2, 3], [0, 0]], units=["x", "y", "x"], unit="person")
    assert release.guarantee == ApproxDP("0.5", DELTA, unit="person")
    assert learner.guarantee == learner.release([[0, 1]]).guarantee == ApproxDP("0.5", DELTA)


@pytest.mark.parametrize("epsilon", ["0.001", "1000"])
@pytest.mark.parametrize("columns", [1, 2, 5])
def test_the_ends_of_the_range_run(epsilon: str, columns: int) -> None:
    domain = Domain([Column(str(c), 6, kind="number") for c in range(columns)])
    learner = MarginalLearner(domain, epsilon=epsilon, delta="1e-9")
    model = learner.release(np.zeros((1, columns), dtype=int)).value
    assert isinstance(model, MarginalModel)
    assert model.rounded(5, SharedRandomness(1).stream("x")).shape == (5, columns)


# --- learner: plan ----------------------------------------------------------------------------------------------------


def test_the_plan_needs_no_record_and_its_errors_fall_with_n() -> None:
    domain = Domain([Column(str(c), 8) for c in range(5)])
    plans = [MarginalLearner(domain, epsilon=1, delta=DELTA).plan(units) for units in (1000, 10_000, 100_000)]
    for way in (1, 2):
        errors = [next(one.error for one in plan.errors if one.way == way) for plan in plans]
        assert errors[0] > errors[1] > errors[2]
    assert {plan.mode for plan in plans} == {"pairs"}
    assert any("100000 units" in line for line in plans[2].lines())


@pytest.mark.parametrize(
    ("sizes", "given", "mode"),
    [
        ([50], {}, "full"),
        ([5, 6], {}, "full"),
        ([4, 5, 6], {}, "full"),
        ([20] * 4, {}, "pairs"),
        ([20] * 4, {"rounds": 3}, "rounds"),
        ([20] * 4, {"max_cells": 1000}, "rounds"),
        ([5] * 12, {}, "rounds"),
    ],
)
def test_the_mode_follows_from_sizes(sizes: list[int], given: dict[str, Any], mode: str) -> None:
    domain = Domain([Column(str(c), size) for c, size in enumerate(sizes)])
    assert MarginalLearner(domain, epsilon=1, delta=DELTA, **given).plan(50_000).mode == mode


@pytest.mark.parametrize("sizes", [[6, 5], [6] * 4, [5] * 12])
def test_progress_is_told_after_each_step_and_fit_and_ends_with_all(sizes: list[int]) -> None:
    told: list[tuple[int, int, str]] = []
    domain = Domain([Column(str(c), size) for c, size in enumerate(sizes)])
    learner = MarginalLearner(domain, epsilon=2, delta=DELTA)
    learner.release(chain(2000, *sizes), progress=lambda *one: told.append(one))
    shares = [done / of for done, of, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    steps = sum(step.times for step in learner.plan(2000).steps)
    assert 0 < len(told) <= steps + 1
    if steps > 1:  # the last fit takes its time
        assert shares[-2] < 0.8
        assert told[-1][2] == "fitting the model"


# --- learner: the model -----------------------------------------------------------------------------------------------


MODELS: dict[str, tuple[Domain, np.ndarray, dict[str, Any]]] = {
    "full": (Domain([Column("a", 5), Column("b", 4)]), chain(5000, 5, 4), {}),
    "pairs": (Domain([Column(name, 8) for name in "abcd"]), chain(20_000, 8, 8, 8, 8), {}),
    "rounds": (
        Domain([Column(name, 5) for name in "abcdef"]),
        chain(20_000, *[5] * 6),
        {"max_cells": 100, "rounds": 7},
    ),
}


@pytest.mark.parametrize("mode", MODELS)
def test_without_noise_the_measured_tables_come_back(mode: str) -> None:
    domain, codes, given = MODELS[mode]
    model = made(domain, codes, **given)
    assert isinstance(model, Distribution)
    for table in model.measured:
        truth = np.zeros([domain.shape[column] for column in table])
        np.add.at(truth, tuple(codes[:, list(table)].T), 1 / len(codes))
        assert np.abs(model.marginal(table) - truth).sum() / 2 < 0.005, table
    if mode == "rounds":  # along the chain all is explained; neighbours must have been found
        assert {pair for pair in model.measured if len(pair) == 2} >= {(c, c + 1) for c in range(5)}


@pytest.mark.parametrize("mode", MODELS)
def test_density_marginals_and_samples_are_of_one_law(mode: str) -> None:
    domain, codes, given = MODELS[mode]
    model = made(domain, codes, epsilon=1, **given)
    cells = np.stack(np.unravel_index(np.arange(domain.cells), domain.shape), axis=1)
    law = np.exp(model.log_density(cells)).reshape(domain.shape)
    assert law.sum() == pytest.approx(1)
    for pair in combinations(range(domain.dimension), 2):
        others = tuple(axis for axis in range(domain.dimension) if axis not in pair)
        np.testing.assert_allclose(model.marginal(pair), law.sum(axis=others), atol=1e-12)
        np.testing.assert_allclose(model.marginal(pair[::-1]), law.sum(axis=others).T, atol=1e-12)
    assert (model.log_density([[-1] + [0] * (domain.dimension - 1)]) == -np.inf).all()
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    assert again.marginal([0]).tobytes() == model.marginal([0]).tobytes()
    with pytest.raises(InvalidParameter):
        model.log_density(np.zeros((2, domain.dimension + 1)))


@pytest.mark.parametrize("mode", MODELS)
def test_rounded_records_have_the_pair_tables_of_the_law(mode: str) -> None:
    domain, codes, given = MODELS[mode]
    model = made(domain, codes, epsilon=1, **given)
    generator = SharedRandomness(4).stream("rounded")
    rounded, drawn = model.rounded(10_000, generator), model.sample(10_000, generator)
    for pair in combinations(range(domain.dimension), 2):
        counts = np.zeros((2, *(domain.shape[column] for column in pair)))
        for place, records in enumerate((rounded, drawn)):
            np.add.at(counts[place], tuple(records[:, list(pair)].T), 1)
        errors = ((counts - 10_000 * model.marginal(pair)) ** 2).mean(axis=(1, 2))
        assert errors[0] < 1.5
        assert errors[1] > 10 * errors[0]


def test_rare_levels_are_measured_together_and_come_back_apart() -> None:
    domain = Domain([Column("a", 200), Column("b", 8), Column("c", 8), Column("d", 8)])
    codes = chain(50_000, 4, 8, 8, 8)
    codes[:300, 0] = 50 + np.arange(300) % 3
    model = made(domain, codes, epsilon=1)
    assert model.cells < 200 * 512 / 10
    found = model.marginal(["a"])
    assert found.shape == (200,)
    assert found[:4].sum() > 0.98
    assert (found > 0).all()


def test_numbers_keep_their_correlation_and_their_missing_cells() -> None:
    generator = SharedRandomness(2).stream("numbers")
    x = generator.standard_normal(30_000)
    y = 0.9 * x + np.sqrt(1 - 0.81) * generator.standard_normal(30_000)
    z = generator.standard_normal(30_000)
    y[:3000] = np.nan
    binnings = [NumericBinning.equal(-5, 5, cells=60, missing=True) for _ in range(3)]
    codes = np.stack([one.encode(column) for one, column in zip(binnings, (x, y, z), strict=True)], axis=1)
    domain = Domain([one.column(name) for one, name in zip(binnings, "xyz", strict=True)])
    correlations = []
    for key in "abcde":
        model = made(domain, codes, epsilon=2, key=key)
        assert model._engine.shape != domain.shape  # in groups
        records = model.rounded(30_000, generator)
        numbers = [one.decode(records[:, c], generator) for c, one in enumerate(binnings)]
        missing = np.isnan(numbers[1])
        assert missing.mean() == pytest.approx(0.1, abs=0.01)
        assert np.isnan(numbers[0]).mean() < 0.005
        present = ~(missing | np.isnan(numbers[0]) | np.isnan(numbers[2]))
        found = np.asarray(np.corrcoef(np.stack(numbers)[:, present]))
        assert found[0, 2] == pytest.approx(0.0, abs=0.03)
        correlations.append(found[0, 1])
    assert np.median(correlations) == pytest.approx(0.9, abs=0.015)


def test_units_with_many_records_weigh_as_much_as_others() -> None:
    domain = Domain([Column("a", 2)])
    codes = np.array([0] * 500 + [1] * 9500)[:, None]
    units = np.concatenate([np.arange(500), 500 + np.arange(9500) // 19])  # 500 units each
    model = MarginalLearner(domain, epsilon=100, delta=DELTA).release(codes, units=units).value
    assert isinstance(model, MarginalModel)
    assert model.marginal([0])[0] == pytest.approx(0.5, abs=0.01)
    assert model.total == 1000


# --- pieces -----------------------------------------------------------------------------------------------------------


def test_runs_of_ordered_codes_are_heavy_and_few() -> None:
    generator = SharedRandomness(5).stream("runs")
    counts = generator.gamma(0.5, 100, size=300)
    column = Column("a", 300, kind="ordered")
    grouping = grouped(column, counts, deviation=10, threshold=30, most=25, total=counts.sum())
    assert grouping.groups <= 25
    assert (np.diff(grouping.group_of) >= 0).all()
    assert grouping.counts.min() >= 30
    assert grouping.counts.sum() == pytest.approx(counts.sum())
    sums = np.bincount(grouping.group_of, weights=grouping.within)
    np.testing.assert_allclose(sums, 1)


def test_groups_do_not_reach_across_gaps() -> None:
    """Two towns of 3,000 and 900 records, tails of a few records, and noise in between that hangs on to either."""
    counts = np.array([40, 1200, 1500, 260, 0, 12, 0, 0, 25, 500, 400, 0.0])
    ends = np.array([0, 1, 2, 3, 4, 40, 41, 80, 99, 100, 101, 102, 103.0])
    cells = Cells(starts=np.arange(12), end=12, counts=counts, deviations=np.full(12, 20.0))
    for most in (2, 3, 5):
        grouping = grouped_cells(cells, ends, missing=False, threshold=5, most=most, total=counts.sum())
        assert 2 <= grouping.groups <= most
        assert set(grouping.group_of[:4]).isdisjoint(grouping.group_of[8:11])
    assert grouped_cells(cells, ends, missing=False, threshold=5, most=1, total=counts.sum()).groups == 1


@pytest.mark.parametrize("columns", [1, 2])
def test_cells_of_a_table_that_hold_no_more_than_noise_are_empty(columns: int) -> None:
    table, deviations = tuple(range(columns)), np.full(400, 10.0)
    noise = SharedRandomness(7).stream("noise").normal(0, 10, 400)
    counts = np.where(np.arange(400) < 20, 500.0, 0) + noise
    empty = noise_alone(Noisy(table, counts, deviations))
    assert empty[:20].sum() == 0
    assert (empty.sum() > 350) == (columns == 2)
    spread = counts + np.where(np.arange(400) < 20, 0.0, 12.0)  # records everywhere, none of which stands out
    assert noise_alone(Noisy(table, spread, deviations)).sum() == 0


def test_missing_cells_of_a_required_column_are_not_counted_and_nothing_takes_their_place() -> None:
    rng = SharedRandomness(8).stream("missing")
    other = rng.integers(0, 2, 4000)
    first = np.where(rng.random(4000) < np.where(other == 1, 0.6, 0.0), 3, other)  # 3 is no code: missing
    domain = Domain([Column("a", 3, uncounted=True), Column("b", 2)])
    model = made(domain, np.stack([first, other], axis=1))
    present = first < 3
    shares = np.bincount(first[present], minlength=3) / present.sum()
    assert model.marginal(["a"]) == pytest.approx(shares, abs=0.02)
    assert model.marginal(["a"])[1] < 0.4, "with the missing ones in its place it would be a half"
    with pytest.raises(InvalidParameter, match="not both"):
        Column("a", 3, missing=True, uncounted=True)


def test_tails_fall_and_noise_far_out_is_not_taken_for_records() -> None:
    generator = SharedRandomness(6).stream("tails")
    places = np.arange(100)
    truth = 1000 * np.exp(-(((places - 20) / 4.0) ** 2))
    spreads = []
    for _ in range(20):
        noisy = truth + 30 * generator.standard_normal(100)
        grouping = grouped(
            Column("a", 100, kind="number"), noisy, deviation=30, threshold=90, most=100, total=truth.sum()
        )
        law = grouping.within * np.maximum(grouping.counts, 0)[grouping.group_of]
        law /= law.sum()
        spreads.append(np.sqrt(law @ places**2 - (law @ places) ** 2))
        plain = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum()
        assert np.sqrt(plain @ places**2 - (plain @ places) ** 2) > 2 * np.mean(spreads)
    assert np.mean(spreads) == pytest.approx(np.sqrt(8), rel=0.1)


def test_nearest_law_is_the_projection() -> None:
    counts = np.array([5.0, 3.0, -4.0, 0.5])
    law = nearest_law(counts)
    assert law.sum() == pytest.approx(1)
    assert law[2] < 1e-3
    np.testing.assert_allclose(np.diff(law[[0, 1]] * 4.5), np.diff(counts[[0, 1]]), rtol=1e-2)


def noisy_and_told(truth: NDArray[np.float64], *, missing: bool = False, seed: int = 0) -> NDArray[np.bool_]:
    noisy = truth + 30 * SharedRandomness(seed).stream("noise").standard_normal(len(truth))
    column = Column("a", len(truth), kind="number", missing=missing)
    return told_apart(column, noisy, deviation=30, total=float(truth.sum()))


def test_J7_codes_that_are_noise_are_not_told_apart() -> None:
    truth = np.zeros(40)
    truth[[3, 20]] = 3000, 2000
    told = sum((noisy_and_told(truth, seed=seed) == (truth > 0)).all() for seed in range(100))
    assert told >= 80  # 97 on average


@pytest.mark.parametrize("rare", [15.0, 40.0])
def test_J7_codes_that_hold_records_together_stay(rare: float) -> None:
    """None of them stands out of noise of deviation 30, but 38 of them together do."""
    truth = np.full(40, rare)
    truth[[3, 20]] = 3000, 2000
    assert all(noisy_and_told(truth, seed=seed).all() for seed in range(100))
    assert noisy_and_told(np.full(40, rare)).all()


def test_J7_missing_cells_are_judged_alone() -> None:
    for absent, least, most in ((0.0, 0, 20), (400.0, 100, 100)):
        truth = np.append(np.linspace(200, 400, 30), absent)
        told = [noisy_and_told(truth, missing=True, seed=seed) for seed in range(100)]
        assert all(one[:-1].all() for one in told)
        assert least <= sum(one[-1] for one in told) <= most


def test_J7_groups_of_noise_join_others_with_next_to_nothing() -> None:
    counts = np.array([5.0, 900.0, -7.0, 4.0, 1000.0, 3.0, -2.0])
    for kind in ("number", "ordered", "category"):
        column = Column("a", 7, kind=kind, missing=True)
        grouping = grouped(column, counts, deviation=10, threshold=30, most=7, total=1900)
        assert grouping.groups == 2
        assert grouping.missing(column) == 0
        assert (grouping.within[[1, 4]] > 0.9999).all()
        assert (np.delete(grouping.within, [1, 4]) < 1e-5).all()
        assert (grouping.within > 0).all()
        assert grouping.group_of[-1] == grouping.group_of[4]  # the heaviest


def test_J7_a_full_table_has_no_rows_of_codes_that_are_noise() -> None:
    domain = Domain([Column("a", 9, kind="number", missing=True), Column("b", 3)])
    codes = np.stack([np.full(4000, 5), np.arange(4000) % 3], axis=1)
    learner = MarginalLearner(domain, epsilon=1, delta=DELTA)
    assert learner.plan(4000).mode == "full"
    exact = 0
    for _ in range(10):
        model = learner.release(codes).value
        assert isinstance(model, MarginalModel)
        exact += int(model.marginal([0])[5] > 0.9999)
        np.testing.assert_allclose(model.marginal([1]), 1 / 3, atol=0.05)
    assert exact >= 5


def test_even_levels_are_one_in_each_part() -> None:
    generator = SharedRandomness(7).stream("levels")
    groups = generator.integers(0, 5, 1000)
    levels = even_levels(groups, generator)
    for group in range(5):
        inside = np.sort(levels[groups == group])
        assert (np.floor(inside * len(inside)) == np.arange(len(inside))).all()


# --- binning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: NumericBinning([1]),
        lambda: NumericBinning([1, 1]),
        lambda: NumericBinning([0, float("inf")]),
        lambda: NumericBinning([0, 1], decimals=13),
        lambda: NumericBinning.equal(1, 0, cells=3),
        lambda: NumericBinning.equal(0, 1, cells=0),
        lambda: NumericBinning([0, 1]).decode([1], SharedRandomness(1).stream("x")),
    ],
)
def test_what_is_no_binning_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize("odd", [None, "x", b"7", [7, 8], float("nan"), float("inf"), 10**400, 1j], ids=repr)
def test_an_odd_number_is_missing_and_changes_no_other(odd: Any) -> None:
    binning = NumericBinning([0, 1, 2], missing=True)
    assert binning.encode([0.5, odd, 1.5]).tolist() == [0, 2, 1]
    assert NumericBinning([0, 1, 2]).encode([0.5, odd, 1.5]).tolist() == [0, 1, 1]


def test_A15_one_text_in_an_array_makes_texts_of_all_and_changes_no_other_code() -> None:
    domain = Domain([Column("a", 3), Column("b", 3)])
    assert domain.read(np.array([[1, 1], [0, 0], [1, "x"]])).tolist() == [[1, 1], [0, 0], [1, 2]]
    assert domain.read(np.array([[1, 1.5], [0, 0], [1, np.nan]])).tolist() == [[1, 2], [0, 0], [1, 2]]
    binning = NumericBinning([0, 1, 2], missing=True)
    assert binning.encode(np.array([0.5, "x", 1.5])).tolist() == [0, 2, 1]
    assert binning.encode(np.array([0.5, "1.5", True], dtype=object)).tolist() == [0, 1, 1]


@pytest.mark.parametrize("units", [3, ["a", None, "b"], ["a", ("b", float("nan")), "c"], np.zeros((3, 1)), [1, 2]])
def test_A4_A5_A7_marginals_refuse_what_names_nobody(units: Any, tmp_path: Path) -> None:
    learner = MarginalLearner(Domain([Column("a", 3)]), epsilon=1, delta="1e-6")
    ledger = Ledger.create(tmp_path / "ledger", epsilon=2, delta="1e-3")
    releases: list[Callable[[], Any]] = [
        lambda: learner.release([0, 1, 2], units=units, unit="person", ledger=ledger),
    ]
    for release in releases:
        with pytest.raises((InvalidParameter, DataError)):
            release()
    assert ledger.spent.epsilon == 0


def test_density_inside_cells_leans_as_the_neighbours_do() -> None:
    binning = NumericBinning.equal(0, 4, cells=4)
    masses = np.array([0.1, 0.2, 0.3, 0.4])
    generator = SharedRandomness(3).stream("lean")
    codes = np.repeat(np.arange(4), 20_000)
    leaning, flat = (binning.decode(codes, generator, masses=one) for one in (masses, None))
    middle = slice(20_000, 40_000)
    # In cell 1 the density rises by half its mean: E u = 1/2 + slope / 12.
    assert leaning[middle].mean() == pytest.approx(1.5 + 0.5 / 12, abs=0.012)
    assert flat[middle].mean() == pytest.approx(1.5, abs=0.012)
    assert leaning[:20_000].mean() == pytest.approx(0.5, abs=0.012)  # an end has one neighbour: flat


def test_shares_of_the_budget_are_exact() -> None:
    learner = MarginalLearner(PAIR, epsilon=0.1, delta=DELTA)
    assert learner.epsilon == Fraction(1, 10)
    assert learner.plan(1000).spent == Fraction(1, 10)


@pytest.mark.parametrize("epsilon", [900, 1000])
@pytest.mark.parametrize("named", [False, True])
def test_B7_the_largest_epsilon_has_a_total_in_every_way_to_count(epsilon: int, *, named: bool) -> None:
    source = np.random.default_rng(3)
    codes = np.stack([source.integers(0, 20, 200), source.integers(0, 3, 200)], axis=1)
    learner = MarginalLearner(Domain([Column("a", 21), Column("b", 4)]), epsilon=epsilon, delta="1e-6")
    release = learner.release(codes, units=np.arange(200) // 2 if named else None)
    assert release.guarantee.epsilon == epsilon


# --- tables of many columns -------------------------------------------------------------------------------------------


def parity_codes(features: int, others: int, *, size: int) -> np.ndarray:
    """Columns of two codes; the last is the parity of the first ones."""
    generator = SharedRandomness(5).stream("parity")
    columns = generator.integers(0, 2, size=(size, features + others))
    return np.column_stack([columns, columns[:, :features].sum(axis=1) % 2])


@pytest.mark.parametrize("features", [2, 3, 4, 5])
def test_the_parity_of_some_columns_is_learnt(features: int) -> None:
    codes = parity_codes(features, 3, size=20_000)
    domain = Domain([Column(str(place), 3) for place in range(codes.shape[1])])
    model = made(domain, codes, epsilon=1)
    law = model.marginal([*range(features), codes.shape[1] - 1])
    odd = sum(law[(*cell, sum(cell) % 2)] for cell in np.ndindex((2,) * features))
    assert odd > 0.9


def test_the_parity_of_numbers_is_learnt_at_coarse_groups() -> None:
    generator = SharedRandomness(6).stream("parity")
    numbers = generator.random((20_000, 4))
    codes = np.column_stack([np.floor(numbers * 64), (numbers[:, :2] > 0.5).sum(axis=1) % 2]).astype(np.int64)
    domain = Domain([*(Column(str(place), 64, kind="number") for place in range(4)), Column("y", 2)])
    model = made(domain, codes, epsilon=1)
    records = model.rounded(20_000, generator)
    assert ((records[:, :2] >= 32).sum(axis=1) % 2 == records[:, 4]).mean() > 0.95


def test_where_nothing_shows_no_table_of_many_columns_is_taken() -> None:
    """A plan with choices at coarse groups alone: a measured pair is measured again."""
    generator = SharedRandomness(7).stream("nothing")
    codes = generator.integers(0, 30, size=(3_000, 4))
    domain = Domain([Column(str(place), 30) for place in range(4)])
    model = made(domain, codes, epsilon=0.5, key="none")
    assert all(len(table) <= 2 for table in model._engine.tables)
    assert model.measured == tuple(dict.fromkeys(model.measured))


# --- a target ---------------------------------------------------------------------------------------------------------


def test_tables_with_the_target_weigh_twice_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[tuple[int, ...], set[int]] = {}
    true = Look.scores

    def watched(self: Any, tables: Any, believed: Any, handicaps: Any, *, weights: Any) -> Any:
        for table, weight in zip(tables, weights, strict=True):
            seen.setdefault(table, set()).add(weight)
        return true(self, tables, believed, handicaps, weights=weights)

    monkeypatch.setattr(Look, "scores", watched)
    codes = SharedRandomness(8).stream("target").integers(0, 12, size=(3_000, 6))
    domain = Domain([Column(name, 12) for name in "abcdef"])
    made(domain, codes, epsilon=20, rounds=6, target="c")
    pairs = {table: weights for table, weights in seen.items() if len(table) == 2}  # the tree weighs all the same
    assert all(weights == {4} for table, weights in pairs.items() if 2 in table)
    assert {2, 4} in [weights for table, weights in pairs.items() if 2 not in table]
    with pytest.raises(InvalidParameter, match="target"):
        MarginalLearner(domain, epsilon=1, delta=DELTA, target="g")
