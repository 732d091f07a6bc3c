"""How far noisy counts are from those of a mixture of normal laws, and in which direction to go. Post-processing."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from accord.core.coupling import Distribution
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.density.refine.projections import NoisyCounts
from accord.distributions import Mixture, Normal

__all__ = [
    "LEAST_PART",
    "FitProblem",
    "Frame",
    "NormalMixture",
    "fit_mixture",
    "root_of",
    "units_in_bins",
]


Floats = NDArray[np.float64]
_LEAST_PART = 1e-9


def root_of(covariance: Floats) -> Floats:
    """Return the lower Cholesky factor; each column keeps a part of its variance that is its own, collinear or not."""
    own = np.diag(_LEAST_PART * np.diag(covariance) + np.finfo(np.float64).tiny)
    return np.asarray(np.linalg.cholesky(covariance + own), dtype=np.float64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NormalMixture:
    """Weights (K,), means (K, d) and lower Cholesky factors (K, d, d)."""

    weights: Floats
    means: Floats
    factors: Floats

    @classmethod
    def of(cls, law: Distribution) -> "NormalMixture":
        """Read a normal law or a mixture of them; any other is refused."""
        parts = law.positive if isinstance(law, Mixture) else ((law, 1.0),)
        normals = [(part, weight) for part, weight in parts if isinstance(part, Normal)]
        if len(normals) < len(parts) or not normals:
            raise InvalidParameter("model must be a Normal or a Mixture of normal laws.")
        return cls(
            weights=np.array([weight for _, weight in normals]),
            means=np.array([part.mean for part, _ in normals]),
            factors=np.array([part.cholesky for part, _ in normals]),
        )

    def law(self) -> Distribution:
        """Return the law; a single component is a `Normal`."""
        covariances = self.covariances
        laws = [Normal(mean, covariance) for mean, covariance in zip(self.means, covariances, strict=True)]
        return laws[0] if len(laws) == 1 else Mixture(laws, self.weights)

    @property
    def covariances(self) -> Floats:
        """Shape (K, d, d), exactly symmetric."""
        product = self.factors @ self.factors.transpose(0, 2, 1)
        symmetric: Floats = 0.5 * (product + product.transpose(0, 2, 1))
        return symmetric

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return int(self.means.shape[1])

    @property
    def count(self) -> int:
        """The number of components."""
        return len(self.weights)

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean (d,) and covariance (d, d) of the whole law."""
        mean = self.weights @ self.means
        centred = self.means - mean
        covariance = (
            np.einsum("k,kij->ij", self.weights, self.covariances) + (self.weights[:, None] * centred).T @ centred
        )
        return mean, covariance

    def draw(self, size: int, generator: Generator) -> Floats:
        """Return records, shape (size, d)."""
        picks = np.searchsorted(np.cumsum(self.weights)[:-1], generator.random(size), side="right")
        noise = generator.standard_normal((size, self.dimension))
        records: Floats = self.means[picks] + np.einsum("nij,nj->ni", self.factors[picks], noise)
        return records


_LEAST_WEIGHT, _LEAST_EIGENVALUE = 1e-4, 1e-4
_SMALL = 1e-6
_LOGIT, _MEAN, _LOG_SPREAD, _SHEAR = 0.5, 0.2, 0.5, 1 / 3
"""Weak priors, as one over standard deviations: nothing beside any count, something where no count says anything."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Coordinates y in which an earlier model has mean 0 and covariance 1: ``x = centre + spread y``."""

    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, model: NormalMixture, *, full: bool) -> "Frame":
        """Return the frame of a model; without ``full`` the columns are scaled only."""
        mean, covariance = model.moments()
        spread = root_of(covariance if full else np.diag(np.diag(covariance)))
        return cls(centre=mean, spread=spread)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FitProblem:
    """Weighted least squares for logits (K,), means (K, d) and Cholesky factors in a frame, as one vector.

    Parameters
    ----------
    counts
        Releases to be fitted together.
    mass
        Number of units in all bins of a direction.
    frame
        Coordinates.
    components
        K.
    full
        Whether covariances have entries off the diagonal.
    floor
        Least standard deviation in any direction of the frame.

    """

    counts: Sequence[NoisyCounts]
    mass: float
    frame: Frame
    components: int
    full: bool
    floor: float

    @property
    def _entries(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows and columns of the free entries of a factor."""
        dimension = len(self.frame.centre)
        if self.full:
            rows, columns = np.tril_indices(dimension)
            return rows, columns
        return np.arange(dimension), np.arange(dimension)

    @property
    def size(self) -> tuple[int, int]:
        """How many residuals and how many numbers to be found, about."""
        dimension, free = len(self.frame.centre), len(self._entries[0])
        return sum(one.counts.size for one in self.counts), self.components * (1 + dimension + free)

    def pack(self, model: NormalMixture) -> Floats:
        """Return the vector of a model."""
        inverse = np.linalg.inv(self.frame.spread)
        means = (model.means - self.frame.centre) @ inverse.T
        covariances = inverse @ model.covariances @ inverse.T
        values, vectors = np.linalg.eigh(0.5 * (covariances + covariances.transpose(0, 2, 1)))
        values = np.maximum(values - self.floor**2, _LEAST_EIGENVALUE)
        factors = np.linalg.cholesky(vectors * values[:, None, :] @ vectors.transpose(0, 2, 1))
        logits = np.log(np.maximum(model.weights, _LEAST_WEIGHT))
        rows, columns = self._entries
        return np.concatenate([logits - logits.mean(), means.ravel(), factors[:, rows, columns].ravel()])

    def _parts(self, vector: Floats) -> tuple[Floats, Floats, Floats]:
        count, dimension = self.components, len(self.frame.centre)
        rows, columns = self._entries
        logits, rest = vector[:count], vector[count:]
        factors = np.zeros((count, dimension, dimension))
        factors[:, rows, columns] = rest[count * dimension :].reshape(count, -1)
        weights = np.exp(logits - logits.max())
        return weights / weights.sum(), rest[: count * dimension].reshape(count, dimension), factors

    def model(self, vector: Floats) -> NormalMixture:
        """Return the model of a vector."""
        weights, means, factors = self._parts(vector)
        spread = self.frame.spread
        inner = factors @ factors.transpose(0, 2, 1) + self.floor**2 * np.eye(len(spread))
        return NormalMixture(
            weights=weights,
            means=self.frame.centre + means @ spread.T,
            factors=np.tril(spread @ np.linalg.cholesky(inner)),  # a product of lower triangles is one
        )

    def variances(self, vector: Floats) -> list[Floats]:
        """Return the variance of each count under the model of a vector: of the records and of the noise."""
        weights, means, factors = self._parts(vector)
        found = []
        for one in self.counts:
            chances = _Bins.of(self, one, means, factors).chances @ weights
            found.append(self.mass * np.maximum(chances, 0) + one.variance)
        return found

    def residuals(self, vector: Floats, *, variances: Sequence[Floats]) -> Floats:
        """Return expected less released counts over their standard deviations, then those of the priors."""
        weights, means, factors = self._parts(vector)
        found = []
        for one, variance in zip(self.counts, variances, strict=True):
            chances = _Bins.of(self, one, means, factors).chances @ weights
            found.append(((self.mass * chances - one.counts) / np.sqrt(variance)).ravel())
        return np.concatenate([*found, self._prior(vector)[0]])

    def derivatives(self, vector: Floats, *, variances: Sequence[Floats]) -> Floats:
        """Return the matrix of derivatives of `residuals`."""
        weights, means, factors = self._parts(vector)
        rows, columns = self._entries
        count, dimension = means.shape
        found = []
        for one, variance in zip(self.counts, variances, strict=True):
            bins = _Bins.of(self, one, means, factors)
            total = bins.chances @ weights
            by_logit = weights * (bins.chances - total[:, :, None])
            by_centre, by_spread = -weights * bins.rises, -weights * bins.stretches
            turns = bins.directions[:, None, rows] * bins.images[:, :, columns] / bins.spreads[:, :, None]
            blocks = [
                by_logit,
                (by_centre[:, :, :, None] * bins.directions[:, None, None, :]).reshape(*total.shape, count * dimension),
                (by_spread[:, :, :, None] * turns[:, None]).reshape(*total.shape, count * len(rows)),
            ]
            scale = self.mass / np.sqrt(variance)
            found.append((np.concatenate(blocks, axis=2) * scale[:, :, None]).reshape(total.size, -1))
        return np.concatenate([*found, np.diag(self._prior(vector)[1])])

    def score(self, vector: Floats) -> float:
        """Return minus twice the log likelihood under normal errors, up to a constant."""
        variances = self.variances(vector)
        residuals = self.residuals(vector, variances=variances)
        return float(residuals @ residuals + sum(np.log(variance).sum() for variance in variances))

    def _prior(self, vector: Floats) -> tuple[Floats, Floats]:
        count, dimension = self.components, len(self.frame.centre)
        rows, columns = self._entries
        logits, rest = vector[:count], vector[count:]
        entries = rest[count * dimension :]
        diagonal = np.tile(rows == columns, count)
        safe = np.where(np.abs(entries) < _SMALL, _SMALL, entries)
        values = np.where(diagonal, _LOG_SPREAD * np.log(np.abs(safe)), _SHEAR * entries)
        slopes = np.where(diagonal, _LOG_SPREAD / safe, _SHEAR)
        means = rest[: count * dimension]
        return (
            np.concatenate([_LOGIT * logits, _MEAN * means, values]),
            np.concatenate([np.full(count, _LOGIT), np.full(means.size, _MEAN), slopes]),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Bins:
    """Chances of bins (J, B, K) and how they change with centres and spreads of projected components.

    Parameters
    ----------
    directions
        In the frame, (J, d).
    images
        Rows ``u^T L`` (J, K, d).
    spreads
        Standard deviations (J, K).
    chances, rises, stretches
        Chances, and their derivatives by centre and by spread with the sign turned, (J, B, K).

    """

    directions: Floats
    images: Floats
    spreads: Floats
    chances: Floats
    rises: Floats
    stretches: Floats

    @classmethod
    def of(cls, problem: FitProblem, one: NoisyCounts, means: Floats, factors: Floats) -> "_Bins":
        frame = problem.frame
        directions = one.query.directions @ frame.spread
        edges = one.query.inner - (one.query.directions @ frame.centre)[:, None]
        images = np.einsum("ja,kab->jkb", directions, factors)
        own = problem.floor**2 * np.square(directions).sum(axis=1)
        spreads = np.sqrt(np.square(images).sum(axis=2) + own[:, None])
        z = (edges[:, :, None] - (directions @ means.T)[:, None, :]) / spreads[:, None, :]
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        none = np.zeros((len(edges), 1, len(means)))
        return cls(
            directions=directions,
            images=images,
            spreads=spreads,
            chances=np.diff(np.concatenate([none, ndtr(z), none + 1], axis=1), axis=1),
            rises=np.diff(np.concatenate([none, density, none], axis=1), axis=1) / spreads[:, None, :],
            stretches=np.diff(np.concatenate([none, z * density, none], axis=1), axis=1) / spreads[:, None, :],
        )


_WEIGHTINGS, _STEPS, _FEW_STEPS = 4, 60, 8
_FIRST_STEPS, _TO_THE_END, _FEW_STARTS = 12, 3, 4
_WORK = 4e10  # multiplications for the first steps, and again for the last ones
_ENOUGH = 1e-3
_FLOOR, _LEAST_FLOOR = 0.02, 1e-4
_NARROW = 0.25
_ODD = 4.0
LEAST_PART = 0.02
"""Of the units: so many are taken to be in bins even if fewer are counted."""


def fit_mixture(
    model: NormalMixture,
    counts: Sequence[NoisyCounts],
    *,
    units: int,
    components: int,
    full: bool,
    starts: int,
    generator: Generator,
) -> NormalMixture:
    """Return the best mixture of so many components that was found; the model itself if none was.

    Parameters
    ----------
    model
        Gives coordinates and starts.
    counts
        Releases to be fitted together.
    units
        How many units there are.
    starts
        How many starts are tried, the model among them if it has as many components; fewer where a step is dear.
    generator
        Public: draws starts.

    """
    frame = Frame.of(model, full=full)
    floor = _floor(frame, counts)
    problem = FitProblem(
        counts=counts,
        mass=units_in_bins(counts, units=units),
        frame=frame,
        components=components,
        full=full,
        floor=floor,
    )
    rows, columns = problem.size
    work = _WORK / (rows * columns**2)  # how many steps, at what a step costs
    steps = max(_FEW_STEPS, min(_STEPS, int(work / (_WEIGHTINGS * _TO_THE_END))))
    tried = max(min(starts, _FEW_STARTS), min(starts, int(work / _FIRST_STEPS)))
    opened = []
    for start in _starts(model, frame, components=components, starts=tried, generator=generator):
        with suppress(np.linalg.LinAlgError):
            opened.append(_scored(problem, problem.pack(start), weightings=1, steps=min(_FIRST_STEPS, steps)))
    ended = []
    for _, vector in sorted(opened, key=lambda one: one[0])[:_TO_THE_END]:
        with suppress(np.linalg.LinAlgError):
            ended.append(_scored(problem, vector, weightings=_WEIGHTINGS, steps=steps))
    if not ended:
        return model
    return problem.model(min(ended, key=lambda one: one[0])[1])


def _scored(problem: FitProblem, vector: Floats, *, weightings: int, steps: int) -> tuple[float, Floats]:
    """Return where a descent ends, and how good that is; refuse what is no model."""
    with np.errstate(all="ignore"):
        found = _descend(problem, vector, weightings=weightings, steps=steps)
        score = problem.score(found)
        problem.model(found)
    if not math.isfinite(score):
        raise np.linalg.LinAlgError
    return score, found


def units_in_bins(counts: Sequence[NoisyCounts], *, units: int) -> float:
    """Return the number of units that are in bins: all, unless the counts say clearly that many are not."""
    totals = np.array([one.counts.sum() / len(one.counts) for one in counts])
    precisions = np.array([len(one.counts) / (one.variance * one.counts.shape[1]) for one in counts])
    mean = float(totals @ precisions / precisions.sum())
    if abs(mean - units) <= _ODD / math.sqrt(precisions.sum()):
        return float(units)
    return max(min(mean, float(units)), LEAST_PART * units)


def _floor(frame: Frame, counts: Sequence[NoisyCounts]) -> float:
    """Return the least spread of a component: a narrower one may be a single value that many records share."""
    widths = []
    for one in counts:
        sizes = np.linalg.norm(one.query.directions @ frame.spread, axis=1)
        narrow = np.quantile(np.diff(one.query.inner, axis=1), _NARROW, axis=1)
        widths.append(float((narrow / sizes).min()))
    return max(_LEAST_FLOOR, min(_FLOOR, *widths))


def _starts(
    model: NormalMixture, frame: Frame, *, components: int, starts: int, generator: Generator
) -> Iterator[NormalMixture]:
    """Yield the model, then components at its own records or quantiles, some of one width, some as near as they are."""
    given = model.count == components
    if given:
        yield model
    if components == 1:
        if not given:
            yield _opening(frame, frame.centre[None], np.ones(1))
        return
    dimension = model.dimension
    inverse = np.linalg.inv(frame.spread)
    for number in range(int(given), starts):
        means = model.draw(components, generator)
        if dimension == 1 and number % 2:
            levels = (np.arange(components) + 0.5) / components
            means = np.quantile(model.draw(4096, generator)[:, 0], levels)[:, None]
        if number % 4 < 2:
            widths = 0.7 * np.exp(0.4 * generator.standard_normal(components))
        else:
            places = (means - frame.centre) @ inverse.T
            gaps = np.linalg.norm(places[:, None] - places[None], axis=2) + np.diag(np.full(components, np.inf))
            widths = np.clip(gaps.min(axis=1) / math.sqrt(dimension), 0.05, 2.0)
        yield _opening(frame, means, widths)


def _opening(frame: Frame, means: Floats, widths: Floats) -> NormalMixture:
    count = len(means)
    return NormalMixture(weights=np.full(count, 1 / count), means=means, factors=widths[:, None, None] * frame.spread)


def _descend(problem: FitProblem, vector: Floats, *, weightings: int, steps: int) -> Floats:
    """Return the end of Levenberg's and Marquardt's steps, the counts weighted anew a few times."""
    damping = 1e-2
    for _ in range(weightings):
        variances = problem.variances(vector)
        residuals = problem.residuals(vector, variances=variances)
        slopes = problem.derivatives(vector, variances=variances)
        for _ in range(steps):
            squared, gradient = slopes.T @ slopes, slopes.T @ residuals
            damped = squared + damping * np.diag(np.diag(squared) + 1e-3)
            trial = vector - np.clip(np.linalg.solve(damped, gradient), -1.0, 1.0)
            found = problem.residuals(trial, variances=variances)
            gain = float(residuals @ residuals - found @ found)
            if not gain > 0:
                damping *= 4
                if damping > 1e8:
                    break
                continue
            vector, residuals = trial, found
            damping = max(damping / 4, 1e-7)
            if gain < _ENOUGH:
                break
            slopes = problem.derivatives(vector, variances=variances)
        damping = min(damping, 1e2)
    return vector
