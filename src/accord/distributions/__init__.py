"""Laws on records."""

from accord.distributions.categorical import Categorical
from accord.distributions.normal import Normal
from accord.distributions.protocol import Bounded, Distribution, Measure, OnALine, Records, WithAtoms

__all__ = [
    "Bounded",
    "Categorical",
    "Distribution",
    "Measure",
    "Normal",
    "OnALine",
    "Records",
    "WithAtoms",
]
