"""Draw from a table of cells whose ends are irrational: exact, and fast for many draws.

A uniform real U is read 64 bits at a time. The cells cut [0, 1) at c_1 < c_2 < ...; the draw is the cell that holds U.
The first 64 bits decide unless they are also the first 64 bits of a cut (a tie); then both are read further until they
differ. So no bit is rounded: cell by cell, the law is the quotient of real weights.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from accord.core.secret import PrivateRandomness, stuck

__all__ = ["Bounds", "CellTable", "Cells", "cut_floors", "exp_bounds", "is_below_exp", "powers", "times"]

Bounds = tuple[int, int]
"""Integers (low, high) with low <= 2^precision * x <= high, for a real x >= 0."""

WORD = 64
_MOST_BITS = 8192
_MOST_GUIDE_BITS = 16
_SPARE = 64


class Cells(Protocol):
    """The weights of a law's cells, as narrow as asked. Hashable; equal cells have equal weights."""

    def weights(self, precision: int) -> list[Bounds]:
        """Return bounds of 2^precision times each cell's weight; their widths vanish as ``precision`` grows."""

    def __hash__(self) -> int:
        """Return a hash, for the cache of tables."""


# --- certified numbers ------------------------------------------------------------------------------------------------


def _context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def exp_bounds(x: Fraction, precision: int) -> Bounds:
    """Return bounds of ``2^precision * exp(-x)`` for x >= 0, less than 3 apart.

    Examples
    --------
    >>> exp_bounds(Fraction(1), 10)
    (376, 377)

    """
    if x == 0:
        return 1 << precision, 1 << precision
    if x >= precision:  # exp(-x) < 2^-precision
        return 0, 1
    # Decimal.exp is correctly rounded, so its neighbours enclose the truth.
    digits = precision // 3 + 10
    down, up, near = (_context(digits, rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING, ROUND_HALF_EVEN))
    top, bottom = Decimal(-x.numerator), Decimal(x.denominator)
    low = near.exp(down.divide(top, bottom)).next_minus(down)
    high = near.exp(up.divide(top, bottom)).next_plus(up)
    return _floor(Fraction(low), precision), -_floor(-Fraction(high), precision)


def _floor(x: Fraction, precision: int) -> int:
    return (x.numerator << precision) // x.denominator


def times(left: Bounds, right: Bounds, precision: int) -> Bounds:
    """Return bounds of the product."""
    return left[0] * right[0] >> precision, -(-left[1] * right[1] >> precision)


def powers(rate: Fraction, count: int, precision: int) -> list[Bounds]:
    """Return bounds of ``exp(-rate * j)`` for j = 0 .. count - 1."""
    low_step, high_step = exp_bounds(rate, precision)
    low = high = 1 << precision
    result = []
    for _ in range(count):
        result.append((low, high))
        low = low * low_step >> precision
        high = -(-high * high_step >> precision)
    return result


@lru_cache(maxsize=32)
def cut_floors(cells: Cells, bits: int) -> tuple[int, ...]:
    """Return ``floor(2^bits * cut)`` for the cuts between successive cells, certified.

    The cuts are irrational, so more precision always decides in the end.
    """
    spare = _SPARE
    while True:
        bounds = cells.weights(bits + spare)
        lows = list(accumulate(low for low, _ in bounds))
        highs = list(accumulate(high for _, high in bounds))
        floors = tuple((low << bits) // highs[-1] for low in lows[:-1])
        if all(floor == (high << bits) // lows[-1] for floor, high in zip(floors, highs[:-1], strict=True)):
            return floors
        spare *= 2


# --- decisions --------------------------------------------------------------------------------------------------------


def _longer(value: int, bits: int, randomness: PrivateRandomness) -> tuple[int, int]:
    """Read the next 64 bits of U."""
    if bits >= _MOST_BITS:
        stuck()
    return value << WORD | randomness.bits(WORD), bits + WORD


def is_below_exp(word: int, x: Fraction, *, randomness: PrivateRandomness) -> bool:
    """Return whether ``U < exp(-x)`` for x >= 0, where ``word`` is the first 64 bits of U: a coin, exactly."""
    if x == 0:
        return True
    value, bits = word, WORD
    while True:
        cut = _exp_floor(x, bits)
        if value != cut:
            return value < cut
        value, bits = _longer(value, bits, randomness)


def _exp_floor(x: Fraction, bits: int) -> int:
    """Return the first bits of exp(-x), which is irrational, so that more precision always decides."""
    spare = _SPARE
    while True:
        low, high = (bound >> spare for bound in exp_bounds(x, bits + spare))
        if low == high:
            return low
        spare *= 2


@final
@dataclass(frozen=True, slots=True, eq=False)
class CellTable:
    """A law of finitely many cells, ready to be drawn from.

    ``guide`` holds, for each value of a word's leading bits, the cell if no cut has these leading bits, otherwise -1.
    """

    cells: Cells
    cuts: NDArray[np.uint64]
    guide: NDArray[np.int32]
    shift: np.uint64

    @classmethod
    def of(cls, cells: Cells) -> "CellTable":
        """Compute the first 64 bits of each cut and the guide."""
        cuts = np.array(cut_floors(cells, WORD), dtype=np.uint64)
        guide_bits = min(_MOST_GUIDE_BITS, 4 + len(cuts).bit_length())
        shift = np.uint64(WORD - guide_bits)
        starts = np.arange(1 << guide_bits, dtype=np.uint64) << shift
        before = np.searchsorted(cuts, starts, side="left")
        until = np.searchsorted(cuts, starts | ((np.uint64(1) << shift) - np.uint64(1)), side="right")
        return cls(cells, cuts, np.where(before == until, before, -1).astype(np.int32), shift)

    def draw(self, size: int, *, randomness: PrivateRandomness) -> NDArray[np.int64]:
        """Return ``size`` independent cells."""
        words = randomness.words(size)
        found = np.take(self.guide, (words >> self.shift).view(np.int64))
        open_ = np.flatnonzero(found < 0)
        if open_.size:
            unsure = words[open_]
            low = np.searchsorted(self.cuts, unsure, side="left")
            found[open_] = low
            for tie in np.flatnonzero(self.cuts[np.minimum(low, len(self.cuts) - 1)] == unsure):
                found[open_[tie]] = self._refine(int(unsure[tie]), randomness)
        return found.astype(np.int64)

    def _refine(self, word: int, randomness: PrivateRandomness) -> int:
        value, bits = word, WORD
        while True:
            value, bits = _longer(value, bits, randomness)
            cuts = cut_floors(self.cells, bits)
            low = bisect_left(cuts, value)
            if low == bisect_right(cuts, value):
                return low
