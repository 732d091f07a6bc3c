"""Mechanisms: what turns votes and numbers into a release. Exact integers and exact coins.

Those of votes live in `accord.core`, all others in `accord.noise`; this is their public name.
"""

from accord.core.best_of_draws import BestOfDraws
from accord.core.coupling import ABSTAIN
from accord.core.stable_mode import StableMode
from accord.noise.above_threshold import AboveThreshold, AboveThresholdRun, RunStopped
from accord.noise.clamped_sum import ClampedSum
from accord.noise.discrete_gaussian import DiscreteGaussian
from accord.noise.discrete_laplace import DiscreteLaplace
from accord.noise.exponential import Exponential
from accord.noise.laplace import Laplace
from accord.noise.permute_and_flip import PermuteAndFlip
from accord.noise.thresholded_counts import LevelSelection, ThresholdedCounts
from accord.noise.top_k import TopK

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
