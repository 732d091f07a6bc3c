"""Broken variants of the learner from marginals, each caught by a check that the true one passes."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from accord.accounting import DiscreteGaussianLoss, DiscreteLaplaceLoss, ExponentialLoss, PrivacyAccountant, of_stages
from accord.marginals import Column, Domain, MarginalLearner, MarginalModel
from accord.marginals import learner as marginals_learner
from accord.marginals import looks as _looks
from accord.marginals import planning as _budget
from accord.marginals import run as _run
from accord.marginals.engine import CountingEngine, coded
from accord.marginals.errors import grouped
from accord.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential
from accord.testing import ReplayRandomness

DELTA = Fraction(1, 10**6)
FULL = Domain([Column("a", 4), Column("b", 3)])
PAIRS = Domain(
    [Column("a", 6), Column("b", 8, kind="ordered"), Column("c", 14, kind="number"), Column("d", 16, kind="number")]
)
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def no_totals_of_other_variants() -> Iterator[None]:
    of_stages.composed_epsilon.cache_clear()
    yield
    of_stages.composed_epsilon.cache_clear()


def codes_for(domain: Domain) -> Any:
    generator = np.random.default_rng(11)
    return np.stack([generator.integers(0, size, 60_000) for size in domain.shape], axis=1)


# --- the budget: what was run, added up by what one record can do to it -----------------------------------------------


def spent(patch: Patch, domain: Domain) -> float:
    """Epsilon of all mechanisms that a release runs, by the changes one record makes and not by what they claim."""
    log: Counter[Any] = Counter()

    def logged(kind: Any, method: str, number: str) -> None:
        original = getattr(kind, method)

        def run(self: Any, value: Any, **options: Any) -> Any:
            log[kind, getattr(self, number), self.sensitivity.bound, np.ndim(value)] += 1
            return original(self, value, **options)

        patch.setattr(kind, method, run)

    logged(DiscreteGaussian, "release", "sigma")
    logged(DiscreteLaplace, "release", "scale")
    logged(Exponential, "select", "epsilon")
    MarginalLearner(domain, epsilon=1, delta=DELTA).release(codes_for(domain), randomness=ReplayRandomness("mutants"))
    accountant = PrivacyAccountant()
    for (kind, number, sensitivity, axes), times in log.items():
        if kind is DiscreteLaplace:
            accountant.charge(DiscreteLaplaceLoss(2 / number, 2), times=times)
        elif kind is Exponential:
            accountant.charge(ExponentialLoss(number * 2 * _budget.HEAVIEST / sensitivity), times=times)
        elif axes:
            accountant.charge(DiscreteGaussianLoss(sigma=number), times=2 * times)
        else:
            accountant.charge(DiscreteGaussianLoss(sigma=number, shift=int(sensitivity)), times=times)
    return float(getattr(accountant.total(delta=DELTA), "epsilon", math.inf))


@pytest.mark.parametrize("domain", [FULL, PAIRS], ids=["full", "pairs"])
def test_the_true_learner_keeps_its_budget(monkeypatch: Patch, domain: Domain) -> None:
    assert 0.99 < spent(monkeypatch, domain) <= 1


def halved_noise(patch: Patch) -> None:
    """The plan is made for the true noise, and half of it is drawn."""
    gaussian = _looks.Look.gaussian

    def half(self: Any, step: Any, table: Any) -> Any:
        return gaussian(self, _budget.Step(step.what, step.noise, step.times, step.number / 2, step.moved), table)

    patch.setattr(_looks.Look, "gaussian", half)


def pairs_twice(patch: Patch) -> None:
    gaussian = _looks.Look.gaussian

    def twice(self: Any, step: Any, table: Any) -> Any:
        return (gaussian(self, step, table) + gaussian(self, step, table)) / 2

    patch.setattr(_looks.Look, "gaussian", twice)


def uncounted_choices(patch: Patch) -> None:
    """A plan that leaves the choices out of the total."""
    true = _budget.Step.losses

    def free(self: Any, *, exact: bool) -> Any:
        return [] if self.noise is _budget.Noise.CHOICE else true(self, exact=exact)

    patch.setattr(_budget.Step, "losses", free)


def one_cell_a_table(patch: Patch) -> None:
    """As if a replaced record moved one count by 1: that is adding or removing one."""
    true = _budget.Step.losses

    def single(self: Any, *, exact: bool) -> Any:
        return [(loss, max(1, times // 2)) for loss, times in true(self, exact=exact)]

    patch.setattr(_budget.Step, "losses", single)


@pytest.mark.parametrize("mutant", [halved_noise, pairs_twice, uncounted_choices, one_cell_a_table])
def test_a_mutant_goes_over_its_budget(monkeypatch: Patch, mutant: Callable[[Patch], None]) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match="spend more than is promised"):
        spent(monkeypatch, PAIRS)
    monkeypatch.setattr(marginals_learner, "settled", lambda *_, **__: ())
    assert spent(monkeypatch, PAIRS) > 1.001


def test_laplace_noise_for_adding_or_removing_is_caught(monkeypatch: Patch) -> None:
    laplace = _looks.Look.laplace

    def half(self: Any, step: Any, table: Any) -> Any:
        return laplace(self, _budget.Step(step.what, step.noise, step.times, step.number / 2, step.moved), table)

    monkeypatch.setattr(_looks.Look, "laplace", half)
    with pytest.raises(AssertionError, match="spend more than is promised"):
        spent(monkeypatch, FULL)
    monkeypatch.setattr(marginals_learner, "settled", lambda *_, **__: ())
    assert spent(monkeypatch, FULL) > 1.9


# --- choices: the exact law of what is chosen, on neighbours ----------------------------------------------------------


SHAPE = (2, 2)
CELLS = list(product(range(2), range(2)))
TABLES = ((0,), (1,), (0, 1))
BELIEFS = [np.array([3, 0]), np.array([0, 3]), np.array([0, 3, 0, 0])]


def worst_ratio(patch: Patch, *, epsilon: Fraction, charged: int = _budget.HEAVIEST) -> float:
    """The largest privacy loss of `Look.choice` over all neighbouring tables of three records."""
    plan: Any = None
    laws: dict[Any, dict[int, Fraction]] = {}
    step = _budget.Step("choice", _budget.Noise.CHOICE, 1, epsilon, 2 * charged)
    current: list[Any] = []

    def select(self: Exponential, scores: Any, **_: Any) -> Any:
        laws[current[0]] = self.law(scores)
        return type("Chosen", (), {"value": 0})()

    patch.setattr(Exponential, "select", select)
    for first, second in product(CELLS, CELLS):
        rows = (first, second, CELLS[0])
        current[:] = [rows]
        look = _looks.Look(CountingEngine.of(coded(np.array(rows), SHAPE), SHAPE, total=3), plan, ReplayRandomness("x"))
        look.choice(step, look.scores(TABLES, BELIEFS, [0, 1, 2], weights=[_budget.HEAVIEST] * 3))
    worst = 0.0
    for one, other in product(laws, laws):
        if sum(left != right for left, right in zip(one, other, strict=True)) == 1:
            worst = max(worst, *(math.log(laws[one][place] / laws[other][place]) for place in laws[one]))
    return worst


def test_the_true_choice_loses_at_most_epsilon(monkeypatch: Patch) -> None:
    assert 0.3 < worst_ratio(monkeypatch, epsilon=Fraction(1)) <= 1


def test_a_score_that_moves_twice_as_far_is_caught(monkeypatch: Patch) -> None:
    count = CountingEngine.count
    monkeypatch.setattr(CountingEngine, "count", lambda self, tables: [4 * one for one in count(self, tables)])
    assert worst_ratio(monkeypatch, epsilon=Fraction(1)) > 1


def test_weights_that_are_not_charged_are_caught(monkeypatch: Patch) -> None:
    assert worst_ratio(monkeypatch, epsilon=Fraction(1), charged=1) > 1


# --- replay: nothing but released numbers decides ---------------------------------------------------------------------


def same_on_neighbours(patch: Patch) -> bool:
    """Whether neighbours give the same model when every mechanism's output is frozen."""
    outputs: list[Any] = []
    replay: list[Any] = []

    def frozen(name: str) -> None:
        original = getattr(_looks.Look, name)

        def run(self: Any, *arguments: Any) -> Any:
            if replay:
                return replay.pop(0)
            outputs.append(original(self, *arguments))
            return outputs[-1]

        patch.setattr(_looks.Look, name, run)

    for name in ("laplace", "gaussian", "product", "choice"):
        frozen(name)
    codes = codes_for(PAIRS)
    learner = MarginalLearner(PAIRS, epsilon=1, delta=DELTA)
    models = [learner.release(codes).value]
    codes[17] = [0, 0, 13, 0]
    replay.extend(outputs)
    models.append(learner.release(codes).value)
    found = []
    for model in models:
        assert isinstance(model, MarginalModel)
        found.append(model.marginal([0, 2]).tobytes())
    return found[0] == found[1]


def test_the_true_learner_is_the_same_on_neighbours(monkeypatch: Patch) -> None:
    assert same_on_neighbours(monkeypatch)


def test_a_count_that_goes_round_the_noise_is_caught(monkeypatch: Patch) -> None:
    take = _run.Run._take

    def leaky(self: Any, look: Any, step: Any, table: Any, level: Any = None) -> None:
        take(self, look, step, table, level)
        true = look.counting.table(table)
        last = self._noisy[-1]
        counts = last.counts + 1e-3 * (true - last.counts)  # "a touch of smoothing"
        self._noisy[-1] = replace(last, counts=counts)

    monkeypatch.setattr(_run.Run, "_take", leaky)
    assert not same_on_neighbours(monkeypatch)


def test_groups_found_in_the_records_are_caught(monkeypatch: Patch) -> None:
    ones = _run.Run._ones
    present: list[Any] = []

    def watched(self: Any, look: Any) -> Any:
        present[:] = [look.counting.table((column,)) for column in range(4)]
        return ones(self, look)

    def peeking(column: Any, counts: Any, **given: Any) -> Any:
        true = present.pop(0)
        return grouped(column, counts + 1e-6 * true, **given)

    monkeypatch.setattr(_run.Run, "_ones", watched)
    monkeypatch.setattr(_run, "grouped", peeking)
    assert not same_on_neighbours(monkeypatch)
