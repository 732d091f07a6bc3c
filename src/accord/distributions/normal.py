"""The normal law on R^d."""

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions.measured import Continuous, Flags, Points, box_corners, finite_floats, outside_atoms
from accord.distributions.protocol import Rows

__all__ = ["Normal"]

_ASYMMETRY = 1e-9
_BLOCK = 4096  # records at once: few enough to stay in the cache
_NARROW = 1.0
_SLACK = 2.0**-44
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False)
class Normal(Continuous):
    """The normal law with a mean and a positive definite covariance.

    Formal guarantees
    -----------------
    - Value: immutable; equal means and covariances are equal laws with equal hashes.
    - Density: computed in logs from ``x - mean`` through the Cholesky factor of the covariance, so neither a small
      spread at a large mean nor a far-away point loses it; never NaN.
    - Not promised: accuracy for a covariance that is singular up to rounding.

    Parameters
    ----------
    mean
        Shape (d,); a number stands for d = 1.
    covariance
        Shape (d, d), symmetric and positive definite; a number (the variance) stands for d = 1.

    Raises
    ------
    InvalidParameter
        If the shapes do not fit, a number is not finite, or the covariance is not symmetric and positive definite.

    Examples
    --------
    >>> law = Normal(mean=1e6, covariance=1e-6)
    >>> law.dimension
    1
    >>> law.log_density([[1e6]]).round(6).tolist()
    [5.988817]

    """

    mean: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    _factor: tuple[tuple[float, ...], ...] = field(repr=False, compare=False)

    def __init__(self, mean: ArrayLike, covariance: ArrayLike) -> None:
        centre = np.atleast_1d(finite_floats("mean", mean))
        matrix = finite_floats("covariance", covariance)
        if centre.ndim != 1 or len(centre) == 0:
            raise InvalidParameter("mean must be a number or a vector of at least one number.")
        if matrix.ndim == 0 and len(centre) == 1:
            matrix = matrix.reshape(1, 1)
        if matrix.shape != (len(centre), len(centre)):
            raise InvalidParameter("covariance must be a square matrix with one row for each entry of mean.")
        matrix = _symmetric(matrix)
        _check.store(self, mean=tuple(centre.tolist()), covariance=_rows(matrix), _factor=_rows(_cholesky(matrix)))

    @property
    def dimension(self) -> int:
        """Number of columns d of a record."""
        return len(self.mean)

    @property
    def cholesky(self) -> _Floats:
        """The lower triangular factor L with ``L L^T = covariance``, shape (d, d)."""
        return np.array(self._factor)

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` independent records, shape (size, d).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read for ``size * d`` standard normals.

        """
        count = _check.integer("size", size, least=0)
        noise = generator.standard_normal((count, self.dimension))
        records: Rows = np.array(self.mean) + noise @ self.cholesky.T
        return records

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        factor = self.cholesky
        constant = math.log(2 * math.pi) * self.dimension / 2 + float(np.log(np.diag(factor)).sum())
        density = np.empty(len(points))
        scale = factor if self.dimension == 1 else self._inverse
        with np.errstate(all="ignore"):
            for start in range(0, len(points), _BLOCK):
                block = slice(start, start + _BLOCK)
                centred = points.floats[:, block] - np.array(self.mean)[:, None]
                scaled = centred / scale if self.dimension == 1 else scale @ centred
                np.einsum("ij,ij->j", scaled, scaled, out=density[block])
            density *= -0.5
            density -= constant
        density[~np.isfinite(density)] = -np.inf
        return outside_atoms(density, atoms)

    def cdf(self, x: ArrayLike) -> _Floats:
        """Return P(X <= x), shape (n,), for d = 1."""
        return np.asarray(ndtr(self._standard(x)))

    def interval(self, low: ArrayLike, high: ArrayLike) -> _Floats:
        """Return P(low < X <= high), shape (n,), for d = 1; narrow intervals keep their digits."""
        first, last = self._standard(low), self._standard(high)
        with np.errstate(all="ignore"):
            width = (np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64)) / self._factor[0][0]
            flip = first > 0
            wide = ndtr(np.where(flip, -first, last)) - ndtr(np.where(flip, -last, first))
            narrow = np.abs(width) * np.maximum(1.0, np.abs(first)) < _NARROW
            safe, step = np.where(narrow, first, 0.0), np.where(narrow, width, 0.0)
            offset = step[..., None] * (_NODES + 1) / 2
            inner = np.exp(-offset * (safe[..., None] + offset / 2)) @ _WEIGHTS
            thin = np.exp(-(safe**2) / 2) / math.sqrt(2 * math.pi) * step / 2 * inner
        return np.asarray(np.clip(np.where(narrow, thin, wide), 0.0, 1.0))

    def log_density_bound(self, low: _Floats, high: _Floats) -> _Floats:
        """Return an upper bound of the log density on each box, shape (n,) from corners of shape (n, d).

        The bound is the exact maximum for independent columns and is widened by more than the rounding; corners may be
        infinite.
        """
        corners = box_corners(low, high, dimension=self.dimension)
        with np.errstate(all="ignore"):
            start, end = (corner - np.array(self.mean) for corner in corners)
            distance = np.maximum(np.maximum(start, -end), 0.0) / np.sqrt(np.diag(np.array(self.covariance)))
            by_column = np.square(distance).max(axis=1)
            rotated = _squared_distance(self._inverse, start, end)
        quadratic = np.maximum(by_column, rotated) * (1 - _SLACK)
        constant = math.log(2 * math.pi) * self.dimension / 2 + float(np.log(np.diag(self.cholesky)).sum())
        bound: _Floats = -0.5 * quadratic - constant + _SLACK * (1 + abs(constant))
        return bound

    @property
    def _inverse(self) -> _Floats:
        """The inverse of the lower triangular factor, shape (d, d)."""
        return _solve_lower(self.cholesky, np.eye(self.dimension))

    def _standard(self, x: ArrayLike) -> _Floats:
        if self.dimension != 1:
            raise InvalidParameter("a law of several columns is not on a line: it has no probabilities of intervals.")
        with np.errstate(over="ignore"):
            standard: _Floats = (np.asarray(x, dtype=np.float64) - self.mean[0]) / self._factor[0][0]
        return standard


def _squared_distance(inverse: _Floats, start: _Floats, end: _Floats) -> _Floats:
    """Return a lower bound of ``|A x|^2`` over each box, A being a triangular matrix: coordinate by coordinate."""
    low, high, size = np.zeros_like(start), np.zeros_like(start), np.zeros_like(start)
    for row, entries in enumerate(inverse):
        for column in range(row + 1):
            if entries[column] != 0:
                ends = entries[column] * start[:, column], entries[column] * end[:, column]
                low[:, row] += np.minimum(*ends)
                high[:, row] += np.maximum(*ends)
                size[:, row] += np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    distance = np.maximum(np.maximum(low, -high), 0.0) - _SLACK * np.where(np.isfinite(size), size, 0.0)
    distance = np.where(np.isnan(distance), 0.0, np.maximum(distance, 0.0))
    squared: _Floats = np.square(distance).sum(axis=1)
    return squared


def _symmetric(matrix: _Floats) -> _Floats:
    """Return ``matrix`` made exactly symmetric, or refuse it if more than rounding is amiss."""
    if np.array_equal(matrix, matrix.T):
        return matrix
    spread = np.sqrt(np.abs(np.diag(matrix)))
    halves = 0.5 * matrix
    if not (np.abs(halves - halves.T) <= _ASYMMETRY * np.outer(spread, spread)).all():
        raise InvalidParameter("covariance must be symmetric.")
    return halves + halves.T


def _cholesky(matrix: _Floats) -> _Floats:
    """Return the lower triangular factor, or refuse a matrix that has none."""
    try:
        factor = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        factor = np.zeros_like(matrix)
    if not (np.isfinite(factor).all() and (np.diag(factor) > 0).all()):
        raise InvalidParameter("covariance must be positive definite: its Cholesky factorisation failed.")
    return factor


def _solve_lower(factor: _Floats, right: _Floats) -> _Floats:
    """Return z with ``factor @ z = right`` by forward substitution (a threaded BLAS solve is slow on few columns)."""
    solution = np.empty_like(right)
    for row, pivot in enumerate(np.diag(factor)):
        solution[row] = (right[row] - factor[row, :row] @ solution[:row]) / pivot
    return solution


def _rows(matrix: _Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())
