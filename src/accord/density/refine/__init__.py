"""Couple, then refine: from a coarse public model to a good one by private looks at the data."""

from accord.density.refine.statistics import RefinedModel, Refiner, StatisticsRefiner

__all__ = ["RefinedModel", "Refiner", "StatisticsRefiner"]
