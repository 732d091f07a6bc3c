"""Certified sizes for one draw: exact binomial tails of votes, and of rounded frequencies."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import betainc, gammaln, ndtri, xlog1py, xlogy

from accord.core.curve import CHANCE_BITS, exclusive_curve

__all__ = [
    "GRID",
    "ROUNDING_GRID",
    "RoundedAtoms",
    "Single",
    "TupleVariation",
    "failure_line",
    "law",
    "plan_rounded",
    "plan_single",
    "tail_above",
    "tail_below",
]


_Floats = NDArray[np.float64]


def tail_above(count: ArrayLike, *, size: int, chance: ArrayLike) -> _Floats:
    """Return P[Bin(size, chance) >= count], whole counts of any sign."""
    least = np.asarray(count, dtype=np.float64)
    inside = np.clip(least, 1, size)
    tail = betainc(inside, size - inside + 1, np.asarray(chance, dtype=np.float64))
    return np.asarray(np.where(least <= 0, 1.0, np.where(least > size, 0.0, tail)), dtype=np.float64)


def tail_below(count: ArrayLike, *, size: int, chance: ArrayLike) -> _Floats:
    """Return P[Bin(size, chance) <= count]: failures instead of successes, so that small chances keep their digits."""
    most = np.asarray(count, dtype=np.float64)
    return tail_above(size - most, size=size, chance=1 - np.asarray(chance, dtype=np.float64))


def law(size: int, chances: _Floats) -> _Floats:
    """Return the chances of 0 .. size, one row for each chance."""
    counts = np.arange(size + 1)
    ways = gammaln(size + 1) - gammaln(counts + 1) - gammaln(size - counts + 1)
    logs = ways + xlogy(counts, chances[:, None]) + xlog1py(size - counts, -chances[:, None])
    return np.asarray(np.exp(logs), dtype=np.float64)


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


ROUNDING_GRID = 2000
"""Intervals of p in [0, 1/2] on which binomial tails are bounded."""

_BLOCKS = tuple(sorted({round(12 * 1.2**power) for power in range(24)}))
_DRAWS = (16, 64, 128)
_MOST_BLOCKS = 100_000
_MARGIN = 1 + 1e-9
_SHARES = {"votes": 0.3, "shift": 0.3, "strays": 0.12, "noise": 0.26}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedAtoms:
    """The sizes of the method and the numbers of its proof (docs/proofs/planning.md, part B).

    Parameters
    ----------
    labels, blocks, block_size, draws, width
        d, k, b, R, w: blocks vote for the cell, of width w, that holds their frequencies.
    good_votes, stray_votes
        n0: what the cell of the truth gets in some draw; n1: fewer votes than this are strays.
    good_radius, stray_radius
        s_g (d = 2: a block this close is good; else the mean distance of all blocks, at most) and s_b.
    shift_square
        u: the squared length of the shift, in cells, that no draw exceeds (d above 2).

    """

    labels: int
    blocks: int
    block_size: int
    draws: int
    width: float
    good_votes: int
    stray_votes: int
    good_radius: float
    stray_radius: float
    shift_square: float

    @property
    def records(self) -> int:
        """Number of records n = k b."""
        return self.blocks * self.block_size


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Votes:
    """k, R, n0, n1: whatever does not depend on the block size."""

    blocks: int
    draws: int
    good: int
    stray: int


@lru_cache(maxsize=64)
def plan_rounded(*, labels: int, alpha: float, beta: float, epsilon: float, delta: float) -> RoundedAtoms | None:
    """Return the best sizes found, or None if nothing on the list of k and R will do."""
    best: RoundedAtoms | None = None
    for votes in _choices(beta, epsilon, delta):
        if labels == 2:
            found = _two_labels(votes, alpha=alpha, beta=beta, most=None if best is None else best.records)
        else:
            found = _many_labels(votes, labels=labels, alpha=alpha, beta=beta)
        if found is not None and (best is None or found.records < best.records):
            best = found
    return best


def _choices(beta: float, epsilon: float, delta: float) -> Iterator[_Votes]:
    """List k and R, with the votes that bring no answer and strays down to their share of beta."""
    noise = _SHARES["noise"] * beta
    for draws in _DRAWS:
        alone = 1 + 2 / epsilon * math.log(draws * (1 - noise / 2) / (delta * noise / 2))
        scale = alone / 16
        for blocks in sorted({math.ceil(size * scale) for size in _BLOCKS}):
            if blocks > _MOST_BLOCKS:
                continue
            good = math.ceil(alone)
            for extra in (0.0, 0.1, 0.25):
                raised = good + math.ceil(extra * blocks)
                stray = _stray_votes(raised, blocks=blocks, draws=draws, share=noise / 2, epsilon=epsilon)
                if raised < blocks and stray >= 2:
                    yield _Votes(blocks=blocks, draws=draws, good=raised, stray=stray)


def _stray_votes(good: int, *, blocks: int, draws: int, share: float, epsilon: float) -> int:
    """Return the largest n1 with ``R k max(1, e^{eps (n1 - 2) / 2} / (n1 - 1)) <= share e^{eps (n0 - 1) / 2}``."""
    room = math.log(share) + epsilon / 2 * (good - 1) - math.log(draws * blocks)
    if room < 0:
        return 0
    low, high = 1, good
    while high - low > 1:
        middle = (low + high) // 2
        fits = epsilon / 2 * (middle - 2) - math.log(middle - 1) <= room
        low, high = (middle, high) if fits else (low, middle)
    return low


def _tail_share(*, blocks: int, at_least: int, failure: float) -> float:
    """Return the largest chance q with P[Bin(k, q) >= at_least] at most ``failure`` (a hair below)."""
    root = brentq(
        lambda q: float(tail_above(at_least, size=blocks, chance=q)) - failure * (1 - 1e-9), 0.0, 1.0, xtol=1e-14
    )
    return float(root) * (1 - 1e-9)


def _many_labels(votes: _Votes, *, labels: int, alpha: float, beta: float) -> RoundedAtoms | None:
    """Work in units of 1 / sqrt(b): distances of frequencies by their mean and McDiarmid's inequality."""
    k, spread, root = votes.blocks, math.sqrt(1 - 1 / labels), math.sqrt(labels)
    lost = 0.05 * beta
    mean = spread + math.sqrt(-math.log(lost) / k)
    missing = (_SHARES["shift"] * beta) ** (1 / votes.draws)
    width = root * mean * k / (missing * (k - votes.good + 1))
    chance = _tail_share(blocks=k, at_least=votes.stray, failure=_SHARES["strays"] * beta)
    if chance <= 0:
        return None
    stray = spread + math.sqrt(-math.log(chance))
    square = _shift_square(labels, failure=0.2 * beta / votes.draws)
    shift = width * math.sqrt(square)
    reach = shift + 2 * stray
    if stray <= width / 2:
        reach = min(reach, math.sqrt(shift**2 + 2 * width * root * stray))
    block = math.ceil((root / 2 * reach / alpha * _MARGIN) ** 2)
    unit = 1 / math.sqrt(block)
    return RoundedAtoms(
        labels=labels,
        blocks=k,
        block_size=block,
        draws=votes.draws,
        width=width * unit,
        good_votes=votes.good,
        stray_votes=votes.stray,
        good_radius=mean * unit,
        stray_radius=stray * unit,
        shift_square=square,
    )


@lru_cache(maxsize=64)
def _shift_square(labels: int, *, failure: float) -> float:
    """Return u with P[|U|^2 > u] at most ``failure`` by Chernoff's bound, U uniform on the cube of side 1."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    squares = (nodes / 2) ** 2

    def bound(tilt: float) -> float:
        moment = float(weights @ np.exp(tilt * squares)) / 2
        return (labels * math.log(moment) - math.log(failure)) / tilt

    tilts = np.geomspace(0.5, 400, 400)
    return min(labels / 4, min(bound(float(tilt)) for tilt in tilts) * _MARGIN)


def _two_labels(votes: _Votes, *, alpha: float, beta: float, most: int | None) -> RoundedAtoms | None:
    """Find b with exact binomial tails, starting from the normal approximation."""
    k = votes.blocks
    good = _tail_share(blocks=k, at_least=k - votes.good + 1, failure=_SHARES["votes"] * beta)
    stray = _tail_share(blocks=k, at_least=votes.stray, failure=_SHARES["strays"] * beta / 2)
    missing = (_SHARES["shift"] * beta) ** (1 / votes.draws)
    guess = 0.5 * float(-ndtri(good / 2)) / missing + 0.5 * float(-ndtri(min(stray, 0.5)))
    block = max(8, math.ceil((guess / alpha) ** 2))
    if most is not None and k * block > 1.1 * most:
        return None
    while most is None or k * block < most:
        radius, far = _radius(block, good, sides=2), _radius(block, stray, sides=1)
        width = 2 * radius / missing * _MARGIN
        if (width / 2 + far) * _MARGIN <= alpha:
            return RoundedAtoms(
                labels=2,
                blocks=k,
                block_size=block,
                draws=votes.draws,
                width=width,
                good_votes=votes.good,
                stray_votes=votes.stray,
                good_radius=radius,
                stray_radius=far,
                shift_square=0.25,
            )
        block = math.ceil(block * 1.04) + 1
    return None


def _radius(block: int, chance: float, *, sides: int) -> float:
    """Return the least s, to 1 in 1000, with P[|X / b - p| > s] (or one side) at most ``chance`` for every p."""
    low, high = 0.0, 1.0
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _worst(block, middle, sides=sides) <= chance else (middle, high)
    return high


def _worst(block: int, radius: float, *, sides: int) -> float:
    """Bound the tail for all p: on [p1, p2] each side is monotone in p, and so is its threshold."""
    ends = np.linspace(0.0, 0.5, ROUNDING_GRID + 1) if sides == 2 else np.linspace(0.0, 1.0, 2 * ROUNDING_GRID + 1)
    first, last = ends[:-1], ends[1:]
    above = tail_above(np.floor(block * (first + radius) - 1e-9) + 1, size=block, chance=last)
    if sides == 1:
        return float(above.max())
    below = tail_below(np.ceil(block * (last - radius) + 1e-9) - 1, size=block, chance=first)
    return float((above + below).max())
