"""Divergences of two normal laws."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, ndtr

from accord.distributions import Normal
from accord.laws._normal_overlap import total_variation_by_quadrature
from accord.laws._standardised import Standardised, standardised

__all__ = ["normal_hellinger", "normal_kl_divergence", "normal_total_variation"]

_Floats = NDArray[np.float64]
_NO_SHIFT = 1e-13
_SMALL = 1e-2
_SERIES_TERMS = 12
_NARROW = 0.5
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def normal_kl_divergence(p: Normal, q: Normal) -> float:
    """Return KL(P || Q): half the sum of ``x - log(1 + x)``, where 1 + x = 1 / variance, and ``shift^2 / variance``."""
    pair = standardised(p, q)
    with np.errstate(all="ignore"):
        pull = (pair.shift * np.exp(-pair.log_variance / 2)) ** 2
        pull = np.where(pair.shift == 0, 0.0, pull)
        total = float(np.sum(_excess(-pair.log_variance) + pull) / 2)
    return math.inf if math.isnan(total) else total


def _excess(log: _Floats) -> _Floats:
    """Return ``x - log(1 + x)`` for ``log(1 + x)``, without cancellation near 0: ``e^t - 1 - t`` as a series in t."""
    orders = np.arange(2, _SERIES_TERMS + 2)
    factorials = np.cumprod(np.arange(1.0, _SERIES_TERMS + 2))[1:]
    small = np.where(np.abs(log) < _SMALL, log, 0.0)
    series = (small[:, None] ** orders / factorials).sum(axis=1)
    return np.where(np.abs(log) < _SMALL, series, np.expm1(log) - log)


def normal_hellinger(p: Normal, q: Normal) -> float:
    """Return ``h`` with ``h^2 = 1 - int sqrt(p q)``, in closed form."""
    return math.sqrt(-math.expm1(_log_affinity(standardised(p, q))))


def _log_affinity(pair: Standardised) -> float:
    """Return the logarithm of ``int sqrt(p q)``: minus the sum of ``log cosh(log v / 2) / 2`` and a shift's part."""
    with np.errstate(all="ignore"):
        half = np.abs(pair.log_variance) / 2
        near = np.log1p(2 * np.sinh(np.minimum(half, 1.0) / 2) ** 2)
        scale = np.where(half < 1, near, half + np.log1p(np.exp(-2 * half)) - math.log(2)) / 2
        pull = np.where(pair.shift == 0, 0.0, (pair.shift / np.sqrt(2 + pair.stretch)) ** 2 / 4)
        total = float(np.sum(scale + pull))
    return -math.inf if math.isnan(total) else -total


def normal_total_variation(p: Normal, q: Normal) -> float:
    """Return the total variation: closed form on a line or for equal covariances, otherwise one integral."""
    pair = standardised(p, q)
    log_affinity = _log_affinity(pair)
    least, most = -math.expm1(log_affinity), math.sqrt(-math.expm1(2 * log_affinity))
    if least == 1:
        return 1.0
    if p.dimension == 1 and pair.stretch[0] != 0:
        return _on_a_line(abs(float(pair.shift[0])), float(pair.stretch[0]), float(pair.log_variance[0]))
    merged = pair.merged
    if len(merged.shift) == 1:
        return float(erf(merged.shift[0] / math.sqrt(8)))
    if len(merged.shift) == 2 and merged.shift[-1] <= _NO_SHIFT:
        return _on_a_line(*(float(entry[0]) for entry in (merged.shift, merged.stretch, merged.log_variance)))
    return min(max(total_variation_by_quadrature(merged), least), most)


def _on_a_line(shift: float, stretch: float, log_variance: float) -> float:
    """Return TV(N(0, 1), N(shift, 1 + stretch)) from the two points where the densities meet."""
    scale = math.exp(log_variance / 2)
    if stretch < 0:  # the other way round, so that the first law is the narrower: it has the larger density in between
        return _on_a_line(shift / scale, -stretch / scale**2, -log_variance)
    root = scale * math.hypot(shift, math.sqrt(stretch * log_variance))
    # Roots of stretch x^2 + 2 shift x - (shift^2 + v log v) = 0, both without cancellation.
    lead = shift + math.copysign(root, shift)
    ends = sorted((-lead / stretch, (shift**2 + scale**2 * log_variance) / lead))
    # F - G is at most 0 at the lower end and at least 0 at the upper one: the difference cancels nothing. Both ends are
    # stationary, so their own rounding counts twice over only.
    below, above = (_gap(end, shift=shift, stretch=stretch, scale=scale) for end in ends)
    return min(max(above - below, 0.0), 1.0)


def _gap(end: float, *, shift: float, stretch: float, scale: float) -> float:
    """Return ``F(end) - G(end)`` for F = N(0, 1) and G = N(shift, scale^2), ``stretch = scale^2 - 1``."""
    other = (end - shift) / scale
    width = (shift + stretch / (1 + scale) * end) / scale  # end - other
    if not abs(width) < _NARROW:
        return float(ndtr(end) - ndtr(other))
    points = end - width * (_NODES + 1) / 2
    return width * float(np.exp(-(points**2) / 2) @ _WEIGHTS) / math.sqrt(8 * math.pi)
