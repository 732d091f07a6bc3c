"""Estimators of other libraries as learners: purity, exact laws, refusals, odd records."""

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from accord._abstain import ABSTAIN
from accord.distributions import Distribution, Measure, Mixture
from accord.errors import FitFailed, InvalidParameter
from accord.learners import Learner, MixtureLearner, SklearnLearner
from accord.learning import Isolation
from accord.randomness import SharedRandomness

KINDS = ["full", "tied", "diag", "spherical"]


def stream(*labels: int | str) -> Any:
    return SharedRandomness("estimators").stream(*labels)


def two_clusters(count: int = 300, columns: int = 2) -> Any:
    rows = stream("clusters", columns).normal(size=(count, columns))
    rows[: count // 2] += 6
    return rows[stream("order").permutation(count)]


class Boxes(BaseEstimator):
    """A uniform law on the smallest box: neither conventions nor seeds beyond scikit-learn's."""

    def __init__(self, random_state: Any = 7, rows_too_many: int = 0) -> None:
        self.random_state = random_state
        self.rows_too_many = rows_too_many

    def fit(self, X: Any, y: Any = None) -> "Boxes":
        self.seen_ = X.dtype, X.shape
        self.low_, self.high_ = X.min(axis=0), X.max(axis=0)
        return self

    def score_samples(self, X: Any) -> Any:
        inside = ((X >= self.low_) & (X <= self.high_)).all(axis=1)
        with np.errstate(divide="ignore"):
            return np.where(inside, -np.log(self.high_ - self.low_).sum(), -np.inf)

    def sample(self, n: int = 1) -> Any:
        rng = np.random.RandomState(self.random_state)
        rows = rng.uniform(self.low_, self.high_, size=(max(0, n + self.rows_too_many), len(self.low_)))
        return np.sort(rows, axis=0)


# --- exact laws -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 3])
def test_gaussian_mixture_becomes_a_mixture_with_its_scores(kind: str, columns: int) -> None:
    rows = two_clusters(columns=columns)
    learner = SklearnLearner(GaussianMixture(3, covariance_type=kind, random_state=3))
    law = learner.fit(rows, seed=5)
    assert isinstance(law, Mixture)
    seed = SharedRandomness(5).seed("random_state")
    fitted = GaussianMixture(3, covariance_type=kind, random_state=seed).fit(rows)
    points = np.vstack((rows, stream("points").normal(size=(200, columns)) * 10))
    np.testing.assert_allclose(law.log_density(points), fitted.score_samples(points), rtol=1e-9, atol=1e-9)
