"""Grand couplings: from close in total variation to exactly equal."""

from accord.core.alone import alone
from accord.core.coupling import ABSTAIN, Coupled, Coupling, LawCoupling, Premises, StatesPremises, Vote
from accord.couplings.atom_race import AtomRace, ListsAtoms
from accord.couplings.dyadic import DyadicCoupling
from accord.couplings.hashed_lattice import HashedLattice
from accord.couplings.joint_law import joint_law
from accord.couplings.normal_lattice import NormalLattice
from accord.couplings.poisson import PoissonCoupling
from accord.couplings.race import RaceCoupling, agreement
from accord.couplings.record_by_record import RecordByRecord
from accord.couplings.reference import TupleReference
from accord.couplings.shift_rounding import ParameterRounding, ShiftRounding
from accord.couplings.statistics import ProductCoupling, StatisticCoupling, coupling_for
from accord.couplings.tuple_poisson import TuplePoissonCoupling
from accord.couplings.two_stage import Diagnosis, ModelReference, NormalReference, TwoStageCoupling, widened
from accord.randomness import PrivateRandomness, SharedRandomness

__all__ = [
    "ABSTAIN",
    "AtomRace",
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
    "PoissonCoupling",
    "Premises",
    "PrivateRandomness",
    "ProductCoupling",
    "RaceCoupling",
    "RecordByRecord",
    "SharedRandomness",
    "ShiftRounding",
    "StatesPremises",
    "StatisticCoupling",
    "TuplePoissonCoupling",
    "TupleReference",
    "TwoStageCoupling",
    "Vote",
    "agreement",
    "alone",
    "coupling_for",
    "joint_law",
    "widened",
]
