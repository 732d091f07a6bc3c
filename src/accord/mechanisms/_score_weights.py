"""Weights of the exponential mechanism: certified tables, multiplied in floats with a bounded and charged error."""

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter
from accord.core.exact import exp_lower
from accord.mechanisms._scores import FARTHEST, blocks, depths

__all__ = ["LOWEST_BIT", "ScoreWeights", "log_upper", "score_weights"]

_CHARGE = Fraction(1, 1 << 46)
"""Part of epsilon that pays for the rounding of weights (docs/proofs/exponential.md)."""

_FLOOR = 88
"""No weight is below exp(-88) times the best one's; exp(-88) > 2^-127."""

LOWEST_BIT = 180
"""Every weight is a whole multiple of 2^-180."""

_SMALLEST_EPSILON = Fraction(1, 1 << 30)
_DIGITS, _DIGIT_BITS = 5, 9
_MOST_STEPS = (1 << _DIGITS * _DIGIT_BITS) - 1
_TABLE_BITS = 512
_SMALLEST_SENSITIVITY, _LARGEST_SENSITIVITY = Fraction(1, 1 << 800), Fraction(1 << 800)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoreWeights:
    """The weights ``exp(-rate * k)`` of scores k steps of ``2^exponent`` below the best, for k up to ``deepest``."""

    exponent: int
    rate: Fraction
    deepest: int
    tables: NDArray[np.float64]

    def weigh(
        self, scores: NDArray[Any], *, among: NDArray[np.bool_], offsets: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return one weight a candidate: 0 outside ``among``, exactly 1 for the best, within 2^-49 of the exponential.

        Every weight is a multiple of 2^-180 from ``exp(-88)`` up to 1. The operations do not depend on the scores.
        ``offsets`` are whole steps, at most 2^51 in size, that are added to the scores.
        """
        weights = depths(scores, exponent=self.exponent, among=among)
        if offsets is not None:
            weights -= offsets
            weights -= np.where(among, weights, np.inf).min()
        for block in blocks(weights.size):
            steps = np.clip(weights[block], 0.0, float(self.deepest)).astype(np.int64)
            part = among[block].astype(np.float64)
            for table in self.tables:
                part *= table[steps & ((1 << _DIGIT_BITS) - 1)]
                steps >>= _DIGIT_BITS
            weights[block] = part
        return weights

    def offset_steps(self, logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return natural logarithms as whole steps. Public numbers: their rounding costs no privacy."""
        steps: NDArray[np.float64] = np.rint(logarithms / float(self.rate))
        if np.abs(steps).max(initial=0.0) > FARTHEST / 2:
            raise InvalidParameter("base must not span more than a factor of 10^2400 between its positive entries.")
        return steps

    def shortfall(self, t: Fraction, odds: Fraction) -> Fraction | None:
        """Return G such that candidates G below the best have a chance of at most ``exp(-t)``; None if none is proved.

        ``odds`` bounds how many such candidates there are for each of the best.
        """
        logarithm = max(Fraction(0), log_upper(odds) + t + _CHARGE) if odds else Fraction(0)
        if logarithm > self.rate * self.deepest:
            return None
        return (1 + logarithm / self.rate) * Fraction(2) ** self.exponent


@lru_cache(maxsize=64)
def score_weights(*, bound: Fraction, epsilon: Fraction, sides: int) -> ScoreWeights:
    """Return the weights for scores of sensitivity ``bound``; ``sides`` is 2, or 1 for monotone scores.

    The rate pays for rounding scores down to a grid and for `_CHARGE`:
    ``sides * rate * ceil(bound / 2^exponent) + _CHARGE == epsilon``.
    """
    if epsilon < _SMALLEST_EPSILON:
        raise InvalidParameter("epsilon must be at least 2^-30, about 1e-9, for each choice.")
    if not _SMALLEST_SENSITIVITY <= bound <= _LARGEST_SENSITIVITY:
        raise InvalidParameter("sensitivity must be from 1e-240 to 1e240: rescale the scores.")
    spent = epsilon - _CHARGE
    most = floor(spent * _MOST_STEPS / (sides * _FLOOR))
    exponent = bound.numerator.bit_length() - bound.denominator.bit_length() - most.bit_length() - 2
    while ceil(bound / Fraction(2) ** exponent) > most:
        exponent += 1
    rate = spent / (sides * ceil(bound / Fraction(2) ** exponent))
    tables = np.array([_table(rate * (1 << _DIGIT_BITS * digit)) for digit in range(_DIGITS)])
    tables.flags.writeable = False
    return ScoreWeights(exponent, rate, floor(_FLOOR / rate), tables)


def _table(rate: Fraction) -> list[float]:
    """Return ``exp(-rate * j)`` for each digit j, rounded to the nearest float (up to 2^-170 of a unit)."""
    step = floor(exp_lower(-rate) * (1 << _TABLE_BITS))
    power, entries = 1 << _TABLE_BITS, []
    for _ in range(1 << _DIGIT_BITS):
        entries.append(power / (1 << _TABLE_BITS))  # a quotient of Python ints is correctly rounded
        power = power * step >> _TABLE_BITS
    return entries


def log_upper(value: Fraction) -> Fraction:
    """Return an upper bound of the natural logarithm of a positive number, within one part in 10^48."""
    with localcontext(Context(prec=50)):
        ratio = (Decimal(value.numerator) / Decimal(value.denominator)).next_plus()
        return Fraction(ratio.ln().next_plus())  # Decimal.ln is correctly rounded
