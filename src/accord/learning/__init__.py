"""The learners of the theorem: blocks, coupled votes, a private selection, learning again."""

from accord.learning._surplus import RecordsUse
from accord.learning.aggregate import aggregate
from accord.learning.agnostic import AgnosticPrivateLearner
from accord.learning.black_box import PrivateLearner
from accord.learning.blocks import partition
from accord.learning.boosted import BoostedPrivateLearner
from accord.learning.isolation import Isolation
from accord.learning.sampler import PrivateSampler
from accord.learning.synthesis import SamplePlan, Synthesis, sample_plan, sample_rows, synthesise
from accord.learning.two_stage import CoarseRelease, CoarseVotes, TwoStageSampler

__all__ = [
    "AgnosticPrivateLearner",
    "BoostedPrivateLearner",
    "CoarseRelease",
    "CoarseVotes",
    "Isolation",
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
