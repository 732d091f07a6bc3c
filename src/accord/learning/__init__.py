"""The learners of the theorem: blocks, coupled votes, a private selection, learning again; private densities."""

from typing import TYPE_CHECKING, Any

from accord.core.aggregate import aggregate
from accord.core.blocks import partition
from accord.core.coupling import ABSTAIN
from accord.core.isolation import Isolation
from accord.learning._surplus import RecordsUse
from accord.learning.agnostic import AgnosticPrivateLearner
from accord.learning.black_box import PrivateLearner
from accord.learning.boosted import BoostedPrivateLearner
from accord.learning.sampler import PrivateSampler
from accord.learning.synthesis import SamplePlan, Synthesis, sample_plan, sample_rows, synthesise
from accord.learning.two_stage import CoarseRelease, CoarseVotes, TwoStageSampler

if TYPE_CHECKING:
    from accord.learning.density.estimator import PrivateDensity

__all__ = [
    "ABSTAIN",
    "AgnosticPrivateLearner",
    "BoostedPrivateLearner",
    "CoarseRelease",
    "CoarseVotes",
    "Isolation",
    "PrivateDensity",
    "PrivateLearner",
    "PrivateSampler",
    "RecordsUse",
    "SamplePlan",
    "Synthesis",
    "TwoStageSampler",
    "aggregate",
    "partition",
    "sample_plan",
    "sample_rows",
    "synthesise",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attribute
    """Load what needs scikit-learn when it is first asked for."""
    if name == "PrivateDensity":
        from accord import PrivateDensity  # noqa: PLC0415 - an optional dependency

        return PrivateDensity
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
