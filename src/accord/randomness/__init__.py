"""Two kinds of randomness that cannot be exchanged: secret for releases, shared for blocks."""

from accord.randomness.ambient import ambient_seed
from accord.randomness.coins import bernoulli, geometric, two_sided_geometric, uniform_below
from accord.randomness.gaussian_cells import discrete_gaussian
from accord.randomness.laplace_digits import discrete_laplace
from accord.randomness.orders import uniform_order
from accord.randomness.private import PrivateRandomness, require_private
from accord.randomness.secret import SecretStream
from accord.randomness.shared import Generator, SharedRandomness, mix, require_shared, uniform_open, word_at

__all__ = [
    "Generator",
    "PrivateRandomness",
    "SecretStream",
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
