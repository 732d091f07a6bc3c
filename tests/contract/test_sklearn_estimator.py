"""PrivateDensity among scikit-learn's own tools."""

import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats as st
from sklearn.base import clone
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import accord
from accord.density.estimators import fitted_gaussian_mixture
from accord.density.family import NormalParameters
from accord.errors import InvalidParameter, NotEnoughRecords, SchemaMismatch
from accord.learners import GaussianLearner, MixtureLearner
from accord.learning import PrivateDensity

EXPECTED_FAILURES = {
    "check_dtype_object": (
        "it wants an error for a cell that holds a dict: one odd record must never stop a fit, so such a cell counts "
        "as missing"
    ),
}
"""Why these checks of scikit-learn are not for a private estimator."""

SKIPPED = {"check_pipeline_consistency", "check_array_api_input"}
"""Left out by scikit-learn itself: for estimators that are not deterministic, and without array-api packages."""


@pytest.mark.parametrize(
    "estimator",
    [GaussianMixture(1), pytest.param(GaussianMixture(2, covariance_type="diag"), marks=pytest.mark.nightly)],
)
def test_scikit_learn_checks_pass_but_for_the_listed_ones(
    estimator: Any, freeze_secrets: Callable[[int], None]
) -> None:
    # The checks fit 10 to 40 records: two blocks of five, whose scales are now and then (in 1 fit of 18 of the smallest
    # table) too far apart for any draw to let them agree: no answer, whatever the number of draws. About a third of all
    # keys meet such blocks somewhere: if a release comes to read its secrets in another order, this may want another.
    freeze_secrets(1)
    # So large an epsilon only because the checks bring 20 records.
    results = check_estimator(PrivateDensity(estimator, epsilon=1000, delta="0.01"), on_fail=None, on_skip=None)
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert failed.keys() == EXPECTED_FAILURES.keys(), failed
    assert skipped <= SKIPPED
    assert len(results) - len(failed) - len(skipped) >= 30


def normal_table(columns: int = 2, records: int = 6000) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(11).normal(np.arange(columns) * 10.0, 2.0, size=(records, columns))


def density(estimator: Any = None, **others: Any) -> PrivateDensity:
    chosen = {"epsilon": 4, "delta": "1e-6", **others}
    return PrivateDensity(GaussianMixture(1) if estimator is None else estimator, **chosen)


def test_the_same_name_at_both_places() -> None:
    assert accord.PrivateDensity is PrivateDensity
    with pytest.raises(AttributeError, match="no attribute"):
        _ = accord.PrivateDensities
    with pytest.raises(AttributeError, match="no attribute"):
        _ = accord.learning.PrivateDensities


def test_clone_params_and_pickle() -> None:
    model = density(unit="person", random_state=5)
    copied = clone(model).set_params(epsilon=2, estimator__n_components=3)
    assert (copied.epsilon, copied.estimator.n_components, copied.unit) == (2, 3, "person")
    assert (model.epsilon, model.estimator.n_components) == (4, 1)
    fitted = density(random_state=5).fit(normal_table())
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - our own
    assert again.model_ == fitted.model_
    assert (again.sample(4) == fitted.sample(4)).all()


def test_the_users_estimator_is_never_fitted() -> None:
    estimator = GaussianMixture(1)
    model = density(estimator).fit(normal_table())
    assert not hasattr(estimator, "means_")
    assert model.estimator_ is not estimator
    assert type(model.estimator_) is GaussianMixture


def test_in_a_pipeline() -> None:
    pipeline = Pipeline([("log", FunctionTransformer(np.log1p)), ("density", density())])
    table = np.exp(np.random.default_rng(12).normal(3.0, 0.5, size=(6000, 1)))
    pipeline.fit(table)
    assert pipeline.score_samples(table[:5]).shape == (5,)
    assert np.isfinite(pipeline.score(table))


def test_names_of_columns_come_from_the_table_and_are_checked() -> None:
    table = normal_table()
    arrow = pa.table({"age": table[:, 0], "height": table[:, 1]})
    model = density().fit(arrow)
    assert model.feature_names_in_.tolist() == ["age", "height"]
    assert model.report_["columns"] == ("age", "height")
    assert np.allclose(model.score_samples(arrow.slice(0, 3)), model.model_.log_density(table[:3]))
    with pytest.raises(ValueError, match="feature names"):
        model.score_samples(arrow.select(["height", "age"]))


def test_declared_text_is_refused_by_name_before_anything_is_spent() -> None:
    arrow = pa.table({"age": np.arange(6000.0), "secret-name": ["x"] * 6000})
    with pytest.raises(SchemaMismatch, match=r"'secret-name'.*Nothing was spent"):
        density().fit(arrow)
    with pytest.raises(SchemaMismatch, match="Nothing was spent"):
        density().fit(np.array([["a"], ["b"]]))


def test_set_output_gives_frames_with_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    model = density(random_state=3).fit(normal_table())
    plain = model.sample(3)
    package = types.ModuleType("polars")  # a stand-in: the project does not need the real one
    package.DataFrame = dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "polars", package)
    frame = model.set_output(transform="polars").sample(3)
    assert list(frame) == ["column 0", "column 1"]
    assert (np.stack(list(frame.values()), axis=1) == plain).all()
    assert clone(model)._sklearn_output_config == {"transform": "polars"}
    with pytest.raises(InvalidParameter, match="transform"):
        model.set_output(transform="excel")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidParameter, match="install it"):
        model.set_output(transform="pandas").sample(1)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_the_fitted_mixture_scores_as_the_released_law(kind: Any) -> None:
    draw = np.random.default_rng(13)
    roots = draw.normal(size=(2, 3, 3))
    parameters = NormalParameters(
        weights=np.array([0.3, 0.7]), means=draw.normal(size=(2, 3)), covariances=roots @ roots.swapaxes(1, 2)
    ).of_kind(kind)
    fitted = fitted_gaussian_mixture(GaussianMixture(2, covariance_type=kind), parameters, columns=3)
    points = draw.normal(size=(50, 3))
    assert np.allclose(fitted.score_samples(points), parameters.law().log_density(points), rtol=1e-9, atol=1e-9)
    shapes = {"full": (2, 3, 3), "tied": (3, 3), "diag": (2, 3), "spherical": (2,)}
    assert fitted.covariances_.shape == fitted.precisions_.shape == shapes[kind]
    assert fitted.sample(5)[0].shape == (5, 3)
    inverse = np.linalg.inv(fitted.covariances_) if kind in {"full", "tied"} else 1 / fitted.covariances_
    assert np.allclose(fitted.precisions_, inverse)


@pytest.mark.parametrize("kind", ["tied", "spherical"])
def test_the_released_law_has_the_kind_of_covariance_that_was_asked_for(kind: str) -> None:
    table = normal_table()
    model = density(GaussianMixture(2, covariance_type=kind)).fit(table)
    assert np.allclose(model.estimator_.score_samples(table[:50]), model.model_.log_density(table[:50]))


def test_random_state_fixes_the_sample_and_never_the_noise() -> None:
    table = normal_table()
    first, second = (density(random_state=7).fit(table) for _ in range(2))
    assert (first.sample(3) == first.sample(3)).all()
    assert first.model_ != second.model_
    fresh = density().fit(table)
    assert (fresh.sample(3) != fresh.sample(3)).any()
    generator = np.random.RandomState(1)
    assert density(random_state=generator).fit(table).sample(2).shape == (2, 2)


def test_progress_is_shown_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    density(verbose=2).fit(normal_table())
    shown = capfd.readouterr()
    assert "refining" in shown.err
    assert shown.out == ""
    density().fit(normal_table())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (GaussianMixture, "GaussianMixture"),
        (KernelDensity(kernel="epanechnikov"), "KernelDensity"),  # can score and not draw
        (object(), "object"),
        (st.poisson, "discrete"),
        (GaussianMixture(1, covariance_type="round"), "covariance_type"),
        (accord.learners.EmpiricalLearner(["a", "b"]), "PrivateLearner"),
    ],
)
def test_estimators_that_offer_too_little_are_named_before_the_data_are_read(estimator: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        density(estimator).fit(None)


def test_too_few_records_are_refused_with_the_number_before_anything_is_spent() -> None:
    with pytest.raises(NotEnoughRecords, match="3200 records") as refusal:
        density(epsilon=1).fit(normal_table(columns=1, records=100))
    assert (refusal.value.needed, refusal.value.present) == (3200, 100)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), "one", 1001])
def test_parameters_are_checked_in_fit(epsilon: Any) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        density(epsilon=epsilon).fit(normal_table())


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianLearner(),
        MixtureLearner(components=2),
        st.norm,
        "laplace",
        pytest.param(BayesianGaussianMixture(n_components=2), marks=pytest.mark.nightly),
    ],
)
def test_other_estimators_of_one_column(estimator: Any) -> None:
    table = normal_table(columns=1)
    model = density(estimator).fit(table)
    assert model.score(table) > -2.6  # a normal law has -2.11, twice the deviation -2.42, three times -2.73
    assert model.guarantee_.epsilon == 4
