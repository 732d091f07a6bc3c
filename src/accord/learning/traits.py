"""What a learner says of itself in public: how it reads cells, how many columns and how few records, its laws."""

from collections.abc import Sequence

from accord.core import check as _check
from accord.core.coupling import Distribution, Learner
from accord.core.records import Records, cells_read_by
from accord.learners import EmpiricalLearner, GaussianLearner, HistogramLearner

__all__ = ["columns_of", "least_records", "listed_laws", "read_for"]


def columns_of(learner: Learner) -> int | None:
    """Return how many columns a learner's records have, where that is public; None where it is not known."""
    match learner:
        case EmpiricalLearner() | HistogramLearner():
            return 1
        case GaussianLearner(dimension=dimension):
            return dimension
        case _:
            candidates = listed_laws(learner)
            return candidates[0].dimension if candidates else None


def read_for(learner: Learner, data: object, *, units: object, unit: str | None) -> Records:
    """Return records as a learner declares to read them: numbers or labels, and of how many columns if it is known.

    A row of a list that is of another length than the learner is missing cells, and decides nothing about others.
    """
    return Records.of(data, units=units, unit=unit, cells=cells_read_by(learner), columns=columns_of(learner))


def listed_laws(learner: Learner) -> tuple[Distribution, ...]:
    """Return the public list of laws that a learner chooses from, if it has one and all are of one dimension."""
    listed = getattr(learner, "candidates", ())
    laws = tuple(listed) if isinstance(listed, Sequence) else ()
    if not all(isinstance(law, Distribution) for law in laws) or len({law.dimension for law in laws}) > 1:
        return ()
    return laws


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
