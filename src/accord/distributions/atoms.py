"""Atoms on the line, and a density for the rest."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.coupling import Distribution, Measure
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions.measured import (
    Flags,
    Points,
    every_column,
    finite_numbers,
    log_density_at,
    non_negative,
    own_log_density,
)
from accord.distributions.protocol import Rows, require_bounded, require_on_a_line

__all__ = ["Atoms"]

_TOLERANCE = 1e-9
_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, init=False)
class Atoms:
    """Numbers of positive probability, and a law with a density that has the remaining mass.

    Formal guarantees
    -----------------
    - Value: immutable; equal atoms, in whatever order, and equal rests are equal laws with equal hashes; -0.0 is 0.0.
    - Density: the log mass at an atom, where the rest counts as zero; elsewhere that of the rest.
    - Not promised: any tolerance: a number that differs from an atom in the last bit is none.

    Parameters
    ----------
    values
        Shape (m,), distinct and finite.
    masses
        Shape (m,), at least 0. With a rest they sum to at most 1, otherwise to 1 (within 1e-9; then normalised).
    rest
        A law of one column with a density (its measure is Lebesgue), or None.

    Raises
    ------
    InvalidParameter
        If they are not as above. `cdf` and `interval` are refused if the rest has none.

    Source
    ------
    theory 1 (laws and densities).

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> law = Atoms([0], [0.25], rest=Normal(0, 1))
    >>> law.log_density([0.0, 1.0]).round(6).tolist()
    [-1.386294, -1.706621]
    >>> law.interval([-1.0, 0.0], [0.0, math.inf]).round(6).tolist()
    [0.506009, 0.375]

    """

    values: tuple[float, ...]
    masses: tuple[float, ...]
    rest: Distribution | None

    def __init__(self, values: ArrayLike, masses: ArrayLike, rest: Distribution | None = None) -> None:
        places = finite_numbers("values", values)
        if places.ndim != 1 or len(np.unique(places)) != len(places):
            raise InvalidParameter("values must be a list of distinct numbers.")
        shares = non_negative("masses", masses, count=len(places), each="value")
        total = math.fsum(shares)
        if rest is None and not abs(total - 1) <= _TOLERANCE:
            raise InvalidParameter("masses must sum to 1 where there is no rest.")
        if rest is not None and not _is_density(rest):
            raise InvalidParameter("rest must be a law of one column with a density, such as Normal.")
        if not total <= 1 + _TOLERANCE:
            raise InvalidParameter("masses must sum to at most 1.")
        if rest is None or total > 1:
            shares = shares / total
        order = np.argsort(places)
        _check.store(self, values=tuple(places[order].tolist()), masses=tuple(shares[order].tolist()), rest=rest)

    @property
    def dimension(self) -> int:
        """Number of columns of a record: 1."""
        return 1

    @property
    def measure(self) -> Measure:
        """Counting measure where there is no rest, Lebesgue measure where there are no atoms, or both."""
        if self.rest_mass == 0:
            return Measure.COUNTING
        return Measure.BOTH if any(self.masses) else Measure.LEBESGUE

    @property
    def rest_mass(self) -> float:
        """Mass of the rest."""
        return 0.0 if self.rest is None else max(0.0, math.fsum([1.0, *(-mass for mass in self.masses)]))

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` independent numbers, shape (size, 1).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read for ``size`` uniform numbers, then by the rest for its share.

        """
        count = _check.integer("size", size, least=0)
        steps = np.cumsum([*self.masses, self.rest_mass])
        picks = np.searchsorted(steps / steps[-1], generator.random(count), side="right")
        numbers = np.append(np.array(self.values), 0.0)[picks]
        others = picks == len(self.values)
        if self.rest is not None:
            numbers[others] = self.rest.sample(int(others.sum()), generator)[:, 0]
        records: Rows = numbers[:, None]
        return records

    def log_density(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log mass at each atom and the log density of the rest elsewhere, shape (n,).

        Parameters
        ----------
        x
            Shape (n, 1) or (n,).

        """
        return own_log_density(self, Points(x, dimension=1))

    def log_mass(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log probability of each single number, shape (n,)."""
        points = Points(x, dimension=1)
        return self.log_density_at(points, every_column(points))

    def atom_columns(self, points: Points) -> Flags:
        """Return where the records are atoms."""
        met = self._log_masses(points) > -np.inf
        return met[:, None] if met.any() else None

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        share = self.rest_mass
        if self.rest is None or share == 0:
            density = np.full(len(points), -np.inf)
        else:
            density = log_density_at(self.rest, points, None) + math.log(share)
        return density if atoms is None else np.where(atoms[:, 0], self._log_masses(points), density)

    def cdf(self, x: ArrayLike) -> _Floats:
        """Return P(X <= x), shape (n,)."""
        return self.interval(np.full(np.shape(x), -np.inf), x)

    def interval(self, low: ArrayLike, high: ArrayLike) -> _Floats:
        """Return P(low < X <= high), shape (n,)."""
        first, last = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        values, masses = np.array(self.values), np.array(self.masses)
        start, stop = (np.searchsorted(values, at, side="right") for at in (first, last))
        left = np.concatenate([[0.0], np.cumsum(masses)])
        right = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])
        inside = np.where(left[stop] <= right[start], left[stop] - left[start], right[start] - right[stop])
        total = np.where(stop > start, np.maximum(inside, 0.0), 0.0)
        share = self.rest_mass
        if self.rest is not None and share > 0:
            total = total + share * require_on_a_line(self.rest).interval(first, last)
        return np.asarray(np.clip(total, 0.0, 1.0))

    def log_density_bound(self, low: _Floats, high: _Floats) -> _Floats:
        """Return an upper bound of the log density of the rest on each interval, shape (n,); atoms are not counted."""
        share = self.rest_mass
        if self.rest is None or share == 0:
            return np.full(len(np.asarray(low)), -np.inf)
        return require_bounded(self.rest).log_density_bound(low, high) + math.log(share)

    def _log_masses(self, points: Points) -> _Floats:
        places: _Ints = points.remember("places", self.values, lambda: _places(self.values, points.floats[0]))
        with np.errstate(divide="ignore"):
            logs: _Floats = np.log(np.append(np.array(self.masses), 0.0))[places]
        return logs


def _is_density(law: object) -> bool:
    return isinstance(law, Distribution) and law.dimension == 1 and law.measure is Measure.LEBESGUE


def _places(values: tuple[float, ...], column: _Floats) -> _Ints:
    """Return the position of each number among the values, shape (n,); the number of values for one that is none."""
    if not values:
        return np.zeros(len(column), dtype=np.int64)
    sorted_values = np.array(values)
    found = np.minimum(np.searchsorted(sorted_values, column), len(values) - 1)
    return np.where(sorted_values[found] == column, found, len(values))
