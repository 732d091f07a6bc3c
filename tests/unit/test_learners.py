import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accord.distributions import Categorical, Normal
from accord.errors import FitFailed, InvalidParameter
from accord.learners import EmpiricalLearner, GaussianLearner, Learner


def fit(records: Any) -> Normal:
    return GaussianLearner().fit(records, seed=0)


# --- GaussianLearner --------------------------------------------------------------------------------------------------


def test_gaussian_agrees_with_numpy() -> None:
    x = np.random.default_rng(1).normal(size=(50, 3)) @ np.array([[1, 2, 0], [0, 1, 1], [0, 0, 3.0]])
    law = fit(x)
    np.testing.assert_allclose(law.mean, x.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(law.covariance, np.cov(x.T), rtol=1e-13)
    assert isinstance(GaussianLearner(), Learner)
    assert GaussianLearner() == GaussianLearner()


def test_gaussian_does_not_read_the_seed_or_change_the_records() -> None:
    x = np.random.default_rng(1).normal(size=(20, 2))
    before = x.copy()
    assert GaussianLearner().fit(x, seed=1) == GaussianLearner().fit(x, seed=2)
    np.testing.assert_array_equal(x, before)


def test_gaussian_leaves_out_rows_that_are_not_finite() -> None:
    x = np.random.default_rng(1).normal(size=(20, 2))
    bad = np.array([[np.nan, 1.0], [np.inf, 2.0], [0.0, -np.inf], [np.nan, np.nan]])
    assert fit(np.vstack((bad, x))) == fit(x)
    assert fit(np.array([1.0, 2.0, None, 3.0], dtype=object)) == fit([1, 2, 3])


def test_gaussian_takes_a_vector_for_one_column() -> None:
    assert fit(np.array([1, 2, 3])) == fit(np.array([[1.0], [2.0], [3.0]])) == Normal(2, 1)
    assert fit(np.array([True, False])) == Normal(0.5, 0.5)


def test_gaussian_mean_1e6_spread_1e_3() -> None:
    z = np.random.default_rng(2).normal(size=1000)
    x = 1e6 + 1e-3 * z
    z = (x - 1e6) / 1e-3  # exact: what the floats really hold
    law = fit(x)
    assert law.mean[0] - 1e6 == pytest.approx(1e-3 * z.mean(), abs=2e-10)
    assert law.covariance[0][0] == pytest.approx(1e-6 * z.var(ddof=1), rel=1e-9)


def test_gaussian_widens_single_precision_before_it_fits() -> None:  # E54
    x = (1e4 + np.random.default_rng(3).normal(size=(5000, 2)) * 0.1).astype(np.float32)
    assert fit(x) == fit(x.astype(np.float64))
    np.testing.assert_allclose(np.diag(fit(x).covariance), 0.01, rtol=0.2)


@pytest.mark.parametrize("unit", [1e150, 1e-150, 1e-140, 2.0**500])
def test_gaussian_takes_extreme_units_that_a_variance_can_hold(unit: float) -> None:
    z = np.random.default_rng(4).normal(size=(30, 2))
    law = fit(z * unit)
    np.testing.assert_allclose(np.array(law.covariance) / unit / unit, np.cov(z.T), rtol=1e-12)


def test_gaussian_takes_columns_of_very_different_units() -> None:
    z = np.random.default_rng(4).normal(size=(30, 3))
    units = np.array([1e-100, 1.0, 1e100])
    law = fit(z * units)
    np.testing.assert_allclose(np.array(law.covariance) / units / units[:, None], np.cov(z.T), rtol=1e-12)


@pytest.mark.parametrize("unit", [1e200, 1e-200, 1e307, 1e-310])
def test_gaussian_fails_cleanly_where_a_variance_is_out_of_range(unit: float) -> None:
    with pytest.raises(FitFailed, match="range"):
        fit(np.random.default_rng(4).uniform(-1, 1, size=(30, 2)) * unit)


BASE = np.random.default_rng(7).normal(size=(40, 3))


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (np.zeros((0, 2)), "fewer"),
        (np.zeros((5, 0)), "fewer"),
        ([], "fewer"),
        ([1.0], "fewer"),
        (BASE[:3], "fewer"),
        (np.full((9, 1), np.nan), "fewer"),
        (np.where(np.arange(40)[:, None] < 37, np.inf, BASE), "fewer"),
        (np.full(9, 0.1), "constant"),
        ([0.0, -0.0, 0.0], "constant"),
        (np.column_stack((BASE, np.full(40, 1e300))), "constant"),
        (np.column_stack((BASE, BASE[:, 0])), "collinear"),
        (np.column_stack((BASE, BASE @ [1.0, -2.0, 0.3])), "collinear"),
        (np.column_stack((BASE, 1e9 * BASE[:, 1])), "collinear"),
        (np.column_stack((BASE[:, 0], BASE[:, 0] * (1 + 1e-15))), "collinear"),
        (1.0, "table"),
        (np.zeros((2, 2, 2)), "table"),
        (np.array(["secret", "1"]), "numbers"),
        (np.array([1.0, "secret"], dtype=object), "numbers"),
        (np.array([1j, 2.0]), "numbers"),
        (np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"), "numbers"),
        (np.array([10**400, 1], dtype=object), "numbers"),
        ([[1.0], [1.0, 2.0]], "numbers"),
    ],
)
def test_gaussian_fails_without_a_word_of_data(records: Any, reason: str) -> None:
    with pytest.raises(FitFailed, match=reason) as caught:
        fit(records)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert "secret" not in str(caught.value)
    assert not any(character.isdigit() for character in str(caught.value).replace("columns + 1", ""))


def test_gaussian_keeps_nearly_collinear_columns_that_floats_can_tell_apart() -> None:
    rest = np.random.default_rng(8).normal(size=40)
    law = fit(np.column_stack((BASE[:, 0], BASE[:, 0] + 1e-5 * rest)))
    conditional = np.linalg.det(np.array(law.covariance)) / law.covariance[0][0]
    assert conditional == pytest.approx(1e-10, rel=0.9)


def test_gaussian_fails_where_the_law_itself_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Normal:
        raise InvalidParameter("covariance 0.123 must be positive definite")

    monkeypatch.setattr("accord.learners.gaussian.Normal", refuse)
    with pytest.raises(FitFailed, match="singular") as caught:
        fit(BASE)
    assert caught.value.__context__ is None


def test_d_plus_1_rows_are_enough() -> None:
    assert fit(BASE[:4]).dimension == 3


# --- EmpiricalLearner -------------------------------------------------------------------------------------------------


def test_S6_a_quarter_is_added_to_each_count() -> None:
    learner = EmpiricalLearner(["a", "b", "c"])
    law = learner.fit(np.array(["a", "b", "a"], dtype=object), seed=0)
    assert law == Categorical(["a", "b", "c"], [2.25, 1.25, 0.25])
    assert law.probabilities[0] == pytest.approx(2.25 / 3.75)
    assert isinstance(learner, Learner)


def test_empirical_leaves_out_what_is_not_listed() -> None:
    learner = EmpiricalLearner(["a", "b"])
    odd = np.empty((8, 1), dtype=object)
    odd[:, 0] = ["a", "b", None, float("nan"), "z", 1, [], "b"]
    assert learner.fit(odd, seed=0) == learner.fit(np.array(["a", "b", "b"]), seed=1)


def test_empirical_tells_booleans_from_numbers() -> None:
    records = np.array([True, 1, 1, 0], dtype=object)
    assert EmpiricalLearner([0, 1]).fit(records, seed=0) == Categorical([0, 1], [1.25, 2.25])
    assert EmpiricalLearner([False, True]).fit(records, seed=0) == Categorical([False, True], [0.25, 1.25])
    assert EmpiricalLearner([0, 1]).fit(np.array([1.0, np.nan]), seed=0) == Categorical([0, 1], [0.25, 1.25])


@pytest.mark.parametrize(
    "records",
    [
        np.array([]),
        np.array([None, "secret"], dtype=object),
        np.zeros((3, 2)),
        np.zeros((3, 0)),
        np.array(3),
        [["a"]] * 0,
    ],
)
def test_empirical_fails_without_a_word_of_data(records: Any) -> None:
    with pytest.raises(FitFailed) as caught:
        EmpiricalLearner(["a", "b"]).fit(records, seed=0)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("categories", [[], "ab", ["a", "a"], [None], [float("nan")], [{}]])
def test_empirical_refuses_categories(categories: Any) -> None:
    with pytest.raises(InvalidParameter, match="categories"):
        EmpiricalLearner(categories)


def test_learners_are_immutable_values() -> None:
    learner = EmpiricalLearner(np.array(["a", "b"]))
    assert learner == EmpiricalLearner(("a", "b"))
    assert hash(learner) == hash(EmpiricalLearner(("a", "b")))
    with pytest.raises(dataclasses.FrozenInstanceError):
        learner.categories = ()  # type: ignore[misc]


def test_learners_make_at_most_a_few_calls_a_record(work: Callable[[Callable[[], object]], int]) -> None:
    """Measured: two calls a label, and for numbers 220 in all, however many they are."""
    generator = np.random.default_rng(9)
    labels = [f"label {i}" for i in range(16)]
    column = np.array(labels, dtype=object)[generator.integers(0, 16, size=(3367, 1))]
    numbers = generator.normal(size=(3367, 3))
    learner = EmpiricalLearner(labels)
    assert work(lambda: learner.fit(column, seed=0)) < 4 * 3367
    assert work(lambda: fit(numbers)) < 600


def test_empirical_learner_refuses_continuous_data_with_the_reason() -> None:
    """Theory 9: empirical laws on continuous data share no values; they would never agree, and an atom is a record."""
    with pytest.raises(InvalidParameter, match=r"never agree.*somebody's record"):
        EmpiricalLearner(np.random.default_rng(0).normal(size=20).tolist())
