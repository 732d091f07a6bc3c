"""Laws on records."""

from accord.distributions.categorical import Categorical
from accord.distributions.normal import Normal
from accord.distributions.protocol import Distribution, Measure, Records

__all__ = ["Categorical", "Distribution", "Measure", "Normal", "Records"]
