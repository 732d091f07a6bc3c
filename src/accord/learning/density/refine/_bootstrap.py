"""Candidates near a public model: samples of it, refitted. Post-processing."""

import numpy as np

from accord._abstain import Abstain
from accord.distributions import Distribution
from accord.learners import Learner
from accord.learning.isolation import Isolation
from accord.randomness import SharedRandomness

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
        if not isinstance(law, Abstain) and isinstance(law, Distribution) and law.dimension == model.dimension:
            found.append(law)
    return found
