"""Stages of a private density: what odd tables do, what is refused, what is spent, and that blocks stay apart."""

import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from accord.core.budget import Budget
from accord.core.coupling import ABSTAIN
from accord.density.columns import ConstantColumns
from accord.density.family import BlackBox, NormalMixtures, NormalParameters
from accord.density.plan import density_plan
from accord.density.release import release_density
from accord.density.sketch import LineSketch, cell_masses, fit_all, fit_to_points, sketch_points, smoothed
from accord.distributions import Distribution, Mixture, Normal, Piecewise, PointMass, Product, ScipyLaw
from accord.errors import FitFailed, InvalidParameter, NotEnoughRecords, NothingReleased
from accord.learners import GaussianLearner, ScipyLearner
from accord.learning import PrivateDensity
from accord.ledger import Ledger
from accord.location.locate import GROUP, location_plan
from accord.location.rounding import CELL, CONSTANT, UNUSABLE, ColumnLocation, LocationRounding, as_float_table
from accord.privacy import ApproxDP, basic_composition
from accord.randomness import SharedRandomness
from accord.testing import ReplayRandomness

Floats = NDArray[np.float64]
GENERATOR_SEED = 20


def generator(number: int = 0) -> np.random.Generator:
    return np.random.default_rng([GENERATOR_SEED, number])


def normal(model: PrivateDensity) -> Normal:
    assert isinstance(model.model_, Normal)
    return model.model_


def density(estimator: Any = None, **others: Any) -> PrivateDensity:
    chosen = {"epsilon": 4, "delta": "1e-6", **others}
    return PrivateDensity(GaussianMixture(1) if estimator is None else estimator, **chosen)


# --- odd tables -------------------------------------------------------------------------------------------------------


def test_constant_columns_become_atoms() -> None:
    table = generator().normal(3.0, 1.0, size=(6000, 3))
    table[:, 1] = -7.5
    model = density().fit(table)
    assert isinstance(model.model_, ConstantColumns)
    assert (model.sample(20)[:, 1] == -7.5).all()
    assert np.isfinite(model.score(table))
    elsewhere = table[:2].copy()
    elsewhere[1, 1] = -7.0
    assert np.isfinite(model.score_samples(elsewhere)).tolist() == [True, False]
    assert model.estimator_.covariances_.shape == (1, 3, 3)
    assert model.report_["released"][0]["constant"][1] == -7.5


def test_a_table_of_constants_is_one_record() -> None:
    model = density().fit(np.tile([2.0, 0.0], (6000, 1)))
    assert model.model_ == PointMass([2.0, 0.0])
    assert model.estimator_ is None
    assert len(model.report_["released"]) == 1


def test_nearly_constant_columns_are_constant_in_most_blocks() -> None:
    table = generator().normal(size=(6000, 2))
    table[:, 0] = 5.0
    table[17, 0] = 6.0
    assert density().fit(table).report_["released"][0]["constant"][0] == 5.0


def test_collinear_columns_have_a_finite_density() -> None:
    column = generator().normal(size=6000)
    table = np.stack([column, 2 * column + 1], axis=1)
    assert np.isfinite(density().fit(table).score_samples(table)).all()


def test_gaps_and_infinities_are_left_out_where_they_are() -> None:
    table = generator().normal([10.0, -3.0], [2.0, 0.1], size=(12_000, 2))
    holes = table.copy()
    holes[::5, 0] = np.nan
    holes[1::7, 1] = np.inf
    holes[2::7, 1] = -np.inf
    full, rest = normal(density().fit(table)), normal(density().fit(holes))
    assert abs(rest.mean[0] - full.mean[0]) < 0.3
    assert abs(rest.mean[1] - full.mean[1]) < 0.02
    assert abs(np.log(rest.covariance[0][0] / full.covariance[0][0])) < 0.2
    assert np.isfinite(density().fit(holes).sample(100)).all()


def test_a_column_without_numbers_is_named_and_the_budget_is_spent(tmp_path: Path) -> None:
    table = generator().normal(size=(6000, 3))
    table[:, 2] = np.nan
    ledger = Ledger.create(tmp_path / "ledger.db", epsilon=5, delta="1e-5")
    model = density()
    with pytest.raises(NothingReleased, match="'column 2'") as refusal:
        model.fit(table, ledger=ledger)
    assert refusal.value.columns == ("column 2",)
    assert refusal.value.guarantee == ApproxDP(4, "1e-6")
    assert ledger.spent.epsilon == 4
    assert not hasattr(model, "model_")
    assert model.report_["answer"] is False


def test_cells_that_are_no_numbers_count_as_missing_and_never_show() -> None:
    table = generator().normal(size=(6000, 1)).astype(object)
    table[3, 0], table[4, 0], table[5, 0] = {"secret": 1}, "secret", None
    model = density().fit(table)
    assert abs(normal(model).mean[0]) < 0.2
    assert "secret" not in repr(model.report_) + repr(model.curator_report_)


class Hostile:
    """A cell whose every conversion fails."""

    def __float__(self) -> float:
        raise RuntimeError("secret")


def test_cell_by_cell() -> None:
    table = np.empty((6, 1), dtype=object)
    table[:, 0] = [1, True, "3", Hostile(), 2**2000, Fraction(1, 2)]
    assert as_float_table(table).ravel().tolist()[:3] == [1.0, 1.0, 3.0]
    assert np.isnan(as_float_table(table)[3:5]).all()
    assert as_float_table(table)[5, 0] == 0.5
    assert as_float_table(np.array([1, 2], dtype=np.float32)).dtype == np.float64


def test_single_precision_is_as_good_as_double() -> None:
    table = generator().normal(1e4, 0.1, size=(8000, 1))
    model = normal(density().fit(table.astype(np.float32)))
    assert abs(model.mean[0] - 1e4) < 0.01
    assert 0.08**2 < model.covariance[0][0] < 0.12**2


def test_skewed_column_with_many_ties_gives_more_than_one_value(freeze_secrets: Callable[[int], None]) -> None:
    freeze_secrets(1)  # three blocks of five agree, whatever the number of records: no answer has a chance of 5e-6
    values = generator().exponential(size=(9000, 1))
    table = np.where(generator(1).random((9000, 1)) < 0.8, 0.0, values)
    table[0] = 1e12
    drawn = density(GaussianMixture(3)).fit(table).sample(500)
    assert len(np.unique(drawn)) > 100
    assert np.abs(drawn).max() < 1e6


@pytest.mark.parametrize(("low", "high"), [(-100.0, -5.0), (1e-9, 2e-9), (-1e15, 1e15), (1e138, 2e138)])
def test_no_bounds_are_needed_whatever_the_unit(low: float, high: float) -> None:
    table = generator().uniform(low, high, size=(6000, 1))
    law = normal(density().fit(table))
    assert low < law.mean[0] < high


def test_a_column_beyond_the_range_of_variances_is_named() -> None:
    with pytest.raises(NothingReleased, match="'column 1'"):
        density().fit(generator().uniform([1.0, 1e300], [2.0, 2e300], size=(6000, 2)))


def test_many_columns_are_located_in_groups() -> None:
    plan = location_plan(units=200_000, columns=GROUP + 3, budget=Budget("1.2", "5e-7"))
    assert sorted(column for group in plan.groups for column in group) == list(range(GROUP + 3))
    assert len(plan.groups) == 2
    assert 2 * plan.mode.epsilon == plan.budget.epsilon


# --- refused, and spent -----------------------------------------------------------------------------------------------


def test_two_rows_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", epsilon=5, delta="1e-5")
    with pytest.raises(NotEnoughRecords, match="Nothing was spent"):
        density().fit(np.ones((2, 1)), ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_needed_numbers_suffice() -> None:
    for columns in (1, 2, 5, 8, 9, 20):
        with pytest.raises(NotEnoughRecords) as refusal:
            location_plan(units=1, columns=columns, budget=Budget("0.15", "5e-8"))
        needed = refusal.value.needed
        plan = location_plan(units=needed, columns=columns, budget=Budget("0.15", "5e-8"))
        assert plan.blocks <= needed
        with pytest.raises(NotEnoughRecords):
            location_plan(units=needed - 1, columns=columns, budget=Budget("0.15", "5e-8"))


TOO_FEW = {
    *((10**4, columns, epsilon) for columns in (8, 30) for epsilon in ("0.1", "1")),
    (10**4, 1, "0.1"),
}


@pytest.mark.parametrize("columns", [1, 8, 30])
@pytest.mark.parametrize("epsilon", ["0.1", 1, 1000])
@pytest.mark.parametrize("units", [10**4, 10**8])
def test_the_stages_never_cost_more_than_was_asked(columns: int, epsilon: Any, units: int) -> None:
    if (units, columns, str(epsilon)) in TOO_FEW:
        with pytest.raises(NotEnoughRecords):
            density_plan(units=units, columns=columns, budget=Budget(epsilon, "1e-6"))
        return
    plan = density_plan(units=units, columns=columns, budget=Budget(epsilon, "1e-6"))
    parts = [plan.location.mode.guarantee] * len(plan.location.groups)
    located = basic_composition(parts)
    assert (located.epsilon, located.delta) == (plan.location.budget.epsilon, plan.location.budget.delta)
    assert located.epsilon + plan.rest.epsilon <= plan.budget.epsilon == Fraction(str(epsilon))
    assert located.delta + plan.rest.delta <= plan.budget.delta
    assert plan.rest.epsilon >= min(Fraction(20), plan.budget.epsilon * Fraction(7, 10))


def test_what_ran_adds_up_to_what_was_asked() -> None:
    table = generator().normal(size=(6000, 1))
    for family in (NormalMixtures(components=2), BlackBox(learner=ScipyLearner("norm"))):
        plan = density_plan(units=6000, columns=1, budget=Budget(4, "1e-6"))
        found = release_density(table, plan, family, numbers=6000, word="person")
        assert found.guarantee == ApproxDP(4, "1e-6", unit="person")
        assert len(found.guarantees) == len(found.public) == 2


def test_groups_are_units_and_name_the_guarantee(tmp_path: Path) -> None:
    table = generator().normal(size=(12_000, 1))
    people = [f"person {number // 2}" for number in range(12_000)]
    ledger = Ledger.create(tmp_path / "ledger.db", epsilon=5, delta="1e-5", unit="person")
    model = density(unit="person").fit(table, groups=people, ledger=ledger)
    assert model.guarantee_ == ApproxDP(4, "1e-6", unit="person")
    assert model.report_["units"] == 6000
    assert ledger.spent.epsilon == 4
    with pytest.raises(InvalidParameter, match="unit"):
        density(unit="person").fit(table)
    with pytest.raises(ValueError, match="one unit a record"):
        density().fit(table, groups=people[:5])


def test_one_person_with_half_of_the_records_moves_little() -> None:
    ours = generator().normal(size=(8000, 1))
    theirs = generator(1).normal(50.0, 1.0, size=(8000, 1))
    groups = np.concatenate([np.arange(8000), np.full(8000, 8000)])
    law = normal(density().fit(np.concatenate([ours, theirs]), groups=groups))
    assert abs(law.mean[0]) < 0.2
    assert law.covariance[0][0] < 2


def test_reports_are_apart() -> None:
    model = density(random_state=1).fit(generator().normal(size=(6000, 2)))
    assert "agreement" not in repr(model.report_)
    assert "NOT FOR RELEASE" in model.curator_report_["warning"]
    assert model.report_["shared parts seeded"] is True
    agreement: Any
    (agreement,) = model.curator_report_["agreement of blocks, by group of columns"]
    assert 0.3 < agreement <= 1


class Positive:
    """A learner that does not take records below 0."""

    def fit(self, records: Any, *, seed: int) -> Distribution:
        if np.min(records) < 0:
            raise FitFailed("no")
        return GaussianLearner().fit(records, seed=seed)


def test_an_estimator_that_does_not_take_the_sketch_is_no_answer() -> None:
    with pytest.raises(NothingReleased, match="Positive"):
        density(Positive()).fit(generator().normal(size=(6000, 1)))


# --- the same for any number of workers -------------------------------------------------------------------------------


@pytest.mark.nightly
def test_fits_in_other_processes_are_the_same() -> None:
    tables = [generator(number).gamma(2.0, size=(300, 1)) for number in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone, together = (
            fit_all(ScipyLearner("gamma"), tables, shared=SharedRandomness(1), n_jobs=n_jobs) for n_jobs in (None, 2)
        )
    assert alone == together


@pytest.mark.nightly
def test_the_number_of_workers_changes_nothing() -> None:
    table = generator().gamma(2.0, size=(6000, 1))
    plan = density_plan(units=6000, columns=1, budget=Budget(4, "1e-6"))
    family = BlackBox(learner=ScipyLearner("gamma"), restarts=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        laws = [
            release_density(
                table,
                plan,
                family,
                numbers=6000,
                word="record",
                shared=SharedRandomness(1),
                randomness=ReplayRandomness(2),
                n_jobs=n_jobs,
            ).law
            for n_jobs in (None, 2)
        ]
    assert laws[0] == laws[1]


# --- blocks -----------------------------------------------------------------------------------------------------------


def test_a_vote_is_a_function_of_its_own_block() -> None:
    tables = generator().normal(size=(30, 25, 3)) * [1.0, 100.0, 0.01]
    laws: list[Any] = [ColumnLocation().fit(table, seed=0) for table in tables]
    rounding = LocationRounding(columns=3, scale_width=0.8, location_width=0.8)
    shared = SharedRandomness(4)
    before = rounding.couple(laws, records=1, draws=20, shared=shared).keys
    odd: list[Any] = [
        ABSTAIN,
        PointMass([1.0]),
        Normal(0, 1),
        PointMass([CELL, 1e300, -1e300] * 3),
        PointMass([99.0] * 9),
    ]
    for law in odd:
        after = rounding.couple([law, *laws[1:]], records=1, draws=20, shared=shared).keys
        assert (after[:, 1:] == before[:, 1:]).all()
    assert {type(key) for key in before.ravel()} == {bytes}
    alone = rounding.couple([laws[7]], records=1, draws=20, shared=shared).keys
    assert (alone[:, 0] == before[:, 7]).all()


def test_what_is_released_lies_in_the_cell_of_who_voted_for_it() -> None:
    laws = [ColumnLocation().fit(generator(i).normal(50.0, 3.0, size=(40, 1)), seed=0) for i in range(10)]
    rounding = LocationRounding(columns=1, scale_width=0.5, location_width=0.7)
    coupled = rounding.couple(laws, records=1, draws=30, shared=SharedRandomness(9))
    for draw in range(30):
        for law, key in zip(laws, coupled.keys[draw], strict=True):
            assert law.vector is not None
            kind, log_scale, place = coupled.decode(draw, key).ravel()
            assert kind == CELL
            assert abs(log_scale - law.vector[1]) <= 0.25
            assert abs(place - law.vector[2]) <= 0.35 * np.exp(log_scale) * (1 + 1e-12)


def test_constants_and_columns_without_numbers_are_votes_of_their_own() -> None:
    described = ColumnLocation().fit(np.array([[0.1, np.nan], [0.1, np.inf]]), seed=0)
    assert described == PointMass([CONSTANT, 0.0, 0.1, UNUSABLE, 0.0, 0.0])
    rounding = LocationRounding(columns=2, scale_width=1.0, location_width=1.0)
    coupled = rounding.couple([described], records=1, draws=3, shared=SharedRandomness(1))
    assert len(set(coupled.keys[:, 0])) == 1
    assert coupled.decode(2, coupled.keys[2, 0]).ravel().tolist() == [CONSTANT, 0.0, 0.1, UNUSABLE, 0.0, 0.0]


def test_a_negative_zero_is_zero() -> None:
    zero, negative = (ColumnLocation().fit(np.full((3, 1), value), seed=0) for value in (0.0, -0.0))
    rounding = LocationRounding(columns=1, scale_width=1.0, location_width=1.0)
    keys = rounding.couple([zero, negative], records=1, draws=1, shared=SharedRandomness(1)).keys
    assert keys[0, 0] == keys[0, 1]


def test_the_spread_falls_back_on_wider_pairs_of_quantiles() -> None:
    mostly = np.zeros(100)
    mostly[:15] = np.arange(1, 16)
    wide, never = ColumnLocation().fit(mostly[:, None], seed=0), ColumnLocation().fit(mostly[14:, None], seed=0)
    assert wide.vector is not None
    assert never.vector is not None
    assert wide.vector[0] == never.vector[0] == CELL


# --- the sketch -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["record", "person"])
def test_two_neighbours_differ_by_no_more_than_the_sensitivity(unit: str) -> None:
    people = unit == "person"
    sketch = LineSketch(epsilon=1, delta="1e-6")
    draw = generator(3)
    edges = sketch.edges(500)
    for _ in range(60):
        units: Any = draw.integers(0, 500, size=1500) if people else 500
        table = draw.standard_cauchy(size=(1500 if people else 500, 1))
        other = table.copy()
        rows = units == 7 if people else np.arange(500) == 7
        other[rows] = draw.choice([np.nan, np.inf, -1e300, 0.0, 5.0], size=(int(rows.sum()), 1))
        moved = sketch.contributions(table, edges, units=units) - sketch.contributions(other, edges, units=units)
        assert sum(int(step) ** 2 for step in moved) <= sketch.sensitivity**2
    assert sketch.sensitivity < 2**16 * 1.41422


def test_every_finite_record_counts_once_and_others_never() -> None:
    sketch = LineSketch(epsilon=1, delta="1e-6")
    edges = sketch.edges(1000)
    table = np.array([[0.0], [np.nan], [np.inf], [-np.inf], [1e9], [-1e9], [6.0]])
    counts = sketch.contributions(table, edges, units=7)
    assert counts.sum() == 4 * 2**16
    assert (counts[0], counts[-1]) == (2**16, 2**16)
    assert (np.diff(edges) > 0).all()


def test_smoothing_keeps_masses_and_drops_noise() -> None:
    true = np.zeros(512)
    true[200:232] = 500.0
    for number in range(20):
        noisy = true + generator(number).normal(0, 5.0, 512)
        masses = smoothed(noisy, noise=5.0)
        assert (masses >= 0).all()
        assert abs(masses[200:232].sum() / true.sum() - 1) < 0.02
        assert masses[:192].sum() + masses[240:].sum() < 120
    assert np.allclose(smoothed(true, noise=0.0), true, rtol=1e-12)


def test_points_are_quantiles() -> None:
    law = Piecewise([0, 1, 2, 4], [1, 0, 1])
    points = sketch_points(law, size=1000).ravel()
    assert np.allclose(law.cdf(points), (np.arange(1000) + 0.5) / 1000)


def test_masses_of_cells_by_two_routes() -> None:
    edges = np.linspace(-4, 4, 81)

    class Scored:
        dimension = 1
        measure = Normal(0, 1).measure

        def sample(self, size: int, generator: Any) -> Any:
            raise NotImplementedError

        def log_density(self, x: Any) -> Floats:
            return Normal(0.3, 1.1).log_density(x)

    exact = cell_masses(Normal(0.3, 1.1), edges)
    assert np.allclose(cell_masses(Scored(), edges)[1:-1], exact[1:-1], atol=1e-12)
    assert exact.sum() == pytest.approx(1)

    class Broken(Scored):
        def log_density(self, x: Any) -> Floats:
            raise RuntimeError

    assert np.isnan(cell_masses(Broken(), edges)).all()


def test_points_out_of_a_familys_reach_are_left_out() -> None:
    points = np.linspace(-1.0, 3.0, 400)[:, None]
    law = fit_to_points(ScipyLearner("expon"), points, shared=SharedRandomness(1))
    assert isinstance(law, ScipyLaw)
    assert law.loc == 0
    bounded = fit_to_points(ScipyLearner("beta"), points, shared=SharedRandomness(1))
    assert isinstance(bounded, ScipyLaw)
    assert (bounded.loc, bounded.scale) == (0, 1)
    steep = fit_to_points(ScipyLearner("pareto"), points, shared=SharedRandomness(1))
    assert isinstance(steep, ScipyLaw)
    assert 0 < steep.scale < 0.02
    assert fit_to_points(ScipyLearner("expon"), -points - 4, shared=SharedRandomness(1)) is None
    assert fit_all(Positive(), [points, points], shared=SharedRandomness(1)) == [None, None]


def test_a_family_of_scipy_on_its_own_side_of_zero() -> None:
    table = generator().lognormal(3.0, 0.75, size=(8000, 1))
    law = density(st.lognorm).fit(table).model_
    assert isinstance(law, ScipyLaw)
    assert law.loc == 0
    assert abs(law.shapes[0] - 0.75) < 0.05
    assert abs(np.log(law.scale) - 3.0) < 0.05


class LaplaceColumns:
    """Independent Laplace laws."""

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        middle = np.median(records, axis=0)
        spread = np.abs(records - middle).mean(axis=0)
        return Product([ScipyLaw("laplace", loc=a, scale=b) for a, b in zip(middle, spread, strict=True)])


def test_a_black_box_of_several_columns() -> None:
    table = generator().laplace([0.0, 100.0], [1.0, 30.0], size=(12_000, 2))
    law = density(LaplaceColumns()).fit(table).model_
    assert isinstance(law, Product)
    loss = LaplaceColumns().fit(table, seed=0).log_density(table).mean() - law.log_density(table).mean()
    assert 0 <= loss < 0.01


# --- laws -------------------------------------------------------------------------------------------------------------


def test_moving_a_mixture_moves_its_density() -> None:
    law = Mixture([Normal([0, 1], [[1, 0.5], [0.5, 2]]), Normal([3, -1], [[2, -0.3], [-0.3, 0.1]])], [1, 3])
    centre, scale = np.array([100.0, -5.0]), np.array([7.0, 0.01])
    moved = NormalParameters.of(law).moved(centre=centre, scale=scale).law()
    points = generator().normal(size=(50, 2))
    expected = law.log_density(points) - np.log(scale).sum()
    assert np.allclose(moved.log_density(centre + scale * points), expected, rtol=1e-9)


def test_kinds_of_covariances() -> None:
    law = Mixture([Normal([0, 1], [[1, 0.5], [0.5, 2]]), Normal([3, -1], [[2, -0.3], [-0.3, 0.1]])], [1, 3])
    found = NormalParameters.of(law)
    assert found.of_kind("full") is found
    assert found.of_kind("diag").covariances.tolist() == [[[1, 0], [0, 2]], [[2, 0], [0, 0.1]]]
    assert np.allclose(found.of_kind("spherical").covariances[0], 1.5 * np.eye(2))
    assert np.allclose(found.of_kind("tied").covariances, [[[1.75, -0.1], [-0.1, 0.575]]] * 2)
    with pytest.raises(InvalidParameter, match="Normal"):
        NormalParameters.of(PointMass(1.0))


def test_constant_columns_refuse_what_does_not_fit() -> None:
    for columns, constants in (([0, 1], [1.0, 2.0]), ([5], [1.0]), ([0], [1.0, np.nan])):
        with pytest.raises(InvalidParameter):
            ConstantColumns(Normal(0, 1), columns=columns, constants=constants)
    with pytest.raises(InvalidParameter, match="shape"):
        ConstantColumns(Normal(0, 1), columns=[0], constants=[0.0, 1.0]).log_density([0.0])


def test_one_normal_law_and_the_learner_of_it_are_the_same_family() -> None:
    table = generator().normal(5.0, 2.0, size=(6000, 1))
    law = density(GaussianLearner()).fit(table).model_
    assert isinstance(law, Normal)
    assert abs(law.mean[0] - 5.0) < 0.2
