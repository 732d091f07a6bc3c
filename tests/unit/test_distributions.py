import copy
import dataclasses
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from accord.distributions import Categorical, Distribution, Measure, Normal
from accord.distributions.categorical import as_labels, label_array, label_indices
from accord.errors import InvalidParameter

ZERO: Any = [Fraction(0)]
QUARTERS: Any = [Fraction(1, 4), Fraction(3, 4)]

# --- Normal -----------------------------------------------------------------------------------------------------------


def test_normal_by_position_and_by_name_are_one_law() -> None:
    law = Normal(0, 1)
    assert law == Normal(mean=0.0, covariance=[[1.0]]) == Normal([0], np.array([[1]])) == Normal(ZERO, 1)
    assert hash(law) == hash(Normal(-0.0, 1.0))
    assert law != Normal(0, 2)
    assert (law.mean, law.covariance, law.dimension, law.measure) == ((0.0,), ((1.0,),), 1, Measure.LEBESGUE)
    assert isinstance(law, Distribution)


@pytest.mark.parametrize(
    ("mean", "covariance"),
    [
        ([], np.zeros((0, 0))),
        ([[0.0]], [[1.0]]),
        ([0.0, 0.0], 1.0),
        ([0.0, 0.0], [1.0, 1.0]),
        ([0.0], [[1.0, 0.0], [0.0, 1.0]]),
        (math.nan, 1.0),
        (math.inf, 1.0),
        (0.0, math.nan),
        (0.0, math.inf),
        (0.0, 0.0),
        (0.0, -1.0),
        ("0", 1.0),
        (0.0, 1j),
        (True, 1.0),
        (None, 1.0),
        (10**400, 1.0),
        ([0.0, [1.0]], 1.0),
        ([0, 0], [[1.0, 0.5], [0.4, 1.0]]),
        ([0, 0], [[1.0, 1.0], [1.0, 1.0]]),
        ([0, 0], [[1.0, 2.0], [2.0, 1.0]]),
        ([0, 0], [[1.0, 0.0], [0.0, 0.0]]),
    ],
)
def test_normal_refuses(mean: Any, covariance: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"mean|covariance"):
        Normal(mean, covariance)


def test_normal_makes_a_covariance_symmetric_that_is_so_up_to_rounding() -> None:
    law = Normal([0, 0], [[1.0, 0.5], [0.5 + 1e-15, 1.0]])
    assert law.covariance[0][1] == law.covariance[1][0]


def test_normal_is_immutable_and_survives_copies() -> None:
    law = Normal([1, 2], [[2.0, 0.5], [0.5, 1.0]])
    with pytest.raises(dataclasses.FrozenInstanceError):
        law.mean = (0.0,)  # type: ignore[misc]
    law.cholesky[0, 0] = 7.0
    for other in (law, copy.deepcopy(law), pickle.loads(pickle.dumps(law))):  # noqa: S301 - our own bytes
        assert other == law
        np.testing.assert_allclose(other.cholesky @ other.cholesky.T, law.covariance, rtol=1e-15)
        assert other.cholesky[0, 1] == 0


def test_normal_density_agrees_with_scipy() -> None:
    generator = np.random.default_rng(1)
    root = generator.normal(size=(4, 4))
    mean, covariance = generator.normal(size=4), root @ root.T + np.eye(4)
    x = generator.normal(size=(50, 4)) * 3
    np.testing.assert_allclose(
        Normal(mean, covariance).log_density(x), multivariate_normal(mean, covariance).logpdf(x), rtol=1e-12
    )


def test_normal_density_at_large_mean_and_small_spread() -> None:
    law = Normal(1e6, 1e-6)
    z = np.array([-3.0, -1.0, 0.0, 0.5, 2.0])
    x = 1e6 + 1e-3 * z
    exact = [-float((Decimal(float(v)) - 10**6) ** 2 / Decimal("2e-6")) for v in x]
    constant = math.log(2 * math.pi) / 2 + math.log(1e-3)
    np.testing.assert_allclose(law.log_density(x[:, None]), np.array(exact) - constant, rtol=0, atol=1e-12)


def test_normal_density_far_away_does_not_underflow() -> None:
    assert Normal(0, 1).log_density([1e100]).tolist() == pytest.approx([-5e199], rel=1e-12)
    law = Normal([0, 0], [[1.0, 0.9], [0.9, 1.0]])
    x: Any = [[math.inf, 0], [math.inf, math.inf], [math.nan, 0], [1e300, -1e300], [0, 0]]
    values = law.log_density(x)
    assert values[:4].tolist() == [-math.inf] * 4
    assert values[4] == pytest.approx(-math.log(2 * math.pi) - math.log(0.19) / 2)


def test_normal_density_takes_extreme_units() -> None:
    small, large = Normal(0, 1e-300), Normal(0, 1e300)
    assert small.log_density([1e-150])[0] == pytest.approx(-0.5 - math.log(2 * math.pi) / 2 + 150 * math.log(10))
    assert large.log_density([1e150])[0] == pytest.approx(-0.5 - math.log(2 * math.pi) / 2 - 150 * math.log(10))


@pytest.mark.parametrize("x", [0.0, [0.0, 1.0, 2.0], [[0.0]], np.zeros((1, 2, 1))])
def test_normal_refuses_records_of_another_shape(x: Any) -> None:
    with pytest.raises(InvalidParameter, match="shape"):
        Normal([0, 0], np.eye(2)).log_density(x)


def test_normal_sample_has_the_shape_and_is_a_function_of_the_generator() -> None:
    law = Normal([1e6, -3], [[1e-6, 0], [0, 4.0]])
    first = law.sample(1000, np.random.default_rng(5))
    assert first.shape == (1000, 2)
    np.testing.assert_array_equal(first, law.sample(1000, np.random.default_rng(5)))
    assert abs(first[:, 0] - 1e6).max() < 6e-3
    assert law.sample(0, np.random.default_rng(5)).shape == (0, 2)
    with pytest.raises(InvalidParameter, match="size"):
        law.sample(-1, np.random.default_rng(5))


# --- Categorical ------------------------------------------------------------------------------------------------------


def test_categorical_is_a_value() -> None:
    law = Categorical(["a", "b"], [1, 3])
    assert law == Categorical(("a", "b"), np.array([0.25, 0.75])) == Categorical(np.array(["a", "b"]), [2.0, 6.0])
    assert hash(law) == hash(Categorical(["a", "b"], QUARTERS))
    assert law != Categorical(["b", "a"], [3, 1])
    assert law != Categorical(["a", "b"], [1, 2])
    assert law != "law"
    assert (law.dimension, law.measure) == (1, Measure.COUNTING)
    assert isinstance(law, Distribution)
    assert pickle.loads(pickle.dumps(law)) == law  # noqa: S301 - our own bytes
    with pytest.raises(dataclasses.FrozenInstanceError):
        law.categories = ()  # type: ignore[misc]


def test_booleans_are_not_numbers() -> None:
    assert Categorical([True, False], [1, 1]) != Categorical([1, 0], [1, 1])
    law = Categorical([True, 1, "1"], [1, 1, 2])
    values = law.log_density([True, 1, 1.0, "1", np.True_, np.int64(1), np.str_("1"), 0])
    assert np.exp(values).tolist() == pytest.approx([0.25, 0.25, 0.25, 0.5, 0.25, 0.25, 0.5, 0.0])


@pytest.mark.parametrize(
    "categories",
    [
        [],
        "ab",
        b"ab",
        3,
        ["a", "a"],
        [1, 1.0],
        [None, 1],
        [math.nan],
        [Decimal("NaN")],
        [[1], [2]],
        [np.datetime64("NaT", "s")],
    ],
)
def test_categorical_refuses_labels(categories: Any) -> None:
    with pytest.raises(InvalidParameter, match="categories"):
        Categorical(categories, [1.0])
    with pytest.raises(InvalidParameter, match="categories"):
        as_labels(categories)


@pytest.mark.parametrize(
    "weights",
    [
        [1.0],
        [1, 2, 3],
        [[1, 2]],
        [1, -1e-9],
        [0, 0],
        [1, math.nan],
        [1, math.inf],
        ["1", "2"],
        [None, 1],
        [1, 10**400],
        1,
        [True, False],
    ],
)
def test_categorical_refuses_weights(weights: Any) -> None:
    with pytest.raises(InvalidParameter, match="probabilities"):
        Categorical(["a", "b"], weights)


@pytest.mark.parametrize("weights", [[1e308, 1e308, 1e308], [5e-324, 5e-324, 5e-324], [0.1, 0.1, 0.1]])
def test_categorical_normalises_weights_of_any_size(weights: list[float]) -> None:
    assert Categorical(["a", "b", "c"], weights).probabilities == pytest.approx((1 / 3,) * 3)


def test_categorical_keeps_tiny_and_zero_weights() -> None:
    law = Categorical(["a", "b", "c"], [1.0, 1e-300, -0.0])
    assert law.probabilities == (1.0, 1e-300, 0.0)
    assert math.copysign(1, law.probabilities[2]) == 1
    assert law.log_density(["c", "b", "d", None, math.nan]).tolist() == pytest.approx(
        [-math.inf, -300 * math.log(10), -math.inf, -math.inf, -math.inf]
    )
    assert set(law.sample(10_000, np.random.default_rng(2)).ravel().tolist()) == {"a"}


def test_categorical_density_takes_columns_arrays_and_unhashable_records() -> None:
    law = Categorical([1, 2], [1, 3])
    for x in ([[2], [3]], np.array([[2], [3]]), np.array([2.0, 3.5]), np.array([2, 3], dtype=np.int8)):
        assert np.exp(law.log_density(x)).tolist() == pytest.approx([0.75, 0.0])
    odd = np.empty(2, dtype=object)
    odd[:] = [{}, 2]
    assert np.exp(law.log_density(odd)).tolist() == pytest.approx([0.0, 0.75])
    for shape in ((), (2, 2), (1, 1, 1)):
        with pytest.raises(InvalidParameter, match="shape"):
            law.log_density(np.zeros(shape))


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        ([1, 2], np.int64),
        ([2**63 - 1, -(2**63)], np.int64),
        ([2**70, 1], object),
        ([True, False], np.bool_),
        ([0.5, 2.0], np.float64),
        ([0.5, 2], object),
        (["a", "a long label"], object),
        (["a", "a\0"], object),
        ([("a", 1), ("b", 2)], object),
        ([True, 2, "three", 4.0], object),
    ],
)
def test_sample_keeps_labels_exactly(labels: list[Any], dtype: Any) -> None:
    sample = Categorical(labels, np.ones(len(labels))).sample(400, np.random.default_rng(3))
    assert sample.shape == (400, 1)
    assert sample.dtype == dtype
    seen = {(type(value), value) for value in sample.ravel().tolist()}
    assert seen == {(type(label), label) for label in labels}


def test_numpy_labels_become_plain_values() -> None:
    assert [type(label) for label in as_labels(np.array([1, 2], dtype=np.int32))] == [int, int]
    assert [type(label) for label in as_labels(np.array(["a"]))] == [str]


def test_label_indices_finds_each_and_marks_foreign() -> None:
    assert label_indices(("a", 1, True), np.array([True, "b", 1, "a"], dtype=object)).tolist() == [2, -1, 1, 0]
    assert label_array(("b", "a")).tolist() == ["b", "a"]


def test_sample_sizes() -> None:
    law = Categorical(["a"], [3])
    assert law.sample(0, np.random.default_rng(0)).shape == (0, 1)
    with pytest.raises(InvalidParameter, match="size"):
        law.sample(1.5, np.random.default_rng(0))  # type: ignore[arg-type]
