"""Non-private learners, one a block."""

from typing import Any

from accord._moved import moved
from accord.core.coupling import Learner
from accord.learners.empirical import EmpiricalLearner
from accord.learners.gaussian import GaussianLearner
from accord.learners.histogram import HistogramLearner
from accord.learners.mixture import MixtureLearner
from accord.learners.scipy_learner import ScipyLearner
from accord.learners.sklearn_learner import SklearnLearner

__all__ = [
    "EmpiricalLearner",
    "GaussianLearner",
    "HistogramLearner",
    "Learner",
    "MixtureLearner",
    "ScipyLearner",
    "SklearnLearner",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attribute
    """Return a name that moved, with a warning."""
    return moved(__name__, name)
