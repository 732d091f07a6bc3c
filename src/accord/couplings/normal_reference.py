"""Candidate tuples for normal laws: the statistic of l records, compounded over normal laws about a coarse one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from accord.core import check as _check
from accord.core.coupling import Abstain, Distribution
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.shared import Generator, SharedRandomness
from accord.couplings.lattice.cells import centred_basis
from accord.couplings.reference import BATCH, usual_candidates
from accord.distributions import Normal

__all__ = ["NormalReference"]

_Floats = NDArray[np.float64]

_MOST_STRENGTH = 10**9
_PILOT = 4096


@final
@dataclass(frozen=True, slots=True, init=False)
class NormalReference:
    """Tuples of normal laws that scatter about a public one; it satisfies `TupleReference`.

    nu is the law of l records from N(mu, Omega), where (mu, Omega) is drawn from what s records with the public law's
    mean and (unbiased) covariance would say of a normal law, under the prior ``|Omega|^(-(d+1)/2)``: a normal-inverse-
    Wishart law. A point is the mean and a triangular factor of the scatter; its records are drawn after a release.

    Formal guarantees
    -----------------
    - Points: independent, of the law above, drawn as such (Bartlett), a function of key, draw and number.
    - Ratios: ``log dq^l/dnu`` at a statistic, normalised, in closed form: linear in mean and second moments, less a log
      determinant. All laws at all points are one matrix product.
    - Bounds: the supremum over all statistics, from above; always finite for a normal law.
    - Not promised: closeness of nu to any law. Where nu is narrow against a law's tuples, see `TwoStageCoupling`.

    Parameters
    ----------
    law
        `Normal` on R^d, public: for instance a private release.
    strength
        s, above d, at most 1e9: as many records as the public law is worth. Less is wider: typical ratios of densities
        are of the order ``(1 + l / s)^(D / 2)``, D = d (d + 3) / 2.

    Source
    ------
    theory S1, S3, S4; proof page ``docs/proofs/two-stage.md``.

    """

    law: Normal
    strength: Fraction

    def __init__(self, law: Normal, *, strength: Number) -> None:
        if type(law) is not Normal:
            raise InvalidParameter("law must be Normal: for other laws use ModelReference.")
        size = _check.exact("strength", strength)
        if not law.dimension < size <= _MOST_STRENGTH:
            raise InvalidParameter(f"strength must be above the dimension, {law.dimension}, and at most 1e9.")
        _check.store(self, law=law, strength=size)

    @property
    def dimension(self) -> int:
        """Number of columns d of a record."""
        return self.law.dimension

    def least_records(self) -> int:
        """Return the least length of a tuple, d + 1: fewer records have a singular scatter."""
        return self.dimension + 1

    def points(self, draw: int, batch: int, *, records: int, shared: SharedRandomness) -> _Floats:
        """Return a batch of statistics, shape (BATCH, d + d (d + 1) / 2): mean and factor of the scatter, row by row.

        They stand in the units of the public law: its mean is 0, its covariance the identity.
        """
        return self.drawn(BATCH, shared.stream("normal reference", draw, batch), records=records)

    def drawn(self, size: int, stream: Generator, *, records: int) -> _Floats:
        """Return independent points of nu, shape (size, d + d (d + 1) / 2)."""
        d, s = self.dimension, float(self.strength)
        length = self._length(records)
        inverse = _bartlett(d, size, stream, freedom=s - 1.0, descending=False)
        scatter = _bartlett(d, size, stream, freedom=length - 1.0, descending=True)
        mean = stream.standard_normal((d, size)) * math.sqrt(1.0 / s + 1.0 / length)
        return self._placed(inverse, mean, scatter)

    def points_of(self, law: Normal, size: int, stream: Generator, *, records: int) -> _Floats:
        """Return the statistics of independent tuples of a law, in the same form."""
        d, length = self.dimension, self._length(records)
        centre, factor = self._seen(law)
        scatter = _bartlett(d, size, stream, freedom=length - 1.0, descending=True)
        points = np.empty((d + d * (d + 1) // 2, size))
        points[:d] = centre[:, None] + factor @ stream.standard_normal((d, size)) / math.sqrt(length)
        turned = np.einsum("ij,jkn->ikn", factor, scatter)
        for row in range(d):
            for column in range(row + 1):
                points[_place(d, row, column)] = turned[row, column]
        return points.T

    def log_ratios(self, laws: Sequence[Distribution | Abstain], points: NDArray[Any], *, records: int) -> _Floats:
        """Return the log ratio of each law at each point, shape (laws, points): one matrix product."""
        return self.evaluator(laws, records=records)(points)

    def evaluator(self, laws: Sequence[Distribution | Abstain], *, records: int) -> "_Evaluator":
        """Return the function that gives the same for many batches of points; the laws are read once, here."""
        d, length = self.dimension, self._length(records)
        table = np.zeros((len(laws), 1 + d + d * (d + 1) // 2))
        alive = np.zeros(len(laws), dtype=bool)
        for row, law in enumerate(laws):
            found = self._coefficients(law, records=length)
            if found is not None:
                table[row], alive[row] = found, True
        return _Evaluator(table, alive, d, length, float(self.strength))

    def log_bounds(self, laws: Sequence[Distribution | Abstain], *, records: int) -> _Floats:
        """Return an upper bound on each row of `log_ratios`, shape (laws,); -inf for a law that fails."""
        return np.array([self._log_bound(law, records=self._length(records)) for law in laws])

    def decode(self, point: NDArray[Any], *, draw: int, number: int, records: int, shared: SharedRandomness) -> _Floats:
        """Return records with the mean and the scatter of a point, shape (records, d)."""
        d = self.dimension
        factor = np.zeros((d, d))
        factor[np.tril_indices(d)] = point[d:]
        noise = shared.stream("normal reference", "records", draw, number).standard_normal((records, d))
        standard = point[:d] + centred_basis(noise) @ factor.T
        return np.asarray(np.array(self.law.mean) + standard @ self.law.cholesky.T)

    def usual_candidates(self, records: int) -> int:
        """Return how many candidates give typical laws their own law: a function of d, l and the strength alone."""
        return usual_candidates(self.pilot(_PILOT, records=records))

    def pilot(self, size: int, *, records: int) -> _Floats:
        """Return ``log dq^l/dnu`` at one tuple of each of ``size`` laws q that scatter about the public one as nu says.

        Simulated from a public key: a function of size, d, l and the strength.
        """
        d, s, length = self.dimension, float(self.strength), self._length(records)
        stream = SharedRandomness("accord: pilot of a normal reference").stream(size, d, length, str(self.strength))
        inverse = _bartlett(d, size, stream, freedom=s - 1.0, descending=False)
        scatter = _bartlett(d, size, stream, freedom=length - 1.0, descending=True)
        centre, noise = stream.standard_normal((2, d, size)) / np.sqrt([s, float(length)])[:, None, None]
        points = self._placed(inverse, centre + noise, scatter).T
        # In its own units the law is standard, the mean is ``noise`` and the scatter ``scatter``.
        spread = np.log(np.array([inverse[i, i] for i in range(d)]) / math.sqrt(s - 1.0)).sum(axis=0)
        square = np.square(scatter).sum(axis=(0, 1)) + length * np.square(noise).sum(axis=0)
        own = length * (spread - 0.5 * d * math.log(2.0 * math.pi)) - 0.5 * square
        return np.asarray(own - _log_nu(points, d=d, records=length, strength=s))

    def _placed(self, inverse: _Floats, mean: _Floats, scatter: _Floats) -> _Floats:
        """Return the points of tuples whose law has ``Omega = (s - 1) T^-1 T^-T``, T lower triangular.

        ``mean`` and ``scatter`` are those in the law's own units; T^-1 is applied to both by substitution.
        """
        d, unit = self.dimension, math.sqrt(float(self.strength) - 1.0)
        points = np.empty((d + d * (d + 1) // 2, mean.shape[1]))
        points[:d] = _substituted(inverse, mean, unit=unit)
        for column in range(d):
            solved = _substituted(inverse, scatter[:, column], unit=unit, first=column)
            for row in range(column, d):
                points[_place(d, row, column)] = solved[row]
        return points.T

    def _length(self, records: int) -> int:
        return _check.integer("records", records, least=self.least_records())

    def _seen(self, law: Normal) -> tuple[_Floats, _Floats]:
        """Return a law's mean and Cholesky factor in the units of the public law."""
        mean = np.linalg.solve(self.law.cholesky, np.array(law.mean) - np.array(self.law.mean))
        return mean, np.tril(np.linalg.solve(self.law.cholesky, law.cholesky))

    def _coefficients(self, law: object, *, records: int) -> _Floats | None:
        """Return what multiplies 1, the mean and the second moments in the log density, None if the law fails."""
        if type(law) is not Normal:  # a subclass might read differently each time, or run code
            return None
        try:
            with np.errstate(all="ignore"):
                mean, factor = self._seen(law)
                inverse = np.tril(np.linalg.solve(factor, np.eye(self.dimension)))
                precision = inverse.T @ inverse
                pull = precision @ mean
                spread = np.log(np.diag(factor)).sum() + 0.5 * self.dimension * math.log(2.0 * math.pi)
                constant = -records * (spread + 0.5 * mean @ pull)
                rows, columns = np.tril_indices(self.dimension)
                second = np.where(rows == columns, -0.5, -1.0) * precision[rows, columns]
                found = np.concatenate([[constant], records * pull, second])
        except Exception:  # noqa: BLE001 - one law's failure is one block's abstention
            return None
        return found if np.isfinite(found).all() else None

    def _log_bound(self, law: object, *, records: int) -> float:
        """Return the maximum over all means and all matrices in place of the scatter, positive or not."""
        found = self._coefficients(law, records=records)
        if found is None or type(law) is not Normal:
            return -math.inf
        d, s = self.dimension, float(self.strength)
        mean, factor = self._seen(law)
        inverse = np.tril(np.linalg.solve(factor, np.eye(d)))
        spread = float(np.log(np.diag(factor)).sum())
        total = s - 1.0 + records
        bound = -records * (spread + 0.5 * d * math.log(2.0 * math.pi)) - _log_constant(d, records=records, strength=s)
        bound += 0.5 * s * float(np.square(inverse @ mean).sum()) + 0.5 * (s - 1.0) * float(np.square(inverse).sum())
        bound += 0.5 * total * (d * math.log(total) + 2.0 * spread) - 0.5 * d * total
        return bound + 1e-12 * (1.0 + abs(bound)) if math.isfinite(bound) else math.inf


@final
@dataclass(frozen=True, slots=True)
class _Evaluator:
    """Laws as rows of coefficients."""

    table: _Floats
    alive: NDArray[np.bool_]
    dimension: int
    records: int
    strength: float

    def __call__(self, points: NDArray[Any]) -> _Floats:
        """Return the log ratios, shape (laws, points)."""
        columns = np.asarray(points, dtype=np.float64).T
        d = self.dimension
        features = np.empty((self.table.shape[1], columns.shape[1]))
        features[0] = 1.0
        features[1 : d + 1] = columns[:d]
        place = d + 1
        for row in range(d):
            for column in range(row + 1):
                features[place] = _scatter(columns, d, row, column) + self.records * columns[row] * columns[column]
                place += 1
        with np.errstate(all="ignore"):
            rows = self.table @ features
            rows -= _log_nu(columns, d=d, records=self.records, strength=self.strength)
        rows[~self.alive] = -np.inf
        rows[~(rows < np.inf)] = -np.inf
        return np.asarray(rows)


def _place(d: int, row: int, column: int) -> int:
    """Return where an entry of the factor stands in a point."""
    return d + row * (row + 1) // 2 + column


def _scatter(points: _Floats, d: int, row: int, column: int) -> _Floats:
    """Return one entry (row >= column) of the scatter from its factor, shape (n,)."""
    total: _Floats = points[_place(d, row, 0)] * points[_place(d, column, 0)]
    for k in range(1, column + 1):
        total += points[_place(d, row, k)] * points[_place(d, column, k)]
    return total


def _bartlett(d: int, size: int, stream: Generator, *, freedom: float, descending: bool) -> _Floats:
    """Return lower triangular T, shape (d, d, size), with independent entries: N(0, 1) below a diagonal of chi laws.

    Descending degrees of freedom make ``T T^T`` a standard Wishart matrix, ascending ones ``T^T T``.
    """
    factor = np.zeros((d, d, size))
    for row in range(d):
        lost = row if descending else d - 1 - row
        factor[row, row] = np.sqrt(stream.chisquare(freedom - lost, size))
        if row:
            factor[row, :row] = stream.standard_normal((row, size))
    return factor


def _substituted(factor: _Floats, right: _Floats, *, unit: float, first: int = 0) -> _Floats:
    """Return ``unit * factor^-1 right`` for each of n systems; ``right``, shape (d, n), is 0 before row ``first``."""
    solution = np.zeros_like(right)
    for row in range(first, len(right)):
        rest = unit * right[row]
        for k in range(first, row):
            rest -= factor[row, k] * solution[k]
        solution[row] = rest / factor[row, row]
    return solution


def _log_constant(d: int, *, records: int, strength: float) -> float:
    """Return the logarithm of what stands before the determinant in the density of nu."""
    half = 0.5 * (strength - 1.0 - np.arange(d))
    gammas = float((gammaln(half + 0.5 * records) - gammaln(half)).sum())
    shrink = 0.5 * d * (math.log(strength) - math.log(strength + records))
    return (
        gammas + shrink - 0.5 * records * d * math.log(math.pi) + 0.5 * (strength - 1.0) * d * math.log(strength - 1.0)
    )


def _log_nu(points: _Floats, *, d: int, records: int, strength: float) -> _Floats:
    """Return the log density of l records under nu in the public law's units; points of shape (D, n)."""
    pull = strength * records / (strength + records)
    factor: list[list[_Floats]] = []
    log_determinant: _Floats = np.zeros(points.shape[1])
    for row in range(d):
        entries: list[_Floats] = []
        for column in range(row + 1):
            rest = _scatter(points, d, row, column) + pull * points[row] * points[column]
            if row == column:
                rest += strength - 1.0
            for k in range(column):
                rest -= entries[k] * (factor[column][k] if column < row else entries[k])
            if column == row:
                log_determinant += np.log(rest)
                entries.append(np.sqrt(rest))
            else:
                entries.append(rest / factor[column][column])
        factor.append(entries)
    constant = _log_constant(d, records=records, strength=strength)
    return np.asarray(constant - 0.5 * (strength - 1.0 + records) * log_determinant)
