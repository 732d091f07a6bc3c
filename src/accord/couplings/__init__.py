"""Grand couplings: from close in total variation to exactly equal."""

from accord.couplings.normal_lattice import NormalLattice
from accord.couplings.protocol import Coupled, Coupling, Vote
from accord.couplings.race import RaceCoupling, agreement
from accord.randomness import PrivateRandomness, SharedRandomness

__all__ = [
    "Coupled",
    "Coupling",
    "NormalLattice",
    "PrivateRandomness",
    "RaceCoupling",
    "SharedRandomness",
    "Vote",
    "agreement",
]
