"""What is promised, to whom, and about which data. Nothing here samples."""

from accord.core.guarantee import ApproxDP, Neighbouring, PureDP, Sensitivity
from accord.core.release import NoAnswer, NoAnswerType, Release
from accord.privacy.best import Bound, CompositionTable, best_composition, composition_table
from accord.privacy.composition import advanced_composition, basic_composition
from accord.privacy.filters import PrivacyFilter
from accord.privacy.heterogeneous import heterogeneous_composition
from accord.privacy.no_guarantee import NoGuarantee
from accord.privacy.optimal import optimal_composition
from accord.privacy.parallel import parallel_composition
from accord.privacy.rounds import BudgetLedger, Round
from accord.privacy.session import AdaptiveSession

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
