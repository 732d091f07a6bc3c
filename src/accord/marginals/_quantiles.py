"""Cut numbers at private quantiles, by the exponential mechanism on public grids."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.mechanisms import Exponential
from accord.randomness import PrivateRandomness

__all__ = ["Sorted", "dyadic_grid", "private_range", "quantile_edges", "range_units"]

Floats = NDArray[np.float64]
_GRAIN = Fraction(1, 1 << 46)
_GRID = 1 << 14
_MANTISSAS, _EXPONENT = 32, 66
_REACHES = 64
_FURTHER = 1.5


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sorted:
    """Finite numbers in order, with running sums of their weights; a unit of privacy weighs ``whole``."""

    values: Floats
    below: NDArray[np.int64]
    whole: int

    @classmethod
    def of(cls, values: Floats, weights: NDArray[np.int64] | None, whole: int) -> "Sorted":
        """Return the finite ones among values."""
        finite = np.isfinite(values)
        order = np.argsort(values[finite], kind="stable")
        heavy = np.ones(int(finite.sum()), dtype=np.int64) if weights is None else weights[finite]
        return cls(values[finite][order], np.concatenate([[0], np.cumsum(heavy[order])]).astype(np.int64), whole)

    def weight_below(self, points: Floats) -> NDArray[np.int64]:
        """Return the weight of the numbers below each point."""
        return self.below[np.searchsorted(self.values, points, side="left")]


def dyadic_grid() -> Floats:
    """Return 0 and all numbers ``+-2^e (1 + m / 32)`` from 2^-66 to 2^66: at most 3 percent apart."""
    sizes = np.ldexp(1 + np.arange(_MANTISSAS) / _MANTISSAS, np.arange(-_EXPONENT, _EXPONENT)[:, None]).ravel()
    return np.concatenate([-sizes[::-1], [0.0], sizes])


def _choose(
    numbers: Sorted,
    grid: Floats,
    *,
    part: tuple[float, float],
    share: Fraction,
    epsilon: Fraction,
    source: PrivateRandomness,
) -> float:
    """Return a grid point below which about this share of the numbers in ``[low, high)`` lies.

    The score ``-|q below - p inside|`` for the share p / q moves by at most q times the weight that changes.
    """
    inside = numbers.weight_below(np.array(part))
    below = np.minimum(numbers.weight_below(grid), inside[1]) - inside[0]
    scores = -np.abs(share.denominator * below - share.numerator * int(inside[1] - inside[0]))
    mechanism = Exponential(sensitivity=share.denominator * numbers.whole, epsilon=epsilon)
    return float(grid[int(np.asarray(mechanism.select(scores, randomness=source).value))])


def private_range(numbers: Sorted, *, units: int, epsilon: Fraction, source: PrivateRandomness) -> tuple[float, float]:
    """Return ends between which nearly all numbers lie, epsilon-DP: quartiles on all scales, then ends around them.

    Four choices with a quarter of epsilon each. A choice errs by about ``2 log(points / beta) / epsilon`` records, so
    with few records the ends are cut a little further in, and both are moved outward by a factor at last.

    Parameters
    ----------
    numbers
        What is cut.
    units
        Number of units of privacy, public; at least `range_units` for ends that are any good.
    epsilon
        For all choices.
    source
        Secret.

    """
    grid = dyadic_grid()
    everything = (-np.inf, np.inf)
    each = epsilon / 4

    def chosen(points: Floats, share: Fraction) -> float:
        return _choose(numbers, points, part=everything, share=share, epsilon=each, source=source)

    low, high = sorted(chosen(grid, share) for share in (Fraction(1, 4), Fraction(3, 4)))
    middle = low / 2 + high / 2
    width = max(high / 2 - low / 2, abs(middle) / _MANTISSAS, float(np.ldexp(1.0, -_EXPONENT)))
    reaches = width * 2.0 ** (np.arange(_REACHES) / 2)
    outside = _outside(units, epsilon=each)
    first = chosen(np.sort(middle - reaches), outside)
    last = chosen(middle + reaches, 1 - outside)
    return middle - _FURTHER * (middle - first), middle + _FURTHER * (last - middle)


def range_units(epsilon: Fraction) -> int:
    """Return the least number of units with which `private_range` finds the quartiles, but for a chance of 1 in 100."""
    return math.ceil(4 * 2 * math.log(100 * len(dyadic_grid())) / float(epsilon / 4))


def _outside(units: int, *, epsilon: Fraction) -> Fraction:
    """Return the share of numbers to leave out on each side: several times what a choice errs by."""
    error = 3 * 2 * math.log(100 * _REACHES) / (float(epsilon) * units)
    return Fraction(1, max(8, min(256, math.floor(1 / error))))


def quantile_edges(
    numbers: Sorted,
    *,
    ends: tuple[float, float],
    levels: int,
    step: float | None,
    epsilon: Fraction,
    source: PrivateRandomness,
) -> Floats:
    """Return edges of at most ``2^levels`` cells of about equal weight, epsilon-DP: halves of halves.

    A level has an epsilon of its own. A unit that is replaced moves the scores ``-|2 below - inside|`` of all parts of
    a level together by at most twice its weight, which is the sensitivity: the losses of a level add up to its epsilon.
    Rounding of weights costs up to 2^-46 for each part, which is set aside.

    Parameters
    ----------
    numbers
        What is cut.
    ends
        First and last edge.
    levels
        At least 1.
    step
        Numbers are multiples of it, and edges lie half way between two; None for real numbers.
    epsilon
        For all levels.
    source
        Secret.

    """
    grid = np.linspace(*ends, _GRID) if step is None else _halfway(ends, step)
    each = epsilon / levels
    edges = [ends[0], ends[1]]
    for _ in range(levels):
        share = each - _GRAIN * len(edges)
        found = []
        for low, high in pairwise(edges):
            points = grid[(grid > low) & (grid < high)]
            if len(points):
                found.append(
                    _choose(numbers, points, part=(low, high), share=Fraction(1, 2), epsilon=share, source=source)
                )
        edges = sorted({*edges, *found})
    return np.array(edges)


def _halfway(ends: tuple[float, float], step: float) -> Floats:
    """Return points half way between multiples of a step, at most `_GRID` of them."""
    first, last = np.ceil(ends[0] / step - 0.5), np.floor(ends[1] / step - 0.5)
    stride = max(1.0, np.ceil((last - first + 1) / _GRID))
    return np.asarray((np.arange(first, last + 1, stride) + 0.5) * step)
