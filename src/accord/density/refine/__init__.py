"""Couple, then refine: from a coarse public model to a good one by private looks at the data."""

from accord.density.refine.statistics import RefinedModel, StatisticsRefiner

__all__ = ["RefinedModel", "StatisticsRefiner"]
