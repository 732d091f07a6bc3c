"""What one unit can change, by enumeration; the budget by a second route; exact tables against all cells."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.accounting import GaussianLoss, gaussian_composition, loss_of
from accord.core import Records
from accord.marginals import Column, Domain, MarginalLearner, NumericBinning
from accord.marginals import looks as _looks
from accord.marginals.coarse import Coarse, cell_of
from accord.marginals.dense import DenseEngine
from accord.marginals.engine import WHOLE, CountingEngine, coded, weights_of
from accord.marginals.fit import STRENGTH, Feature, Noisy, fit
from accord.marginals.planning import HEAVIEST, LARGEST_SCORE, ROOT_2, Noise, total_epsilon
from accord.marginals.tree import TreeEngine, junction_tree
from accord.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential
from accord.privacy import ApproxDP
from accord.randomness import SharedRandomness
from accord.testing import ReplayRandomness

DELTA = Fraction(1, 10**6)
SHAPE = (2, 3, 2)
SCORES = [
    np.array([-LARGEST_SCORE, LARGEST_SCORE]),
    np.array([-LARGEST_SCORE, 3, LARGEST_SCORE]),
    np.array([-2, LARGEST_SCORE]),
]


# --- what one unit can change -----------------------------------------------------------------------------------------


def counted(rows: Any, *, weights: NDArray[np.int64] | None = None) -> CountingEngine:
    codes = np.array(rows, dtype=np.int64)
    return CountingEngine.of(coded(codes, SHAPE, weights=weights), SHAPE, total=len(codes))


def owners_of(units: Any) -> NDArray[np.int64]:
    owners = Records.of(np.zeros(len(units)), units=units).owners
    assert owners is not None
    return owners


def product_of(counting: CountingEngine, left: int, right: int) -> int:
    plan: Any = None
    return _looks.Look(counting, plan, ReplayRandomness("x"))._product(left, right, SCORES)


CELLS = list(product(*map(range, SHAPE)))
TABLES = [table for way in (1, 2, 3) for table in combinations(range(3), way)]


@pytest.mark.parametrize("table", TABLES)
def test_a_replaced_record_moves_two_counts_of_a_table_by_one(table: tuple[int, ...]) -> None:
    rest = [CELLS[3], CELLS[7]]
    for old, new in product(CELLS, CELLS):
        change = counted([old, *rest]).table(table) - counted([new, *rest]).table(table)
        moved = [old[column] for column in table] != [new[column] for column in table]
        assert sorted(change[change != 0].tolist()) == ([-1, 1] if moved else [])


@pytest.mark.parametrize("table", TABLES)
def test_a_replaced_record_moves_the_score_of_a_table_by_at_most_two(table: tuple[int, ...]) -> None:
    beliefs = np.random.default_rng(5).integers(-2, 3, size=(20, math.prod(SHAPE[column] for column in table)))
    largest = 0
    for old, new, belief in product(CELLS, CELLS, beliefs):
        scores = [int(np.abs(counted([row, CELLS[4]]).table(table) - belief).sum()) for row in (old, new)]
        largest = max(largest, abs(scores[0] - scores[1]))
    assert largest == 2


LEVEL = Coarse((np.array([0, 1]), np.array([0, 1, 1]), np.array([0, 0])), 3)


@pytest.mark.parametrize("table", TABLES)
def test_a_replaced_record_moves_a_coarse_table_and_its_weighted_score_no_further(table: tuple[int, ...]) -> None:
    plan: Any = None

    def looking(row: tuple[int, ...]) -> _looks.Look:
        return _looks.Look(counted([row, CELLS[4]]), plan, ReplayRandomness("x")).at(LEVEL)

    beliefs = np.random.default_rng(6).integers(-2, 3, size=(9, math.prod(LEVEL.shape[column] for column in table)))
    for old, new in product(CELLS, CELLS):
        first, second = looking(old), looking(new)
        change = first.counting.table(table) - second.counting.table(table)
        assert sorted(change[change != 0].tolist()) in ([], [-1, 1])
        for belief in beliefs:
            scores = [look.scores([table], [belief], [3], weights=[HEAVIEST])[0] for look in (first, second)]
            assert abs(scores[0] - scores[1]) <= 2 * HEAVIEST


def test_choices_are_charged_for_the_heaviest_weight() -> None:
    for domain in DOMAINS.values():
        plan = MarginalLearner(domain, epsilon=1, delta=DELTA).plan(20_000)
        assert all(step.moved == 2 * HEAVIEST for step in plan.steps if step.noise is Noise.CHOICE)


@pytest.mark.parametrize("table", TABLES)
def test_a_coarse_table_is_a_sum_of_cells_of_the_fine_one(table: tuple[int, ...]) -> None:
    fine = counted(np.random.default_rng(9).integers(0, SHAPE, size=(300, 3)))
    coarse = fine.grouped(LEVEL.maps, LEVEL.shape).table(table)
    cells = cell_of(table, LEVEL.maps, LEVEL.shape)
    one = Noisy(table, coarse.astype(float), np.ones(len(coarse)), cell_of=cells)
    np.testing.assert_array_equal(one.means(fine.table(table).astype(float)), coarse)


def test_a_replaced_record_moves_a_product_by_at_most_what_the_plan_says() -> None:
    plan = MarginalLearner(Domain([Column(name, 40, kind="number") for name in "abcd"]), epsilon=1, delta=DELTA).plan(
        10_000
    )
    moved = {step.what: step.moved for step in plan.steps if step.noise is Noise.NUMBER}
    squares, products = sorted(moved.values())
    for left, right in combinations_with_replacement(range(3), 2):
        changes = [
            product_of(counted([old]), left, right) - product_of(counted([new]), left, right)
            for old, new in product(CELLS, CELLS)
        ]
        assert max(changes) <= (squares if left == right else products)
    assert (squares, products) == (LARGEST_SCORE**2, 2 * LARGEST_SCORE**2)


@pytest.mark.parametrize("sizes", [(1, 4, 7), (3, 1, 1), (2, 11, 5)])
def test_the_records_of_a_unit_weigh_the_same_together_and_a_table_moves_by_twice_that(sizes: tuple[int, ...]) -> None:
    units = np.repeat(np.arange(3), sizes)
    order = np.random.default_rng(1).permutation(len(units))
    weights = weights_of(owners_of(units[order]))
    assert weights is not None
    assert [int(weights[units[order] == unit].sum()) for unit in range(3)] == [WHOLE] * 3
    assert weights.min() >= WHOLE // max(sizes)
    generator = np.random.default_rng(2)
    for table, _ in product(TABLES, range(20)):
        codes = np.stack([generator.integers(0, size, len(units)) for size in SHAPE], axis=1)
        other = codes.copy()
        other[units == 1] = np.stack([generator.integers(0, size, sizes[1]) for size in SHAPE], axis=1)
        weights = weights_of(owners_of(units))
        change = counted(codes, weights=weights).table(table) - counted(other, weights=weights).table(table)
        assert np.abs(change).sum() <= 2 * WHOLE
        assert (change**2).sum() <= 2 * WHOLE**2 <= (ROOT_2 * WHOLE) ** 2


def test_a_unit_with_more_records_than_its_weight_still_weighs_the_same() -> None:
    weights = weights_of(owners_of(["a"] * (WHOLE + 7) + ["b"]))
    assert weights is not None
    assert (int(weights[:-1].sum()), int(weights[-1])) == (WHOLE, WHOLE)


def test_codes_put_together_give_the_same_tables() -> None:
    generator = np.random.default_rng(8)
    codes = np.stack([generator.integers(0, size, 500) for size in SHAPE], axis=1)
    weights = generator.integers(1, 9, 500)
    maps = [np.array([0, 1]), np.array([0, 1, 1]), np.array([1, 0])]
    for given in (None, weights):
        merged = counted(codes, weights=given).grouped(maps, (2, 2, 2))
        renamed = np.stack([one[codes[:, column]] for column, one in enumerate(maps)], axis=1)
        plain = CountingEngine.of(coded(renamed, (2, 2, 2), weights=given), (2, 2, 2), total=500)
        for table in TABLES:
            assert merged.table(table).tolist() == plain.table(table).tolist()


# --- the budget -------------------------------------------------------------------------------------------------------


DOMAINS = {
    "full": Domain([Column("a", 4), Column("b", 3)]),
    "pairs": Domain(
        [Column("a", 6), Column("b", 8, kind="ordered"), Column("c", 14, kind="number"), Column("d", 16, kind="number")]
    ),
    "rounds": Domain([Column(str(c), 10) for c in range(9)]),
}


@pytest.mark.parametrize("mode", DOMAINS)
@pytest.mark.parametrize("several_records", [False, True])
@pytest.mark.parametrize("epsilon", ["0.1", "3"])
def test_a_plan_spends_nearly_all_and_never_more(mode: str, epsilon: str, *, several_records: bool) -> None:
    learner = MarginalLearner(DOMAINS[mode], epsilon=epsilon, delta=DELTA, max_cells=10**6)
    plan = learner.plan(20_000, several_records=several_records)
    assert plan.mode == mode
    assert Fraction("0.99") * learner.epsilon <= plan.spent <= learner.epsilon
    if mode != "full":
        assert total_epsilon(plan.steps, delta=DELTA, one_record=not several_records) == plan.spent


@pytest.mark.parametrize("mode", ["pairs", "rounds"])
def test_the_total_agrees_with_the_closed_form_for_gaussians(mode: str) -> None:
    """Without choices: discrete Gaussian noise on few integers is as good as Gaussian noise of the same deviation."""
    plan = MarginalLearner(DOMAINS[mode], epsilon=1, delta=DELTA, max_cells=10**6).plan(20_000)
    steps = [step for step in plan.steps if step.noise in {Noise.GAUSSIAN, Noise.NUMBER}]
    losses = []
    for step in steps:
        cells = 2 if step.noise is Noise.GAUSSIAN else 1
        losses += [GaussianLoss(sigma=step.number, sensitivity=step.moved)] * (cells * step.times)
    closed = float(gaussian_composition(losses, delta=DELTA).epsilon)
    found = total_epsilon(steps, delta=DELTA, one_record=True)
    assert found is not None
    assert float(found) == pytest.approx(closed, rel=2e-3)


def run_log(monkeypatch: pytest.MonkeyPatch, learner: MarginalLearner, codes: Any, **given: Any) -> Counter[Any]:
    """Every mechanism that a release runs, with its noise and its sensitivity."""
    log: Counter[Any] = Counter()

    def logged(kind: type, method: str, number: str) -> None:
        original = getattr(kind, method)

        def run(self: Any, *arguments: Any, **options: Any) -> Any:
            log[kind.__name__, getattr(self, number), self.sensitivity.bound] += 1
            return original(self, *arguments, **options)

        monkeypatch.setattr(kind, method, run)

    logged(DiscreteGaussian, "release", "sigma")
    logged(DiscreteLaplace, "release", "scale")
    logged(Exponential, "select", "epsilon")
    learner.release(codes, **given)
    return log


@pytest.mark.parametrize("mode", DOMAINS)
@pytest.mark.parametrize("several_records", [False, True])
def test_a_release_runs_the_mechanisms_of_its_plan_and_no_others(
    monkeypatch: pytest.MonkeyPatch, mode: str, *, several_records: bool
) -> None:
    domain = DOMAINS[mode]
    generator = np.random.default_rng(4)
    codes = np.stack([generator.integers(0, size, 4000) for size in domain.shape], axis=1)
    codes[:, 1] = codes[:, 0] % domain.shape[1]
    learner = MarginalLearner(domain, epsilon=2, delta=DELTA, max_cells=10**6, rounds=4 if mode == "rounds" else None)
    units = np.arange(4000) // 2 if several_records else None
    log = run_log(monkeypatch, learner, codes, units=units)
    plan = learner.plan(2000 if several_records else 4000, several_records=several_records)
    planned: Counter[Any] = Counter()
    for step in plan.steps:
        name, sensitivity = {
            Noise.GAUSSIAN: ("DiscreteGaussian", ROOT_2 * step.moved),
            Noise.NUMBER: ("DiscreteGaussian", Fraction(step.moved)),
            Noise.LAPLACE: ("DiscreteLaplace", Fraction(2 * step.moved)),
            Noise.CHOICE: ("Exponential", Fraction(step.moved)),
        }[step.noise]
        planned[name, step.number, sensitivity] += step.times
    assert log == planned


def test_loss_of_the_full_table_is_epsilon() -> None:
    plan = MarginalLearner(DOMAINS["full"], epsilon="0.7", delta=DELTA).plan(100)
    (step,) = plan.steps
    assert loss_of(DiscreteLaplace(sensitivity=2, scale=step.number)).guarantee.epsilon == Fraction("0.7")  # type: ignore[union-attr]


# --- replay on neighbours ---------------------------------------------------------------------------------------------


def test_what_comes_out_depends_on_released_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every mechanism's output frozen, neighbouring tables give the same model, to the bit."""
    domain = DOMAINS["pairs"]
    generator = np.random.default_rng(6)
    codes = np.stack([generator.integers(0, size, 3000) for size in domain.shape], axis=1)
    outputs: list[Any] = []
    replay: list[Any] = []

    def frozen(name: str) -> None:
        original = getattr(_looks.Look, name)

        def run(self: Any, *arguments: Any) -> Any:
            if replay:
                return replay.pop(0)
            outputs.append(original(self, *arguments))
            return outputs[-1]

        monkeypatch.setattr(_looks.Look, name, run)

    for name in ("laplace", "gaussian", "product", "choice"):
        frozen(name)
    learner = MarginalLearner(domain, epsilon=1, delta=DELTA)
    first = learner.release(codes).value
    neighbour = codes.copy()
    neighbour[17] = [-1, 99, 5, 15]
    replay.extend(outputs)
    second = learner.release(neighbour).value
    assert not replay
    for pair in combinations(range(4), 2):
        assert first.marginal(pair).tobytes() == second.marginal(pair).tobytes()  # type: ignore[union-attr]


def test_a_frozen_source_repeats_a_release_and_its_guarantee_is_the_one_asked_for() -> None:
    codes = np.random.default_rng(3).integers(0, 3, size=(500, 2))
    learner = MarginalLearner(DOMAINS["full"], epsilon=1, delta=DELTA)
    first, second = (learner.release(codes, randomness=ReplayRandomness("marginals")) for _ in range(2))
    assert first.value.marginal([0, 1]).tobytes() == second.value.marginal([0, 1]).tobytes()  # type: ignore[union-attr]
    assert first.guarantee == ApproxDP(1, DELTA)


# --- exact tables -----------------------------------------------------------------------------------------------------


MODELS: list[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]] = [
    ((3, 4, 2, 5), ((0,), (0, 1), (1, 3), (2, 3), (0, 3), (0, 1, 3), (1, 2, 3))),
    ((4,), ((0,),)),
    ((3, 4), ((0, 1), (1,))),
    ((2, 3, 4), ((0,), (2,))),
    ((3, 4, 2, 2, 3, 2), ((0, 1), (1, 2), (2, 3), (3, 4), (5,), (1, 5))),
    ((2,) * 7, ((0, 1, 2), (2, 3), (3, 4, 5), (4, 6), (0, 6))),
]


def all_cells(shape: tuple[int, ...], tables: Any, potentials: Any) -> tuple[float, NDArray[np.float64]]:
    logs = np.zeros(shape)
    for table, potential in zip(tables, potentials, strict=True):
        logs += potential.reshape([shape[column] if column in table else 1 for column in range(len(shape))])
    weights = np.exp(logs)
    return math.log(weights.sum()), weights / weights.sum()


def summed(law: NDArray[np.float64], columns: tuple[int, ...]) -> NDArray[np.float64]:
    """One table of a law on all cells, flat."""
    ordered = tuple(sorted(columns))
    table = law.sum(axis=tuple(axis for axis in range(law.ndim) if axis not in columns))
    return np.asarray(table.transpose([ordered.index(column) for column in columns]).ravel())


@pytest.mark.parametrize("kind", [DenseEngine, TreeEngine])
@pytest.mark.parametrize("model", MODELS)
def test_tables_are_sums_over_all_cells(kind: Any, model: Any) -> None:
    shape, tables = model
    generator = np.random.default_rng(7)
    potentials = [generator.normal(0, 2, math.prod(shape[column] for column in table)) for table in tables]
    engine = kind(shape, tables)
    log_total, law = all_cells(shape, tables, potentials)
    found, solved = engine.solve(potentials)
    axes = list(range(len(shape)))
    assert found == pytest.approx(log_total, abs=1e-10)
    for table, one in zip(tables, solved, strict=True):
        np.testing.assert_allclose(one, summed(law, table), atol=1e-13)
    wanted = [one for way in (1, 2, 3) for one in permutations(axes, min(way, len(axes)))]
    for table, one in zip(wanted, engine.several(potentials, wanted), strict=True):
        np.testing.assert_allclose(one, summed(law, table), atol=1e-13)


@pytest.mark.parametrize("shape", [(7,), (1, 3, 1, 4), (3, 4, 2, 5), (6, 20, 5, 3, 2), (2, 3, 17, 5), (2, 300, 3)])
def test_cliques_are_summed_onto_any_of_their_columns(shape: tuple[int, ...]) -> None:
    everything = tuple(range(len(shape)))
    potential = np.random.default_rng(11).normal(size=math.prod(shape))
    law = (np.exp(potential) / np.exp(potential).sum()).reshape(shape)
    tables = [one for way in everything for one in combinations(everything, way + 1)]
    found = TreeEngine(shape, (everything,)).several([potential], tables)
    for table, one in zip(tables, found, strict=True):
        np.testing.assert_allclose(one, law.sum(axis=tuple(c for c in everything if c not in table)).ravel())


def test_cliques_are_used_where_they_hold_far_fewer_cells_than_all() -> None:
    chain = tuple((place, place + 1) for place in range(17))
    assert not TreeEngine((2,) * 18, chain).slower_than_dense
    assert TreeEngine((2,) * 12, chain[:11]).slower_than_dense
    assert TreeEngine((4,) * 9, tuple(combinations(range(9), 2))).slower_than_dense


def test_columns_of_one_code_may_be_more_than_letters() -> None:
    ones = 58
    shape = (2, *[1] * ones, 3, 2)
    left, middle, right = 0, ones + 1, ones + 2
    tables = ((left, *range(1, 1 + ones)), (*range(1, 1 + ones), middle), (middle, right))
    generator = np.random.default_rng(12)
    potentials = [generator.normal(size=math.prod(shape[column] for column in table)) for table in tables]
    engine = TreeEngine(shape, tables)
    wanted = [(left, right), (right, left, middle), (right, *range(1, 1 + ones), left)]
    first, second, third = (np.exp(potential) for potential in potentials)
    law = np.einsum("a,b,bc->abc", first, second, third.reshape(3, 2))
    law /= law.sum()
    found = engine.several(potentials, wanted)
    np.testing.assert_allclose(found[0], law.sum(axis=1).ravel())
    np.testing.assert_allclose(found[1], law.transpose(2, 0, 1).ravel())
    np.testing.assert_allclose(found[2], law.sum(axis=1).T.ravel())


def test_weights_far_apart_do_not_underflow_to_nothing() -> None:
    shape, tables = (3, 4, 5), ((0, 1), (1, 2), (0, 2))
    generator = np.random.default_rng(9)
    potentials = [generator.normal(0, 150, math.prod(shape[column] for column in table)) for table in tables]
    logs = sum(
        potential.reshape([shape[c] if c in table else 1 for c in range(3)])
        for table, potential in zip(tables, potentials, strict=True)
    )
    for engine in (DenseEngine(shape, tables), TreeEngine(shape, tables)):
        found, solved = engine.solve(potentials)
        assert found == pytest.approx(float(np.logaddexp.reduce(np.asarray(logs).ravel())), rel=1e-12)
        assert all(one.sum() == pytest.approx(1) for one in solved)


def test_cliques_that_hold_other_cells_likely_than_their_children_do_not_underflow() -> None:
    """Two children want one code of the middle column each, by more than floats reach; the first clique a third."""
    shape, tables = (2, 3, 2, 2), ((0, 1), (1, 2), (1, 3))
    potentials = [np.zeros((shape[a], shape[b])) for a, b in tables]
    for code, potential in enumerate(potentials):
        potential[(slice(None), code) if code == 0 else code] = 900.0
    found, solved = TreeEngine(shape, tables).solve([one.ravel() for one in potentials])
    logs = potentials[0][:, :, None, None] + potentials[1][None, :, :, None] + potentials[2][None, :, None, :]
    law = np.exp(logs - logs.max())
    assert found == pytest.approx(900 + math.log(law.sum()), rel=1e-12)
    law /= law.sum()
    for table, one in zip(tables, solved, strict=True):
        np.testing.assert_allclose(one, summed(law, table), atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_a_junction_tree_holds_every_table_and_runs_through_its_columns(seed: int) -> None:
    generator = np.random.default_rng(seed)
    shape = tuple(int(size) for size in generator.integers(2, 6, 9))
    tables = [
        tuple(sorted(generator.choice(9, int(generator.integers(1, 4)), replace=False).tolist())) for _ in range(8)
    ]
    tree = junction_tree(shape, tables)
    for table in tables:
        assert any(set(table) <= set(clique) for clique in tree.cliques)
    assert set().union(*map(set, tree.cliques)) == set(range(9))
    for place in range(1, len(tree.cliques)):
        before = set().union(*map(set, tree.cliques[:place]))
        assert tree.parents[place] < place
        # Running intersection: all that a clique shares with those before it, it shares with its parent.
        assert set(tree.cliques[place]) & before == set(tree.separators[place])
        assert set(tree.separators[place]) <= set(tree.cliques[tree.parents[place]])


# --- the fit ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DenseEngine, TreeEngine])
def test_the_fit_solves_its_problem(kind: Any) -> None:
    """Where the dual is least, ``n p = count - strength deviation multiplier`` in every measured cell."""
    shape, total = (3, 4, 2), 10_000
    generator = SharedRandomness(3).stream("fit")
    law = generator.dirichlet(np.ones(24)).reshape(shape)
    noisy = []
    for table in ((0, 1), (1, 2), (2,)):
        truth = total * summed(law, table)
        deviations = np.full(truth.size, 12.0)
        noisy.append(Noisy(table, truth + 12 * generator.standard_normal(truth.size), deviations))
    together = np.array([0, 1, 2, 2, 1, 0])  # cells of (0, 2) that were counted together
    sums = total * np.bincount(together, weights=summed(law, (0, 2))) + np.array([5, -9, 4])
    noisy.append(Noisy((0, 2), sums, np.full(3, 12.0), cell_of=together))
    values = np.outer([-1, 0, 2], [1, -2, 0, 1]).ravel().astype(float)
    feature = Feature((0, 1), values, float(total * values @ summed(law, (0, 1))) + 20, 30.0)
    engine = kind(shape, tuple(one.table for one in noisy))
    fitted = fit(engine, noisy, total=total, features=[feature], iterations=2000)
    tables = engine.solve(fitted.potentials)[1]
    for one, table, multiplier in zip(noisy, tables, fitted.multipliers, strict=True):
        np.testing.assert_allclose(
            total * one.means(table), one.counts - STRENGTH * one.deviations * multiplier, atol=0.05
        )
    # The feature's own multiplier is what the potential of its table has beyond that of the noisy counts.
    weight = (fitted.potentials[0] - fitted.multipliers[0]) @ values / (values @ values)
    assert total * values @ tables[0] == pytest.approx(feature.total - 1e-4 * 30.0**2 * weight, abs=0.1)


# --- binning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [None, 0, 1])
def test_numbers_come_back_into_their_cells(decimals: int | None) -> None:
    binning = NumericBinning([-3.5, -0.5, 0.5, 4.5, 20.5], decimals=decimals, missing=True)
    codes = np.repeat(np.arange(5), 200)
    numbers = binning.decode(codes, SharedRandomness(1).stream("x"), masses=[0.2, 0.3, 0.1, 0.3, 0.1])
    assert binning.encode(numbers).tolist() == codes.tolist()
    if decimals is not None:
        present = numbers[codes < 4]
        assert (np.round(present, decimals) == present).all()
    assert np.isnan(numbers[codes == 4]).all()
