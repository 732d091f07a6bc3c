"""How many records a normal law needs: proved sizes, and simulated ones with their certificates."""

import json
import math
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, ndtr, xlog1py, xlogy

__all__ = [
    "MOST_ALPHA",
    "expected_kl",
    "failure_chances",
    "geometric_sizes",
    "least_records",
    "least_size",
    "log_tail",
    "records_for",
    "stiffness",
    "total_variations",
]


_Floats = NDArray[np.float64]

MOST_ALPHA = 0.5
_NODES = 384
_HALVINGS = 64
_NARROW = 0.5
_SMALL = 1e-2
_MANY = 1e3
_RULE = np.polynomial.legendre.leggauss(16)
_ALLOWANCE = 1e-9


def failure_chances(alpha: float, sizes: NDArray[np.int64]) -> _Floats:
    """Return an upper bound on P[TV >= alpha] for fits to each number of records, shape (n,) from (n,).

    Parameters
    ----------
    alpha
        From 0 to 1/2.
    sizes
        Numbers of records, each at least 2.

    """
    lowest, highest = (_widest(alpha, end) for end in (-0.9999, 100.0))
    nodes, weights = _nodes()
    angle = nodes * math.pi / 2  # r has the shape of a square root at both ends: the sine makes it smooth
    half = (highest - lowest) / 2
    excess = (lowest + highest) / 2 + half * np.sin(angle)
    weights = weights * (math.pi / 2) * half * np.cos(angle)
    reach = _reach(alpha, excess)
    records = sizes.astype(np.float64)[:, None]
    inside = 1 - 2 * ndtr(-np.sqrt(records) * reach)
    chances: _Floats = 1 - (np.exp(_log_density(excess, records - 1)) * inside) @ weights
    return np.clip(chances + _ALLOWANCE, 0.0, 1.0)


@cache
def _nodes() -> tuple[_Floats, _Floats]:
    """Return the rule, which takes half a second to make."""
    return np.polynomial.legendre.leggauss(_NODES)


def total_variations(shift: _Floats, excess: _Floats) -> _Floats:
    """Return ``TV(N(0, 1), N(shift, (1 + excess)^2))`` for shifts of at least 0, without cancellation near 0."""
    wider = excess > 0
    scale = 1 + excess
    # The other way round where the second law is the narrower.
    shift = np.where(wider, shift, shift / scale)
    excess = np.where(wider, excess, -excess / scale)
    scale = 1 + excess
    stretch, log_variance = excess * (2 + excess), 2 * np.log1p(excess)
    with np.errstate(divide="ignore", invalid="ignore"):
        lead = shift + scale * np.hypot(shift, np.sqrt(stretch * log_variance))
        ends = np.stack((-lead / stretch, (shift**2 + scale**2 * log_variance) / lead))
        width = (shift + excess * ends) / scale
        points = ends[..., None] - width[..., None] * (_RULE[0] + 1) / 2
        near = width * (np.exp(-(points**2) / 2) @ _RULE[1]) / math.sqrt(8 * math.pi)
        gaps = np.where(np.abs(width) < _NARROW, near, ndtr(ends) - ndtr(ends - width))
    plain = ndtr(shift / 2) - ndtr(-shift / 2)
    return np.where(stretch > 0, np.clip(gaps[1] - gaps[0], 0.0, 1.0), plain)


def _widest(alpha: float, end: float) -> float:
    """Return the excess between 0 and ``end`` at which centred laws are alpha apart."""
    low, high = 0.0, end
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        apart = total_variations(np.zeros(1), np.array([middle]))[0]
        low, high = (middle, high) if apart < alpha else (low, middle)
    return low


def _reach(alpha: float, excess: _Floats) -> _Floats:
    """Return for each excess the shift up to which the laws are less than alpha apart."""
    low, high = np.zeros_like(excess), np.full_like(excess, 4 * alpha * (1 + excess.max()))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        near = total_variations(middle, excess) < alpha
        low, high = np.where(near, middle, low), np.where(near, high, middle)
    return low


def _log_density(excess: _Floats, freedom: _Floats) -> _Floats:
    """Return the log density of s = 1 + excess, where ``freedom s^2`` has the chi-square law of that freedom."""
    half = freedom / 2
    with np.errstate(divide="ignore"):
        few = half * np.log(half) - half - gammaln(half)
        many = 0.5 * np.log(half / (2 * math.pi)) - 1 / (12 * half) + 1 / (360 * half**3)
    constant = math.log(2) + np.where(half > _MANY, many, few)
    small = np.where(np.abs(excess) < _SMALL, excess, 0.0)
    orders = np.arange(3, 16)
    series = -(small**2) - ((-small[:, None]) ** orders / orders).sum(axis=1)
    plain = np.log1p(excess) - excess - excess**2 / 2
    return np.asarray(constant + freedom * np.where(np.abs(excess) < _SMALL, series, plain) - np.log1p(excess))


_Sizes = NDArray[np.int64]
_LARGEST = 1 << 53


def geometric_sizes(least: int, most: int, *, ratio: float) -> _Sizes:
    """Return a fixed grid of numbers of records from ``least`` on: every one at first, then by about the ratio.

    The grid does not depend on ``most``, but for its last entry, the first that is at least ``most``.
    """
    sizes = [least]
    while sizes[-1] < most and sizes[-1] < _LARGEST:
        sizes.append(max(sizes[-1] + 1, math.floor(sizes[-1] * ratio)))
    return np.array(sizes)


def least_size(sizes: _Sizes, chances: _Floats, beta: float, *, dimension: int) -> int | None:
    """Return the least of the sizes from which on, up to the last of them, the chance of failure is at most beta.

    Parameters
    ----------
    sizes
        Increasing numbers of records, each above the dimension, shape (n,).
    chances
        Upper bounds of the chance of failure at each, shape (n,).
    beta
        Strictly between 0 and 1.

    Returns
    -------
    int or None
        None if the last size is not good enough.

    """
    room = np.where(chances < beta, _divergence(beta, np.clip(chances, 1e-300, beta)), -1.0)
    if not room[-1] >= 0:
        return None
    best = int(sizes[-1])
    for (low, low_room), (high, high_room) in reversed(list(pairwise(zip(sizes.tolist(), room, strict=True)))):
        if low_room < 0:
            break
        up = math.sqrt(low_room / stiffness(low, dimension=dimension))
        down = math.sqrt(high_room / stiffness(low, dimension=dimension))
        if math.floor(up * (1 - 1e-9)) + math.floor(down * (1 - 1e-9)) < high - low - 1:
            break
        best = low
    return best


def stiffness(records: int, *, dimension: int) -> float:
    """Return C with ``KL(fit at b' || fit at b) <= C (b - b')^2`` for all b and b' of at least ``records``."""
    freedom = records - 1
    places = freedom - np.arange(dimension, dtype=np.float64)
    if places[-1] <= 0:
        return math.inf
    spread = np.arange(dimension) / (2 * freedom * places) + 1 / (2 * places**2) + 1 / (3 * places**3)
    return (float(np.sum(spread)) / 2 + dimension / (4 * records**2)) * (1 + 1e-9)


def _divergence(p: float, q: _Floats) -> _Floats:
    """Return ``kl(p || q)`` of two coins, rounded down."""
    value = xlogy(p, p / q) + xlog1py(1 - p, -(p - q) / (1 - q))
    return np.asarray(np.maximum(value * (1 - 1e-9) - 1e-15, 0.0))


_MOST = 1 << 62
_ROUNDING = 64.0 * float(np.finfo(np.float64).eps)
_FINE_ENOUGH = 1e-9


def expected_kl(records: int, *, dimension: int) -> float:
    """Return an upper bound on E KL(fit || truth), infinite where a fit is impossible (b <= d)."""
    freedom = records - 1
    if freedom <= dimension - 1:
        return math.inf
    halves = (freedom - np.arange(dimension)) / 2
    # log x - digamma(x) <= 1 / (2 x) + 1 / (12 x^2), without the cancellation of the two.
    near = np.where(halves > 1e6, 1 / (2 * halves) + 1 / (12 * halves**2), np.log(halves) - digamma(halves))
    volume = float(np.sum(near + np.log(freedom / 2 / halves)))
    return 0.5 * (volume + dimension / records) * (1 + _FINE_ENOUGH)


def log_tail(divergence: float, *, records: int, dimension: int) -> float:
    """Return an upper bound on log P[KL(fit || truth) >= divergence], at most 0."""
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - slow to load, and not every run needs it

    freedom = records - 1
    if freedom <= dimension - 1:
        return 0.0
    most = 0.5 * (freedom - dimension + 1)

    def exponent(share: float) -> float:
        return _log_moment(share * most, freedom=freedom, records=records, dimension=dimension) - (
            2 * share * most * divergence
        )

    best = minimize_scalar(exponent, bounds=(0.0, 1.0 - 1e-6), method="bounded", options={"xatol": 1e-5})
    return min(0.0, float(best.fun))


def _log_moment(weight: float, *, freedom: int, records: int, dimension: int) -> float:
    """Return an upper bound on log E exp(2 weight KL), infinite where there is no moment.

    ``E exp(w (tr S - d - log det S))`` is a product over i of Gamma functions at ``x_i = (freedom - i) / 2``; their
    ratios are bounded by Stirling's series, whose remainder is between 0 and its first term.
    """
    places = (freedom - np.arange(dimension)) / 2
    left = places - weight
    if weight >= 0.5 * records or left[-1] <= 0:
        return math.inf
    half = freedom / 2
    ratio = (left - 0.5) * np.log1p(-weight / places) - (half - weight) * math.log1p(-weight / half)
    remainder = 1 / (12 * left) - 1 / (12 * places) + 1 / (360 * places**3)
    scatter = float(np.sum(weight * np.log(half / places) + ratio + remainder))
    mean = -0.5 * dimension * math.log1p(-2 * weight / records)
    return scatter + mean + _ROUNDING * dimension * (weight + 1)


def records_for(alpha: float, beta: float, *, dimension: int) -> int:
    """Return a b from which on the fit is within total variation alpha, but for probability beta.

    Found by doubling and bisection on the bound, which falls with b; the last step is checked.
    """
    divergence, target = 2 * alpha**2, math.log(beta)

    def enough(records: int) -> bool:
        return log_tail(divergence, records=records, dimension=dimension) <= target

    low = high = dimension + 1
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            message = "alpha is too small to certify a number of records at double precision."
            raise OverflowError(message)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


_LINE_LEAST = 3
_LINE_RATIO = 1.005
_LINE_BETA = 1e-6
_LINE_MOST = 1 << 50
_FAR_BELOW = 16


@lru_cache(maxsize=256)
def least_records(alpha: float, beta: float, *, dimension: int) -> int:
    """Return a b from which on the fit is within total variation alpha, but for probability beta.

    Raises
    ------
    OverflowError
        If no number can be certified at double precision.

    """
    closed = records_for(alpha, beta, dimension=dimension)
    found = _on_the_line(alpha, beta, closed) if dimension == 1 else _by_table(alpha, beta, closed, dimension)
    return closed if found is None else min(closed, found)


def _on_the_line(alpha: float, beta: float, closed: int) -> int | None:
    """Return what the computed chances prove; from ``closed`` on the closed bound takes over."""
    if beta < _LINE_BETA or closed > _LINE_MOST:
        return None
    sizes = geometric_sizes(_LINE_LEAST, closed, ratio=_LINE_RATIO)
    sizes = sizes[sizes * _FAR_BELOW >= closed]
    chances = failure_chances(min(alpha, MOST_ALPHA), sizes)
    return least_size(sizes, chances, beta, dimension=1)


def _by_table(alpha: float, beta: float, closed: int, dimension: int) -> int | None:
    """Return what the stored quantiles prove, None where they do not reach up to ``closed``."""
    table = _stored()
    bands = table["bands"].get(dimension)
    if bands is None:
        return None
    sizes = geometric_sizes(int(bands[0, 0]), closed, ratio=table["ratio"])
    if sizes[-1] > bands[-1, 1]:
        return None
    rows = bands[np.searchsorted(bands[:, 1], sizes)]
    # P[TV >= q / sqrt(b)] is at most the level of q, which is stored rounded up; levels fall along a row.
    proved = rows[:, 2:] <= alpha * np.sqrt(sizes)[:, None] * table["unit"]
    levels = np.array([1.0, *table["levels"]])
    chances = levels[np.where(proved, np.arange(1, len(levels)), 0).max(axis=1)]
    return least_size(sizes, chances, beta, dimension=dimension)


@lru_cache(maxsize=1)
def _stored() -> dict[str, Any]:
    text = resources.files("accord.learners").joinpath("learner_pivots.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    table["bands"] = {part["dimension"]: np.array(part["bands"]) for part in table["tables"]}
    return table
