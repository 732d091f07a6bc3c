"""What is promised, to whom, and about which data. Nothing here samples."""

from accord.accounting.best import Bound, CompositionTable, best_composition, composition_table
from accord.accounting.composition import NoGuarantee, advanced_composition, basic_composition
from accord.accounting.filters import PrivacyFilter
from accord.accounting.optimal import heterogeneous_composition, optimal_composition
from accord.accounting.parallel import parallel_composition
from accord.accounting.session import AdaptiveSession, BudgetLedger, Round
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP, Sensitivity
from accord.core.release import NoAnswer, NoAnswerType, Release

__all__ = [
    "AdaptiveSession",
    "ApproxDP",
    "Bound",
    "BudgetLedger",
    "CompositionTable",
    "Neighbouring",
    "NoAnswer",
    "NoAnswerType",
    "NoGuarantee",
    "PrivacyFilter",
    "PureDP",
    "Release",
    "Round",
    "Sensitivity",
    "advanced_composition",
    "basic_composition",
    "best_composition",
    "composition_table",
    "heterogeneous_composition",
    "optimal_composition",
    "parallel_composition",
]
