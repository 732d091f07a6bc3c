"""Which densities an estimator asks for, and the fitted estimator that it becomes."""

import inspect
import math
import numbers
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

from accord.core.errors import InvalidParameter
from accord.density.family import BlackBox, DensityFamily, NormalMixtures, NormalParameters
from accord.density.release import PrivateModel
from accord.learners import ScipyLearner, SklearnLearner
from accord.learners.traits import traits_of

__all__ = [
    "family_of_estimator",
    "fitted_estimator",
    "fitted_gaussian_mixture",
]


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


_KINDS = ("full", "diag", "spherical", "tied")
_RESTARTS = 3
_FLOOR_OF_CONSTANTS = 1e-6
_PUBLIC_LISTS = ("categories", "edges", "candidates")


def family_of_estimator(estimator: Any) -> DensityFamily:  # noqa: ANN401 - that is the point
    """Return the family of an estimator; the estimator is not changed.

    Parameters
    ----------
    estimator
        scikit-learn's ``GaussianMixture``; anything else with ``fit``, ``score_samples`` and ``sample``; a continuous
        family of scipy.stats; or a `Learner`.

    Raises
    ------
    InvalidParameter
        If it offers too little, naming what is missing.

    Examples
    --------
    >>> family_of_estimator(GaussianMixture(3, covariance_type="diag"))
    NormalMixtures(components=3, covariance='diag')

    """
    normals = _normal_mixtures(estimator)
    return _black_box(estimator) if normals is None else normals


def _normal_mixtures(estimator: Any) -> NormalMixtures | None:  # noqa: ANN401 - anything
    """Return the family of an estimator of normal laws, None for any other."""
    if type(estimator) is GaussianMixture:
        if estimator.covariance_type not in _KINDS:
            raise InvalidParameter(f"estimator: covariance_type must be one of {', '.join(_KINDS)}.")
        _check_floor(estimator.reg_covar)
        return NormalMixtures(components=estimator.n_components, covariance=estimator.covariance_type)
    known = traits_of(estimator)
    if known.components is None:
        return None
    return NormalMixtures(components=known.components, covariance=known.covariance)


def _check_floor(floor: Any) -> None:  # noqa: ANN401 - whatever the user gave
    if not isinstance(floor, numbers.Real) or not 0 <= float(floor) < math.inf:
        raise InvalidParameter("estimator: reg_covar must be a number, at least 0.")


def _black_box(estimator: Any) -> BlackBox:  # noqa: ANN401 - anything
    """Return a learner for anything else."""
    if _takes_seed(estimator) and any(hasattr(estimator, name) for name in _PUBLIC_LISTS):
        message = (
            f"estimator: {type(estimator).__name__} is for PrivateLearner; PrivateDensity is for columns of numbers."
        )
        raise InvalidParameter(message)
    if isinstance(estimator, str) or isinstance(getattr(estimator, "name", None), str):
        return BlackBox(learner=ScipyLearner(estimator))
    if not isinstance(estimator, type) and _takes_seed(estimator):
        return BlackBox(learner=estimator, restarts=_RESTARTS if traits_of(estimator).seeded else 1)
    return BlackBox(learner=SklearnLearner(estimator), restarts=_RESTARTS)


def _takes_seed(estimator: Any) -> bool:  # noqa: ANN401 - anything
    """Return whether this is a learner in accord's sense: its fit has a keyword ``seed``."""
    try:
        return "seed" in inspect.signature(estimator.fit).parameters
    except (AttributeError, TypeError, ValueError):
        return False


def fitted_estimator(
    estimator: Any,  # noqa: ANN401 - the user's
    family: DensityFamily,
    released: PrivateModel,
    *,
    columns: int,
) -> Any:  # noqa: ANN401 - as above
    """Return an estimator of the user's own class with the released parameters; None where there is none.

    A constant column, which has no density, gets scikit-learn's own variance for it: ``reg_covar``, or its default
    where that is 0.
    """
    if not isinstance(family, NormalMixtures) or type(estimator) is not GaussianMixture or released.moving is None:
        return None
    moving = NormalParameters.of(released.moving)
    chosen, located = list(released.located.moving), released.located
    means = np.tile(np.nan_to_num(located.constant), (family.components, 1))
    means[:, chosen] = moving.means
    floor = float(estimator.reg_covar) or _FLOOR_OF_CONSTANTS
    covariances = np.tile(floor * np.eye(columns), (family.components, 1, 1))
    covariances[np.ix_(range(family.components), chosen, chosen)] = moving.covariances
    whole = NormalParameters(weights=moving.weights, means=means, covariances=covariances)
    return fitted_gaussian_mixture(estimator, whole.of_kind(family.covariance), columns=columns)
