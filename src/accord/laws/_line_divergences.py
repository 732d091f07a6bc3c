"""Divergences of two laws on the line with atoms and densities."""

import math

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter
from accord.laws._line import Cuts, Line, cuts
from accord.laws._quadrature import integrals

__all__ = ["line_hellinger", "line_kl_divergence", "line_total_variation"]

_Floats = NDArray[np.float64]
_INNER = np.arange(1, 9) / 9
_SMALL = 1e-2
_FAR = 1e75
_FARTHER = 1e112
_REST = 1e-9


def line_total_variation(p: Line, q: Line) -> float:
    """Return half of what atoms and cells differ by: the cells lie between cuts and crossings of the densities.

    A partition gives a lower bound, attained if the sign of ``p - q`` is constant on each cell. A crossing that is
    missed by h costs of the order of h^2.
    """
    places, own, other = _masses(p, q)
    total = float(np.abs(np.exp(own) - np.exp(other)).sum()) if len(places) else 0.0
    points = cuts(p, q).points
    if len(points):
        ends = np.unique(np.concatenate([[-np.inf], points, _crossings(p, q, points), [np.inf]]))
        total += float(np.abs(p.interval(ends[:-1], ends[1:]) - q.interval(ends[:-1], ends[1:])).sum())
    return min(1.0, total / 2)


def line_hellinger(p: Line, q: Line) -> float:
    """Return ``h`` with ``h^2`` half of the sum and integral of ``(sqrt p - sqrt q)^2``."""
    _, own, other = _masses(p, q)
    square = float(_root_gap(own, other).sum())
    points = cuts(p, q).points
    if len(points) > 1:
        square += float(integrals(lambda x: _root_gap(p.log_density(x), q.log_density(x)), points).sum())
    return math.sqrt(min(1.0, square / 2))


def line_kl_divergence(p: Line, q: Line) -> float:
    """Return the sum and integral of ``p log(p / q) - p + q``, which is at least 0 everywhere."""
    _, own, other = _masses(p, q)
    total = float(_relative_gap(own, other).sum())
    found = cuts(p, q)
    points = found.points
    if len(points) > 1:
        cells = integrals(lambda x: _relative_gap(p.log_density(x), q.log_density(x)), points)
        total += float(cells.sum())
        if math.isfinite(total):
            return math.inf if _diverges(found, cells, total) else total
    return total


def _masses(p: Line, q: Line) -> tuple[_Floats, _Floats, _Floats]:
    """Return the numbers that are atoms of either law, and the log masses of both."""
    places = np.union1d(p.places, q.places)
    if len(places) == 0:
        return places, np.empty(0), np.empty(0)
    return places, p.log_mass(places), q.log_mass(places)


def _crossings(p: Line, q: Line, points: _Floats) -> _Floats:
    """Return where the densities cross, found between nodes of other signs by bisection."""
    inner = points[:-1, None] + (points[1:] - points[:-1])[:, None] * _INNER
    nodes = np.unique(np.concatenate([points, inner.ravel()]))
    signs = _signs(p, q, nodes)
    used = np.flatnonzero(signs)
    turns = np.flatnonzero(signs[used[1:]] != signs[used[:-1]])
    low, high, sign = nodes[used[turns]], nodes[used[turns + 1]], signs[used[turns]]
    for _ in range(64 if len(low) else 0):
        middle = low / 2 + high / 2
        same = _signs(p, q, middle) == sign
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.concatenate([low, high])


def _signs(p: Line, q: Line, x: _Floats) -> _Floats:
    own, other = p.log_density(x), q.log_density(x)
    return np.where(own > other, 1.0, np.where(own < other, -1.0, 0.0))


def _root_gap(own: _Floats, other: _Floats) -> _Floats:
    """Return ``(sqrt p - sqrt q)^2`` from logs, without cancellation."""
    top, gap = _larger(own, other)
    with np.errstate(over="ignore"):
        found: _Floats = np.exp(top) * np.expm1(-np.abs(gap) / 2) ** 2
    return found


def _relative_gap(own: _Floats, other: _Floats) -> _Floats:
    """Return ``p log(p / q) - p + q = p (e^r - 1 - r)`` for ``r = log(q / p)``, without cancellation near r = 0."""
    found = np.zeros(len(own))
    with np.errstate(all="ignore"):
        alone = ~(own > -np.inf)
        found[alone] = np.exp(other[alone])
        both = ~alone
        base, ratio = own[both], other[both] - own[both]
        small = np.where(np.abs(ratio) < _SMALL, ratio, 0.0)
        series = small**2 * (1 / 2 + small * (1 / 6 + small * (1 / 24 + small * (1 / 120 + small / 720))))
        near = np.exp(base) * series
        # In logs, since p may underflow where p log p does not.
        loss = np.exp(base + np.log(np.abs(1 + ratio)))
        far = np.exp(other[both]) - np.where(ratio < -1, -loss, loss)
        far = np.where(ratio == -np.inf, np.where(np.exp(base) > 0, np.inf, 0.0), far)
    found[both] = np.where(np.abs(ratio) < _SMALL, near, far)
    return found


def _larger(own: _Floats, other: _Floats) -> tuple[_Floats, _Floats]:
    """Return the larger log and the difference, 0 where both are -inf."""
    top = np.maximum(own, other)
    with np.errstate(invalid="ignore"):
        gap = np.where(top > -np.inf, own - other, 0.0)
    return top, gap


def _diverges(found: Cuts, cells: _Floats, total: float) -> bool:
    """Return whether the far tails go on adding; refuse where they fade so slowly that the rest is not known."""
    away = np.abs(found.points - found.centre) / found.spread
    distance = np.minimum(away[:-1], away[1:])
    middle = float(cells[(distance >= _FAR) & (distance < _FARTHER)].sum())
    outer = float(cells[distance >= _FARTHER].sum())
    if middle + outer <= _REST * total:
        return False
    if outer < 0.999 * middle:
        raise InvalidParameter("the divergence of laws with such heavy tails converges too slowly to be computed.")
    return True
