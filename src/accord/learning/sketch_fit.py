"""Fit any learner to what was released: points of a sketch, never records. Post-processing, free of charge."""

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._abstain import Abstain
from accord.distributions import Distribution
from accord.errors import InvalidParameter
from accord.learners import Learner, ScipyLearner
from accord.learning.isolation import Isolation
from accord.randomness import SharedRandomness

__all__ = ["fit_to_points"]

_Floats = NDArray[np.float64]
_COPIES = Isolation()


def fit_to_points(
    learner: Learner, points: _Floats, *, shared: SharedRandomness, fits: int = 1, n_jobs: int | None = None
) -> Distribution | None:
    """Return the best of several fits, by the mean log density of the points themselves; None if none works.

    Parameters
    ----------
    learner
        Any `Learner`.
    points
        Public, shape (m, d). For a family of scipy with a fixed place those outside of its support are left out.
    shared
        Gives each fit its seed, and the points an order.
    fits
        Number of seeds.
    n_jobs
        Workers, as joblib counts them; None for one. Changes nothing but the time.

    Examples
    --------
    >>> from accord.learners import GaussianLearner
    >>> fit_to_points(GaussianLearner(), np.array([[1.0], [2.0], [3.0]]), shared=SharedRandomness(1))
    Normal(mean=(2.0,), covariance=((1.0,),))

    """
    usable = points[_supported(learner, points)]
    ordered = usable[shared.stream("order").permutation(len(usable))]
    seeds = [shared.seed("fit", number) for number in range(fits)]
    if n_jobs in {None, 1} or fits == 1:
        scored = [_fit(learner, ordered, seed) for seed in seeds]
    else:
        joblib = _joblib()
        scored = joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(_fit)(learner, ordered, seed) for seed in seeds)
    working = [(score, -number, law) for number, (law, score) in enumerate(scored) if law is not None]
    return max(working, key=lambda entry: entry[:2])[2] if working else None


def _fit(learner: Learner, points: _Floats, seed: int) -> tuple[Distribution | None, float]:
    law = _COPIES.fit(learner, points.copy(), seed=seed)
    if isinstance(law, Abstain):
        return None, -np.inf
    try:
        score = float(np.mean(law.log_density(points)))
    except Exception:  # noqa: BLE001 - another's law
        return None, -np.inf
    return (law, score) if np.isfinite(score) else (None, -np.inf)


def _supported(learner: Learner, points: _Floats) -> NDArray[np.bool_]:
    """Return which points a law of the learner can reach whatever its free parameters, shape (m,)."""
    fixed = dict(learner.fixed) if isinstance(learner, ScipyLearner) else {}
    if not isinstance(learner, ScipyLearner) or "loc" not in fixed:
        return np.ones(len(points), dtype=bool)
    family = getattr(importlib.import_module("scipy.stats"), learner.family)
    unit = fixed.get("scale")
    low, high = (
        end if np.isinf(end) or end == 0 else (end * unit if unit is not None else np.copysign(np.inf, end))
        for end in (float(family.a), float(family.b))
    )
    offset = points[:, 0] - fixed["loc"]
    found: NDArray[np.bool_] = (offset > low) & (offset < high)
    return found


def _joblib() -> Any:  # noqa: ANN401 - a module
    try:
        return importlib.import_module("joblib")
    except ImportError:
        raise InvalidParameter("n_jobs needs joblib: pip install 'accord[sklearn]', or leave it out.") from None
