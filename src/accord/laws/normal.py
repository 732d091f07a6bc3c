"""Distances of normal laws."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import erf, ndtr

from accord.distributions import Normal

__all__ = [
    "Standardised",
    "normal_hellinger",
    "normal_kl_divergence",
    "normal_total_variation",
    "standardised",
    "total_variation_by_quadrature",
]


_Floats = NDArray[np.float64]
_SAME_SCALE = 1e-13
_NEAR = 0.5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Standardised:
    """P = N(0, I) against Q = N(shift, diag(v)): ``stretch = v - 1`` and ``log_variance = log v``, each of shape (d,).

    Both are kept, since ``v - 1`` has lost the digits of a small v.
    """

    shift: _Floats
    stretch: _Floats
    log_variance: _Floats

    @property
    def merged(self) -> "Standardised":
        """The same pair with the axes of equal scale turned, so that one of them, the last, has all of their shift."""
        alike = np.abs(self.stretch) <= _SAME_SCALE
        return Standardised(
            shift=np.append(self.shift[~alike], math.hypot(*self.shift[alike].tolist())),
            stretch=np.append(self.stretch[~alike], 0.0),
            log_variance=np.append(self.log_variance[~alike], 0.0),
        )


def standardised(p: Normal, q: Normal) -> Standardised:
    """Return ``p`` and ``q`` in such coordinates; a shift beyond the floats is infinite in every entry."""
    own, other = p.cholesky, q.cholesky
    with np.errstate(all="ignore"):
        shift = solve_triangular(own, np.array(q.mean) - np.array(p.mean), lower=True, check_finite=False)
        apart = _relative_difference(p, q, own)
        if np.isfinite(apart).all() and np.linalg.norm(apart) < _NEAR:
            stretch, axes = np.linalg.eigh(apart)
            log_variance = np.log1p(stretch)
        else:
            axes, scales, _ = np.linalg.svd(solve_triangular(own, other, lower=True, check_finite=False))
            stretch = (scales - 1) * (scales + 1)
            small = np.abs(stretch) < _NEAR
            log_variance = np.where(small, np.log1p(np.where(small, stretch, 0.0)), 2 * np.log(scales))
        shift = axes.T @ shift if np.isfinite(shift).all() else np.full(p.dimension, math.inf)
    return Standardised(shift=shift, stretch=stretch, log_variance=log_variance)


def _relative_difference(p: Normal, q: Normal, own: _Floats) -> _Floats:
    """Return ``L^-1 (Q - P) L^-T`` for covariances P = L L^T and Q; near ones are subtracted without rounding.

    On a line it is ``(q - p) / p``, without the rounding of two square roots.
    """
    first, second = np.array(p.covariance), np.array(q.covariance)
    if p.dimension == 1:
        return np.asarray((second - first) / first)
    half = solve_triangular(own, second - first, lower=True, check_finite=False)
    whole = solve_triangular(own, half.T, lower=True, check_finite=False)
    return np.asarray((whole + whole.T) / 2)


_TOLERANCE = 1e-10
_ORDER = 16
_FIRST = 2.0**-6
_FEWEST_PANELS = 4
_MOST_PANELS = 2**17
_MOST_OCTAVES = 200


def total_variation_by_quadrature(pair: Standardised) -> float:
    """Return the total variation of a pair of normal laws.

    With ``M(s) = int p^(1-s) q^s``, the overlap ``int min(p, q)`` is ``int sqrt(p q) e^(-|log p/q| / 2)``, and the
    Fourier transform of ``e^(-|y| / 2)`` turns this into

        TV = (1 / pi) int_0^oo Re(1 - M(1/2 + iu)) / (1/4 + u^2) du,

    with M in closed form. Octaves of u are added, each with panels doubled in number until two results agree, until the
    rest is known: there ``|M(1/2 + iu)|``, which falls, is below the tolerance.
    """

    def integrand(u: _Floats) -> _Floats:
        return _one_minus(pair, u) / (0.25 + u**2)

    total = _panels(integrand, 0.0, _FIRST, scale=0.0)
    low = _FIRST
    for _ in range(_MOST_OCTAVES):
        rest = 2 * math.atan(0.5 / low)  # what is left if M vanishes from here on
        if _size(pair, low) * rest <= _TOLERANCE * (total + rest):
            return (total + rest) / math.pi
        total += _panels(integrand, low, 2 * low, scale=total + rest)
        low *= 2
    return (total + 2 * math.atan(0.5 / low)) / math.pi


def _panels(integrand: Callable[[_Floats], _Floats], low: float, high: float, *, scale: float) -> float:
    """Return the integral by Gauss-Legendre panels, doubled in number until two results agree."""
    nodes, weights = np.polynomial.legendre.leggauss(_ORDER)
    last = math.inf
    panels = _FEWEST_PANELS
    while True:
        width = (high - low) / panels
        total = 0.0
        for start in range(0, panels, 1024):  # bounded memory
            starts = low + width * np.arange(start, min(panels, start + 1024))
            values = integrand((starts[:, None] + width * (nodes + 1) / 2).ravel())
            total += float(values.reshape(-1, _ORDER).sum(axis=0) @ weights) * width / 2
        if abs(total - last) <= _TOLERANCE * max(scale, abs(total)) or panels >= _MOST_PANELS:
            return total
        last = total
        panels *= 2


def _log_moment(pair: Standardised, u: _Floats) -> tuple[_Floats, _Floats]:
    """Return real and imaginary part of ``log M(1/2 + iu)``, each of the shape of ``u``.

    For one entry with variance v = 1 + k and s = 1/2 + iu it is
    ``(1-s)/2 log v - 1/2 log(1 + (1-s) k) - s (1-s) m^2 / (2 (1 + (1-s) k))``, and ``s (1-s) = 1/4 + u^2``.
    """
    k, m, points = pair.stretch[:, None], pair.shift[:, None], u[None, :]
    log = pair.log_variance[:, None]
    real, imaginary = 1 + k / 2, -points * k
    squared = real**2 + imaginary**2
    pull = (0.25 + points**2) * m**2 / (2 * squared)
    size = log / 4 - np.log1p(k + k**2 / 4 + imaginary**2) / 4 - pull * real
    turn = -points * log / 2 - np.arctan2(imaginary, real) / 2 + pull * imaginary
    return size.sum(axis=0), turn.sum(axis=0)


def _one_minus(pair: Standardised, u: _Floats) -> _Floats:
    """Return ``Re(1 - M(1/2 + iu))`` as a sum of two terms that are not negative."""
    size, turn = _log_moment(pair, u)
    one_minus: _Floats = -np.expm1(size) + 2 * np.exp(size) * np.sin(turn / 2) ** 2
    return one_minus


def _size(pair: Standardised, u: float) -> float:
    """Return ``|M(1/2 + iu)|``, which falls in u."""
    return float(np.exp(_log_moment(pair, np.array([u]))[0][0]))


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
