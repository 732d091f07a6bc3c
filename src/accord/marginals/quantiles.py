"""Cut numbers at private quantiles, by the exponential mechanism on public grids."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.accounting.of_stages import GRAIN
from accord.core.errors import InvalidParameter
from accord.core.release import composing
from accord.core.secret import PrivateRandomness
from accord.noise.exponential import Exponential

__all__ = ["Sorted", "check_quantiles", "choose_point", "dyadic_grid", "quantile_edges", "split_scores"]

Floats = NDArray[np.float64]
_GRID = 1 << 14
_HALF = Fraction(1, 2)
_MANTISSAS, _EXPONENT = 4096, 66


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
    """Return 0 and all numbers ``+-2^e (1 + m / 4096)`` from 2^-66 to 2^66: at most a 4096th apart."""
    sizes = np.ldexp(1 + np.arange(_MANTISSAS) / _MANTISSAS, np.arange(-_EXPONENT, _EXPONENT)[:, None]).ravel()
    return np.concatenate([-sizes[::-1], [0.0], sizes])


def split_scores(numbers: Sorted, grid: Floats, *, part: tuple[float, float], share: Fraction) -> NDArray[np.int64]:
    """Return ``-|q below - p inside|`` at each point of a part, for the share p / q."""
    ends = numbers.weight_below(np.array(part))
    below = np.clip(numbers.weight_below(grid), *ends) - ends[0]
    return np.asarray(-np.abs(share.denominator * below - share.numerator * int(ends[1] - ends[0])))


def choose_point(
    numbers: Sorted,
    grid: Floats,
    *,
    part: tuple[float, float],
    share: Fraction,
    epsilon: Fraction,
    source: PrivateRandomness,
) -> float:
    """Return a grid point below which about this share of the numbers in ``[low, high)`` lies.

    The score for the share p / q moves by at most q times the weight of a unit of privacy, whatever part of it is
    finite and wherever its records stand: a unit adds between -p and q - p times its weight to ``q below - p inside``.
    """
    scores = split_scores(numbers, grid, part=part, share=share)
    mechanism = _choice(share, whole=numbers.whole, epsilon=epsilon)
    return float(grid[int(np.asarray(mechanism.select(scores, randomness=source).value))])


def _choice(share: Fraction, *, whole: int, epsilon: Fraction) -> Exponential:
    return Exponential(sensitivity=share.denominator * whole, epsilon=epsilon)


def check_quantiles(*, levels: int, whole: int, epsilon: Fraction) -> None:
    """Make every choice of `quantile_edges` that there may be, and draw nothing; reads no record.

    Raises
    ------
    InvalidParameter
        If one of them would be refused, or would round whole scores: then the losses of the parts of a level would not
        add up, see `quantile_edges`.

    """
    for level in range(levels):
        choice = _choice(_HALF, whole=whole, epsilon=_of_one_part(epsilon / levels, parts=2**level))
        if choice.step > 1:
            raise InvalidParameter(
                "epsilon is too small to cut at private quantiles: give at least 1e-7 for each level of halves."
            )


def _of_one_part(each: Fraction, *, parts: int) -> Fraction:
    return each - GRAIN * (parts + 1)


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
    a level together by at most twice its weight, which is the sensitivity: the losses of a level add up to its epsilon,
    because whole scores are not rounded (`check_quantiles`, which is called first).
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
    check_quantiles(levels=levels, whole=numbers.whole, epsilon=epsilon)
    grid = np.linspace(*ends, _GRID) if step is None else _halfway(ends, step)
    each = epsilon / levels
    edges = [ends[0], ends[1]]
    for _ in range(levels):
        share = _of_one_part(each, parts=len(edges) - 1)
        found = []
        with composing("parallel", surplus=GRAIN):
            for low, high in pairwise(edges):
                points = grid[(grid > low) & (grid < high)]
                if len(points):
                    point = choose_point(numbers, points, part=(low, high), share=_HALF, epsilon=share, source=source)
                    found.append(point)
        edges = sorted({*edges, *found})
    return np.array(edges)


def _halfway(ends: tuple[float, float], step: float) -> Floats:
    """Return points half way between multiples of a step, at most `_GRID` of them."""
    first, last = np.ceil(ends[0] / step - 0.5), np.floor(ends[1] / step - 0.5)
    stride = max(1.0, np.ceil((last - first + 1) / _GRID))
    return np.asarray((np.arange(first, last + 1, stride) + 0.5) * step)
