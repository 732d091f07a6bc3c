"""One draw and the exclusive mode: certified from the mean total variation of tuples alone (method A)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core.curve import CHANCE_BITS, exclusive_curve
from accord.planning._binomial import law

__all__ = ["GRID", "Single", "TupleVariation", "failure_line", "plan_single"]

GRID = 1000
"""Intervals of u in [0, 1] on which the failure curve is bounded by its value at the right end."""

TupleVariation = Callable[[int, int], float]
"""``(l, b)`` to an upper bound of E TV(q^l, p^l), q fitted to b records of p."""

_RELEARNING = (0.1, 0.2, 0.35, 0.5)
_MOST_BLOCK = 1 << 62
_MOST_VOTES = 1000
_FLOATS = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """The sizes l, b, k and the numbers of the proof (docs/proofs/planning.md, part A).

    Failure is at most ``relearning + height + slope rho``, rho = 2 t / (1 + t), t the total variation of tuples;
    ``height + slope u`` is above the chance of no answer for every u, the chance that a vote misses.
    """

    records: int
    block_size: int
    blocks: int
    relearning: float
    variation: float
    height: float
    slope: float
    curve: tuple[int, ...]


def plan_single(
    complexity: Callable[[float, float], int],
    variation: TupleVariation,
    *,
    alpha: float,
    beta: float,
    epsilon: Fraction,
    delta: Fraction,
) -> Single | None:
    """Return the l, b, k with the least n = b k found, or None if no block size will do."""
    choices = [(share * beta, complexity(alpha, share * beta)) for share in _RELEARNING]
    best: Single | None = None
    for votes in _votes(epsilon, delta, beta):
        curve = exclusive_curve(epsilon, delta, votes=votes)
        ends, bound = _failures(curve)
        for relearning, records in choices:
            rho = _largest_rho(ends, bound, target=beta - relearning)
            if rho <= 0:
                continue
            block = _block_size(variation, records, rho / (2 - rho))
            if block is None or (best is not None and block * votes >= best.block_size * best.blocks):
                continue
            slope, height = failure_line(ends, bound, at=rho)
            best = Single(
                records=records,
                block_size=block,
                blocks=votes,
                relearning=relearning,
                variation=variation(records, block),
                height=height,
                slope=slope,
                curve=curve,
            )
    return best


def _votes(epsilon: Fraction, delta: Fraction, beta: float) -> list[int]:
    """List numbers of votes from the unanimous minimum (theory S7) to twice that."""
    scale = math.log((1 - beta) / float(delta) * math.tanh(float(epsilon) / 2) + 1) / float(epsilon)
    least = max(2, math.ceil(scale))
    if least > _MOST_VOTES:
        return []
    return sorted({math.ceil(least * factor) for factor in np.linspace(1.0, 2.0, 11)})


def _failures(curve: tuple[int, ...]) -> tuple[_FLOATS, _FLOATS]:
    """Return u on a grid, and for each cell's left end the chance of no answer at its right end: it rises with u."""
    votes = len(curve) - 1
    accepted = np.array([chance / 2**CHANCE_BITS for chance in curve])
    grid = np.linspace(0.0, 1.0, GRID + 1)
    answer = law(votes, grid) @ accepted[::-1]
    failure = np.minimum(1.0, 1.0 - answer + 1e-12)
    return grid, np.append(failure[1:], 1.0)


def failure_line(ends: _FLOATS, bound: _FLOATS, *, at: float) -> tuple[float, float]:
    """Return slope and height of a line above all points that touches their concave envelope near ``at``."""
    hull = _upper_hull(ends, bound)
    place = int(np.searchsorted(ends[hull], at, side="right"))
    left, right = hull[place - 1], hull[min(place, len(hull) - 1)]
    if left == right:
        left = hull[place - 2]
    slope = max(0.0, float((bound[right] - bound[left]) / (ends[right] - ends[left])))
    height = float(np.max(bound - slope * ends)) + 1e-12
    return slope, height


def _upper_hull(ends: _FLOATS, bound: _FLOATS) -> list[int]:
    hull: list[int] = []
    for i in range(len(ends)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            turn = (ends[b] - ends[a]) * (bound[i] - bound[a]) - (bound[b] - bound[a]) * (ends[i] - ends[a])
            if turn < 0:
                break
            hull.pop()
        hull.append(i)
    return hull


def _largest_rho(ends: _FLOATS, bound: _FLOATS, *, target: float) -> float:
    """Return the largest u at which the concave envelope is at most ``target`` (a hair below)."""
    hull = _upper_hull(ends, bound)
    places, heights = ends[hull], bound[hull]
    if heights[0] >= target:
        return 0.0
    return float(np.interp(target - 1e-9, heights, places)) if target < heights[-1] else float(places[-1])


def _block_size(variation: TupleVariation, records: int, target: float) -> int | None:
    """Return the least b (doubling, then bisection) whose tuples are within ``target``; the last step is checked."""
    low = high = 1
    while not variation(records, high) <= target:
        low, high = high, 2 * high
        if high > _MOST_BLOCK:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if variation(records, middle) <= target else (middle, high)
    return high
