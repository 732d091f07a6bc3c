"""Add discrete Gaussian noise to integers."""

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
from accord.core.guarantee import ApproxDP, Sensitivity
from accord.core.release import Release, ran
from accord.core.secret import PrivateRandomness, require_private
from accord.mechanisms._gaussian_curve import curve, least_epsilon, tail_upper
from accord.mechanisms._integers import add_exactly, read_integers
from accord.mechanisms._noise_numbers import as_sensitivity, float_up, least_integer, miss
from accord.randomness import discrete_gaussian

__all__ = ["DiscreteGaussian"]

_LARGEST_SIGMA = 1 << 50


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Add discrete Gaussian noise to an integer query, or to an array of integers.

    Formal guarantees
    -----------------
    - Privacy: for every delta, `guarantee_at`, all bounds rounded outward: by way of `zcdp`, which holds for any number
      of integers; for one integer, said by ``dimension=1``, the exact curve. The sensitivity is the caller's claim.
    - Law: each entry's noise is z with probability exactly proportional to ``exp(-z^2 / (2 sigma^2))``, independent of
      the others.
    - No wrap-around: sums are exact, see `DiscreteLaplace`.
    - Sensitivity 0 releases the integers themselves: they do not depend on the data.
    - Not promised: pure differential privacy; running time independent of values and noise. That sums of noises are
      discrete Gaussian: they are not.

    Parameters
    ----------
    sensitivity
        The largest L2 distance between the query's values on two neighbours: a `Sensitivity`, or a number at least 0
        for "replace one". Neighbours may differ in the number of a unit's records and in their places. Replacing a
        unit of one record moves a histogram by sqrt(2) at most, so give 1.4143; one of up to m records by sqrt(2) m.
    sigma
        Above 0, at most 2^50, exact. The standard deviation is a little smaller.

    Raises
    ------
    InvalidParameter
        Outside these ranges.

    Source
    ------
    Canonne, Kamath and Steinke (2020), Theorems 4 and 7 and Proposition 12; docs/proofs/discrete-gaussian.md.

    Examples
    --------
    >>> mechanism = DiscreteGaussian(sensitivity=1, sigma=10)
    >>> mechanism.zcdp
    Fraction(1, 200)
    >>> mechanism.delta(1) < 1e-23
    True
    >>> released = mechanism.release([10, 20, 30], delta="1e-6")
    >>> released.value.shape, released.guarantee.delta
    ((3,), Fraction(1, 1000000))

    """

    sensitivity: Sensitivity
    sigma: Fraction

    def __init__(self, *, sensitivity: Sensitivity | Number, sigma: Number) -> None:
        object.__setattr__(self, "sensitivity", as_sensitivity(sensitivity))
        exact = _check.exact("sigma", sigma)
        if not 0 < exact <= _LARGEST_SIGMA:
            message = "sigma must be above 0 and at most 2^50: no noise means no privacy."
            raise InvalidParameter(message)
        object.__setattr__(self, "sigma", exact)

    @property
    def variance(self) -> Fraction:
        """The parameter sigma^2."""
        return self.sigma**2

    @property
    def zcdp(self) -> Fraction:
        """The rho of zero-concentrated DP, for any number of entries: ``sensitivity^2 / (2 sigma^2)``."""
        return self.sensitivity.bound**2 / (2 * self.variance)

    def delta(self, epsilon: Number, *, dimension: int | None = None) -> float:
        """Return a delta for which the release is (epsilon, delta)-DP, rounded up.

        With ``dimension=1`` and sigma up to 1024 the smallest delta there is; otherwise what `zcdp` implies.

        Parameters
        ----------
        epsilon
            At least 0.
        dimension
            The number of integers released together, if it is certain; None stands for any number.

        """
        loss = _check.exact("epsilon", epsilon)
        if loss < 0:
            message = "epsilon must be at least 0."
            raise InvalidParameter(message)
        single = _is_single(dimension)
        return float_up(curve(loss, bound=self.sensitivity.bound, variance=self.variance, single=single))

    def guarantee_at(self, delta: Number, *, dimension: int | None = None) -> ApproxDP:
        """Return the (epsilon, delta)-DP guarantee with the least epsilon, rounded up by less than a millionth of it.

        ``dimension`` as for `delta`: without it the guarantee holds for integers of any number.

        Raises
        ------
        InvalidParameter
            If epsilon would be above 1024, or ``delta`` is not from 2^-100 to 1.

        """
        slack = _check.delta(delta)
        single = _is_single(dimension)
        loss = least_epsilon(slack, bound=self.sensitivity.bound, variance=self.variance, single=single)
        return ApproxDP(loss, slack, self.sensitivity.neighbouring)

    def release(
        self, value: int | ArrayLike, *, delta: Number, randomness: PrivateRandomness | None = None
    ) -> Release[Any]:
        """Add noise once.

        Parameters
        ----------
        value
            An int of any size, or ints of any shape; their number must be public.
        delta
            Where on the curve the release is accounted for: its guarantee is `guarantee_at` this delta and this number
            of integers. No effect on the noise.
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
            If an entry is not an integer, or `guarantee_at` refuses. Nothing has been drawn then.

        """
        source = require_private(randomness)
        values = read_integers(value)
        guarantee = self.guarantee_at(delta, dimension=max(values.size, 1))
        if self.sensitivity.bound == 0:
            total = values
        else:
            noise = discrete_gaussian(self.variance, size=values.size, randomness=source)
            total = add_exactly(values, noise.reshape(values.shape))
        _, stages = ran(self, None, entries=max(values.size, 1), delta=guarantee.delta)
        return Release(int(total[()]) if isinstance(value, numbers.Integral) else total, guarantee, stages)

    def pmf(self, noise: ArrayLike) -> NDArray[np.float64]:
        """Return P[noise = z] for each integer z, in floats; 0 where z is not an integer."""
        z = np.asarray(noise, dtype=np.float64)
        twice = float(2 * self.variance)
        # Both series are those of the normalising constant; each is summed where it converges at once.
        if twice < 2:
            total = 1 + 2 * sum(math.exp(-(k**2) / twice) for k in range(1, 11)) if twice > 1e-3 else 1.0
        else:
            total = math.sqrt(math.pi * twice) * (1 + 2 * math.exp(-(math.pi**2) * twice))
        weights = np.exp(-(z**2) / twice) if twice > 1e-3 else (z == 0).astype(np.float64)
        return np.where(z == np.floor(z), weights / total, 0.0)

    def tail(self, t: Number, *, dimension: int = 1) -> float:
        """Return an upper bound of P[some entry's |noise| >= t], tight for one entry and sigma up to 1024."""
        least = math.ceil(_check.exact("t", t))
        dimension = _check.integer("dimension", dimension, least=1)
        if self.sensitivity.bound == 0:
            return 1.0 if least <= 0 else 0.0
        return float_up(tail_upper(least, variance=self.variance, dimension=dimension))

    def interval(self, confidence: Number, *, dimension: int = 1) -> tuple[int, int]:
        """Return ``(-h, h)`` that holds the noise of all ``dimension`` entries with at least this probability."""
        allowed = miss(confidence)
        dimension = _check.integer("dimension", dimension, least=1)
        if self.sensitivity.bound == 0:
            return 0, 0
        half = least_integer(lambda h: tail_upper(h + 1, variance=self.variance, dimension=dimension) <= allowed)
        return -half, half


def _is_single(dimension: int | None) -> bool:
    """Return whether it is certain that one integer is released."""
    return dimension is not None and _check.integer("dimension", dimension, least=1) == 1
