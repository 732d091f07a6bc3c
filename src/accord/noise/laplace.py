"""Add Laplace noise to a real vector, on a public grid."""

import math
from dataclasses import dataclass
from decimal import Decimal
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
from accord.noise.numbers import (
    add_exactly,
    as_sensitivity,
    float_up,
    from_steps,
    laplace_tail,
    least_integer,
    miss,
    read_reals,
    to_steps,
)
from accord.noise.samplers import discrete_laplace

__all__ = ["Laplace"]

_GRID_BITS = 40
_LARGEST_BITS = 900
_SMALLEST_EPSILON = Fraction(1, 1 << 30)  # the noise has log(1 / epsilon) digits, and each a certified table


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Add Laplace noise of scale ``sensitivity / epsilon`` to each coordinate of a real vector.

    Both the value and the noise are whole multiples of a public `step`, a power of two about 2^-40 of the scale.
    Rounding the value can move d coordinates further apart than the sensitivity says; `noise_scale` pays for that, so
    the promise is epsilon and not epsilon and a bit.

    Formal guarantees
    -----------------
    - Privacy: epsilon-DP under ``sensitivity.neighbouring``, exactly, for all coordinates together. The sensitivity is
      the caller's claim, about the floats that are handed over.
    - Law: a release is ``step * (floor(value / step + 1/2) + z)``, z integers independent with probability exactly
      proportional to ``exp(-|z| step / noise_scale(d))``, rounded to a float once (no rounding up to 2^53 steps). It is
      a multiple of ``step`` whatever the value, and at most the largest float in size.
    - Sensitivity 0 releases the value itself, a point mass: it does not depend on the data. No noise, no grid.
    - Not promised: running time independent of values and noise. Noise is drawn for the whole vector at once.

    Parameters
    ----------
    sensitivity
        The largest L1 distance between the query's values on two neighbours: a `Sensitivity`, or a number at least 0
        for "replace one". Neighbours may differ in the number of a unit's records and in their places: in floats, a
        sum's rounding errors belong to it, those of another order too.
    epsilon
        At least 2^-30, about 1e-9, and at most 1000. Kept as an exact fraction.

    Raises
    ------
    InvalidParameter
        Outside these ranges, or if the scale is not from 2^-900 to 2^900.

    Source
    ------
    Theory M1, M2 (Dwork, McSherry, Nissim and Smith 2006); why a grid: Mironov (2012); docs/proofs/laplace.md.

    Examples
    --------
    >>> mechanism = Laplace(sensitivity=1, epsilon="0.5")
    >>> mechanism.scale, mechanism.step == Fraction(1, 2**39)
    (Fraction(2, 1), True)
    >>> released = mechanism.release([1.5, 2.5, 1e9])
    >>> released.value.shape, released.guarantee.epsilon
    ((3,), Fraction(1, 2))
    >>> Laplace(sensitivity=0, epsilon=1).release(0.1).value
    0.1

    """

    sensitivity: Sensitivity
    epsilon: Fraction

    def __init__(self, *, sensitivity: Sensitivity | Number, epsilon: Number) -> None:
        claimed, loss = as_sensitivity(sensitivity), _check.epsilon(epsilon)
        _check.store(self, sensitivity=claimed, epsilon=loss)
        if loss < _SMALLEST_EPSILON:
            raise InvalidParameter(
                "epsilon must be at least 2^-30, about 1e-9: the noise would hide any value there is."
            )
        if claimed.bound != 0 and not Fraction(1, 1 << _LARGEST_BITS) <= claimed.bound / loss <= 1 << _LARGEST_BITS:
            message = (
                "sensitivity / epsilon must be 0 or from 2^-900 to 2^900: floats go no further. Rescale the query."
            )
            raise InvalidParameter(message)

    @property
    def scale(self) -> Fraction:
        """The nominal scale b = sensitivity / epsilon."""
        return self.sensitivity.bound / self.epsilon

    @property
    def step(self) -> Fraction:
        """The step of the grid: the power of two g with ``2^40 g <= scale < 2^41 g``; 0 at scale 0."""
        return Fraction(2) ** self._exponent if self.scale else Fraction(0)

    @property
    def _exponent(self) -> int:
        top, bottom = self.scale.numerator, self.scale.denominator
        floor_log = top.bit_length() - bottom.bit_length()
        floor_log -= Fraction(2) ** floor_log > self.scale
        return floor_log - _GRID_BITS

    def noise_scale(self, dimension: int) -> Fraction:
        """Return the scale of the noise for d coordinates: ``step * (ceil(sensitivity / step) + d - 1) / epsilon``.

        On the grid, neighbours are at most ``ceil(sensitivity / step) + d - 1`` steps apart, added over the
        coordinates. The surplus over `scale` is below ``d / (2^40 epsilon)`` of it; it is nil for one coordinate and a
        sensitivity on the grid, such as 1.
        """
        dimension = _check.integer("dimension", dimension, least=0)
        return self.step * self._steps_apart(dimension) / self.epsilon

    def _steps_apart(self, dimension: int) -> int:
        return math.ceil(self.sensitivity.bound / self.step) + max(dimension, 1) - 1 if self.scale else 0

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of one release, of any dimension."""
        return PureDP(self.epsilon, self.sensitivity.neighbouring)

    def release(
        self, value: ArrayLike | Fraction | Decimal, *, randomness: PrivateRandomness | None = None
    ) -> Release[Any]:
        """Add noise once.

        Parameters
        ----------
        value
            A finite real, or finite reals of any shape; the number of coordinates must be public. Ints and Fractions
            are taken exactly, whatever their size, and so are Decimals from 1e-10000 to below 1e10001 in size (and 0).
        randomness
            The operating system's source unless given.

        Returns
        -------
        Release
            Of a float for a single number, otherwise of a float64 array of the same shape.

        Raises
        ------
        WrongRandomness
            If ``randomness`` is anything but secret.
        InvalidParameter
            If a coordinate is NaN, infinite, no real number or such a Decimal beyond that. Nothing has been drawn then.

        """
        source = require_private(randomness)
        values = read_reals(value)
        if self.scale == 0:
            result = values if values.dtype == np.float64 else from_steps(values, exponent=0)
        else:
            steps = to_steps(values, exponent=self._exponent)
            in_steps = self._steps_apart(values.size) / self.epsilon
            noise = discrete_laplace(in_steps, size=values.size, randomness=source).reshape(values.shape)
            result = from_steps(add_exactly(steps, noise), exponent=self._exponent)
        return Release(
            result if isinstance(value, np.ndarray) or values.ndim else float(result),
            *ran(self, self.guarantee),
        )

    def density(self, noise: ArrayLike) -> NDArray[np.float64]:
        """Return ``exp(-|z| / scale) / (2 scale)`` for each z (M1): the law that the noise has up to its grid."""
        self._needs_noise()
        scale = float(self.scale)
        return np.asarray(np.exp(-np.abs(np.asarray(noise, dtype=np.float64)) / scale) / (2 * scale))

    def cdf(self, noise: ArrayLike) -> NDArray[np.float64]:
        """Return the distribution function that belongs to `density`, for each z."""
        self._needs_noise()
        z = np.asarray(noise, dtype=np.float64) / float(self.scale)
        side = np.exp(-np.abs(z)) / 2
        return np.where(z < 0, side, 1 - side)

    def _needs_noise(self) -> None:
        if self.scale == 0:
            message = "sensitivity is 0: the noise is a point mass at 0 and has no density."
            raise InvalidParameter(message)

    def tail(self, t: Number, *, dimension: int = 1) -> float:
        """Return an upper bound of P[some coordinate of the release is at least t away from its value].

        For ``dimension`` coordinates; about ``dimension * exp(-t / scale)``. It covers the rounding of the value to the
        grid.
        """
        distance = _check.exact("t", t)
        dimension = _check.integer("dimension", dimension, least=1)
        if self.scale == 0 or distance <= 0:
            return 1.0 if distance <= 0 else 0.0
        least = math.ceil(distance / self.step - Fraction(1, 2))
        in_steps = self._steps_apart(dimension) / self.epsilon
        return float_up(laplace_tail(least, scale=in_steps, dimension=dimension))

    def interval(self, confidence: Number, *, dimension: int = 1) -> tuple[float, float]:
        """Return ``(-h, h)`` such that with at least this probability all coordinates lie within h of their values."""
        allowed = miss(confidence)
        dimension = _check.integer("dimension", dimension, least=1)
        if self.scale == 0:
            return 0.0, 0.0
        in_steps = self._steps_apart(dimension) / self.epsilon
        steps = least_integer(lambda h: laplace_tail(h + 1, scale=in_steps, dimension=dimension) <= allowed)
        half = float_up(self.step * (steps + Fraction(1, 2)))
        return -half, half
