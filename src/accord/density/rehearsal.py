"""Try an estimator on public points before anything is spent: one that never works must not cost the budget."""

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter
from accord.core.shared import SharedRandomness
from accord.density.family import BlackBox, DensityFamily
from accord.density.sketch import fit_to_points
from accord.learning.rehearsal import continuous_tables

__all__ = ["rehearse"]

_KEY = SharedRandomness(0)
_POINTS = 500


def rehearse(family: DensityFamily, *, columns: int) -> None:
    """Fit a black box to made-up records; refuse it if it takes none of them. Reads no record.

    Parameters
    ----------
    family
        Normal laws are known to work.
    columns
        Of the records to come.

    Raises
    ------
    InvalidParameter
        If it fits neither normal nor log-normal nor uniform records; nothing has been spent.

    Examples
    --------
    >>> from accord.learners import ScipyLearner
    >>> rehearse(BlackBox(learner=ScipyLearner("norm")), columns=1)
    >>> rehearse(BlackBox(learner=ScipyLearner("norm")), columns=2)
    Traceback (most recent call last):
    accord.errors.InvalidParameter: the estimator (ScipyLearner, norm) does not work on any table of 2 columns ...

    """
    if not isinstance(family, BlackBox):
        return
    if any(_works(family, points) for points in continuous_tables(_POINTS, columns)):
        return
    message = (
        f"the estimator ({family.words}) does not work on any table of {columns} column{'s' if columns > 1 else ''} "
        f"that was made up to try it: its fit, score_samples or sample fails, or what they return is no density of "
        f"shape (n,), no records of shape (n, {columns}). Nothing was spent."
    )
    raise InvalidParameter(message)


def _works(family: BlackBox, points: NDArray[np.float64]) -> bool:
    return fit_to_points(family.learner, points, shared=_KEY) is not None
