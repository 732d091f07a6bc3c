"""Laws on records."""

from accord.distributions.protocol import Distribution, Measure, Records

__all__ = ["Distribution", "Measure", "Records"]
