"""The one road for votes from records to a release: small, exact, and read first. It imports nothing else of accord.

``docs/reading-the-core.md`` leads through it.
"""

from accord.core.aggregate import aggregate, coupling_charge
from accord.core.best_of_draws import BestOfDraws
from accord.core.blocks import fit_blocks, partition
from accord.core.budget import Budget
from accord.core.coupling import (
    ABSTAIN,
    Abstain,
    Coupled,
    Coupling,
    Distribution,
    LawCoupling,
    Learner,
    Measure,
    Premises,
    StatesPremises,
    Vote,
)
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP, Sensitivity
from accord.core.isolation import Isolation
from accord.core.points import BatchedPoints, Points, PointsCoupling, PreparedPoints, couple_all
from accord.core.records import Cells, Records, cells_read_by, table_of_numbers
from accord.core.release import NoAnswer, NoAnswerType, Release
from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.core.stable_mode import StableMode
from accord.core.verdict import Verdict, VerdictWarning, collected, tell

__all__ = [
    "ABSTAIN",
    "Abstain",
    "ApproxDP",
    "BatchedPoints",
    "BestOfDraws",
    "Budget",
    "Cells",
    "Coupled",
    "Coupling",
    "Distribution",
    "Isolation",
    "LawCoupling",
    "Learner",
    "Measure",
    "Neighbouring",
    "NoAnswer",
    "NoAnswerType",
    "Points",
    "PointsCoupling",
    "Premises",
    "PreparedPoints",
    "PrivateRandomness",
    "PureDP",
    "Records",
    "Release",
    "Sensitivity",
    "SharedRandomness",
    "StableMode",
    "StatesPremises",
    "Verdict",
    "VerdictWarning",
    "Vote",
    "aggregate",
    "cells_read_by",
    "collected",
    "couple_all",
    "coupling_charge",
    "fit_blocks",
    "partition",
    "table_of_numbers",
    "tell",
]
