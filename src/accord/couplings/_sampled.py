"""Records of a public law as a function of a stream, whatever generator the law reads in secret."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import ambient_seed
from accord.core.shared import Generator
from accord.distributions import Distribution
from accord.distributions._own import is_own

__all__ = ["sampled"]


def sampled(law: Distribution, size: int, stream: Generator) -> NDArray[Any]:
    """Return ``size`` records of a law, shape (size, d).

    A law that is not accord's own may read the global generators of Python and numpy: these are seeded from the stream
    for it. Otherwise its points, drawn again when a tuple is decoded, would be others than the laws were asked about.
    """
    if is_own(law):
        return np.asarray(law.sample(size, stream))
    with ambient_seed(int(stream.integers(2**32))):
        return np.asarray(law.sample(size, stream))
