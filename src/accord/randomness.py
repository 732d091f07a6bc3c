"""Two kinds of randomness that cannot be exchanged: secret for releases, shared for blocks."""

from accord.core.alone import ambient_seed
from accord.core.secret import (
    PrivateRandomness,
    bernoulli,
    geometric,
    require_private,
    two_sided_geometric,
    uniform_below,
    uniform_order,
)
from accord.core.shared import Generator, SharedRandomness, mix, require_shared, uniform_open, word_at
from accord.noise.samplers import discrete_gaussian, discrete_laplace

__all__ = [
    "Generator",
    "PrivateRandomness",
    "SharedRandomness",
    "ambient_seed",
    "bernoulli",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "mix",
    "require_private",
    "require_shared",
    "two_sided_geometric",
    "uniform_below",
    "uniform_open",
    "uniform_order",
    "word_at",
]
