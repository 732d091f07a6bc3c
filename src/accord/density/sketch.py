"""Release one column as a histogram fine enough to fit any estimator to: noisy counts, smoothed by their noise."""

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.accounting.of_stages import settled
from accord.core import check as _check
from accord.core.alone import alone
from accord.core.coupling import ABSTAIN, Distribution, Learner
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP
from accord.core.isolation import Isolation
from accord.core.release import composing
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness
from accord.density.refine.projections import FarUnits
from accord.density.refine.statistics import noise_for
from accord.distributions import Piecewise
from accord.distributions.protocol import OnALine
from accord.learners.traits import traits_of
from accord.noise.discrete_gaussian import DiscreteGaussian

__all__ = [
    "LineSketch",
    "NoisyCells",
    "cell_masses",
    "fit_all",
    "fit_to_points",
    "search",
    "sketch_points",
]


_Floats = NDArray[np.float64]
_COPIES = Isolation()


def fit_to_points(
    learner: Learner, points: _Floats, *, shared: SharedRandomness, fits: int = 1, n_jobs: int | None = None
) -> Distribution | None:
    """Return the best of several fits, by the mean log density of the points themselves; None if none works.

    Parameters
    ----------
    learner
        Any `Learner`.
    points
        Public, shape (m, d). For a family of scipy with a fixed place those outside of its support are left out.
    shared
        Gives each fit its seed, and the points an order.
    fits
        Number of seeds.
    n_jobs
        Workers, as joblib counts them; None for one. Changes nothing but the time.

    Examples
    --------
    >>> from accord.learners import GaussianLearner
    >>> fit_to_points(GaussianLearner(), np.array([[1.0], [2.0], [3.0]]), shared=SharedRandomness(1))
    Normal(mean=(2.0,), covariance=((1.0,),))

    """
    usable = points[traits_of(learner).reached(points)]
    ordered = usable[shared.stream("order").permutation(len(usable))]
    laws = fit_all(learner, [ordered] * fits, shared=shared, n_jobs=n_jobs)
    scored = [(_score(law, ordered), -number, law) for number, law in enumerate(laws) if law is not None]
    best = max(scored, key=lambda entry: entry[:2], default=(-np.inf, 0, None))
    return best[2] if np.isfinite(best[0]) else None


def fit_all(
    learner: Learner, tables: Sequence[_Floats], *, shared: SharedRandomness, n_jobs: int | None = None
) -> list[Distribution | None]:
    """Return a fit to each table, each with a seed of its own; None where it fails.

    Parameters
    ----------
    learner, shared, n_jobs
        As in `fit_to_points`.
    tables
        Public, each of shape (m, d).

    """
    seeds = [shared.seed("fit", number) for number in range(len(tables))]
    if n_jobs in {None, 1} or len(tables) == 1:
        return [_fit(learner, table, seed) for table, seed in zip(tables, seeds, strict=True)]
    joblib = _joblib()
    jobs = (joblib.delayed(_fit)(learner, table, seed) for table, seed in zip(tables, seeds, strict=True))
    try:
        found: list[Distribution | None] = joblib.Parallel(n_jobs=n_jobs, backend="loky")(
            jobs
        )  # processes: a fit seeds what is global
    except Exception:  # noqa: BLE001 - workers that die, a learner that does not travel: the budget is spent by now
        return [_fit(learner, table, seed) for table, seed in zip(tables, seeds, strict=True)]
    return found


def _fit(learner: Learner, points: _Floats, seed: int) -> Distribution | None:
    law = _COPIES.fit(learner, points.copy(), seed=seed)
    return None if law is ABSTAIN else law


def _score(law: Distribution, points: _Floats) -> float:
    return alone(lambda: float(np.mean(law.log_density(points))), failed=-np.inf)


def _joblib() -> Any:  # noqa: ANN401 - a module
    try:
        return importlib.import_module("joblib")
    except ImportError:
        raise InvalidParameter("n_jobs needs joblib: pip install 'accord[sklearn]', or leave it out.") from None


_Ints = NDArray[np.int64]

_GRID = 1 << 16
"""What a unit contributes in all, in whole numbers."""

_CORE, _REACH, _TAIL = 6.0, 3000.0, 32
_CLEAR = 4.0
_DIFFER = 0.6
_LEAST_PART = 0.02
_FEWEST, _MOST = 8, 13
_CHUNK = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCells:
    """Released counts of cells.

    Parameters
    ----------
    edges
        Shape (m + 1,), in units of the column's scale; records beyond them count in the cells at the ends.
    counts
        Shape (m,), in units; any sign.
    noise
        Standard deviation of each count's noise.
    units
        Number of units of privacy.

    """

    edges: _Floats
    counts: _Floats
    noise: float
    units: int

    @property
    def present(self) -> float:
        """Units that are in cells: all, unless the counts say clearly that records without a number are among them."""
        total = float(self.counts.sum())
        if abs(total - self.units) <= _CLEAR * self.noise * math.sqrt(len(self.counts)):
            return float(self.units)
        return min(max(total, _LEAST_PART * self.units), float(self.units))

    @property
    def law(self) -> Piecewise:
        """A histogram without negative masses, smoothed where noise hides detail: within 6 scales, and beyond."""
        parts = [smoothed(part, noise=self.noise) for part in np.split(self.counts, [_TAIL, len(self.counts) - _TAIL])]
        masses = np.concatenate(parts)
        return Piecewise(self.edges, masses if masses.sum() > 0 else np.ones(len(masses)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LineSketch:
    """A private histogram of a column of about unit scale, on cells that are even up to 6 scales and grow beyond.

    A unit contributes the mean of its records' indicators. Counts get discrete Gaussian noise once; what follows is
    post-processing.

    Formal guarantees
    -----------------
    - Privacy: ``(epsilon, delta)`` under replacing one unit, whatever the records.
    - Cells are public: a function of the number of units and of epsilon.
    - Not promised: detail finer than a cell; the place of records beyond 3000 scales, which count at the ends.

    Parameters
    ----------
    epsilon, delta
        Of one release.

    Source
    ------
    theory 7 (refine), M6; proof page ``docs/proofs/private-density.md``.

    Examples
    --------
    >>> from accord.randomness import SharedRandomness
    >>> data = SharedRandomness(0).stream("example").normal(size=(50_000, 1))
    >>> cells = LineSketch(epsilon=1, delta="1e-6").release(data, units=50_000)
    >>> bool(abs(cells.law.cdf([0.0])[0] - 0.5) < 0.02)
    True

    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, *, epsilon: Number, delta: Number) -> None:
        _check.store(self, epsilon=_check.epsilon(epsilon), delta=_check.delta(delta))

    @property
    def guarantee(self) -> ApproxDP:
        """Of one release, each record being a unit of its own."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def sensitivity(self) -> int:
        """L2 distance of what two units contribute, at most: both have no negative entry and a norm of at most 2^16.

        Whatever the numbers of their records are, and wherever these stand: a unit's records share 2^16.
        """
        return isqrt(2 * _GRID**2) + 1

    def levels(self, units: int) -> int:
        """Return the logarithm to base 2 of the number of cells."""
        wanted = math.log2(max(1.0, units * min(1.0, float(self.epsilon)) / 20))
        return min(_MOST, max(_FEWEST, round(wanted)))

    def edges(self, units: int) -> _Floats:
        """Return the edges of the cells, in units of the column's scale: even up to 6, then growing up to 3000."""
        inner = np.linspace(-_CORE, _CORE, 2 ** self.levels(units) + 1)
        outer = _CORE * (_REACH / _CORE) ** (np.arange(1, _TAIL + 1) / _TAIL)
        return np.concatenate([-outer[::-1], inner, outer])

    def release(
        self,
        standard: _Floats | FarUnits,
        *,
        units: int | NDArray[np.int64],
        randomness: PrivateRandomness | None = None,
    ) -> NoisyCells:
        """Release the counts.

        Parameters
        ----------
        standard
            Shape (n, 1), in units of the scale, or on workers; what is not finite counts for nothing.
        units
            n, or the number of each record's unit.
        randomness
            Source of the noise; leave it out.

        """
        source = require_private(randomness)
        if isinstance(standard, FarUnits):
            number = standard.units
            edges = self.edges(number)
            counts = standard.sums(partial(self._contributions_of, edges))
        else:
            number = units if isinstance(units, int) else int(units.max(initial=-1)) + 1
            edges = self.edges(number)
            counts = self.contributions(standard, edges, units=units)
        (sigma,) = noise_for(self.sensitivity, epsilon=self.epsilon, delta=self.delta, shares=[Fraction(1)])
        mechanism = DiscreteGaussian(sensitivity=self.sensitivity, sigma=sigma)
        with composing("numeric", what="counts of cells", delta=self.delta) as run:
            noisy = mechanism.release(counts, delta=self.delta, randomness=source).value
        settled(run, self.guarantee)
        found = np.asarray(noisy, dtype=np.float64) / _GRID
        return NoisyCells(edges=edges, counts=found, noise=float(sigma) / _GRID, units=number)

    def _contributions_of(self, edges: _Floats, standard: _Floats, units: int | NDArray[np.int64]) -> _Ints:
        return self.contributions(standard, edges, units=units)

    def contributions(self, standard: _Floats, edges: _Floats, *, units: int | NDArray[np.int64]) -> _Ints:
        """Return what all units contribute, cell by cell, as exact integers."""
        cells = len(edges) - 1
        totals = np.zeros(cells, dtype=np.int64)
        each = None if isinstance(units, int) else _GRID // np.maximum(1, np.bincount(units))
        for start in range(0, len(standard), _CHUNK):
            column = standard[start : start + _CHUNK, 0]
            usable = np.isfinite(column)
            cell = np.clip(np.searchsorted(edges, column[usable], side="right") - 1, 0, cells - 1)
            if each is None or isinstance(units, int):
                totals += np.bincount(cell, minlength=cells) * _GRID
            else:
                weights = each[units[start : start + _CHUNK][usable]]
                np.add.at(totals, cell, weights)
        return totals


def smoothed(counts: _Floats, *, noise: float) -> _Floats:
    """Return masses for noisy counts: none is negative, and what noise explains is evened out or left out.

    Sums over halves, quarters and so on are compared with their noise: a sum that is not clearly above it is the sum of
    its halves instead, a single cell 0; a sum is divided by its halves' where these clearly differ, else evenly.

    Parameters
    ----------
    counts
        Shape (2^L,), each with independent noise.
    noise
        Its standard deviation.

    Examples
    --------
    >>> smoothed(np.array([40.0, 44.0, -2.0, 2.0]), noise=3.0).tolist()
    [42.0, 42.0, 0.0, 0.0]

    """
    sums = [counts]
    while len(sums[-1]) > 1:
        sums.append(sums[-1].reshape(-1, 2).sum(axis=1))
    limits = [_CLEAR * noise * math.sqrt(2**level) for level in range(len(sums))]
    kept = [np.where(sums[0] > limits[0], sums[0], 0.0)]
    for level in range(1, len(sums)):
        kept.append(np.where(sums[level] > limits[level], sums[level], kept[-1].reshape(-1, 2).sum(axis=1)))
    masses = kept[-1]
    for level in range(len(sums) - 2, -1, -1):
        halves, found = sums[level].reshape(-1, 2), kept[level].reshape(-1, 2)
        differ = np.abs(halves[:, 0] - halves[:, 1]) > limits[level + 1] * _DIFFER
        total = found.sum(axis=1)
        share = np.where(differ & (total > 0), found[:, 0] / np.maximum(total, 1e-300), 0.5)
        masses = np.stack([masses * share, masses * (1 - share)], axis=1).ravel()
    return masses


def sketch_points(law: Piecewise, *, size: int) -> _Floats:
    """Return points spread as the law's quantiles (i + 1/2) / size, shape (size, 1): they carry no sampling error.

    Examples
    --------
    >>> sketch_points(Piecewise([0, 1], [1]), size=2).ravel().tolist()
    [0.25, 0.75]

    """
    edges, steps = np.array(law.edges), np.concatenate([[0.0], np.cumsum(law.masses)])
    wanted = (np.arange(size) + 0.5) / size * steps[-1]
    cell = np.clip(np.searchsorted(steps, wanted, side="right") - 1, 0, len(law.masses) - 1)
    width = np.maximum(steps[cell + 1] - steps[cell], 1e-300)
    share = np.clip((wanted - steps[cell]) / width, 0.0, 1.0)
    points: _Floats = edges[cell] + share * (edges[cell + 1] - edges[cell])
    return points[:, None]


_CANDIDATES = 24
_FIRST, _MOST_EVALUATIONS, _MOST_OF_QUICK = 100, 4000, 20_000
_GROWTH, _GROWTH_IF_KEPT = 1.5, 4.0
_MOST_ROUNDS = 24
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


def search(
    learner: Learner,
    opening: Distribution,
    cells: NoisyCells,
    *,
    centre: float,
    scale: float,
    shared: SharedRandomness,
    n_jobs: int | None = None,
) -> Distribution:
    """Return the best law found, which may be ``opening``: in rounds of candidates with ever more records.

    A law is as good as its masses are near to the counts: squared differences over the variance of noise and counting.

    Parameters
    ----------
    learner
        Any `Learner` of one column.
    opening
        A law of it, in the column's own units.
    cells
        Released.
    centre, scale
        Of the column: cells are in these units.
    shared
        Where the candidates come from.
    n_jobs
        Workers, as joblib counts them; changes nothing but the time.

    Source
    ------
    theory 7 (refine), M6; proof page ``docs/proofs/private-density.md``.

    """
    edges, present = centre + scale * cells.edges, cells.present
    law, size = opening, float(_FIRST)
    most = float(_MOST_OF_QUICK if traits_of(learner).quick else _MOST_EVALUATIONS)
    masses = cell_masses(law, edges)
    for number in range(_MOST_ROUNDS):
        key = shared.child("round", number)
        drawn = [
            np.asarray(law.sample(int(size), key.stream("records", place)), dtype=np.float64)
            for place in range(_CANDIDATES)
        ]
        found = [each for each in fit_all(learner, drawn, shared=key, n_jobs=n_jobs) if each is not None]
        expected = present * np.maximum(masses, 0.0)
        variance = cells.noise**2 + expected
        options = [(law, masses), *[(each, cell_masses(each, edges)) for each in found]]
        losses = [float((((cells.counts - present * option[1]) ** 2) / variance).sum()) for option in options]
        best = int(np.argmin([loss if np.isfinite(loss) else np.inf for loss in losses]))
        law, masses = options[best]
        if size >= most:
            break
        size = min(most, size * (_GROWTH_IF_KEPT if best == 0 else _GROWTH))
    return law


def cell_masses(law: Distribution, edges: _Floats) -> _Floats:
    """Return the mass of each cell, those at the ends with all that lies beyond, shape (m,); NaN where a law fails.

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> cell_masses(Normal(0, 1), np.array([-1.0, 0.0, 5.0])).round(3).tolist()
    [0.5, 0.5]

    """

    def ask() -> _Floats:
        if isinstance(law, OnALine):
            ends = np.concatenate([[-np.inf], edges[1:-1], [np.inf]])
            return np.asarray(law.interval(ends[:-1], ends[1:]), dtype=np.float64)
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        points = middle[:, None] + half[:, None] * _NODES
        density = np.exp(law.log_density(points.reshape(-1, 1))).reshape(points.shape)
        return np.asarray((density @ _WEIGHTS) * half, dtype=np.float64)

    return alone(ask, failed=np.full(len(edges) - 1, np.nan))  # another's law that fails only loses
