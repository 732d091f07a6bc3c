"""What a learner must offer."""

from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from accord.distributions import Distribution

__all__ = ["Learner"]


@runtime_checkable
class Learner(Protocol):
    """Any non-private estimator of a distribution.

    Privacy never depends on it: a learner may be wrong, fail, or overfit. It must only be a function of ``records`` and
    ``seed``, without memory of earlier fits; accord hands every block its own copy all the same.

    How a block's cells are read is the learner's public word, never the container's: an attribute ``cells`` that is
    "numbers" (each cell as a float, NaN for what is none; so also without the attribute), or "labels" (each cell as a
    plain Python value, None for what is missing; whole floats are ints).

    Before anything is spent, a learner may be tried with its coupling on tables that accord makes up: normal,
    log-normal and uniform numbers, whole numbers, words. If its laws of these are none that the coupling takes, it may
    offer others, by a method ``example(size, columns)`` that returns at most ``size`` made-up records of shape
    (size, columns). They are public: they must not be read off the data.
    """

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        """Return a distribution learnt from ``records``, shape (n, d).

        Raises
        ------
        FitFailed
            If these records do not allow a fit. Any exception counts the same: the block abstains.

        """
