"""Non-private learners, one a block."""

from accord.learners.protocol import Learner

__all__ = ["Learner"]
