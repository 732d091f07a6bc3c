"""Densities of laws with and without atoms with respect to one common measure.

In every column a record's value is either an atom, where probability is counted, or not, where it has a density. The
common measure of several laws on a set of records with the same pattern is the product, column by column, of counting
and Lebesgue measure. A law without an atom in a column that counts has density zero there: the values that are atoms
of others are a countable set, to which it gives no mass.
"""

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from accord.core.coupling import Distribution, Measure
from accord.core.errors import InvalidParameter
from accord.distributions._points import Points
from accord.distributions.protocol import WithAtoms

__all__ = [
    "Flags",
    "Measured",
    "atom_columns",
    "common_measure",
    "every_column",
    "inside_atoms",
    "log_density_at",
    "outside_atoms",
    "own_log_density",
    "union",
]

_Floats = NDArray[np.float64]
Flags = NDArray[np.bool_] | None
"""Which columns of each record count as atoms, shape (n, d); None where no column of any record does."""


@runtime_checkable
class Measured(Protocol):
    """A law that knows its atoms column by column."""

    def atom_columns(self, points: Points) -> Flags:
        """Return in which columns the records have a value to which the law gives positive mass."""

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""


def atom_columns(law: Distribution, points: Points) -> Flags:
    """Return in which columns of each record the law has atoms; a foreign law's atoms are whole records."""
    if isinstance(law, Measured):
        return law.atom_columns(points)
    if law.measure is Measure.LEBESGUE:
        return None
    mass = law.log_mass(points.copied()) if isinstance(law, WithAtoms) else law.log_density(points.copied())
    return _whole(_one_each(mass, points) > -np.inf, points.dimension)


def log_density_at(law: Distribution, points: Points, atoms: Flags) -> _Floats:
    """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
    if isinstance(law, Measured):
        return law.log_density_at(points, atoms)
    if law.measure is Measure.LEBESGUE:
        return outside_atoms(_one_each(law.log_density(points.copied()), points), atoms)
    has_mass = isinstance(law, WithAtoms)
    mass = law.log_mass(points.copied()) if isinstance(law, WithAtoms) else law.log_density(points.copied())
    mass = _one_each(mass, points)
    counted = np.zeros(len(points), dtype=bool) if atoms is None else atoms.all(axis=1)
    if law.measure is Measure.COUNTING or not has_mass:
        return np.where(counted, mass, -np.inf)
    density = np.where(mass > -np.inf, -np.inf, _one_each(law.log_density(points.copied()), points))
    return np.where(counted, mass, outside_atoms(density, atoms))


def own_log_density(law: Measured, points: Points) -> _Floats:
    """Return the log density of a law with respect to its own measure: its atoms count, no other value does."""
    return law.log_density_at(points, law.atom_columns(points))


def outside_atoms(density: _Floats, atoms: Flags) -> _Floats:
    """Return the density of a law without atoms: zero where a column counts."""
    return density if atoms is None else np.where(atoms.any(axis=1), -np.inf, density)


def inside_atoms(mass: _Floats, atoms: Flags) -> _Floats:
    """Return the density of a law on whole records: zero where a column does not count."""
    return np.full(len(mass), -np.inf) if atoms is None else np.where(atoms.all(axis=1), mass, -np.inf)


def every_column(points: Points) -> NDArray[np.bool_]:
    """Return the flags by which every column counts."""
    return np.ones(points.raw.shape, dtype=bool)


def union(flags: Iterable[Flags]) -> Flags:
    """Return the columns that count for at least one."""
    total: Flags = None
    for flag in flags:
        if flag is not None:
            total = flag if total is None else total | flag
    return total


def common_measure(laws: Iterable[Distribution]) -> Measure:
    """Return the measure of several laws together."""
    measures = {law.measure for law in laws}
    return measures.pop() if len(measures) == 1 else Measure.BOTH


def _one_each(values: object, points: Points) -> _Floats:
    """Return what a foreign law says as one float for each record, or refuse another shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (len(points),):
        raise InvalidParameter("log_density and log_mass must return one number for each record.")
    return array


def _whole(records: NDArray[Any], dimension: int) -> Flags:
    """Return the flags of atoms that are whole records."""
    return np.repeat(records[:, None], dimension, axis=1) if records.any() else None
