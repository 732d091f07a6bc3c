"""Hashed lattice for any laws with bounded densities on R^D: no public reference, no bounds on the data, any scale."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.coupling import Distribution, Measure, Premises
from accord.core.errors import FitFailed, InvalidParameter
from accord.core.points import PointsCoupling
from accord.core.shared import SharedRandomness, mix, require_shared, uniform_open, word_at
from accord.distributions import Exponential, Gamma, Mixture, Normal, Piecewise, Product, Uniform

__all__ = [
    "BoundedLaw",
    "Floats",
    "HashedLattice",
    "Integers",
    "reach",
]


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_DEVIATIONS = 7.0
"""A normal law has 2.6e-12 of its mass farther out in one column."""

_LOG_TAIL = 24.0
"""The tail of a gamma law that is left out has at most exp(-24) of the mass, below 4e-11."""

_SLACK = 2.0**-40
_LARGEST_INDEX = 2.0**50


def reach(law: object) -> tuple[Floats, Floats]:
    """Return corners, shape (D,) each, of a box that holds all but about 1e-9 of the law's mass.

    A law may say so itself by a method ``reach()`` that returns the two corners.

    Raises
    ------
    FitFailed
        If the law is none that is known and has no such method.

    """
    match law:
        case Normal():
            spread = np.sqrt(np.diag(np.array(law.covariance)))
            return np.array(law.mean) - _DEVIATIONS * spread, np.array(law.mean) + _DEVIATIONS * spread
        case Uniform():
            return np.array(law.low), np.array(law.high)
        case Piecewise() | Exponential() | Gamma():
            ends = _ends(law)
            return np.array(ends[:1]), np.array(ends[1:])
        case Product():
            corners = [reach(factor) for factor in law.factors]
            return np.concatenate([low for low, _ in corners]), np.concatenate([high for _, high in corners])
        case Mixture():
            corners = [reach(part) for part, _ in law.positive]
            return np.min([low for low, _ in corners], axis=0), np.max([high for _, high in corners], axis=0)
        case _:
            method = getattr(law, "reach", None)
            if method is None:
                raise FitFailed("a law must say where its mass is, by reach()")
            low, high = method()
            return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def _ends(law: Piecewise | Exponential | Gamma) -> tuple[float, float]:
    """Return where nearly all of the mass on a line begins and ends."""
    match law:
        case Piecewise():
            return law.edges[0], law.edges[-1]
        case Exponential():
            return 0.0, _LOG_TAIL * law.scale
        case Gamma():  # P(X > a + sqrt(2 a t) + t) <= exp(-t) for a scale of 1
            return 0.0, (law.shape + math.sqrt(2.0 * _LOG_TAIL * law.shape) + _LOG_TAIL) * law.scale


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundedLaw:
    """A law with a density and bounds of it, in the units of the lattice, and the box that holds its mass.

    Parameters
    ----------
    law
        The law.
    units
        Public numbers, shape (D,): the lattice counts column i in ``units[i]``.
    low, high
        The box, in units.
    log_top
        A bound of the log density (per unit volume) in the box.
    rotated
        For a normal law, the inverse of its factor and its mean, in units; bounds are then two matrix products.

    """

    law: Any
    units: Floats
    low: Floats
    high: Floats
    log_top: float
    rotated: tuple[Floats, Floats, float] | None

    @classmethod
    def seen(cls, law: Distribution, *, units: Floats) -> "BoundedLaw":
        """Return a law as the search needs it.

        Raises
        ------
        FitFailed
            If its dimension or measure is another, its box is not finite, or its density has no bound there.

        """
        if law.dimension != len(units) or law.measure is not Measure.LEBESGUE:
            raise FitFailed("the law has no density on this space")
        low, high = (np.asarray(corner, dtype=np.float64) / units for corner in reach(law))
        if not (low.shape == high.shape == units.shape and (low <= high).all() and np.isfinite([low, high]).all()):
            raise FitFailed("the law's box is no box")
        rotated = None
        if type(law) is Normal:
            factor = law.cholesky / units[:, None]
            inverse = np.linalg.inv(factor)
            constant = 0.5 * len(units) * math.log(2.0 * math.pi) + float(np.log(np.diag(factor)).sum())
            rotated = np.asarray(inverse, dtype=np.float64), np.asarray(law.mean) / units, constant
        made = cls(law, units, low, high, math.inf, rotated)
        top = float(made.log_bound(low[None], high[None])[0])
        if not math.isfinite(top):
            raise FitFailed("the law's density has no bound")
        return cls(law, units, low, high, top, rotated)

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume of the box, in units; of a box that is flat, that of one barely thicker."""
        return float(np.log(np.maximum(self.high - self.low, 2.0**-1000)).sum())

    def log_density(self, x: Floats) -> Floats:
        """Return the log density (per unit volume) at points in units, shape (n,) from (n, D).

        Raises
        ------
        FitFailed
            If one is NaN.

        """
        found = np.asarray(self.law.log_density(x * self.units), dtype=np.float64) + float(np.log(self.units).sum())
        if found.shape != (len(x),) or np.isnan(found).any():
            raise FitFailed("the law's density is not a number")
        return found

    def log_bound(self, low: Floats, high: Floats) -> Floats:
        """Return an upper bound of the log density (per unit volume) on boxes in units, shape (n,) from (n, D)."""
        if self.rotated is not None:
            return _normal_bound(*self.rotated, low, high)
        given = self.law.log_density_bound(low * self.units, high * self.units)
        found = np.asarray(given, dtype=np.float64) + float(np.log(self.units).sum())
        if found.shape != (len(low),) or np.isnan(found).any():
            raise FitFailed("the law's bound is not a number")
        return found

    def cells(self, side: float, shift: Floats, *, log_least: float, most: int) -> tuple[Integers, Floats]:
        """List the cells of a lattice that meet the box and where the density may reach a level, with its bounds there.

        Boxes of cells are halved along their longest side, and left out as soon as their bound is below the level.

        Parameters
        ----------
        side, shift
            Side of a cell in units, and shape (D,): cell i of a column is ``[i, i + 1) * side`` after a shift of so
            many sides.
        log_least
            The level.
        most
            More boxes than this at once are a failure.

        Returns
        -------
        tuple
            Indices, shape (n, D), and bounds, shape (n,).

        Raises
        ------
        FitFailed
            If there are too many, or an index is beyond 2^50.

        """
        ends = np.floor(self.low / side - shift), np.floor(self.high / side - shift)
        if not (np.abs(ends) < _LARGEST_INDEX).all():
            raise FitFailed("the law is too concentrated for double precision at its distance from zero")
        first, last = ends[0].astype(np.int64)[None], ends[1].astype(np.int64)[None]
        bound = self.log_bound((first + shift) * side, (last + (shift + 1.0)) * side)
        kept = bound >= log_least
        first, last, bound = first[kept], last[kept], bound[kept]
        done: list[tuple[Integers, Floats]] = []
        while len(first):
            width = last - first
            longest = width.argmax(axis=1)
            rows = np.arange(len(first))
            wide = width[rows, longest] > 0
            if not wide.all():
                done.append((first[~wide], bound[~wide]))
                first, last, longest = first[wide], last[wide], longest[wide]
            rows = np.arange(len(first))
            middle = first[rows, longest] + (last[rows, longest] - first[rows, longest]) // 2
            upper, lower = first.copy(), last.copy()
            lower[rows, longest], upper[rows, longest] = middle, middle + 1
            first, last = np.concatenate([first, upper]), np.concatenate([lower, last])
            bound = self.log_bound((first + shift) * side, (last + (shift + 1.0)) * side)
            kept = bound >= log_least
            first, last, bound = first[kept], last[kept], bound[kept]
            if len(first) + sum(len(cells) for cells, _ in done) > most:
                raise FitFailed("the law needs too many cells")
        if not done:
            return np.empty((0, len(self.low)), dtype=np.int64), np.empty(0)
        return np.concatenate([cells for cells, _ in done]), np.concatenate([bounds for _, bounds in done])


def _normal_bound(inverse: Floats, mean: Floats, constant: float, low: Floats, high: Floats) -> Floats:
    """Return a bound of a normal density on boxes: rows of ``inverse @ (x - mean)`` bounded one by one."""
    middle, half = 0.5 * (low + high) - mean, 0.5 * (high - low)
    absolute = np.abs(inverse)
    spread = half @ absolute.T
    size = np.abs(middle) @ absolute.T + spread + np.abs(mean) @ absolute.T * 2.0**-10
    distance = np.maximum(np.abs(middle @ inverse.T) - spread - _SLACK * size, 0.0)
    bound: Floats = -0.5 * np.square(distance).sum(axis=1) - constant
    return bound + _SLACK * (1.0 + abs(constant))


_MOST_DIMENSION = 12
_MOST_CELLS = 1 << 18
_MOST_LAYERS = 20_000
_BITS_BELOW = 33
"""The first layer starts where all earlier ones together have a point in the law's box with probability 2^-33."""

_LOG_LIMIT = math.log(54.0)
"""The winner's score is Exp(1) where densities are normalised, so beyond 54 there is none (exp(-54))."""

_PAIRS_AT_ONCE = 1 << 20
_BOUND_TOLERANCE = 1e-6

_POINTS_A_CELL = 1.0
"""Mean number of points of a cell: cells to list against points to try, found by timing (0.25 to 20, D = 1 to 9)."""


@final
@dataclass(frozen=True, slots=True, init=False)
class HashedLattice(PointsCoupling):
    """Couple single records from laws on R^D by one shared race over Lebesgue measure.

    Shared Poisson points (y, t), of unit rate in space and time, are cut by their time into layers ``[2^j, 2^(j+1))``,
    and each layer into cubes of a side proportional to ``2^(-j/D)``: whatever a law's scale, some layers have cells of
    its size. A cell's points are a function of the shared key, draw, layer and cell alone. A law takes the point with
    the least ``t / f(y)``; bounds of its density on boxes tell in which cells that can be.

    Formal guarantees
    -----------------
    - Marginal: a block's record has its law, up to 2e-9 in total variation (what lies outside the law's box, and points
      earlier than all layers) and double precision.
    - Agreement: two laws agree with probability ``int dy / int max(p(x)/p(y), q(x)/q(y)) dx``, at least
      ``(1 - TV) / (1 + TV)``.
    - Isolation: by its form (`accord.core.PointsCoupling`).
    - Cost: about 40, 60, 600 and 3e4 cells a law and draw at D = 1, 2, 5 and 9 for laws that are about as wide in all
      directions (a condition number of 10 in the covariance: 2 and 10 times as many at D = 5 and 9). A condition number
      of 1e4 takes 150 cells at D = 2, 1e4 at D = 5, and is beyond the cap at D = 9: the law abstains. Where columns
      have different scales, say so by ``units``.
    - Not promised: any privacy. Agreement in tuples: see ``record_by_record``.

    Parameters
    ----------
    dimension
        D, 1 to 12; at ease to 9.
    units
        Public positive numbers, shape (D,), the rough scale of each column; a factor of ten does no harm. 1 if omitted.
    record_by_record
        Allow tuples of more than one record, each coupled by a race of its own. Two blocks then agree on l records with
        probability J^l, J being that of one: far less than a joint coupling of the tuple gives. Prefer `NormalLattice`
        and other couplings of statistics.
    most_cells
        The most cells and boxes of cells that a law may need in one layer.

    Raises
    ------
    InvalidParameter
        If a parameter is out of its range.

    Source
    ------
    theory S1, S4; proof page ``docs/proofs/hashed-lattice.md``.

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> from accord.core.coupling import ABSTAIN
    >>> laws = [Normal([0, 0], np.eye(2)), Normal([1e-3, 0], np.eye(2)), ABSTAIN]
    >>> coupled = HashedLattice(dimension=2).couple(laws, records=1, draws=3, shared=SharedRandomness(1))
    >>> coupled.keys.shape, coupled.decode(0, coupled.keys[0, 0]).shape
    ((3, 3), (1, 2))
    >>> [bool(a == b) for a, b, _ in coupled.keys]
    [True, True, True]

    """

    dimension: int
    units: tuple[float, ...]
    record_by_record: bool
    most_cells: int

    def __init__(
        self,
        *,
        dimension: int,
        units: ArrayLike | None = None,
        record_by_record: bool = False,
        most_cells: int = _MOST_CELLS,
    ) -> None:
        size = _check.integer("dimension", dimension, least=1, most=_MOST_DIMENSION)
        _check.store(
            self,
            dimension=size,
            units=_units(units, size),
            record_by_record=bool(record_by_record),
            most_cells=_check.integer("most_cells", most_cells, least=1),
        )

    def premises(self, *, records: int) -> Premises:
        """Return marginals, and the agreement of one record; tuples are raced record by record."""
        return Premises(marginals=True, agreement="tuples" if records == 1 else "records")

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> "_Points":
        """Return the points of all draws.

        Laws are those with `log_density_bound`, such as `Normal`, `Uniform`, `Piecewise`, `Exponential`, `Gamma` of a
        shape of at least 1, and mixtures and products of them; a law of your own needs a method ``reach()`` too: two
        corners of a box that holds all but 1e-9 of its mass.

        Raises
        ------
        InvalidParameter
            If several records are asked for without ``record_by_record``.

        """
        size = _check.integer("records", records, least=1)
        if size > 1 and not self.record_by_record:
            raise InvalidParameter(
                "records must be 1: records that are coupled one by one agree far less often than a tuple coupled as a "
                "whole. Take NormalLattice or another coupling of statistics, or ask for record_by_record=True."
            )
        return _Points(self, records=size, draws=draws, shared=shared)

    def cells_read(self, law: Distribution, *, draws: int, shared: SharedRandomness) -> NDArray[np.int64]:
        """Return how many cells one law reads in each draw, shape (draws,): its cost, which tells of the data.

        Raises
        ------
        FitFailed
            If the law abstains.

        """
        points = _Points(self, records=1, draws=_check.integer("draws", draws, least=1), shared=require_shared(shared))
        return points.race(BoundedLaw.seen(law, units=np.array(self.units)))[1]


class _Cells(NamedTuple):
    """Cells of one layer with their bounds and hashes, and which of them each of many pairs (race, cell) is about."""

    cells: Integers
    bounds: Floats
    tags: NDArray[np.uint64]
    places: Integers


@final
class _Points:
    """The shared Poisson points, as a function of the key: a race for every record of every draw."""

    __slots__ = ("_coupling", "_records", "_shared", "_words")

    def __init__(self, coupling: HashedLattice, *, records: int, draws: int, shared: SharedRandomness) -> None:
        self._coupling = coupling
        self._records = records
        self._shared = shared
        races = [(draw, record) for draw in range(draws) for record in range(records)]
        self._words = np.array([self._word(draw, record) for draw, record in races], dtype=np.uint64)

    def _word(self, draw: int, record: int) -> np.uint64:
        return self._shared.word("hashed lattice", "draw", draw, record)

    def _tags(self, layer: int, cells: Integers) -> NDArray[np.uint64]:
        named = np.column_stack([np.full(len(cells), layer, dtype=np.int64), cells])
        return self._shared.hash_rows(named, "hashed lattice", "cell")

    def _side(self, layer: int) -> float:
        """Side of a cell, so that `_POINTS_A_CELL` points are expected in it during its layer."""
        return math.exp((math.log(_POINTS_A_CELL) - layer * math.log(2.0)) / self._coupling.dimension)

    def _shift(self, layer: int) -> Floats:
        """By how many sides the cells of a layer are shifted, shape (D,); else those at 0 would meet in all layers."""
        columns = np.arange(self._coupling.dimension, dtype=np.int64)
        rows = np.column_stack([np.full(len(columns), layer, dtype=np.int64), columns])
        return uniform_open(self._shared.hash_rows(rows, "hashed lattice", "shift"))

    def _places(self, streams: NDArray[np.uint64], numbers: Integers, cells: Integers, layer: int) -> Floats:
        """Return where the points with these numbers lie, in units, shape (n, D)."""
        size = cells.shape[1]
        counter = numbers[:, None] * (size + 1) + 1 + np.arange(size)
        offsets = uniform_open(word_at(streams[:, None], counter)) + self._shift(layer)
        places: Floats = (cells + offsets) * self._side(layer)
        return places

    def votes(self, law: Distribution) -> list[bytes]:
        """Return one law's vote in each draw."""
        rows, _ = self.race(BoundedLaw.seen(law, units=np.array(self._coupling.units)))
        return [row.tobytes() for row in rows.astype("<i8").reshape(len(self._words) // self._records, -1)]

    def race(self, law: BoundedLaw) -> tuple[Integers, NDArray[np.int64]]:
        """Return the winner's (layer, cell, number) in each race, shape (n, D + 2), and how many cells each race read.

        Layers are taken by rising time. In a layer only cells matter where the density can reach the layer's start over
        the best score; those are few, because earlier layers have already seen about one point for each of them.
        """
        count = len(self._words)
        best = np.full(count, np.inf)
        winner = np.zeros((count, self._coupling.dimension + 2), dtype=np.int64)
        read = np.zeros(count, dtype=np.int64)
        layer = math.floor(-law.log_volume / math.log(2.0)) - _BITS_BELOW
        last = math.ceil((law.log_top + _LOG_LIMIT) / math.log(2.0))
        if last - layer > _MOST_LAYERS:
            raise FitFailed("the law's scales are too far apart")
        while layer <= last and (layer * math.log(2.0) - best < law.log_top).any():
            least = layer * math.log(2.0) - best
            cells, bounds = law.cells(
                self._side(layer), self._shift(layer), log_least=float(least.min()), most=self._coupling.most_cells
            )
            tags = self._tags(layer, cells)
            together = max(1, _PAIRS_AT_ONCE // max(1, len(cells)))
            for start in range(0, count, together):
                races, places = np.nonzero(bounds[None, :] >= least[start : start + together, None])
                races += start
                read += np.bincount(races, minlength=count)
                self._see(law, layer, races, _Cells(cells, bounds, tags, places), best=best, winner=winner)
            layer += 1
        if not np.isfinite(best).all():
            raise FitFailed("the law took no point")
        return winner, read

    def _see(
        self, law: BoundedLaw, layer: int, races: Integers, seen: "_Cells", *, best: Floats, winner: Integers
    ) -> None:
        """Let races see the points of one layer in some cells, pair by pair: first points first."""
        start = layer * math.log(2.0)
        streams = mix(seen.tags[seen.places] ^ self._words[races])
        waited = -np.log(uniform_open(word_at(streams, np.zeros(1, dtype=np.int64))))
        number = 0
        pairs = np.arange(len(races))
        while True:
            log_time = start + np.log1p(waited / _POINTS_A_CELL)
            able = (waited < _POINTS_A_CELL) & (log_time - seen.bounds[seen.places[pairs]] < best[races[pairs]])
            pairs, waited, log_time = pairs[able], waited[able], log_time[able]
            if len(pairs) == 0:
                return
            cells, which = seen.cells[seen.places[pairs]], np.full(len(pairs), number, dtype=np.int64)
            density = law.log_density(self._places(streams[pairs], which, cells, layer))
            if (density > seen.bounds[seen.places[pairs]] + _BOUND_TOLERANCE).any():
                raise FitFailed("the law's density exceeds its bound")
            score = log_time - density
            order = np.lexsort((seen.places[pairs], score, races[pairs]))
            found, leader = np.unique(races[pairs][order], return_index=True)
            leader = order[leader]
            better = score[leader] < best[found]
            found, leader = found[better], leader[better]
            best[found] = score[leader]
            winner[found, 0], winner[found, 1:-1], winner[found, -1] = layer, cells[leader], number
            number += 1
            next_gap = np.full(1, number * (self._coupling.dimension + 1), dtype=np.int64)
            waited = waited - np.log(uniform_open(word_at(streams[pairs], next_gap)))

    def decode(self, draw: int, key: bytes) -> Floats:
        """Return the records named by a key, shape (l, D): a function of draw, key and public values."""
        rows = np.frombuffer(key, dtype="<i8").astype(np.int64).reshape(self._records, -1)
        return np.concatenate([self._record(draw, record, row) for record, row in enumerate(rows)])

    def _record(self, draw: int, record: int, row: Integers) -> Floats:
        layer, cells, number = int(row[0]), row[None, 1:-1], row[-1:]
        streams = mix(self._tags(layer, cells) ^ self._word(draw, record))
        placed: Floats = self._places(streams, number, cells, layer) * np.array(self._coupling.units)
        return placed


def _units(units: ArrayLike | None, size: int) -> tuple[float, ...]:
    """Return the units as positive finite numbers, or refuse them."""
    if units is None:
        return (1.0,) * size
    try:
        given = np.asarray(units, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        given = np.empty(0)
    if given.shape != (size,) or not (np.isfinite(given).all() and (given > 0).all()):
        raise InvalidParameter("units must be positive finite numbers, one a column.")
    return tuple(given.tolist())
