"""The sum of a tuple as the statistic: whole numbers for Poisson laws, its logarithm for exponential laws."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from scipy.special import gammaln

from accord.core.errors import FitFailed
from accord.core.shared import SharedRandomness
from accord.couplings.lattice.cells import CellRace, Floats, Integers, Points
from accord.distributions import Exponential, Poisson

__all__ = ["ExponentialSum", "LogSum", "PoissonSum", "finite_exp", "stirling_rest"]

_DEPTH = 28.5
"""Each tail left out has probability at most exp(-28.5), below 5e-13, by Chernoff's bound."""

_LARGEST_INDEX = 2.0**50
_STIRLING = 16.0


# --- Poisson ----------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class PoissonSum:
    """The sum of l counts. Cell c holds the 2c + 1 whole numbers from c^2 on, two standard deviations.

    Given the sum, its events fall on the records independently and uniformly, whatever the rate is.
    """

    records: int

    name: ClassVar[str] = "poisson"
    least_records: ClassVar[int] = 1
    uniforms: ClassVar[int] = 1

    def reach(self, law: object) -> "_PoissonReach":
        """Return what a `Poisson` law can reach."""
        if type(law) is not Poisson:
            raise FitFailed("the law is not Poisson.")
        total = Poisson(self.records * law.rate)  # refuses a sum above 2^50
        up = _DEPTH / 3 + math.sqrt(_DEPTH**2 / 9 + 2 * _DEPTH * total.rate)
        down = math.sqrt(2 * _DEPTH * total.rate)
        first = math.isqrt(max(0, math.floor(total.rate - down)))
        last = math.isqrt(math.ceil(total.rate + up))
        cells = np.arange(first, last + 1)
        peak = np.clip(math.floor(total.rate), cells**2, (cells + 1) ** 2 - 1)
        bound = total.log_density(peak.astype(np.float64)) + np.log(2.0 * cells + 1) + 1e-9
        return _PoissonReach(total, cells[:, None], bound)

    def decode(self, race: CellRace, shared: SharedRandomness, draw: int, key: bytes) -> Floats:  # noqa: ARG002
        """Return the counts, shape (l, 1)."""
        total = int(np.frombuffer(key, dtype="<i8")[0])
        shares = shared.stream("records", draw, key.hex()).multinomial(total, np.full(self.records, 1 / self.records))
        return np.asarray(shares[:, None], dtype=np.float64)


@final
@dataclass(frozen=True, slots=True)
class _PoissonReach:
    total: Poisson
    cells: Integers
    log_bound: Floats

    def log_density(self, which: Integers, points: Points) -> Floats:  # noqa: ARG002 - the points know their cells
        """Return the log probability of each number times the size of its cell."""
        size = 2.0 * points.cells[:, 0] + 1
        found: Floats = self.total.log_density(_numbers(points).astype(np.float64)) + np.log(size)
        return found

    def key(self, points: Points) -> bytes:
        """Return the number: points on one number are one value."""
        return _numbers(points).astype("<i8").tobytes()


def _numbers(points: Points) -> Integers:
    cell = points.cells[:, 0]
    place = np.minimum(points.uniforms(0, 1)[:, 0] * (2.0 * cell + 1), 2.0 * cell).astype(np.int64)
    return np.asarray(cell**2 + place, dtype=np.int64)


# --- sums of positive numbers -----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class LogSum:
    """The law of ``y = log(sum)`` of a tuple from a gamma law: the sum is gamma of shape ``freedom``.

    Everything is in ``v = y - log(freedom * scale)``: the log density is ``freedom * (v - expm1(v))`` and a constant.
    """

    freedom: float
    log_scale: float

    @property
    def centre(self) -> float:
        """The mode in y."""
        return self.log_scale + math.log(self.freedom)

    def ends(self) -> tuple[float, float]:
        """Return y at both ends; beyond each lies a mass of at most exp(-28.5).

        Chernoff: P(v >= x) <= exp(freedom * (x - expm1(x))) and the same below, and ``expm1(x) - x`` is at least
        ``x^2 / 2`` above 0, ``x^2 / 3`` from -1 to 0, and ``-1 - x`` anywhere.
        """
        down = math.sqrt(3 * _DEPTH / self.freedom)
        down = down if down <= 1 else 1 + _DEPTH / self.freedom
        return self.centre - down, self.centre + math.sqrt(2 * _DEPTH / self.freedom)

    def log_density(self, y: Floats) -> Floats:
        """Return the log density of y."""
        v = y - self.centre
        found: Floats = self.freedom * (v - np.expm1(v)) + _peak(self.freedom)
        return found

    def log_bound(self, cells: Integers, width: float) -> Floats:
        """Return the largest log density of y in ``[c * width, (c + 1) * width]`` for each cell c."""
        nearest = np.clip(self.centre, cells * width, (cells + 1) * width)
        return self.log_density(nearest) + 1e-9

    def cells(self, width: float) -> Integers:
        """Return the cells of this width between the ends."""
        low, high = (math.floor(end / width) for end in self.ends())
        if not max(abs(low), abs(high)) < _LARGEST_INDEX:
            raise FitFailed("the law is too concentrated for double precision at its distance from one.")
        return np.arange(low, high + 1)


def _peak(freedom: float) -> float:
    """Return ``freedom * log(freedom) - freedom - log(gamma(freedom))`` without a difference of large numbers."""
    if freedom < _STIRLING:
        return float(freedom * math.log(freedom) - freedom - gammaln(freedom))
    return 0.5 * math.log(freedom / (2 * math.pi)) - float(stirling_rest(freedom))


def stirling_rest(x: Any) -> Any:  # noqa: ANN401 - a float, or an array of them
    """Return what Stirling's formula leaves out of ``log(gamma(x))``, for x of at least 16."""
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * x * x)) / (x * x)) / (x * x)) / x


def finite_exp(logs: Floats) -> Floats:
    """Return ``exp(logs)``; what lies beyond the largest double is that double."""
    with np.errstate(over="ignore"):
        return np.minimum(np.exp(logs), np.finfo(np.float64).max)


# --- exponential ------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class ExponentialSum:
    """The sum of l waiting times, in cells of its logarithm that are two standard deviations wide.

    Given the sum, the shares of the records in it are uniform on the simplex, whatever the scale is.
    """

    records: int

    name: ClassVar[str] = "exponential"
    least_records: ClassVar[int] = 1
    uniforms: ClassVar[int] = 1

    @property
    def width(self) -> float:
        """Width of a cell in the logarithm of the sum."""
        return 2 / math.sqrt(self.records)

    def reach(self, law: object) -> "_ExponentialReach":
        """Return what an `Exponential` law can reach."""
        if type(law) is not Exponential:
            raise FitFailed("the law is not exponential.")
        total = LogSum(float(self.records), math.log(law.scale))
        cells = total.cells(self.width)
        bound = total.log_bound(cells, self.width) + math.log(self.width)
        return _ExponentialReach(total, self.width, cells[:, None], bound)

    def decode(self, race: CellRace, shared: SharedRandomness, draw: int, key: bytes) -> Floats:
        """Return the records, shape (l, 1)."""
        cell, number = np.frombuffer(key, dtype="<i8").tolist()
        point = race.point(draw, np.array([cell], dtype=np.int64), number)
        shares = shared.stream("records", draw, key.hex()).standard_exponential(self.records)
        logs = np.log(shares) - math.log(shares.sum()) + _places(point, self.width)
        return finite_exp(logs)[:, None]


def _places(points: Points, width: float) -> Floats:
    return np.asarray((points.cells[:, 0] + points.uniforms(0, 1)[:, 0]) * width, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True)
class _ExponentialReach:
    total: LogSum
    width: float
    cells: Integers
    log_bound: Floats

    def log_density(self, which: Integers, points: Points) -> Floats:  # noqa: ARG002 - the points know their cells
        """Return the log density of y, a cell being the unit of volume."""
        return self.total.log_density(_places(points, self.width)) + math.log(self.width)

    def key(self, points: Points) -> bytes:
        """Return cell and number of the point."""
        return np.append(points.cells[0], points.numbers[0]).astype("<i8").tobytes()
