"""Which family an estimator belongs to, and how a released law becomes an estimator of the user's own class."""

import inspect
import math
import numbers
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from accord.core.errors import InvalidParameter
from accord.learners import (
    EmpiricalLearner,
    GaussianLearner,
    HistogramLearner,
    MinimumDistanceLearner,
    MixtureLearner,
    ScipyLearner,
    SklearnLearner,
)
from accord.learning.density.family import BlackBox, DensityFamily, NormalMixtures
from accord.learning.density.fitted_estimator import fitted_gaussian_mixture
from accord.learning.density.normal_family import NormalParameters
from accord.learning.density.release import PrivateModel

__all__ = ["family_of_estimator", "fitted_estimator"]

_KINDS = ("full", "diag", "spherical", "tied")
_RESTARTS = 3
_FLOOR_OF_CONSTANTS = 1e-6
_FOR_OTHERS = {EmpiricalLearner, HistogramLearner, MinimumDistanceLearner}


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
    if type(estimator) is MixtureLearner:
        return NormalMixtures(components=estimator.components, covariance=estimator.covariance_type)
    return NormalMixtures(components=1) if type(estimator) is GaussianLearner else None


def _check_floor(floor: Any) -> None:  # noqa: ANN401 - whatever the user gave
    if not isinstance(floor, numbers.Real) or not 0 <= float(floor) < math.inf:
        raise InvalidParameter("estimator: reg_covar must be a number, at least 0.")


def _black_box(estimator: Any) -> BlackBox:  # noqa: ANN401 - anything
    """Return a learner for anything else."""
    if type(estimator) in _FOR_OTHERS:
        message = (
            f"estimator: {type(estimator).__name__} is for PrivateLearner; PrivateDensity is for columns of numbers."
        )
        raise InvalidParameter(message)
    if isinstance(estimator, ScipyLearner):
        return BlackBox(learner=estimator)
    if isinstance(estimator, str) or isinstance(getattr(estimator, "name", None), str):
        return BlackBox(learner=ScipyLearner(estimator))
    if not isinstance(estimator, type) and _takes_seed(estimator):
        return BlackBox(learner=estimator, restarts=_RESTARTS)
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
