"""How far noisy counts are from those of a mixture of normal laws, and in which direction to go. Post-processing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from accord.learning.density.refine._mixture_shape import NormalMixture, root_of
from accord.learning.density.refine._projections import NoisyCounts

__all__ = ["FitProblem", "Frame"]

Floats = NDArray[np.float64]
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
