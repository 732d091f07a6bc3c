"""How few records a learner says that it can be fitted to: a public fact, by which blocks and tuples are refused."""

from accord import _check
from accord.learners import Learner

__all__ = ["least_records"]


def least_records(learner: Learner, *, columns: int) -> int:
    """Return what the learner's method ``least_records(columns)`` says, 0 for one that has no such method.

    Raises
    ------
    InvalidParameter
        If it is no count, or the learner refuses so many columns.

    Examples
    --------
    >>> from accord.learners import EmpiricalLearner, GaussianLearner
    >>> least_records(GaussianLearner(), columns=3), least_records(EmpiricalLearner(["a"]), columns=1)
    (4, 0)

    """
    stated = getattr(learner, "least_records", None)
    return _check.integer("least_records", stated(columns), least=0) if callable(stated) else 0
