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
from accord.randomness import PrivateRandomness, SharedRandomness

__all__ = [
    "AtomRace",
    "Coupled",
    "Coupling",
    "LawCoupling",
    "ListsAtoms",
    "NormalLattice",
    "PoissonCoupling",
    "PrivateRandomness",
    "RaceCoupling",
    "SharedRandomness",
    "ShiftRounding",
    "TuplePoissonCoupling",
    "TupleReference",
    "Vote",
    "agreement",
    "joint_law",
]
