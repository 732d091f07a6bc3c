"""Fit any learner to what was released: points of a sketch, never records. Post-processing, free of charge."""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.coupling import ABSTAIN, Learner
from accord.core.errors import InvalidParameter
from accord.core.isolation import Isolation
from accord.core.shared import SharedRandomness
from accord.distributions import Distribution
from accord.learners import ScipyLearner

__all__ = ["fit_all", "fit_to_points"]

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
    laws = fit_all(learner, [ordered] * fits, shared=shared, n_jobs=n_jobs)
    scored = [(_score(law, ordered), -number, law) for number, law in enumerate(laws) if law is not None]
    best = max(scored, key=lambda entry: entry[:2], default=(-np.inf, 0, None))
    return best[2] if np.isfinite(best[0]) else None


def fit_all(
    learner: Learner, tables: Sequence[_Floats], *, shared: SharedRandomness, n_jobs: int | None = None
) -> list[Distribution | None]:
    """Return a fit to each table, each with a seed of its own; None where it fails.

    Parameters
    ----------
    learner, shared, n_jobs
        As in `fit_to_points`.
    tables
        Public, each of shape (m, d).

    """
    seeds = [shared.seed("fit", number) for number in range(len(tables))]
    if n_jobs in {None, 1} or len(tables) == 1:
        return [_fit(learner, table, seed) for table, seed in zip(tables, seeds, strict=True)]
    joblib = _joblib()
    jobs = (joblib.delayed(_fit)(learner, table, seed) for table, seed in zip(tables, seeds, strict=True))
    try:
        found: list[Distribution | None] = joblib.Parallel(n_jobs=n_jobs, backend="loky")(
            jobs
        )  # processes: a fit seeds what is global
    except Exception:  # noqa: BLE001 - workers that die, a learner that does not travel: the budget is spent by now
        return [_fit(learner, table, seed) for table, seed in zip(tables, seeds, strict=True)]
    return found


def _fit(learner: Learner, points: _Floats, seed: int) -> Distribution | None:
    law = _COPIES.fit(learner, points.copy(), seed=seed)
    return None if law is ABSTAIN else law


def _score(law: Distribution, points: _Floats) -> float:
    return alone(lambda: float(np.mean(law.log_density(points))), failed=-np.inf)


def _supported(learner: Learner, points: _Floats) -> NDArray[np.bool_]:
    """Return which points a law of the learner can reach whatever its free parameters, shape (m,)."""
    fixed = dict(learner.fixed) if isinstance(learner, ScipyLearner) else {}
    if not isinstance(learner, ScipyLearner) or "loc" not in fixed:
        return np.ones(len(points), dtype=bool)
    family = getattr(importlib.import_module("scipy.stats"), learner.family)
    unit = fixed.get("scale")
    low, high = float(family.a), float(family.b)
    if unit is None:  # an end at 0 stays, others move with the scale
        low, high = (0.0 if low >= 0 else -np.inf), (0.0 if high <= 0 else np.inf)
    else:
        low, high = low * unit, high * unit
    offset = points[:, 0] - fixed["loc"]
    found: NDArray[np.bool_] = (offset > low) & (offset < high)
    return found


def _joblib() -> Any:  # noqa: ANN401 - a module
    try:
        return importlib.import_module("joblib")
    except ImportError:
        raise InvalidParameter("n_jobs needs joblib: pip install 'accord[sklearn]', or leave it out.") from None
