"""A private model of many columns together, from noisy tables of a few columns each."""

from accord.marginals.binning import NumericBinning
from accord.marginals.domain import Column, ColumnKind, Domain
from accord.marginals.learner import MarginalLearner
from accord.marginals.model import MarginalModel
from accord.marginals.plan import ExpectedError, MarginalPlan

__all__ = [
    "Column",
    "ColumnKind",
    "Domain",
    "ExpectedError",
    "MarginalLearner",
    "MarginalModel",
    "MarginalPlan",
    "NumericBinning",
]
