"""Refiners: what they refuse, how they read units, what they make public, what odd records do."""

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accord.density.refine import CandidateRefiner, RefinedModel, Refiner, StatisticsRefiner
from accord.density.refine.candidates import STEPS, clip_shifts
from accord.density.refine.projections import UnitRecords
from accord.distributions import Categorical, Mixture, Normal
from accord.errors import DataError, InvalidParameter, WrongRandomness
from accord.learners import GaussianLearner
from accord.privacy import ApproxDP, PureDP
from accord.randomness import PrivateRandomness, SharedRandomness
from accord.testing import ReplayRandomness

KEY = SharedRandomness("refine")


def statistics(**changes: Any) -> StatisticsRefiner:
    return StatisticsRefiner(**{"epsilon": 1, "delta": "1e-6", **changes})


def candidates(**changes: Any) -> CandidateRefiner:
    settings = {"epsilon": 1, "delta": "1e-6", "candidates": 20, "rounds": 3, **changes}
    return CandidateRefiner(GaussianLearner(), **settings)


BOTH = [statistics(), candidates()]


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0},
        {"epsilon": "1e-8"},
        {"epsilon": float("nan")},
        {"delta": 0},
        {"delta": 1},
        {"components": 0},
        {"components": 201},
        {"covariance": "tied"},
        {"rounds": 0},
        {"rounds": 17},
        {"angles": -1},
        {"starts": 0},
        {"unit": ""},
    ],
)
def test_statistics_refuses(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        statistics(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": -1},
        {"epsilon": "1e-12", "rounds": 30},
        {"delta": -1},
        {"delta": 1},
        {"candidates": 0},
        {"rounds": 31},
        {"parameters": 0},
        {"unit": 3},
    ],
)
def test_candidates_refuses(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        candidates(**changes)


def test_candidates_refuses_what_is_no_learner() -> None:
    with pytest.raises(InvalidParameter):
        CandidateRefiner(Normal(0, 1), epsilon=1, delta="1e-6")  # type: ignore[arg-type]


def test_guarantees_are_those_asked_for() -> None:
    assert statistics(unit="person").guarantee == ApproxDP(1, "1e-6", unit="person")
    assert candidates(unit="person").guarantee == ApproxDP(1, "1e-6", unit="person")
    assert candidates(delta=0).guarantee == PureDP(1)
    assert sum(statistics(rounds=5).shares) == 1
    assert sum(candidates(delta=0).epsilons) == 1


@pytest.mark.parametrize("refiner", BOTH)
def test_refiners_are_values(refiner: Any) -> None:
    assert isinstance(refiner, Refiner)
    assert pickle.loads(pickle.dumps(refiner)) == refiner  # noqa: S301 - our own
    with pytest.raises(AttributeError):
        setattr(refiner, "epsilon", Fraction(2))  # noqa: B010 - frozen


@pytest.mark.parametrize("refiner", BOTH)
def test_refine_refuses_before_anything_is_released(refiner: Any) -> None:
    records = np.zeros((10, 1))
    for bad, units in (
        (records[:, 0], 10),
        (np.zeros((10, 2)), 10),
        (records, 9),
        (records, np.zeros(9, dtype=np.int64)),
        (records, np.zeros(10)),
        (records.astype(object), 10),
    ):
        with pytest.raises(InvalidParameter):
            refiner.refine(Normal(0, 1), bad, units=units)
    with pytest.raises(DataError):
        refiner.refine(Normal(0, 1), np.zeros((0, 1)), units=1)
    with pytest.raises(WrongRandomness):
        refiner.refine(Normal(0, 1), records, units=10, randomness=KEY)
    with pytest.raises(WrongRandomness):
        refiner.refine(Normal(0, 1), records, units=10, shared=PrivateRandomness())


def test_models_of_another_kind_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        statistics().refine(Categorical([1.0], [1]), np.zeros((5, 1)), units=5)
    with pytest.raises(InvalidParameter):
        candidates().refine("normal", np.zeros((5, 1)), units=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("refiner", BOTH)
def test_equal_keys_and_frozen_noise_give_equal_models(refiner: Any) -> None:
    records = KEY.stream("records").standard_normal((3000, 2))
    model = Normal([0.2, -0.2], [[1.5, 0], [0, 1.5]])
    found = [
        refiner.refine(model, records, units=3000, shared=KEY, randomness=ReplayRandomness("noise")) for _ in range(2)
    ]
    assert found[0] == found[1]
    other = refiner.refine(model, records, units=3000, shared=KEY, randomness=ReplayRandomness("other"))
    assert other.model != found[0].model


@pytest.mark.parametrize("refiner", BOTH)
def test_units_by_name_or_by_number_are_the_same_for_one_record_each(refiner: Any) -> None:
    records = KEY.stream("records").standard_normal((2000, 1))
    codes = np.arange(2000)[::-1].copy()
    found = [
        refiner.refine(Normal(0.2, 2), records, units=units, shared=KEY, randomness=ReplayRandomness("noise"))
        for units in (2000, codes)
    ]
    assert found[0].model == found[1].model


@pytest.mark.parametrize("refiner", BOTH)
def test_a_unit_with_many_records_weighs_as_much_as_one(refiner: Any) -> None:
    # One unit has 5,000 records far away; 5,000 have one record each.
    usual = KEY.stream("records").standard_normal((5000, 1))
    records = np.concatenate([usual, np.full((5000, 1), 30.0)])
    codes = np.concatenate([np.arange(5000), np.full(5000, 5000)])
    found = refiner.refine(Normal(0.2, 2), records, units=codes, shared=KEY)
    assert isinstance(found.model, Normal)
    assert abs(found.model.mean[0]) < 0.5
    assert found.public["units"] == 5001


@pytest.mark.parametrize("refiner", BOTH)
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308, 0.0])
def test_records_that_are_all_odd_give_some_law(refiner: Any, value: float) -> None:
    found = refiner.refine(Normal(0, 1), np.full((300, 1), value), units=300, shared=KEY)
    assert isinstance(found, RefinedModel)
    assert np.isfinite(found.model.log_density([[0.0]])).all()


def test_missing_records_do_not_pull_the_fit() -> None:
    records = 5 + KEY.stream("records").standard_normal((20_000, 1))
    records[::4] = np.nan
    found = statistics().refine(Normal(4.5, 2), records, units=20_000, shared=KEY)
    assert isinstance(found.model, Normal)
    assert abs(found.model.mean[0] - 5) < 0.1
    assert abs(found.model.covariance[0][0] - 1) < 0.15


def test_few_units_give_some_law_too() -> None:
    for size in (1, 2, 20):
        records = KEY.stream("few").standard_normal((size, 2))
        for refiner in (statistics(components=3), candidates()):
            found = refiner.refine(Normal([0, 0], [[1, 0], [0, 1]]), records, units=size, shared=KEY)
            assert found.model.dimension == 2


@pytest.mark.parametrize("refiner", BOTH)
def test_progress_and_public_facts(refiner: Any) -> None:
    seen: list[tuple[int, int, str]] = []
    records = KEY.stream("records").standard_normal((1000, 1))
    found = refiner.refine(Normal(0, 2), records, units=1000, progress=lambda *step: seen.append(step))
    assert seen == [(number + 1, refiner.rounds, "refining") for number in range(refiner.rounds)]
    assert len(found.public["rounds"]) == refiner.rounds


def test_the_kind_of_covariance_and_the_number_of_components_are_kept() -> None:
    records = KEY.stream("records").standard_normal((5000, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    opening = Normal([0, 0], [[2, 0.5], [0.5, 2]])
    found = statistics(components=3, covariance="diag").refine(opening, records, units=5000, shared=KEY).model
    assert isinstance(found, Mixture)
    assert len(found.components) == 3
    for part in found.components:
        assert isinstance(part, Normal)
        assert part.covariance[0][1] == 0
    single = statistics(covariance="diag").refine(opening, records, units=5000, shared=KEY).model
    assert isinstance(single, Normal)
    assert single.covariance[0][1] == 0


def test_an_opening_with_more_components_than_asked_for_is_reduced() -> None:
    records = KEY.stream("records").standard_normal((5000, 1))
    opening = Mixture([Normal(-1, 1), Normal(1, 1), Normal(0, 3)], [1, 1, 1])
    found = statistics().refine(opening, records, units=5000, shared=KEY).model
    assert isinstance(found, Normal)
    assert abs(found.mean[0]) < 0.2


def test_a_learner_that_always_fails_leaves_the_model_as_it_is() -> None:
    class Failing:
        def fit(self, records: Any, *, seed: int) -> Normal:
            raise RuntimeError

    refiner = CandidateRefiner(Failing(), epsilon=1, delta="1e-6", candidates=5, rounds=2)
    found = refiner.refine(Normal(0, 1), np.zeros((50, 1)), units=50)
    assert found.model == Normal(0, 1)


@pytest.mark.parametrize("rounds", [2, 5])
def test_columns_that_are_copies_or_constant_give_a_law(rounds: int) -> None:
    column = KEY.stream("records").standard_normal((5000, 1))
    records = np.concatenate([column, 3 * column, np.full_like(column, 7.0)], axis=1)
    opening = Normal([0, 0, 6], np.diag([1.5, 10, 1]))
    found = statistics(rounds=rounds, components=2).refine(opening, records, units=5000, shared=KEY).model
    assert np.isfinite(found.log_density(records)).all()
    assert found.log_density(records).mean() > opening.log_density(records).mean()


def test_what_a_clip_takes_is_put_back() -> None:
    current, clip, units = Normal(0, 1), 0.3, 100_000
    near = [Normal(0, 0.85), Normal(0.05, 1.1)]
    shifts = clip_shifts(current, near, clip=clip, units=units, generator=KEY.stream("clip"))
    records = current.sample(units, KEY.stream("records"))
    data = UnitRecords(records, units=units, dimension=1)
    clipped = candidates()._scores(current, near, data, clip=clip)[1:]
    whole = [float((law.log_density(records) - current.log_density(records)).sum()) for law in near]
    before = clipped / STEPS * clip - whole
    after = (clipped + np.array(shifts)) / STEPS * clip - whole
    assert np.abs(before).max() > 20
    assert (np.abs(after) < 0.4 * np.abs(before)).all()
    assert clip_shifts(current, [], clip=clip, units=units, generator=KEY.stream("clip")) == []
