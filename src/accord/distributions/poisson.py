"""The Poisson law on the whole numbers from 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, pdtr, pdtrc

from accord.core import check as _check
from accord.core.coupling import Measure
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions.measured import Flags, Points, every_column, finite_numbers, inside_atoms
from accord.distributions.protocol import Rows

__all__ = ["Poisson"]

_LARGEST_RATE = 2.0**50
_FEW = 32  # so many atoms are added up one by one
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False)
class Poisson:
    """The law of the number of events in a fixed time, at a mean ``rate``.

    Formal guarantees
    -----------------
    - Value: immutable; equal rates are equal laws with equal hashes.
    - Mass: in logs; -inf at whatever is no whole number of at least 0; never NaN.
    - Intervals: accurate in both tails; an interval of at most 32 whole numbers is a sum of their masses.
    - Not promised: exact counts above 2^53, which floats do not hold.

    Parameters
    ----------
    rate
        The mean: positive, at most 2^50.

    Raises
    ------
    InvalidParameter
        If it is anything else.

    Source
    ------
    theory 1 (laws and densities).

    Examples
    --------
    >>> law = Poisson(2)
    >>> law.log_density([0, 1, 0.5]).round(6).tolist()
    [-2.0, -1.306853, -inf]
    >>> law.interval([-1.0], [1.0]).round(6).tolist()
    [0.406006]

    """

    rate: float

    def __init__(self, rate: float) -> None:
        number = finite_numbers("rate", rate)
        if number.ndim != 0 or not 0 < number <= _LARGEST_RATE:
            raise InvalidParameter("rate must be a number above 0 and at most 2^50.")
        _check.store(self, rate=float(number))

    @property
    def dimension(self) -> int:
        """Number of columns of a record: 1."""
        return 1

    @property
    def measure(self) -> Measure:
        """Counting measure on the whole numbers."""
        return Measure.COUNTING

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` independent counts as floats, shape (size, 1).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read for ``size`` Poisson numbers.

        """
        count = _check.integer("size", size, least=0)
        records: Rows = generator.poisson(self.rate, size=(count, 1)).astype(np.float64)
        return records

    def log_density(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log probability of each record, shape (n,).

        Parameters
        ----------
        x
            Shape (n, 1) or (n,).

        """
        return self.log_mass(x)

    def log_mass(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log probability of each record, shape (n,)."""
        points = Points(x, dimension=1)
        return self.log_density_at(points, every_column(points))

    def atom_columns(self, points: Points) -> Flags:
        """Return where the records are whole numbers of at least 0."""
        flags = _is_count(points.floats[0])[:, None]
        return flags if flags.any() else None

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        return inside_atoms(self._log_masses(points.floats[0]), atoms)

    def cdf(self, x: ArrayLike) -> _Floats:
        """Return P(X <= x), shape (n,)."""
        return self._below(np.asarray(x, dtype=np.float64))

    def interval(self, low: ArrayLike, high: ArrayLike) -> _Floats:
        """Return P(low < X <= high), shape (n,)."""
        first = np.maximum(np.floor(np.asarray(low, dtype=np.float64)), -1.0)
        last = np.maximum(np.floor(np.asarray(high, dtype=np.float64)), first)
        with np.errstate(all="ignore"):
            below = self._below(last) - self._below(first)
            above = self._above(first) - self._above(last)
            found = np.where(first >= self.rate, above, below)
            for which in np.argwhere(last - first <= _FEW):
                place = tuple(which)
                few = np.arange(first[place] + 1, last[place] + 1)
                found[place] = np.exp(self._log_masses(few)).sum()
        return np.asarray(np.clip(found, 0.0, 1.0))

    def _below(self, x: _Floats) -> _Floats:
        with np.errstate(all="ignore"):
            return np.where(x < 0, 0.0, np.where(np.isposinf(x), 1.0, pdtr(np.floor(np.maximum(x, 0.0)), self.rate)))

    def _above(self, x: _Floats) -> _Floats:
        with np.errstate(all="ignore"):
            return np.where(x < 0, 1.0, np.where(np.isposinf(x), 0.0, pdtrc(np.floor(np.maximum(x, 0.0)), self.rate)))

    def _log_masses(self, values: _Floats) -> _Floats:
        valid = _is_count(values)
        n = np.where(valid, values, 0.0)
        large = np.maximum(n, _FEW)
        with np.errstate(all="ignore"):
            small = n * np.log(self.rate) - self.rate - gammaln(n + 1.0)
            # Stirling's formula around the count itself: no difference of large numbers is left.
            offset = (self.rate - large) / large
            series = (1 / 12 - 1 / (360 * large**2) + 1 / (1260 * large**4)) / large
            stable = large * (np.log1p(offset) - offset) - 0.5 * np.log(2 * np.pi * large) - series
        return np.where(valid, np.where(n < _FEW, small, stable), -np.inf)


def _is_count(values: _Floats) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(values) & (values >= 0) & (values == np.floor(values)))
