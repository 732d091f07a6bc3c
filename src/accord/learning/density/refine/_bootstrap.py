"""Candidates near a public model: samples of it, refitted. Post-processing."""

from functools import partial

import numpy as np

from accord.core.alone import alone
from accord.core.coupling import Learner
from accord.core.isolation import Isolation
from accord.core.shared import SharedRandomness
from accord.distributions import Distribution

__all__ = ["bootstrap"]


def bootstrap(
    model: Distribution,
    learner: Learner,
    *,
    size: int,
    candidates: int,
    isolation: Isolation,
    shared: SharedRandomness,
) -> list[Distribution]:
    """Return at most so many laws, each fitted to ``size`` records of the model; failed fits are left out.

    Everything here is public: whether a fit fails is a function of the model and the key.
    """
    found = []
    for number in range(candidates):
        records = np.asarray(model.sample(size, shared.stream("records", number)), dtype=np.float64)
        law = isolation.fit(learner, records, seed=shared.seed("fit", number))
        usable = alone(partial(_usable, law, like=model), failed=None)
        if usable is not None:
            found.append(usable)
    return found


def _usable(law: object, *, like: Distribution) -> Distribution | None:
    return law if isinstance(law, Distribution) and law.dimension == like.dimension else None
