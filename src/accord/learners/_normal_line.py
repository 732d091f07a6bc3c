"""The chance that a normal law fitted on the line is far from the true one: exact but for quadrature.

The mean m and the standard deviation s of b records of N(0, 1) are independent, and the total variation
``TV(N(m, s^2), N(0, 1))`` grows with |m|. So it is below alpha when ``|m| < r(s)`` for a function r, and

    P[TV < alpha] = int f_b(s) (2 Phi(sqrt(b) r(s)) - 1) ds

over the s with ``TV(N(0, s^2), N(0, 1)) < alpha``. Proof: docs/proofs/learners.md.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr

__all__ = ["MOST_ALPHA", "failure_chances", "total_variations"]

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
