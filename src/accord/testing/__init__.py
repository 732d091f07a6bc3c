"""For tests, accord's own and yours. Nothing in here is private."""

from accord.testing.coupling_checks import CouplingCase, CouplingFault, check_coupling
from accord.testing.enumeration import hockey_stick, neighbours, vote_vectors, worst_delta
from accord.testing.mechanism_checks import MechanismCase, MechanismFault, check_mechanism
from accord.testing.tape import Call, ReplayRandomness, Tape, TapeEnded

__all__ = [
    "Call",
    "CouplingCase",
    "CouplingFault",
    "MechanismCase",
    "MechanismFault",
    "ReplayRandomness",
    "Tape",
    "TapeEnded",
    "check_coupling",
    "check_mechanism",
    "hockey_stick",
    "neighbours",
    "vote_vectors",
    "worst_delta",
]
