"""Refiners: what they refuse, how they read units, what they make public, what odd records do."""

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accord.density.refine import RefinedModel, StatisticsRefiner
from accord.distributions import Categorical, Mixture, Normal
from accord.errors import DataError, InvalidParameter, WrongRandomness
from accord.privacy import ApproxDP
from accord.randomness import PrivateRandomness, SharedRandomness
from accord.testing import ReplayRandomness

KEY = SharedRandomness("refine")


def statistics(**changes: Any) -> StatisticsRefiner:
    return StatisticsRefiner(**{"epsilon": 1, "delta": "1e-6", **changes})


KINDS = [statistics(), statistics(rounds=5, angles=2)]


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


def test_guarantees_are_those_asked_for() -> None:
    assert statistics(unit="person").guarantee == ApproxDP(1, "1e-6", unit="person")
    assert sum(statistics(rounds=5).shares) == 1


@pytest.mark.parametrize("refiner", KINDS)
def test_refiners_are_values(refiner: Any) -> None:
    assert pickle.loads(pickle.dumps(refiner)) == refiner  # noqa: S301 - our own
    with pytest.raises(AttributeError):
        setattr(refiner, "epsilon", Fraction(2))  # noqa: B010 - frozen


@pytest.mark.parametrize("refiner", KINDS)
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


@pytest.mark.parametrize("refiner", KINDS)
def test_equal_keys_and_frozen_noise_give_equal_models(refiner: Any) -> None:
    records = KEY.stream("records").standard_normal((3000, 2))
    model = Normal([0.2, -0.2], [[1.5, 0], [0, 1.5]])
    found = [
        refiner.refine(model, records, units=3000, shared=KEY, randomness=ReplayRandomness("noise")) for _ in range(2)
    ]
    assert found[0] == found[1]
    other = refiner.refine(model, records, units=3000, shared=KEY, randomness=ReplayRandomness("other"))
    assert other.model != found[0].model


@pytest.mark.parametrize("refiner", KINDS)
def test_units_by_name_or_by_number_are_the_same_for_one_record_each(refiner: Any) -> None:
    records = KEY.stream("records").standard_normal((2000, 1))
    codes = np.arange(2000)[::-1].copy()
    found = [
        refiner.refine(Normal(0.2, 2), records, units=units, shared=KEY, randomness=ReplayRandomness("noise"))
        for units in (2000, codes)
    ]
    assert found[0].model == found[1].model


@pytest.mark.parametrize("refiner", KINDS)
def test_a_unit_with_many_records_weighs_as_much_as_one(refiner: Any) -> None:
    # One unit has 5,000 records far away; 5,000 have one record each.
    usual = KEY.stream("records").standard_normal((5000, 1))
    records = np.concatenate([usual, np.full((5000, 1), 30.0)])
    codes = np.concatenate([np.arange(5000), np.full(5000, 5000)])
    found = refiner.refine(Normal(0.2, 2), records, units=codes, shared=KEY)
    assert isinstance(found.model, Normal)
    assert abs(found.model.mean[0]) < 0.5
    assert found.public["units"] == 5001


@pytest.mark.parametrize("refiner", KINDS)
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
        found = statistics(components=3).refine(Normal([0, 0], [[1, 0], [0, 1]]), records, units=size, shared=KEY)
        assert found.model.dimension == 2


@pytest.mark.parametrize("refiner", KINDS)
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


@pytest.mark.parametrize("rounds", [2, 5])
def test_columns_that_are_copies_or_constant_give_a_law(rounds: int) -> None:
    column = KEY.stream("records").standard_normal((5000, 1))
    records = np.concatenate([column, 3 * column, np.full_like(column, 7.0)], axis=1)
    opening = Normal([0, 0, 6], np.diag([1.5, 10, 1]))
    found = statistics(rounds=rounds, components=2).refine(opening, records, units=5000, shared=KEY).model
    assert np.isfinite(found.log_density(records)).all()
    assert found.log_density(records).mean() > opening.log_density(records).mean()
