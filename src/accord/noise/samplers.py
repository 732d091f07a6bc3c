"""Exact draws of discrete Laplace and Gaussian noise: no float decides anything."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter
from accord.core.secret import PrivateRandomness, stuck
from accord.noise.cell_table import WORD, Bounds, CellTable, exp_bounds, is_below_exp, powers, times

__all__ = [
    "discrete_gaussian",
    "discrete_laplace",
]


Integers = NDArray[Any]
"""dtype int64, or object (Python ints) where int64 would not do."""

_FEW = 2048
_CHUNK = 1 << 16
_LARGEST = 1 << 62
_MOST_ROUNDS = 256


def discrete_laplace(scale: Fraction, *, size: int, randomness: PrivateRandomness) -> Integers:
    """Return ``size`` independent integers z with probability exactly proportional to ``exp(-|z| / scale)``.

    z is ``g`` or ``-1 - g`` (odds ``1 : exp(-1/scale)``) for a geometric ``g >= 0`` with ratio ``exp(-1/scale)``, and
    the digits of g in a base of a power of 2 are independent; each digit has a small table.

    Formal guarantees
    -----------------
    - Law: exact; no float occurs and nothing is cut off.
    - An entry above 2^62 in size, of chance below ``2 exp(-2^62 / scale)``, turns the result into Python ints.
    - Not promised: running time independent of the values.

    Parameters
    ----------
    scale
        Above 0.
    size
        At least 0.
    randomness
        The secret source.

    Raises
    ------
    InvalidParameter
        If ``scale`` is not above 0 or ``size`` is below 0.

    Source
    ------
    Canonne, Kamath and Steinke (2020) for the law; docs/proofs/discrete-laplace.md for the digits.

    Examples
    --------
    >>> discrete_laplace(Fraction(20), size=3, randomness=PrivateRandomness()).shape
    (3,)

    """
    if not scale > 0 or size < 0:
        message = "scale must be above 0 and size at least 0."
        raise InvalidParameter(message)
    digits, top = _tables(scale, size <= _FEW)
    pieces = [_chunk(digits, top, min(_CHUNK, size - start), randomness) for start in range(0, max(size, 1), _CHUNK)]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _chunk(digits: "tuple[Digit, ...]", top: "Top", size: int, randomness: PrivateRandomness) -> Integers:
    negative, magnitude = top.draw(size, randomness=randomness)
    for digit in digits:
        magnitude = place(magnitude, 1 << digit.width, digit.table.draw(size, randomness=randomness))
    return np.where(negative, ~magnitude, magnitude)


def place(high: Integers, unit: int, low: Integers) -> Integers:
    """Return ``high * unit + low`` for entries at least 0, in Python ints if int64 might wrap around."""
    if high.dtype == object or unit > _LARGEST or high.max(initial=0) >= _LARGEST // unit:
        return np.asarray(high.astype(object) * unit + low.astype(object), dtype=object)
    return np.asarray(high * unit + low)


@final
@dataclass(frozen=True, slots=True)
class Geometric:
    """Cells 0 .. count - 1 with weights ``exp(-rate j)``."""

    rate: Fraction
    count: int

    def weights(self, precision: int) -> list[Bounds]:
        """Return bounds of the weights."""
        return powers(self.rate, self.count, precision)


@final
@dataclass(frozen=True, slots=True)
class SignAndTop:
    """Cells (negative, 0), .., (negative, m - 1), (negative, rest), (other, rest), (other, m - 1), .., (other, 0).

    The rest is "m or more". The first and last cell are likely ones, so a stuck source still yields a value.
    """

    sign: Fraction
    rate: Fraction
    most: int

    def weights(self, precision: int) -> list[Bounds]:
        """Return bounds of the weights; the rest is a geometric series."""
        listed = powers(self.rate, self.most + 1, precision)
        low, high = exp_bounds(self.rate, precision)
        one = 1 << precision
        first = listed.pop()
        listed.append(((first[0] << precision) // (one - low), -((-first[1] << precision) // (one - high))))
        odds = exp_bounds(self.sign, precision)
        return [times(odds, weight, precision) for weight in listed] + listed[::-1]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Digit:
    """A digit of the geometric variable, of ``width`` bits."""

    width: int
    table: CellTable


@final
@dataclass(frozen=True, slots=True, eq=False)
class Top:
    """The sign and the leading digit, which has no upper end."""

    most: int
    table: CellTable

    def draw(self, size: int, *, randomness: PrivateRandomness) -> tuple[NDArray[np.bool_], Integers]:
        """Return the sign (True: ``-1 - g``) and the leading digit."""
        cells = self.table.draw(size, randomness=randomness)
        digit: Integers = np.minimum(cells, 2 * self.most + 1 - cells)
        pending = np.flatnonzero(digit == self.most)
        rounds = 0
        while pending.size:
            rounds += 1
            if rounds > _MOST_ROUNDS:
                stuck()
            # Memoryless: given "m or more", what exceeds m has the law of a fresh leading digit.
            fresh = self.table.draw(pending.size, randomness=randomness)
            more = np.minimum(fresh, 2 * self.most + 1 - fresh)
            digit[pending] += more
            pending = pending[more == self.most]
        return cells <= self.most, digit


@lru_cache(maxsize=16)
def _tables(scale: Fraction, few: bool) -> tuple[tuple[Digit, ...], Top]:  # noqa: FBT001 - a key of the cache
    """Return the digits, the highest first, and the top. Few draws get many small tables, many draws few large ones."""
    top_bits, width = (1, 4) if few else (5, 12)
    low_bits = max(0, int(scale).bit_length() - 1 - top_bits)
    digits = []
    for start in range(0, low_bits, width):
        bits = min(width, low_bits - start)
        digits.append(Digit(bits, CellTable.of(Geometric(Fraction(1 << start) / scale, 1 << bits))))
    rate = Fraction(1 << low_bits) / scale
    most = int(23 / rate) + 1  # the rest has a chance below 2^-33
    return tuple(reversed(digits)), Top(most, CellTable.of(SignAndTop(1 / scale, rate, most)))


_LARGEST_VARIANCE = 1 << 100
_MOST_CELL_ROUNDS = 8192


def discrete_gaussian(variance: Fraction, *, size: int, randomness: PrivateRandomness) -> NDArray[Any]:
    """Return ``size`` independent integers z with probability exactly proportional to ``exp(-z^2 / (2 variance))``.

    ``|z| = unit * a + r``: a comes from a table, r is uniform below the power of two ``unit``, and the pair is kept
    with chance ``exp(-(2 unit a r + r^2) / (2 variance))``; a value beyond the table comes from a geometric tail that
    is thinned to the right law.

    Formal guarantees
    -----------------
    - Law: exact; no float occurs and nothing is cut off.
    - An entry above 2^62 in size turns the result into Python ints.
    - Not promised: running time independent of the values.

    Parameters
    ----------
    variance
        The parameter sigma^2 (the true variance is a little smaller): above 0, at most 2^100.
    size
        At least 0.
    randomness
        The secret source.

    Raises
    ------
    InvalidParameter
        Outside these ranges.

    Source
    ------
    Canonne, Kamath and Steinke (2020) for the law; docs/proofs/discrete-gaussian.md for this sampler.

    Examples
    --------
    >>> discrete_gaussian(Fraction(9, 4), size=3, randomness=PrivateRandomness()).shape
    (3,)

    """
    if not 0 < variance <= _LARGEST_VARIANCE or size < 0:
        message = "variance must be above 0 and at most 2^100, and size at least 0."
        raise InvalidParameter(message)
    sampler = _sampler(variance, size <= _FEW)
    pieces = [sampler.draw(min(_CHUNK, size - start), randomness) for start in range(0, max(size, 1), _CHUNK)]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


@final
@dataclass(frozen=True, slots=True)
class HalfGaussian:
    """Cells 1, 2, .., most, rest, 0 with weights ``exp(-a^2 / (2 variance))``.

    The rest is the geometric series that starts at ``exp(-(most + 1)^2 / (2 variance))`` with ratio
    ``exp(-(most + 1) / variance)``, an upper bound of the weights beyond ``most``. Every weight is thus a rational
    function of one exponential, and no cut can be rational.
    """

    variance: Fraction
    most: int

    def weights(self, precision: int) -> list[Bounds]:
        """Return bounds of the weights."""
        one = 1 << precision
        weight: Bounds = (one, one)
        ratio = exp_bounds(1 / (2 * self.variance), precision)
        step = exp_bounds(1 / self.variance, precision)
        listed = [weight]
        for _ in range(self.most + 1):
            weight = times(weight, ratio, precision)
            ratio = times(ratio, step, precision)
            listed.append(weight)
        low, high = exp_bounds((self.most + 1) / self.variance, precision)
        rest = (listed[-1][0] << precision) // (one - low), -((-listed[-1][1] << precision) // (one - high))
        return [*listed[1:-1], rest, listed[0]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sampler:
    """Everything that depends on the variance and not on the draw."""

    variance: Fraction
    unit: int
    coarse: Fraction
    most: int
    table: CellTable

    def draw(self, size: int, randomness: PrivateRandomness) -> NDArray[Any]:
        """Return ``size`` draws: proposals until each place has kept one."""
        result: NDArray[Any] = np.zeros(size, dtype=np.int64)
        pending = np.arange(size)
        rounds = 0
        while pending.size:
            rounds += 1
            if rounds > _MOST_CELL_ROUNDS:
                stuck()
            values, kept = self._propose(pending.size, randomness)
            if values.dtype == object:
                result = result.astype(object)
            result[pending[kept]] = values[kept]
            pending = pending[~kept]
        return result

    def _propose(self, size: int, randomness: PrivateRandomness) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        # The cell order of the table: 1 .. most, rest, 0.
        high: NDArray[Any] = (self.table.draw(size, randomness=randomness) + 1) % (self.most + 2)
        kept = np.ones(size, dtype=np.bool_)
        for place_ in np.flatnonzero(high > self.most):
            beyond = self._beyond(randomness)
            kept[place_] = beyond is not None
            high[place_] += beyond or 0
        low = np.zeros(size, dtype=np.int64)
        if self.unit > 1:
            low = (randomness.words(size) >> np.uint64(WORD + 1 - self.unit.bit_length())).astype(np.int64)
            kept &= self._coins(high, low, randomness)
        size_ = place(high, self.unit, low)
        negative = (randomness.words(size) >> np.uint64(WORD - 1)) == 0
        kept &= ~(negative & (size_ == 0))  # zero has one sign
        return np.where(negative, -size_, size_), kept

    def _beyond(self, randomness: PrivateRandomness) -> int | None:
        """Return how far a value lies beyond the first one outside the table, or None if the proposal is dropped."""
        drawn = int(discrete_laplace(self.coarse / (self.most + 1), size=1, randomness=randomness)[0])
        excess = drawn if drawn >= 0 else -1 - drawn
        kept = is_below_exp(randomness.bits(WORD), excess**2 / (2 * self.coarse), randomness=randomness)
        return excess if kept else None

    def _coins(self, high: NDArray[Any], low: NDArray[np.int64], randomness: PrivateRandomness) -> NDArray[np.bool_]:
        """Keep (a, r) with chance exp(-x), x = (2 unit a r + r^2) / (2 variance).

        As exp(-x) >= 1 - x, a U below 1 - (largest x) is below exp(-x) without a look at x; the others are compared
        exactly.
        """
        words = randomness.words(len(high))
        largest = (2 * int(high.max(initial=0)) + 1) * self.unit**2 / (2 * self.variance)
        sure = max(0, (1 - largest) * 2**WORD // 1)
        kept = words < np.uint64(sure) if sure else np.zeros(len(high), dtype=np.bool_)
        for open_ in np.flatnonzero(~kept):
            r = int(low[open_])
            x = (2 * self.unit * int(high[open_]) + r) * r / (2 * self.variance)
            kept[open_] = is_below_exp(int(words[open_]), x, randomness=randomness)
        return kept


@lru_cache(maxsize=16)
def _sampler(variance: Fraction, few: bool) -> Sampler:  # noqa: FBT001 - a key of the cache
    """Return the sampler. Few draws get a small table, many draws a large one, which needs hardly any coins."""
    sigma_bits = max(0, int(variance).bit_length() - 1) // 2
    unit = 1 << max(0, sigma_bits - (4 if few else 10))
    coarse = variance / unit**2
    # At 7 sigma the rest has a chance below 2^-33.
    most = math.isqrt(int(49 * coarse)) + 1
    return Sampler(variance, unit, coarse, most, CellTable.of(HalfGaussian(coarse, most)))
