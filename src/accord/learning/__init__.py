"""Private learners with sizes of one's own: blocks, coupled votes, a private selection, learning again."""

import importlib
from typing import Any

from accord._moved import moved
from accord.core.aggregate import aggregate
from accord.core.blocks import partition
from accord.core.coupling import ABSTAIN
from accord.core.isolation import Isolation
from accord.learning.learner import PrivateLearner
from accord.learning.sampler import PrivateSampler
from accord.learning.two_stage import CoarseRelease, CoarseVotes, TwoStageSampler

__all__ = [
    "ABSTAIN",
    "CoarseRelease",
    "CoarseVotes",
    "Isolation",
    "PrivateLearner",
    "PrivateSampler",
    "TwoStageSampler",
    "aggregate",
    "partition",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attribute
    """Load what needs scikit-learn when it is first asked for, and names that moved with a warning."""
    if name == "PrivateDensity":
        return importlib.import_module("accord").PrivateDensity
    return moved(__name__, name)
