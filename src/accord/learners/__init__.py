"""Non-private learners, one a block."""

from accord.core.coupling import Learner
from accord.learners.empirical import EmpiricalLearner
from accord.learners.gaussian import GaussianLearner
from accord.learners.histogram import HistogramLearner
from accord.learners.minimum_distance import MinimumDistanceLearner
from accord.learners.mixture import MixtureLearner
from accord.learners.scipy_learner import ScipyLearner
from accord.learners.sklearn_learner import SklearnLearner

__all__ = [
    "EmpiricalLearner",
    "GaussianLearner",
    "HistogramLearner",
    "Learner",
    "MinimumDistanceLearner",
    "MixtureLearner",
    "ScipyLearner",
    "SklearnLearner",
]
