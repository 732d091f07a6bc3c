"""Add discrete Gaussian noise to integers."""

import decimal
import math
import numbers
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number, exp_lower, exp_upper
from accord.core.guarantee import ApproxDP, Sensitivity
from accord.core.release import Release, ran
from accord.core.secret import PrivateRandomness, require_private
from accord.noise.cell_table import Bounds, exp_bounds, times
from accord.noise.numbers import add_exactly, as_sensitivity, float_up, least_integer, miss, read_integers
from accord.noise.samplers import discrete_gaussian

__all__ = [
    "LARGEST_VARIANCE",
    "DiscreteGaussian",
    "curve",
    "least_epsilon",
    "shift_delta",
    "tail_upper",
    "zcdp_delta",
]


LARGEST_VARIANCE = 1 << 20
"""Up to this variance sums are computed term by term."""

_BITS = 320
_FAR = Fraction(1000)
_SLACK = Fraction(1, 10**30)
_LARGEST_EPSILON = 1024
_HALVINGS = 30


@lru_cache(maxsize=8)
def _tails(variance: Fraction) -> tuple[Bounds, ...]:
    """Return bounds of ``2^320 * (w_n + w_(n+1) + ...)`` for n = 0, 1, .., w_n = exp(-n^2 / (2 variance)).

    The last entry holds the geometric series that is above everything left.
    """
    most = math.isqrt(int(450 * variance)) + 1  # w_most < 2^-320
    weight: Bounds = (1 << _BITS, 1 << _BITS)
    ratio, step = exp_bounds(1 / (2 * variance), _BITS), exp_bounds(1 / variance, _BITS)
    weights = []
    for _ in range(most):
        weights.append(weight)
        weight, ratio = times(weight, ratio, _BITS), times(ratio, step, _BITS)
    decay = exp_bounds(most / variance, _BITS)[1]
    low, high = 0, -((-weight[1] << _BITS) // ((1 << _BITS) - decay))
    tails = [(low, high)]
    for lower, upper in reversed(weights):
        low, high = low + lower, high + upper
        tails.append((low, high))
    return tuple(reversed(tails))


def _total(variance: Fraction) -> Bounds:
    low, high = _tails(variance)[1]
    return 2 * low + (1 << _BITS), 2 * high + (1 << _BITS)


def _tail(variance: Fraction, least: int) -> Bounds:
    """Return bounds of the weight of all z >= least; ``least`` may be negative."""
    tails = _tails(variance)
    if least >= len(tails):
        return 0, tails[-1][1]
    if least >= 0:
        return tails[least]
    (low, high), (other_low, other_high) = _total(variance), _tail(variance, 1 - least)
    return low - other_high, high - other_low


def tail_upper(least: int, *, variance: Fraction, dimension: int) -> Fraction:
    """Return an upper bound of P[some |Z_i| >= least] for ``dimension`` variables.

    Beyond `LARGEST_VARIANCE` it is the sub-Gaussian bound ``2 exp(-least^2 / (2 variance))``.
    """
    if least <= 0:
        return Fraction(1)
    if variance > LARGEST_VARIANCE:
        one = 2 * exp_upper(-min(Fraction(least**2) / (2 * variance), _FAR))
    else:
        one = Fraction(2 * _tail(variance, least)[1], _total(variance)[0])
    return min(Fraction(1), dimension * one)


def shift_delta(epsilon: Fraction, *, variance: Fraction, shift: int) -> Fraction:
    """Return the smallest delta between Z and Z + shift, shift >= 1, rounded up.

    By less than 2^-150 for epsilon up to 90.

    The privacy loss is monotone, so the worst event is a half line: delta = P[Z >= n - shift] - exp(epsilon) P[Z >= n]
    with n the first integer above ``variance * epsilon / shift + shift / 2``.
    """
    first = math.floor(variance * epsilon / shift + Fraction(shift, 2)) + 1
    gain = _tail(variance, first - shift)[1]
    loss = _tail(variance, first)[0]
    difference = gain - exp_lower(min(epsilon, _FAR)) * loss
    return min(Fraction(1), max(Fraction(0), difference) / _total(variance)[0])


def zcdp_delta(epsilon: Fraction, *, rho: Fraction) -> Fraction:
    """Return a delta that rho-zCDP implies at epsilon.

    It is ``exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1/a)^a`` for an order a > 1 that is nearly the best.
    """
    if rho > _FAR**2:
        return Fraction(1)
    epsilon = min(epsilon, _FAR**3)  # a smaller epsilon has a larger delta
    order = _order(float(epsilon), float(rho))
    context = decimal.Context(prec=60)
    log_order, log_less = (
        context.ln(Decimal(x.numerator)) - context.ln(Decimal(x.denominator)) for x in (order, order - 1)
    )
    power = (order - 1) * (order * rho - epsilon)
    rest = order * (Fraction(log_less) - Fraction(log_order)) - Fraction(log_less)
    slack = _SLACK * (1 + order) * (1 + abs(Fraction(log_less)))
    exponent = power + rest + slack
    return Fraction(1) if exponent >= 0 else exp_upper(max(exponent, -_FAR))


def _order(epsilon: float, rho: float) -> Fraction:
    """Return a nearly best order, in floats: every order above 1 gives a valid bound."""

    def log_delta(log_less: float) -> float:
        less = math.exp(log_less)
        return less * ((1 + less) * rho - epsilon) - (1 + less) * math.log1p(1 / less) - log_less

    low, high = -12.0, 30.0
    for _ in range(80):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if log_delta(left) < log_delta(right) else (left, high)
    return 1 + Fraction(math.exp(low)).limit_denominator(10**6)


def curve(epsilon: Fraction, *, bound: Fraction, variance: Fraction, single: bool) -> Fraction:
    """Return a delta at epsilon for integers at L2 distance ``bound``: the smallest one for a single integer.

    Beyond `LARGEST_VARIANCE`, and for several integers, it is what zero-concentrated DP implies.
    """
    shift = math.floor(bound)
    if shift == 0:  # integers closer than 1 are equal
        return Fraction(0)
    if single and variance <= LARGEST_VARIANCE:
        return shift_delta(epsilon, variance=variance, shift=shift)
    return zcdp_delta(epsilon, rho=bound**2 / (2 * variance))


@lru_cache(maxsize=64)
def least_epsilon(delta: Fraction, *, bound: Fraction, variance: Fraction, single: bool) -> Fraction:
    """Return an epsilon with ``curve(epsilon) <= delta``, above the least one by less than a millionth of it.

    Raises
    ------
    InvalidParameter
        If it would be above 1024.

    """

    def enough(epsilon: Fraction) -> bool:
        return curve(epsilon, bound=bound, variance=variance, single=single) <= delta

    if enough(Fraction(0)):
        return Fraction(0)
    good = Fraction(1, 1 << 30)
    while not enough(good):
        good *= 2
        if good > _LARGEST_EPSILON:
            message = "sigma is too small for this delta: epsilon would be above 1024."
            raise InvalidParameter(message)
    short = good / 2
    for _ in range(_HALVINGS):
        middle = (short + good) / 2
        short, good = (short, middle) if enough(middle) else (middle, good)
    return good


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
        _check.store(self, sensitivity=as_sensitivity(sensitivity))
        exact = _check.exact("sigma", sigma)
        if not 0 < exact <= _LARGEST_SIGMA:
            message = "sigma must be above 0 and at most 2^50: no noise means no privacy."
            raise InvalidParameter(message)
        _check.store(self, sigma=exact)

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
