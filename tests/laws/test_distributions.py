"""Algebra of the laws on records and of their learners."""

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad

from accord.distributions import Categorical, Normal
from accord.learners import EmpiricalLearner, GaussianLearner

Floats = NDArray[np.float64]

seeds = st.integers(0, 2**32 - 1)
labels = st.one_of(st.booleans(), st.integers(), st.text(max_size=5), st.tuples(st.integers(0, 3), st.text(max_size=2)))
label_lists = st.lists(labels, min_size=1, max_size=6, unique_by=lambda label: (isinstance(label, bool), label))


@st.composite
def normals(draw: st.DrawFn, *, dimension: int | None = None) -> Normal:
    d = dimension or draw(st.integers(1, 4))
    generator = np.random.default_rng(draw(seeds))
    root = generator.uniform(-1, 1, size=(d, d))
    scale = 10.0 ** generator.integers(-6, 7, size=d)
    return Normal(generator.uniform(-1, 1, size=d) * scale, (root @ root.T + 0.1 * np.eye(d)) * np.outer(scale, scale))


# --- Normal -----------------------------------------------------------------------------------------------------------


@given(normals())
def test_normal_is_rebuilt_from_its_fields_and_its_text(law: Normal) -> None:
    again = Normal(law.mean, law.covariance)
    assert again == law
    assert hash(again) == hash(law)
    assert eval(repr(law)) == law  # noqa: S307 - our own text
    factor = law.cholesky
    scale = np.sqrt(np.diag(law.covariance))
    np.testing.assert_allclose(
        (factor @ factor.T) / np.outer(scale, scale), law.covariance / np.outer(scale, scale), atol=1e-13
    )
    assert (np.triu(factor, 1) == 0).all()


@given(normals(), seeds)
def test_normal_density_moves_with_its_law(law: Normal, seed: int) -> None:
    """Shifting and scaling by powers of two changes the log density by the log of the volume only."""
    x = law.sample(5, np.random.default_rng(seed))
    twos = 2.0 ** np.arange(law.dimension)
    moved = Normal(np.array(law.mean) * twos, np.array(law.covariance) * np.outer(twos, twos))
    np.testing.assert_allclose(
        moved.log_density(x * twos), law.log_density(x) - np.log(twos).sum(), rtol=1e-9, atol=1e-9
    )


@given(normals(), seeds)
def test_normal_density_does_not_depend_on_the_order_of_columns(law: Normal, seed: int) -> None:
    x = law.sample(5, np.random.default_rng(seed))
    turned = Normal(law.mean[::-1], np.array(law.covariance)[::-1, ::-1])
    np.testing.assert_allclose(turned.log_density(x[:, ::-1]), law.log_density(x), rtol=1e-9, atol=1e-9)


@settings(max_examples=20)
@given(normals(dimension=1))
def test_normal_density_has_mass_one(law: Normal) -> None:
    mean, deviation = law.mean[0], math.sqrt(law.covariance[0][0])

    def density(z: float) -> float:
        return deviation * math.exp(law.log_density([mean + deviation * z])[0])

    assert abs(quad(density, -9, 9, epsabs=1e-10)[0] - 1) < 1e-7


@given(normals(), seeds)
def test_normal_density_is_greatest_at_the_mean(law: Normal, seed: int) -> None:
    x = law.sample(8, np.random.default_rng(seed))
    assert (law.log_density(x) <= law.log_density([law.mean])).all()


# --- Categorical ------------------------------------------------------------------------------------------------------


@st.composite
def categoricals(draw: st.DrawFn) -> Categorical:
    chosen = draw(label_lists)
    weights = st.lists(st.floats(0, 1e300), min_size=len(chosen), max_size=len(chosen)).filter(lambda w: max(w) > 0)
    return Categorical(chosen, draw(weights))


@given(categoricals())
def test_categorical_is_rebuilt_from_its_fields_and_its_text(law: Categorical) -> None:
    assert abs(math.fsum(law.probabilities) - 1) < 1e-15
    again = Categorical(law.categories, law.probabilities)
    assert again == law
    assert again.probabilities == law.probabilities
    assert hash(again) == hash(law)
    assert eval(repr(law)) == law  # noqa: S307 - our own text


@given(categoricals(), seeds)
def test_categorical_samples_what_it_gives_weight(law: Categorical, seed: int) -> None:
    sample = law.sample(30, np.random.default_rng(seed))
    assert np.isfinite(law.log_density(sample)).all()
    assert {type(value) for value in sample[:, 0].tolist()} <= {type(label) for label in law.categories}
    np.testing.assert_array_equal(sample, law.sample(30, np.random.default_rng(seed)))


@given(categoricals())
def test_categorical_density_is_its_probabilities(law: Categorical) -> None:
    column = np.empty(len(law.categories), dtype=object)
    for position, label in enumerate(law.categories):
        column[position] = label
    logs = [math.log(p) if p > 0 else -math.inf for p in law.probabilities]
    np.testing.assert_allclose(law.log_density(column), logs, rtol=1e-14)


# --- learners ---------------------------------------------------------------------------------------------------------


@st.composite
def tables(draw: st.DrawFn) -> Floats:
    shape = draw(st.tuples(st.integers(8, 20), st.integers(1, 3)))
    return np.random.default_rng(draw(seeds)).normal(size=shape)


def fit(x: Floats) -> tuple[Floats, Floats]:
    law = GaussianLearner().fit(x, seed=0)
    return np.array(law.mean), np.array(law.covariance)


@given(tables(), st.lists(st.integers(-300, 300), min_size=3, max_size=3))
def test_gaussian_fit_commutes_with_powers_of_two_exactly(x: Floats, exponents: list[int]) -> None:
    twos = 2.0 ** np.array(exponents[: x.shape[1]], dtype=float)
    mean, covariance = fit(x)
    scaled_mean, scaled_covariance = fit(x * twos)
    np.testing.assert_array_equal(scaled_mean, mean * twos)
    np.testing.assert_array_equal(scaled_covariance, covariance * twos * twos[:, None])


@given(tables(), st.floats(-1e6, 1e6))
def test_gaussian_fit_moves_with_the_records(x: Floats, shift: float) -> None:
    mean, covariance = fit(x)
    moved_mean, moved_covariance = fit(x + shift)
    np.testing.assert_allclose(moved_mean, mean + shift, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(moved_covariance, covariance, rtol=1e-7, atol=1e-8)


@given(tables(), seeds)
def test_gaussian_fit_does_not_depend_on_the_order_of_rows(x: Floats, seed: int) -> None:
    mean, covariance = fit(x)
    other_mean, other_covariance = fit(np.random.default_rng(seed).permutation(x))
    np.testing.assert_allclose(other_mean, mean, atol=1e-14)
    np.testing.assert_allclose(other_covariance, covariance, atol=1e-13)


@given(label_lists, st.lists(st.integers(0, 5), min_size=1, max_size=30), seeds)
def test_empirical_fit_counts_and_forgets_the_order(chosen: list[Any], picks: list[int], seed: int) -> None:
    column = np.empty(len(picks), dtype=object)
    for position, pick in enumerate(picks):
        column[position] = chosen[pick % len(chosen)]
    learner = EmpiricalLearner(chosen)
    law = learner.fit(column, seed=0)
    assert learner.fit(np.random.default_rng(seed).permutation(column), seed=1) == law
    counts = np.bincount([pick % len(chosen) for pick in picks], minlength=len(chosen))
    np.testing.assert_allclose(law.probabilities, (counts + 0.25) / (len(picks) + 0.25 * len(chosen)), rtol=1e-14)
