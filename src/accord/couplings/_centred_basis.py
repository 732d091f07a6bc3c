"""Noise made into columns of mean 0 that are exactly uncorrelated, for records with a given mean and scatter."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["centred_basis"]


def centred_basis(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return B with columns of mean 0 and ``B^T B = I``, shape (l, d) as the noise.

    For standard normal noise B is uniform among all such matrices and independent of the noise's mean and scatter, so
    ``m + sqrt(l) B L^T`` are l records of a normal law, given that their mean is m and their scatter over l is L L^T.
    """
    basis, triangle = np.linalg.qr(noise - noise.mean(axis=0))
    basis *= np.sign(np.diag(triangle))
    return basis
