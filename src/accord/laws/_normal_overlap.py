"""Total variation of two normal laws in any dimension by one integral on a line."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accord.laws._standardised import Standardised

__all__ = ["total_variation_by_quadrature"]

_Floats = NDArray[np.float64]
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
