"""A private model of many columns together, from noisy tables of a few columns each."""

from accord.marginals.binning import NumericBinning
from accord.marginals.domain import Column, ColumnKind, Domain
from accord.marginals.errors import ColumnError, ModelErrors, PairError
from accord.marginals.grid import Grid
from accord.marginals.learner import MarginalLearner
from accord.marginals.model import MarginalModel
from accord.marginals.planning import ExpectedError, MarginalPlan

__all__ = [
    "Column",
    "ColumnError",
    "ColumnKind",
    "Domain",
    "ExpectedError",
    "Grid",
    "MarginalLearner",
    "MarginalModel",
    "MarginalPlan",
    "ModelErrors",
    "NumericBinning",
    "PairError",
]
