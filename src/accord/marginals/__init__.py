"""A private model of many columns together, from noisy tables of a few columns each."""

from accord.marginals.binning import NumericBinning
from accord.marginals.domain import Column, ColumnKind, Domain
from accord.marginals.learner import MarginalLearner
from accord.marginals.model import MarginalModel
from accord.marginals.plan import ExpectedError, MarginalPlan
from accord.marginals.table_learner import Cut, TableLearner, TablePlan
from accord.marginals.table_model import TableModel

__all__ = [
    "Column",
    "ColumnKind",
    "Cut",
    "Domain",
    "ExpectedError",
    "MarginalLearner",
    "MarginalModel",
    "MarginalPlan",
    "NumericBinning",
    "TableLearner",
    "TableModel",
    "TablePlan",
]
