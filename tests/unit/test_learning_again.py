"""What learners may make of released records, columns, models compared by formula, and what fewer records reach."""

import math
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from accord.couplings import HashedLattice, ShiftRounding
from accord.distributions import Atoms, Categorical, Distribution, Measure, Mixture, Normal, PointMass, Uniform
from accord.errors import InvalidParameter
from accord.learners import EmpiricalLearner, GaussianLearner, HistogramLearner
from accord.learning import PrivateLearner, PrivateSampler
from accord.ledger import Ledger
from accord.privacy import NoAnswerType
from accord.randomness import Generator, SharedRandomness
from accord.theory import AgnosticPrivateLearner, MinimumDistanceLearner
from accord.theory.boosted import Nearness, _default_margin, most_neighbours
from accord.theory.parts import not_enough
from accord.theory.planning import Plan, plan

SIZES: dict[str, Any] = {"epsilon": 3, "delta": "1e-3"}


class Unruly:
    """Says True to nothing and leaves when it is looked at."""

    def __getattr__(self, name: str) -> Any:
        raise SystemExit


class Turncoat:
    """Fits blocks as it should, and makes something else of the few records that are released."""

    def __init__(self, made: Any, *, few: int) -> None:
        self.made, self.few = made, few

    def fit(self, records: NDArray[Any], *, seed: int) -> Any:
        if len(records) > self.few:
            return GaussianLearner().fit(records, seed=seed)
        return Unruly() if self.made is Unruly else self.made


@pytest.mark.parametrize("made", [Normal, "law", None, 0, Unruly, lambda: 1])
def test_what_is_no_law_is_never_released(made: Any, tmp_path: Path) -> None:
    data = SharedRandomness(0).stream("data").normal(size=4000)
    alone = PrivateLearner(
        Turncoat(made, few=33), blocks=40, records=33, draws=50, coupling=ShiftRounding(dimension=1, step=5.5), **SIZES
    )
    honest = PrivateLearner(
        GaussianLearner(), blocks=40, records=33, draws=50, coupling=alone.sampler.coupling, **SIZES
    )
    assert isinstance(honest.release(data, shared=SharedRandomness(1)).value, Normal)
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4, delta="1e-2", unit="record")
    released = alone.release(data, shared=SharedRandomness(1), ledger=ledger)
    assert isinstance(released.value, NoAnswerType)
    assert ledger.spent.epsilon == alone.guarantee.epsilon
    many = AgnosticPrivateLearner(
        Turncoat(made, few=4), parts=4, blocks=10, coupling=HashedLattice(dimension=1), **SIZES
    )
    assert isinstance(many.release(data, shared=SharedRandomness(1)).value, NoAnswerType)


@pytest.mark.parametrize("learner", [EmpiricalLearner([0, 1]), GaussianLearner(dimension=1), HistogramLearner([0, 1])])
def test_columns_are_checked_without_a_plan_too(learner: Any, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4, delta="1e-2", unit="record")
    made = PrivateLearner(learner, blocks=40, records=20, coupling=HashedLattice(dimension=1), **SIZES)
    with pytest.raises(InvalidParameter, match="data must have 1 columns"):
        made.release(np.zeros((4000, 2)), ledger=ledger)
    assert [entry.kind for entry in ledger.entries()] == ["create"]


@pytest.mark.parametrize(("learner", "columns"), [(EmpiricalLearner([0, 1]), 2), (GaussianLearner(dimension=2), 1)])
def test_a_sampler_refuses_columns_that_no_block_could_fit(learner: Any, columns: int, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4, delta="1e-2", unit="record")
    with pytest.raises(InvalidParameter, match="data must have"):
        PrivateSampler(learner, blocks=40, records=20, **SIZES).release(np.zeros((4000, columns)), ledger=ledger)
    assert [entry.kind for entry in ledger.entries()] == ["create"]


@final
class Foreign:
    """A normal law that does not say what it is."""

    dimension = 1
    measure = Measure.LEBESGUE

    def __init__(self, mean: float) -> None:
        self._law = Normal(mean, 1)

    def sample(self, size: int, generator: Generator) -> NDArray[Any]:
        return self._law.sample(size, generator)

    def log_density(self, x: ArrayLike) -> NDArray[np.float64]:
        return self._law.log_density(x)


@pytest.mark.parametrize(
    ("candidates", "margin"),
    [
        ([Normal(0, 1), Uniform(0, 1), Mixture([Normal(0, 1), Normal(3, 1)], [1, 2])], 0),
        ([Categorical(["a", "b"], [1, 2]), Categorical(["a", "b"], [2, 1])], 0),
        ([Foreign(0), Foreign(1)], Fraction(1, 10)),
        ([Normal(0, 1), Foreign(1)], Fraction(1, 10)),
        ([PointMass([0.0]), Atoms([1], [0.5], Normal(0, 1))], Fraction(1, 10)),
        ([Normal([0, 0], np.eye(2)), Normal([1, 1], np.eye(2))], Fraction(1, 10)),
    ],
)
def test_L10_models_without_a_formula_get_a_margin(candidates: list[Distribution], margin: Any) -> None:
    """Without it models that have no formula would have no neighbours, and any of them could be chosen."""
    assert _default_margin(MinimumDistanceLearner(candidates, draws=1000)) == margin


def test_L10_foreign_models_on_a_line_are_neighbours_at_the_default_margin() -> None:
    models = [Foreign(3.0), Foreign(0.0), Foreign(0.01)]
    far = Fraction(2, 5)
    shared = SharedRandomness(5)
    with_margin = Nearness(near=far * Fraction(9, 10), far=far, failure=1e-9)
    assert most_neighbours(models, nearness=with_margin, shared=shared) == 1
    assert most_neighbours(models, nearness=Nearness(near=far, far=far, failure=1e-9), shared=shared) == 0


@pytest.mark.parametrize(("power", "present"), [(2, 140), (2, 900), (6, 100)])
def test_one_plan_is_enough_to_name_an_alpha(monkeypatch: pytest.MonkeyPatch, power: int, present: int) -> None:
    """On a slow machine three seconds may be over after the first plan."""
    asked: list[Fraction] = []
    found = plan(EmpiricalLearner(["a", "b"]), alpha="0.1", beta="0.1", epsilon=1, delta="1e-6")

    def plan_at(alpha: Fraction) -> Plan:
        asked.append(alpha)
        return replace(found, records=math.ceil(1000 * (0.1 / alpha) ** power))

    clock = iter([0.0, 0.0, *[9.0] * 99])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    text = str(not_enough(needed=1000, present=present, alpha=Fraction(1, 10), plan_at=plan_at))
    assert len(asked) == 1
    reached = float(text.rsplit("alpha = ", 1)[1].rstrip("."))
    assert 1000 * (0.1 / reached) ** power <= present


def test_a_guess_that_is_too_good_is_doubled() -> None:
    found = plan(EmpiricalLearner(["a", "b"]), alpha="0.1", beta="0.1", epsilon=1, delta="1e-6")
    text = str(
        not_enough(
            needed=1000,
            present=500,
            alpha=Fraction(1, 10),
            plan_at=lambda alpha: replace(found, records=1000 if alpha < Fraction(1, 2) else 400),
        )
    )
    assert 0.5 <= float(text.rsplit("alpha = ", 1)[1].rstrip(".")) < 0.55
