"""Noise and selection by scores: exact integers and exact coins."""

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
    "AboveThreshold",
    "AboveThresholdRun",
    "ClampedSum",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Laplace",
    "LevelSelection",
    "PermuteAndFlip",
    "RunStopped",
    "ThresholdedCounts",
    "TopK",
]
