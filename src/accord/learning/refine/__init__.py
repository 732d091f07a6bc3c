"""Couple, then refine: from a coarse public model to a good one by private looks at the data."""

from accord.learning.refine.candidates import CandidateRefiner
from accord.learning.refine.protocol import RefinedModel, Refiner
from accord.learning.refine.statistics import StatisticsRefiner

__all__ = ["CandidateRefiner", "RefinedModel", "Refiner", "StatisticsRefiner"]
