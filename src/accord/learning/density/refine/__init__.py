"""Couple, then refine: from a coarse public model to a good one by private looks at the data."""

from accord.learning.density.refine.candidates import CandidateRefiner
from accord.learning.density.refine.protocol import RefinedModel, Refiner
from accord.learning.density.refine.statistics import StatisticsRefiner

__all__ = ["CandidateRefiner", "RefinedModel", "Refiner", "StatisticsRefiner"]
