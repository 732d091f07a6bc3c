"""Sum and proportions of a tuple from a gamma law whose shape and scale are both unknown.

Given its shape a, the sum of l records and their proportions are independent: the sum is gamma of shape ``l a``, the
proportions are Dirichlet (a, .., a). Cell (j, m) belongs to the public shape ``a_j = exp(j * step)``; its points have
proportions from Dirichlet (a_j, .., a_j) and the logarithm y of their sum uniform in ``[m w_j, (m + 1) w_j)``. So every
cell has volume 1 in the reference measure ``sum_j Dirichlet(a_j) x dy / w_j``, and the density of a law's tuple with
respect to it is ``Dirichlet(a; p) g(y) / sum_j (Dirichlet(a_j; p) / w_j)``. Of the proportions it reads one number,
``D = sum_i log(l p_i)``.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np
from scipy.special import gammaln, ndtri

from accord.core.errors import FitFailed
from accord.core.shared import SharedRandomness
from accord.couplings.lattice.cells import CellRace, Floats, Integers, Points
from accord.couplings.statistics.sums import LogSum, finite_exp, stirling_rest
from accord.distributions import Gamma

__all__ = ["GammaStatistic"]

_SHAPE_DEPTH, _CELL_DEPTH = 25.0, 34.0
"""Shapes, and then cells, from which a law takes its point with probability below exp(-depth) are left out."""

_WINDOW = 16  # public shapes on each side whose densities are added up: the rest is below exp(-32) of the sum
_MOST_SHAPES = 200
_MOST_CELLS = 100_000
_MOST_KNOWN = 1 << 20
_TRIES = 16
_SMALLEST, _LARGEST = 1e-3, 1e6


@final
@dataclass(frozen=True, slots=True)
class GammaStatistic:
    """The race on the sum and the proportions of l records."""

    records: int
    known: dict[tuple[int, int], float] = field(default_factory=dict, compare=False, repr=False)
    """D of points seen before: a function of the point, so it is the same whoever asks first."""

    name: ClassVar[str] = "gamma"
    least_records: ClassVar[int] = 12

    @property
    def uniforms(self) -> int:
        """One for the sum; for each proportion one, and two for each of sixteen tries."""
        return 1 + (1 + 2 * _TRIES) * self.records

    @property
    def step(self) -> float:
        """Distance of the public shapes in log a: between 1.06 and 1.5 standard deviations."""
        return 1.5 / math.sqrt(self.records - 1)

    def shape(self, j: Integers) -> Floats:
        """Return a_j."""
        return np.asarray(np.exp(j * self.step), dtype=np.float64)

    def width(self, j: Integers) -> Floats:
        """Return w_j: two standard deviations of y at the shape a_j, at most 1."""
        return np.minimum(1.0, 2.0 / np.sqrt(self.records * self.shape(j)))

    def log_constant(self, a: Floats) -> Floats:
        """Return C with ``log Dirichlet(a; p) = C(a) + (a - 1) D + `` a number that no shape changes."""
        n = self.records
        return 0.5 * (n - 1) * np.log(a) + _stirling_rest(n * a) - n * _stirling_rest(a)

    def reach(self, law: object) -> "_GammaReach":
        """Return what a `Gamma` law can reach."""
        if type(law) is not Gamma or not _SMALLEST <= law.shape <= _LARGEST:
            raise FitFailed("the law is not gamma of a shape between 1e-3 and 1e6.")
        total = LogSum(self.records * law.shape, math.log(law.scale))
        j, log_mass, log_most = self._shapes(law.shape)
        low, high = total.ends()
        if not ((high - low) / self.width(j) + 2).sum() < _MOST_CELLS:
            raise FitFailed("the law needs too many cells.")
        parts, bounds = [], []
        for index, width, mass in zip(j.tolist(), self.width(j).tolist(), log_mass.tolist(), strict=True):
            places = total.cells(width)
            peak = total.log_bound(places, width)
            reached = mass + peak + math.log(width) >= -_CELL_DEPTH
            parts.append(np.column_stack([np.full(len(places), index), places])[reached])
            bounds.append(peak[reached] + log_most)
        return _GammaReach(self, law.shape, total, np.concatenate(parts), np.concatenate(bounds))

    def _shapes(self, a: float) -> tuple[Integers, Floats, float]:
        """Return the shapes a law can reach, the log of how much of it each can get, and of its quotient's maximum.

        The quotient is ``Dirichlet(a; p) / sum_j (Dirichlet(a_j; p) / w_j)``. The point comes from shape j with
        probability ``E min(1, (Dirichlet(a_j; p) / w_j) / sum)``, at most the affinity of a and a_j times
        ``sqrt(maximum / w_j)``, independently of y.

        With a between its neighbours a_1 and a_2, ``a = t a_1 + (1 - t) a_2``, keep their two terms of the sum alone;
        by the inequality of the means the quotient is at most
        ``exp(C(a) - t C(a_1) - (1 - t) C(a_2)) (t w_1)^t ((1 - t) w_2)^(1 - t)``, whatever D is.
        """
        below = math.floor(math.log(a) / self.step)
        pair = np.array([below, below + 1])
        first, second = self.shape(pair).tolist()
        share = min(max((second - a) / (second - first), 0.0), 1.0)
        constant = self.log_constant(np.array([a, first, second]))
        log_width = np.log(self.width(pair))
        log_most = 1e-9 + float(
            constant[0]
            + _weighted(share, log_width[0] - constant[1])
            + _weighted(1 - share, log_width[1] - constant[2])
        )
        j = below + np.arange(-_MOST_SHAPES, _MOST_SHAPES + 1)
        near = self.shape(j)
        affinity = 0.5 * (constant[0] + self.log_constant(near)) - self.log_constant(0.5 * (a + near))
        mass = affinity + 0.5 * (log_most - np.log(self.width(j)))
        if not max(mass[0], mass[-1]) < -_SHAPE_DEPTH:
            raise FitFailed("the law reaches too many shapes.")
        kept = mass >= -_SHAPE_DEPTH
        return j[kept], np.minimum(mass[kept], 0.0), log_most

    def spread(self, points: Points) -> Floats:
        """Return D of each point, shape (n,)."""
        names = list(zip(points.streams.tolist(), points.numbers.tolist(), strict=True))
        new = np.array([place for place, name in enumerate(names) if name not in self.known], dtype=np.int64)
        if len(new):
            if len(self.known) > _MOST_KNOWN:
                self.known.clear()
                return self.spread(points)
            fresh = Points(points.cells[new], points.streams[new], points.numbers[new], points.width)
            logs = self.log_proportions(fresh) + math.log(self.records)
            for place, value in zip(new.tolist(), logs.sum(axis=1).tolist(), strict=True):
                self.known[names[place]] = value
        return np.array([self.known[name] for name in names])

    def log_proportions(self, points: Points) -> Floats:
        """Return log p of each point, shape (n, l): gamma numbers over their sum, in logs for tiny shapes."""
        shape = self.shape(points.cells[:, 0])[:, None]
        logs = self._log_gammas(shape + 1, points) + np.log(points.uniforms(1, self.records)) / shape
        logs -= logs.max(axis=1, keepdims=True)
        return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)), dtype=np.float64)

    def _log_gammas(self, shape: Floats, points: Points) -> Floats:
        """Return logarithms of gamma numbers of shapes above 1, shape (n, l): rejection after Marsaglia and Tsang.

        A try succeeds with probability above 0.95; sixteen fail with less than 1e-20, and then the mode stands in.
        """
        n = self.records
        d = np.broadcast_to(shape - 1 / 3, (len(shape), n))
        logs, pending = np.log(d), np.ones(d.shape, dtype=bool)
        for number in range(_TRIES):
            row = np.flatnonzero(pending.any(axis=1))
            if len(row) == 0:
                break
            some = Points(points.cells[row], points.streams[row], points.numbers[row], points.width)
            words = some.uniforms(1 + n + 2 * n * number, 2 * n)
            size, normal = d[row], ndtri(words[:, :n])
            cube = (1 + normal / np.sqrt(9 * size)) ** 3
            with np.errstate(all="ignore"):
                log_cube = np.log(cube)
                good = np.log(words[:, n:]) < 0.5 * normal**2 + size * (1 - cube + log_cube)
            good &= (cube > 0) & pending[row]
            logs[row] = np.where(good, np.log(size) + log_cube, logs[row])
            pending[row] &= ~good
        return np.asarray(logs, dtype=np.float64)

    def places(self, points: Points) -> Floats:
        """Return y of each point, shape (n,)."""
        offset = points.uniforms(0, 1)[:, 0]
        return np.asarray((points.cells[:, 1] + offset) * self.width(points.cells[:, 0]), dtype=np.float64)

    def log_reference(self, j: Integers, spread: Floats) -> Floats:
        """Return ``log sum_i Dirichlet(a_i; p) / w_i`` over the shapes around each point's own, shape (n,)."""
        around = j[:, None] + np.arange(-_WINDOW, _WINDOW + 1)
        shapes = self.shape(around)
        terms = self.log_constant(shapes) + (shapes - 1) * spread[:, None] - np.log(self.width(around))
        top = terms.max(axis=1)
        return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)), dtype=np.float64)

    def decode(self, race: CellRace, shared: SharedRandomness, draw: int, key: bytes) -> Floats:  # noqa: ARG002
        """Return the records, shape (l, 1): they are the point's own."""
        *cell, number = np.frombuffer(key, dtype="<i8").tolist()
        point = race.point(draw, np.array(cell, dtype=np.int64), number)
        logs = self.log_proportions(point)[0] + self.places(point)[0]
        return finite_exp(logs)[:, None]


@final
@dataclass(frozen=True, slots=True)
class _GammaReach:
    statistic: GammaStatistic
    shape: float
    total: LogSum
    cells: Integers
    log_bound: Floats

    def log_density(self, which: Integers, points: Points) -> Floats:  # noqa: ARG002 - the points know their cells
        """Return the log density of proportions and y with respect to the reference measure."""
        spread = self.statistic.spread(points)
        own = self.statistic.log_constant(np.array([self.shape]))[0] + (self.shape - 1) * spread
        found: Floats = own + self.total.log_density(self.statistic.places(points))
        return found - self.statistic.log_reference(points.cells[:, 0], spread)

    def key(self, points: Points) -> bytes:
        """Return cell and number of the point."""
        return np.append(points.cells[0], points.numbers[0]).astype("<i8").tobytes()


def _weighted(share: float, value: float) -> float:
    """Return ``share * (log(share) + value)``, 0 at 0."""
    return share * (math.log(share) + value) if share > 0 else 0.0


def _stirling_rest(x: Floats) -> Floats:
    """Return ``log(gamma(x)) - (x - 1/2) log(x) + x``, up to a constant, without a difference of large numbers."""
    small = np.minimum(x, 16.0)
    direct = gammaln(small) - (small - 0.5) * np.log(small) + small - 0.5 * math.log(2 * math.pi)
    return np.where(x < 16.0, direct, stirling_rest(np.maximum(x, 16.0)))
