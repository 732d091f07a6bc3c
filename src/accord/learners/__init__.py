"""Non-private learners, one a block."""

from accord.learners.empirical import EmpiricalLearner
from accord.learners.gaussian import GaussianLearner
from accord.learners.histogram import HistogramLearner
from accord.learners.protocol import Learner

__all__ = ["EmpiricalLearner", "GaussianLearner", "HistogramLearner", "Learner"]
