"""The normal law on R^d."""

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord import _check
from accord.distributions.protocol import Measure, Records
from accord.errors import InvalidParameter
from accord.randomness import Generator

__all__ = ["Normal"]

_ASYMMETRY = 1e-9
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False)
class Normal:
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
        centre = np.atleast_1d(_finite("mean", mean))
        matrix = _finite("covariance", covariance)
        if centre.ndim != 1 or len(centre) == 0:
            raise InvalidParameter("mean must be a number or a vector of at least one number.")
        if matrix.ndim == 0 and len(centre) == 1:
            matrix = matrix.reshape(1, 1)
        if matrix.shape != (len(centre), len(centre)):
            raise InvalidParameter("covariance must be a square matrix with one row for each entry of mean.")
        matrix = _symmetric(matrix)
        object.__setattr__(self, "mean", tuple(centre.tolist()))
        object.__setattr__(self, "covariance", _rows(matrix))
        object.__setattr__(self, "_factor", _rows(_cholesky(matrix)))

    @property
    def dimension(self) -> int:
        """Number of columns d of a record."""
        return len(self.mean)

    @property
    def measure(self) -> Measure:
        """Lebesgue measure on R^d."""
        return Measure.LEBESGUE

    @property
    def cholesky(self) -> _Floats:
        """The lower triangular factor L with ``L L^T = covariance``, shape (d, d)."""
        return np.array(self._factor)

    def sample(self, size: int, generator: Generator) -> Records:
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
        records: Records = np.array(self.mean) + noise @ self.cholesky.T
        return records

    def log_density(self, x: ArrayLike) -> _Floats:
        """Return the log density at each record, shape (n,); -inf at a record that is not finite.

        Parameters
        ----------
        x
            Shape (n, d); (n,) is accepted for d = 1.

        """
        records = np.asarray(x, dtype=np.float64)
        if records.ndim == 1 and self.dimension == 1:
            records = records[:, None]
        if records.ndim != 2 or records.shape[1] != self.dimension:
            raise InvalidParameter(f"records must have shape (n, {self.dimension}).")
        factor = self.cholesky
        with np.errstate(all="ignore"):
            centred = records - np.array(self.mean)
            quadratic = np.square(_solve_lower(factor, centred.T)).sum(axis=0)
        constant = math.log(2 * math.pi) * self.dimension / 2 + float(np.log(np.diag(factor)).sum())
        usable = np.isfinite(quadratic) & np.isfinite(records).all(axis=1)
        return np.where(usable, -0.5 * np.where(usable, quadratic, 0.0) - constant, -np.inf)


def _finite(name: str, value: ArrayLike) -> _Floats:
    """Return ``value`` as finite floats, or refuse it by name."""
    array = None
    try:
        given = np.asarray(value)
        if given.dtype.kind in "iufO":
            array = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        array = None
    if array is None or not np.isfinite(array).all():
        raise InvalidParameter(f"{name} must consist of finite numbers.")
    return array


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
