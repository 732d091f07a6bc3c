"""Grand couplings: from close in total variation to exactly equal."""

from typing import Any

from accord._moved import moved
from accord.core.alone import alone
from accord.core.coupling import ABSTAIN, Coupled, Coupling, LawCoupling, Premises, StatesPremises, Vote
from accord.core.points import BatchedPoints, Points, PointsCoupling, PreparedPoints
from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.couplings.atom_race import AtomRace, ListsAtoms
from accord.couplings.dyadic import DyadicCoupling
from accord.couplings.lattice.hashed import HashedLattice
from accord.couplings.lattice.normal import NormalLattice
from accord.couplings.race import RaceCoupling, agreement, joint_law
from accord.couplings.record_by_record import RecordByRecord
from accord.couplings.reference import TupleReference
from accord.couplings.shift_rounding import ParameterRounding, ShiftRounding
from accord.couplings.statistics.coupling import ProductCoupling, StatisticCoupling, coupling_for
from accord.couplings.two_stage import Diagnosis, ModelReference, NormalReference, TwoStageCoupling, widened

__all__ = [
    "ABSTAIN",
    "AtomRace",
    "BatchedPoints",
    "Coupled",
    "Coupling",
    "Diagnosis",
    "DyadicCoupling",
    "HashedLattice",
    "LawCoupling",
    "ListsAtoms",
    "ModelReference",
    "NormalLattice",
    "NormalReference",
    "ParameterRounding",
    "Points",
    "PointsCoupling",
    "Premises",
    "PreparedPoints",
    "PrivateRandomness",
    "ProductCoupling",
    "RaceCoupling",
    "RecordByRecord",
    "SharedRandomness",
    "ShiftRounding",
    "StatesPremises",
    "StatisticCoupling",
    "TupleReference",
    "TwoStageCoupling",
    "Vote",
    "agreement",
    "alone",
    "coupling_for",
    "joint_law",
    "widened",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attribute
    """Return a name that moved, with a warning."""
    return moved(__name__, name)
