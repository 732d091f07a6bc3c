"""A fitted estimator of the user's own class from a released law."""

from typing import Any

import numpy as np
from sklearn.base import clone

from accord.learning.density.normal_family import NormalParameters

__all__ = ["fitted_gaussian_mixture"]


def fitted_gaussian_mixture(estimator: Any, parameters: NormalParameters, *, columns: int) -> Any:  # noqa: ANN401
    """Return a copy of a scikit-learn ``GaussianMixture`` that is fitted to these parameters, and never saw a record.

    Parameters
    ----------
    estimator
        As the user gave it; not changed.
    parameters
        Of whole records; covariances of the estimator's kind.
    columns
        d.

    Examples
    --------
    >>> from sklearn.mixture import GaussianMixture
    >>> parameters = NormalParameters(weights=np.ones(1), means=np.zeros((1, 1)), covariances=np.ones((1, 1, 1)))
    >>> fitted_gaussian_mixture(GaussianMixture(), parameters, columns=1).score_samples([[0.0]]).round(3).tolist()
    [-0.919]

    """
    fitted = clone(estimator)
    kind = fitted.covariance_type
    factors = np.linalg.cholesky(parameters.covariances)
    precise = np.linalg.solve(factors, np.broadcast_to(np.eye(columns), factors.shape)).swapaxes(1, 2)
    chosen = {
        "full": (parameters.covariances, precise),
        "tied": (parameters.covariances[0], precise[0]),
        "diag": tuple(np.diagonal(found, axis1=1, axis2=2).copy() for found in (parameters.covariances, precise)),
        "spherical": (parameters.covariances[:, 0, 0].copy(), precise[:, 0, 0].copy()),
    }
    fitted.weights_, fitted.means_ = parameters.weights.copy(), parameters.means.copy()
    fitted.covariances_, fitted.precisions_cholesky_ = chosen[kind]
    fitted.precisions_ = (
        fitted.precisions_cholesky_**2
        if kind in {"diag", "spherical"}
        else fitted.precisions_cholesky_ @ np.swapaxes(fitted.precisions_cholesky_, -1, -2)
    )
    fitted.converged_, fitted.n_iter_, fitted.n_features_in_ = True, 0, columns
    fitted.lower_bound_ = np.nan
    return fitted
