"""Grand couplings: from close in total variation to exactly equal."""

from accord.couplings.atom_race import AtomRace, ListsAtoms
from accord.couplings.joint_law import joint_law
from accord.couplings.normal_lattice import NormalLattice
from accord.couplings.poisson import PoissonCoupling
from accord.couplings.protocol import Coupled, Coupling, LawCoupling, Vote
from accord.couplings.race import RaceCoupling, agreement
from accord.couplings.reference import TupleReference
from accord.couplings.shift_rounding import ShiftRounding
from accord.couplings.tuple_poisson import TuplePoissonCoupling
from accord.couplings.two_stage import Diagnosis, ModelReference, NormalReference, TwoStageCoupling, widened
from accord.randomness import PrivateRandomness, SharedRandomness

__all__ = [
    "AtomRace",
    "Coupled",
    "Coupling",
    "Diagnosis",
    "LawCoupling",
    "ListsAtoms",
    "ModelReference",
    "NormalLattice",
    "NormalReference",
    "PoissonCoupling",
    "PrivateRandomness",
    "RaceCoupling",
    "SharedRandomness",
    "ShiftRounding",
    "TuplePoissonCoupling",
    "TupleReference",
    "TwoStageCoupling",
    "Vote",
    "agreement",
    "joint_law",
    "widened",
]
