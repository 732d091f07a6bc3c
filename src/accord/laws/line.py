"""Laws on a line: their distances by certified quadrature."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core.coupling import Distribution, Measure
from accord.core.errors import InvalidParameter
from accord.distributions import (
    Atoms,
    Categorical,
    Mixture,
    OnALine,
    Piecewise,
    PointMass,
    Product,
    ScipyLaw,
    Uniform,
    on_a_line,
)
from accord.distributions.measured import Points, every_column, log_density_at

__all__ = [
    "Cuts",
    "Line",
    "cuts",
    "integrals",
    "line_hellinger",
    "line_kl_divergence",
    "line_total_variation",
    "quantiles",
    "take_apart",
]


_Floats = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(15)
_RELATIVE = 1e-11
_SHARE = 1e-13
_FLOOR = 1e-27
_MOST_ROUNDS = 60
_MOST_PANELS = 200_000


def integrals(function: Callable[[_Floats], _Floats], cuts: _Floats) -> _Floats:
    """Return the integral of a function that is at least 0 between each two neighbouring cuts, shape (m - 1,).

    Gauss-Legendre panels are halved until a panel and its halves agree to 1e-11 of their own, 1e-13 of the total or
    1e-27, which is what squares of rounding errors are worth. A function that is infinite at a
    node makes its panel infinite.
    """
    low, high, owner = cuts[:-1], cuts[1:], np.arange(len(cuts) - 1)
    rough = _panels(function, low, high)
    done = np.zeros(len(low))
    seen = len(low)
    for _ in range(_MOST_ROUNDS):
        middle = low / 2 + high / 2
        left, right = _panels(function, low, middle), _panels(function, middle, high)
        fine = left + right
        with np.errstate(invalid="ignore"):
            total = float(done.sum() + fine.sum())
            error = np.abs(fine - rough)
        agreed = (error <= _RELATIVE * fine) | (error <= max(_FLOOR, _SHARE * total)) | ~np.isfinite(error)
        agreed |= (middle <= low) | (middle >= high) | (seen > _MOST_PANELS)
        np.add.at(done, owner[agreed], fine[agreed])
        if agreed.all():
            return done
        rest = ~agreed
        low, high = np.concatenate([low[rest], middle[rest]]), np.concatenate([middle[rest], high[rest]])
        owner, rough = np.tile(owner[rest], 2), np.concatenate([left[rest], right[rest]])
        seen += len(low)
    np.add.at(done, owner, rough)
    return done


def _panels(function: Callable[[_Floats], _Floats], low: _Floats, high: _Floats) -> _Floats:
    """Return one Gauss-Legendre sum for each panel."""
    width = high - low
    nodes = low[:, None] + width[:, None] * ((_NODES + 1) / 2)
    first, last = np.nextafter(low, np.inf), np.nextafter(high, -np.inf)  # a density may jump at the ends
    nodes = np.where((first <= last)[:, None], np.clip(nodes, first[:, None], last[:, None]), nodes)
    values = function(nodes.ravel()).reshape(nodes.shape)
    total = np.empty(len(low))
    with np.errstate(over="ignore", invalid="ignore"):
        total[:] = (values @ _WEIGHTS) * width / 2
    total[np.isinf(values).any(axis=1)] = math.inf
    return total


_Ints = NDArray[np.int64]
_FARTHEST = 1e150
_MOST_WHOLE_NUMBERS = 1_000_000
_NEGLIGIBLE = 1e-18
_TINY = 5e-324
_LEVELS = np.concatenate([[_TINY, 1e-160, 1e-80, 1e-40], np.logspace(-20, -2, 37), np.arange(1, 33) / 64])
_FEW_LEVELS = _LEVELS[[0, 3, 4, 10, 16, 22, 28, 34, 40, 48, 56, 64, 72]]
_MANY_PARTS = 20
_BESIDE = 16.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A law on the line: numbers that may be atoms, and laws with densities, each with its weight."""

    law: Distribution
    places: _Floats
    parts: tuple[tuple[float, OnALine], ...]

    def log_density(self, x: _Floats) -> _Floats:
        """Return the log density of the part without atoms."""
        if not self.parts:
            return np.full(len(x), -np.inf)
        return log_density_at(self.law, Points(x, dimension=1), None)

    def log_mass(self, x: _Floats) -> _Floats:
        """Return the log probability of single numbers."""
        points = Points(x, dimension=1)
        return log_density_at(self.law, points, every_column(points))

    def interval(self, low: _Floats, high: _Floats) -> _Floats:
        """Return the probability of intervals under the part without atoms."""
        total = np.zeros(len(low))
        for weight, part in self.parts:
            total += weight * part.interval(low, high)
        return total


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Where to cut the line, and the middle and the scale of the laws there."""

    points: _Floats
    centre: float
    spread: float


def take_apart(law: Distribution) -> Line | None:
    """Return a law of one column with its atoms and densities apart, or None if they are not known."""
    if law.dimension != 1:
        return None
    places: list[_Floats] = [np.empty(0)]
    parts: list[tuple[float, OnALine]] = []
    for weight, piece in _pieces(law, 1.0):
        found = _places(piece)
        if found is not None:
            places.append(found)
        elif piece.measure is Measure.LEBESGUE and (line := on_a_line(piece)) is not None:
            parts.append((weight, line))
        else:
            return None
    return Line(law=law, places=np.unique(np.concatenate(places)), parts=tuple(parts))


def _pieces(law: Distribution, weight: float) -> Iterator[tuple[float, Distribution]]:
    """Yield the laws of which a law is mixed."""
    if isinstance(law, Mixture):
        for part, share in law.positive:
            yield from _pieces(part, weight * share)
    elif isinstance(law, Product) and len(law.factors) == 1:
        yield from _pieces(law.factors[0], weight)
    elif isinstance(law, Atoms) and law.rest is not None and law.rest_mass > 0:
        yield weight, Atoms(law.values, law.masses, law.rest) if any(law.masses) else law.rest
        if any(law.masses):
            yield from _pieces(law.rest, weight * law.rest_mass)
    else:
        yield weight, law


def _places(law: Distribution) -> _Floats | None:
    """Return the numbers that may be atoms of a law; None for one with a density, and for other labels."""
    if isinstance(law, Atoms):
        return np.array([value for value, mass in zip(law.values, law.masses, strict=True) if mass > 0])
    if isinstance(law, PointMass):
        return None if law.vector is None else np.array(law.vector)
    if isinstance(law, Categorical):
        numbers = [number for number in map(_as_number, law.categories) if number is not None]
        return np.array(numbers) if len(numbers) == len(law.categories) else None
    line = on_a_line(law) if law.measure is Measure.COUNTING else None
    return None if line is None else _whole_numbers(line)


def _as_number(label: object) -> float | None:
    """Return a label as a number if it is one that floats hold exactly."""
    if isinstance(label, bool) or not isinstance(label, (int, float)) or not abs(label) <= 2.0**53:
        return None
    return float(label)


def _whole_numbers(law: OnALine) -> _Floats | None:
    """Return the whole numbers that carry all mass of a law but a negligible rest; None if they do not carry it."""
    low, high = quantiles(law, np.array([_NEGLIGIBLE]))
    first, last = math.floor(low[0]), math.ceil(high[0])
    if not last - first < _MOST_WHOLE_NUMBERS:
        return None
    numbers = np.arange(first, last + 1, dtype=np.float64)
    mass = float(np.exp(law.log_density(numbers[:, None])).sum())
    return numbers if abs(mass - 1) < 1e-9 else None


def quantiles(law: OnALine, levels: _Floats) -> tuple[_Floats, _Floats]:
    """Return the least floats with ``P(X <= x) >= level``, and with ``P(X > x) <= level``: bisection of all floats."""
    return _bisect(lambda x: law.cdf(x) >= levels, len(levels)), _bisect(
        lambda x: law.interval(x, np.full(len(x), np.inf)) <= levels, len(levels)
    )


def _bisect(reached: object, count: int) -> _Floats:
    """Return the least float at which a condition that stays true becomes true, shape (count,)."""
    edge = _ordinal(np.array([1e300]))[0]
    low, high = np.full(count, -edge), np.full(count, edge)
    for _ in range(65):
        middle = low // 2 + high // 2 + (low & high & 1)
        true = np.asarray(reached(_from_ordinal(middle)))  # type: ignore[operator]
        low, high = np.where(true, low, middle), np.where(true, middle, high)
    return _from_ordinal(high)


def _ordinal(x: _Floats) -> _Ints:
    """Return the place of each float in the order of all floats, 0 for zero."""
    bits = np.abs(x).view(np.int64)
    return np.where(x < 0, -bits, bits)


def _from_ordinal(place: _Ints) -> _Floats:
    size = np.abs(place).view(np.float64)
    return np.where(place < 0, -size, size)


def cuts(first: Line, second: Line) -> Cuts:
    """Return where to cut the line so that between two cuts every part is smooth, and the mass outside is none."""
    parts = [part for line in (first, second) for _, part in line.parts]
    levels = _LEVELS if len(parts) <= _MANY_PARTS else _FEW_LEVELS
    corners = np.unique(np.concatenate([np.empty(0), *map(_corners, parts)]))
    found, centres, spread = [corners], [], 0.0
    for part in parts:
        low, high = quantiles(part, levels)
        found += [low, high]
        centres.append(float(low[-1]))
        spread = max(spread, float(high[-8 if levels is _LEVELS else -3] - low[-8 if levels is _LEVELS else -3]))
    if not parts:
        return Cuts(points=np.empty(0), centre=0.0, spread=1.0)
    points = np.unique(np.concatenate(found))
    centre = float(np.median(centres))
    reach = min(1e300, _FARTHEST * spread)
    points = np.clip(points, max(-1e300, centre - reach), min(1e300, centre + reach))
    points = np.unique(np.concatenate([points, _geometric(points - centre) + centre]))
    return Cuts(points=_apart(points, corners), centre=centre, spread=spread)


def _apart(points: _Floats, corners: _Floats) -> _Floats:
    """Return the points without those that are a few floats beside a corner: rounded nodes could not be told apart."""
    if len(corners) == 0:
        return points
    after = np.clip(np.searchsorted(corners, points), 0, len(corners) - 1)
    gaps = [points - corners[place] for place in (after, np.maximum(after - 1, 0))]
    gap = np.minimum(np.abs(gaps[0]), np.abs(gaps[1]))
    kept: _Floats = points[(gap == 0) | (gap > _BESIDE * np.spacing(np.abs(points)))]
    return kept


def _corners(law: OnALine) -> _Floats:
    """Return where a density may jump."""
    if isinstance(law, Piecewise):
        return np.array(law.edges)
    if isinstance(law, Uniform):
        return np.array([*law.low, *law.high])
    return np.array(law.support) if isinstance(law, ScipyLaw) else np.empty(0)


def _geometric(distances: _Floats) -> _Floats:
    """Return points between neighbours more than a factor of 4 apart, as seen from 0."""
    extra = [np.empty(0)]
    for sign in (-1.0, 1.0):
        side = np.sort(sign * distances[sign * distances > 0])
        with np.errstate(over="ignore"):
            steps = np.ceil(np.log(side[1:] / side[:-1]) / math.log(4.0))
        for low, high, step in zip(side[:-1], side[1:], steps, strict=True):
            if 1 < step < 2000:
                extra.append(sign * np.geomspace(low, high, int(step) + 1)[1:-1])
    return np.concatenate(extra)


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
