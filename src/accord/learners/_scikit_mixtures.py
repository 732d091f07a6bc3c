"""The mixtures that scikit-learn fits, as laws."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.distributions import Mixture, Normal
from accord.learners._estimators import is_scikit

__all__ = ["as_law", "is_mixture", "parameters"]

_Floats = NDArray[np.float64]


def is_mixture(estimator: object) -> bool:
    """Return whether a law can be written down: a subclass may score and draw in its own way."""
    return is_scikit(estimator, "GaussianMixture", "BayesianGaussianMixture")


def parameters(estimator: Any) -> tuple[_Floats, _Floats, _Floats]:  # noqa: ANN401 - another library's object
    """Return weights (k,), means (k, d) and covariances (k, d, d) of a fitted mixture."""
    means = np.asarray(estimator.means_, dtype=np.float64)
    found = np.asarray(estimator.covariances_, dtype=np.float64)
    count, dimension = means.shape
    match estimator.covariance_type:
        case "full":
            covariances = found
        case "tied":
            covariances = np.broadcast_to(found, (count, dimension, dimension))
        case "diag":
            covariances = found[:, :, None] * np.eye(dimension)
        case _:
            covariances = found[:, None, None] * np.eye(dimension)
    return np.asarray(estimator.weights_, dtype=np.float64), means, covariances


def as_law(weights: _Floats, means: _Floats, covariances: _Floats) -> Mixture:
    """Return the law with these parameters."""
    return Mixture([Normal(*pair) for pair in zip(means, covariances, strict=True)], weights)
