"""Discrete Laplace noise of every rational scale: the exact law, a million draws in a fraction of a second."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter
from accord.core.secret import PrivateRandomness, stuck
from accord.randomness._table import Bounds, CellTable, exp_bounds, powers, times

__all__ = ["discrete_laplace"]

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
