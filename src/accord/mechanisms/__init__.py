"""Mechanisms: what turns votes and numbers into a release. Exact integers and exact coins."""

from accord._abstain import ABSTAIN
from accord.mechanisms.best_of_draws import BestOfDraws
from accord.mechanisms.discrete_gaussian import DiscreteGaussian
from accord.mechanisms.discrete_laplace import DiscreteLaplace
from accord.mechanisms.laplace import Laplace
from accord.mechanisms.stable_mode import StableMode

__all__ = ["ABSTAIN", "BestOfDraws", "DiscreteGaussian", "DiscreteLaplace", "Laplace", "StableMode"]
