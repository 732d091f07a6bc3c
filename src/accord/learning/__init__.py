"""The learners of the theorem: blocks, coupled votes, a private selection, learning again."""

from accord.learning.aggregate import aggregate
from accord.learning.black_box import PrivateLearner
from accord.learning.blocks import partition
from accord.learning.isolation import Isolation
from accord.learning.sampler import PrivateSampler
from accord.learning.synthesis import SamplePlan, Synthesis, sample_plan, sample_rows, synthesise
from accord.learning.two_stage import CoarseRelease, CoarseVotes, TwoStageSampler

__all__ = [
    "CoarseRelease",
    "CoarseVotes",
    "Isolation",
    "PrivateLearner",
    "PrivateSampler",
    "SamplePlan",
    "Synthesis",
    "TwoStageSampler",
    "aggregate",
    "partition",
    "sample_plan",
    "sample_rows",
    "synthesise",
]
