"""Mechanisms: what turns votes and numbers into a release. Exact integers and exact coins."""

from accord.core.best_of_draws import BestOfDraws
from accord.core.coupling import ABSTAIN
from accord.core.stable_mode import StableMode
from accord.mechanisms.above_threshold import AboveThreshold, AboveThresholdRun, RunStopped
from accord.mechanisms.clamped_sum import ClampedSum
from accord.mechanisms.discrete_gaussian import DiscreteGaussian
from accord.mechanisms.discrete_laplace import DiscreteLaplace
from accord.mechanisms.exponential import Exponential
from accord.mechanisms.laplace import Laplace
from accord.mechanisms.permute_and_flip import PermuteAndFlip
from accord.mechanisms.thresholded_counts import LevelSelection, ThresholdedCounts
from accord.mechanisms.top_k import TopK

__all__ = [
    "ABSTAIN",
    "AboveThreshold",
    "AboveThresholdRun",
    "BestOfDraws",
    "ClampedSum",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Laplace",
    "LevelSelection",
    "PermuteAndFlip",
    "RunStopped",
    "StableMode",
    "ThresholdedCounts",
    "TopK",
]
