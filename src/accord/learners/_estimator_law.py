"""The law that a fitted estimator scores and draws from."""

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.alone import ambient_seed
from accord.core.coupling import Measure
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions import Rows
from accord.learners._affine import AffineMap, split
from accord.learners._estimators import quiet, reseed

__all__ = ["EstimatorLaw"]

_SEEDS = 1 << 32
_MOST_CALLS = 100
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class EstimatorLaw:
    """A law with a density on R^d, read through ``score_samples`` and ``sample`` of a fitted estimator.

    Formal guarantees
    -----------------
    - Value: the estimator is never changed; laws with equal digests are equal.
    - Sampling: exactly ``size`` rows in random order, a function of the generator: every generator inside a copy of the
      estimator, and the global ones, are seeded from it.
    - Density: -inf at a row that is not finite, and where the estimator gives no number; never NaN.
    - Not promised: that draws follow the density, or are independent. That is the estimator's.

    Parameters
    ----------
    name
        The estimator's class.
    dimension
        d.
    digest
        What stands for the estimator in comparisons.
    estimator
        Fitted; nobody else may hold it.
    before
        The map from records to what the last step of a pipeline sees.

    """

    name: str
    dimension: int
    digest: bytes = field(repr=False)
    estimator: Any = field(repr=False, compare=False)
    before: AffineMap | None = field(repr=False, compare=False)

    @property
    def measure(self) -> Measure:
        """Lebesgue measure on R^d."""
        return Measure.LEBESGUE

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` rows, shape (size, d).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read for a seed, and for an order.

        """
        count = _check.integer("size", size, least=0)
        parts: list[_Floats] = [np.zeros((0, self.dimension))]
        for calls in range(_MOST_CALLS):
            missing = count - sum(map(len, parts))
            if missing <= 0:
                break
            parts.append(self._draw(missing + 8 * calls, int(generator.integers(_SEEDS))))
        rows = np.concatenate(parts)
        if len(rows) < count:
            raise InvalidParameter(f"sample of {self.name} gives fewer rows than it was asked for.")
        mixed = rows[generator.permutation(len(rows))[:count]]
        records: Rows = mixed if self.before is None else self.before.back(mixed)
        return records

    def _draw(self, size: int, seed: int) -> _Floats:
        estimator = copy.deepcopy(self.estimator)
        reseed(estimator, seed)
        last = split(estimator)[1]
        with quiet(), ambient_seed(seed):
            own = {"random_state": seed} if "random_state" in _arguments(last.sample) else {}
            drawn = last.sample(size, **own)
        rows = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn, dtype=np.float64)
        if rows.ndim == 1 and self.dimension == 1:
            rows = rows[:, None]
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise InvalidParameter(f"sample of {self.name} must give one row for each draw, with the records' columns.")
        return rows

    def log_density(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log density at each record, shape (n,).

        Parameters
        ----------
        x
            Shape (n, d); (n,) is accepted for d = 1.

        """
        rows = self._rows(x)
        density = np.full(len(rows), -np.inf)
        usable = np.isfinite(rows).all(axis=1)
        if not usable.any():
            return density
        with quiet(), ambient_seed(0):
            scores = np.asarray(self.estimator.score_samples(rows[usable]), dtype=np.float64)
        if scores.shape != (int(usable.sum()),):
            raise InvalidParameter(f"score_samples of {self.name} must give one number for each row.")
        volume = 0.0 if self.before is None else self.before.log_volume
        density[usable] = np.where(np.isfinite(scores), scores + volume, -np.inf)
        return density

    def _rows(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        try:
            rows = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            rows = np.zeros((0, 0, 0))
        if rows.ndim == 1 and (self.dimension == 1 or rows.size == 0):
            rows = rows.reshape(-1, self.dimension)
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise InvalidParameter(f"records must be numbers of shape (n, {self.dimension}).")
        return rows


def _arguments(function: Any) -> frozenset[str]:  # noqa: ANN401 - another library's method
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return frozenset()
