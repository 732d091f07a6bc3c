"""How near synthetic rows are to the real ones: for the eyes of whoever holds the real ones, never for release."""

from accord.evaluation.compare import ColumnDistance, Evaluation, PairDistance, evaluate
from accord.evaluation.utility import Utility, train_synthetic_test_real

__all__ = ["ColumnDistance", "Evaluation", "PairDistance", "Utility", "evaluate", "train_synthetic_test_real"]
