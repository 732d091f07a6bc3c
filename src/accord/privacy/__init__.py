"""What is promised, to whom, and about which data. Nothing here samples."""

from accord.privacy.best import Bound, CompositionTable, best_composition, composition_table
from accord.privacy.composition import advanced_composition, basic_composition
from accord.privacy.guarantees import ApproxDP, PureDP
from accord.privacy.heterogeneous import heterogeneous_composition
from accord.privacy.neighbouring import Neighbouring
from accord.privacy.no_guarantee import NoGuarantee
from accord.privacy.optimal import optimal_composition
from accord.privacy.parallel import parallel_composition
from accord.privacy.release import NoAnswer, NoAnswerType, Release
from accord.privacy.sensitivity import Sensitivity

__all__ = [
    "ApproxDP",
    "Bound",
    "CompositionTable",
    "Neighbouring",
    "NoAnswer",
    "NoAnswerType",
    "NoGuarantee",
    "PureDP",
    "Release",
    "Sensitivity",
    "advanced_composition",
    "basic_composition",
    "best_composition",
    "composition_table",
    "heterogeneous_composition",
    "optimal_composition",
    "parallel_composition",
]
