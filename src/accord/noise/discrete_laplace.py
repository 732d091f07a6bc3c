"""Add two-sided geometric noise to integers."""

import math
import numbers
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import PureDP, Sensitivity
from accord.core.release import Release, ran
from accord.core.secret import PrivateRandomness, require_private
from accord.noise.numbers import add_exactly, as_sensitivity, float_up, laplace_tail, least_integer, miss, read_integers
from accord.noise.samplers import discrete_laplace

__all__ = ["DiscreteLaplace"]

_FAR = Fraction(10**6)  # a float holds no exp(-_FAR)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """Add two-sided geometric noise to an integer query, or to an array of integers.

    Formal guarantees
    -----------------
    - Privacy: ``sensitivity.bound / scale``-DP under ``sensitivity.neighbouring``, exactly, for all entries together.
      The sensitivity is the caller's claim.
    - Law: each entry's noise is z with probability exactly proportional to ``exp(-|z| / scale)``, independent of the
      others.
    - No wrap-around: sums are exact. An array comes back as int64, or with Python ints if some sum needs them, which
      depends on the released sums alone.
    - Sensitivity 0 releases the integers themselves: they do not depend on the data.
    - Bytes: a call draws as many as `scale` and the number of entries say, whatever the values and the noise are; more
      with a chance below 2^-32 an entry, when a draw is refined.
    - Not promised: running time independent of values and noise. Noise is drawn for the whole array at once.

    Parameters
    ----------
    sensitivity
        The largest L1 distance between the query's values on two neighbours: a `Sensitivity`, or a number at least 0
        for "replace one". Neighbours may differ in the number of a unit's records and in their places. For an
        array, of the whole array: replacing a unit of one record moves a histogram by 2, one of up to m by 2 m.
    scale
        Above 0, exact: any rational. For epsilon-DP give ``sensitivity / epsilon``.

    Raises
    ------
    InvalidParameter
        Outside these ranges.

    Source
    ------
    Ghosh, Roughgarden and Sundararajan (2009); Canonne, Kamath and Steinke (2020); docs/proofs/discrete-laplace.md.

    Examples
    --------
    >>> mechanism = DiscreteLaplace(sensitivity=1, scale=2)
    >>> mechanism.guarantee.epsilon
    Fraction(1, 2)
    >>> mechanism.release([10, 20, 30]).value.shape
    (3,)
    >>> isinstance(mechanism.release(7).value, int)
    True
    >>> mechanism.interval("0.95")
    (-6, 6)

    """

    sensitivity: Sensitivity
    scale: Fraction

    def __init__(self, *, sensitivity: Sensitivity | Number, scale: Number) -> None:
        _check.store(self, sensitivity=as_sensitivity(sensitivity))
        exact = _check.exact("scale", scale)
        if exact <= 0:
            message = "scale must be above 0: no noise means no privacy."
            raise InvalidParameter(message)
        _check.store(self, scale=exact)

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of one release."""
        return PureDP(self.sensitivity.bound / self.scale, self.sensitivity.neighbouring)

    def release(self, value: int | ArrayLike, *, randomness: PrivateRandomness | None = None) -> Release[Any]:
        """Add noise once.

        Parameters
        ----------
        value
            An int of any size, or ints of any shape.
        randomness
            The operating system's source unless given.

        Returns
        -------
        Release
            Of a Python int for a single integer, otherwise of an array of the same shape.

        Raises
        ------
        WrongRandomness
            If ``randomness`` is anything but secret.
        InvalidParameter
            If an entry is not an integer. Nothing has been drawn then.

        """
        source = require_private(randomness)
        values = read_integers(value)
        if self.sensitivity.bound == 0:
            total = values
        else:
            noise = discrete_laplace(self.scale, size=values.size, randomness=source)
            total = add_exactly(values, noise.reshape(values.shape))
        return Release(
            int(total[()]) if isinstance(value, numbers.Integral) else total,
            *ran(self, self.guarantee),
        )

    def pmf(self, noise: ArrayLike) -> NDArray[np.float64]:
        """Return P[noise = z] for each integer z, in floats; 0 where z is not an integer."""
        z = np.asarray(noise, dtype=np.float64)
        rate = float(min(1 / self.scale, _FAR))
        return np.where(z == np.floor(z), math.tanh(rate / 2) * np.exp(-np.abs(z) * rate), 0.0)

    def cdf(self, noise: ArrayLike) -> NDArray[np.float64]:
        """Return P[noise <= z] for each z, in floats."""
        z = np.floor(np.asarray(noise, dtype=np.float64))
        rate = float(min(1 / self.scale, _FAR))
        side = np.exp(-np.maximum(np.where(z < 0, -z, z + 1), 0) * rate) / (1 + math.exp(-rate))
        return np.where(z < 0, side, 1 - side)

    def tail(self, t: Number, *, dimension: int = 1) -> float:
        """Return P[some entry's |noise| >= t] for ``dimension`` entries: an upper bound, tight for one entry."""
        least = math.ceil(_check.exact("t", t))
        dimension = _check.integer("dimension", dimension, least=1)
        if self.sensitivity.bound == 0:
            return 1.0 if least <= 0 else 0.0
        return float_up(laplace_tail(least, scale=self.scale, dimension=dimension))

    def interval(self, confidence: Number, *, dimension: int = 1) -> tuple[int, int]:
        """Return ``(-h, h)`` that holds the noise of all ``dimension`` entries with at least this probability.

        The value then lies within h of what is released.
        """
        allowed = miss(confidence)
        dimension = _check.integer("dimension", dimension, least=1)
        if self.sensitivity.bound == 0:
            return 0, 0
        half = least_integer(lambda h: laplace_tail(h + 1, scale=self.scale, dimension=dimension) <= allowed)
        return -half, half
