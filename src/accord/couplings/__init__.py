"""Grand couplings: from close in total variation to exactly equal."""

from accord.couplings.protocol import Coupled, Coupling, Vote

__all__ = ["Coupled", "Coupling", "Vote"]
