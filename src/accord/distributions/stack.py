"""The densities of many laws at the same points, with respect to one measure."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core.alone import alone
from accord.core.coupling import Distribution
from accord.core.errors import InvalidParameter
from accord.distributions.atoms import Atoms
from accord.distributions.categorical import Categorical
from accord.distributions.exponential import Exponential
from accord.distributions.gamma import Gamma
from accord.distributions.measured import Flags, Points, atom_columns, log_density_at
from accord.distributions.mixture import Mixture
from accord.distributions.normal import Normal
from accord.distributions.piecewise import Piecewise
from accord.distributions.point_mass import PointMass
from accord.distributions.poisson import Poisson
from accord.distributions.product import Product
from accord.distributions.uniform import Uniform

__all__ = [
    "is_own",
    "log_densities",
]


_LEAVES = frozenset({Categorical, Exponential, Gamma, Normal, Piecewise, PointMass, Poisson, Uniform})


def is_own(law: object) -> bool:
    """Return whether a law runs no code but accord's: its class and those of its parts are accord's own families."""
    kind = type(law)
    if kind is Mixture:
        return all(is_own(part) for part, _ in law.positive)  # type: ignore[attr-defined]
    if kind is Product:
        return all(is_own(factor) for factor in law.factors)  # type: ignore[attr-defined]
    if kind is Atoms:
        return law.rest is None or is_own(law.rest)  # type: ignore[attr-defined]
    return kind in _LEAVES


_Floats = NDArray[np.float64]
_Answer = TypeVar("_Answer")


def log_densities(
    laws: Sequence[Any], x: ArrayLike | Sequence[Any], *, reference: Distribution | None = None
) -> _Floats:
    """Return the log density of every law at every record, with respect to one common measure.

    In a column where the record's value is an atom of any law (or, where a reference is given, of the reference) every
    law counts its mass, which is zero for a law without an atom there; in the other columns densities count.

    Formal guarantees
    -----------------
    - Isolation, where a reference is given: row i is a function of law i, the reference and x alone, to the last bit.
    - A law that fails (an exception, NaN, another shape, `ABSTAIN`) gives a row of -inf and changes no other row; a
      density that is infinite at a single record counts as zero there. No entry is NaN or +inf.
    - Without a reference the measure depends on all laws, as it must for ratios between them; the way in which a row
      is computed does not.
    - Not promised, where a reference is given: the mass of a law at atoms that the reference does not have.

    Parameters
    ----------
    laws
        k laws; anything else gives -inf.
    x
        Records, shape (n, d); (n,) is accepted for d = 1.
    reference
        A public law that alone decides which values are atoms.

    Returns
    -------
    ndarray of shape (k, n)

    Raises
    ------
    InvalidParameter
        If x has no shape of records, or the reference is no law for these records.

    Source
    ------
    theory 1 (laws and densities), S1 (ratios of densities).

    Examples
    --------
    >>> from accord.distributions import Atoms, Normal
    >>> laws = [Normal(0, 1), Atoms([0], [0.5], rest=Normal(0, 1))]
    >>> log_densities(laws, [0.0, 1.0]).round(6).tolist()
    [[-inf, -1.418939], [-0.693147, -2.112086]]
    >>> log_densities(laws, [0.0, 1.0], reference=Normal(0, 1)).round(6).tolist()
    [[-0.918939, -1.418939], [-1.612086, -2.112086]]

    """
    points = _points(x)
    atoms = _own_atoms(laws, points) if reference is None else _reference_atoms(reference, points)
    table = np.full((len(laws), len(points)), -np.inf)
    for row, law in enumerate(laws):
        found = _row(law, points, atoms)
        if found is not None:
            table[row] = found
    return table


def _points(x: ArrayLike | Sequence[Any]) -> Points:
    """Return the records with as many columns as they have."""
    array = x if isinstance(x, np.ndarray) else np.asarray(x, dtype=object)
    if array.ndim not in {1, 2} or (array.ndim == 2 and array.shape[1] == 0):
        raise InvalidParameter("records must have shape (n, d).")
    return Points(array, dimension=1 if array.ndim == 1 else array.shape[1])


def _reference_atoms(reference: Distribution, points: Points) -> Flags:
    if not isinstance(reference, Distribution) or reference.dimension != points.dimension:
        raise InvalidParameter("reference must be a distribution of the dimension of the records.")
    return atom_columns(reference, points)


def _own_atoms(laws: Sequence[Any], points: Points) -> Flags:
    """Return the columns that count for any law that can say so."""
    total: Flags = None
    for law in laws:
        flags = _flags(law, points)
        if flags is not None:
            total = flags.copy() if total is None else np.logical_or(total, flags, out=total)
    return total


def _flags(law: object, points: Points) -> Flags:
    """Return the columns that count for one law, None if it fails in any way."""

    def ask() -> Flags:
        fits = isinstance(law, Distribution) and law.dimension == points.dimension
        flags = atom_columns(law, points) if fits else None  # type: ignore[arg-type]
        usable = flags is not None and flags.shape == points.raw.shape and flags.dtype == np.bool_
        return flags if usable else None

    return _asked(law, ask)


def _row(law: object, points: Points, atoms: Flags) -> _Floats | None:
    """Return the log density of one law, or None if it fails in any way."""

    def ask() -> _Floats | None:
        if not isinstance(law, Distribution) or law.dimension != points.dimension:
            return None
        found = np.asarray(log_density_at(law, points, atoms), dtype=np.float64)
        top = float(found.max(initial=-np.inf))  # NaN if any is
        if found.shape != (len(points),) or np.isnan(top):
            return None
        return found if top < np.inf else np.where(found == np.inf, -np.inf, found)

    return _asked(law, ask)


def _asked(law: object, ask: Callable[[], _Answer]) -> _Answer | None:
    """Return ``ask()``, None where it fails; accord's own families leave nothing behind, which saves time."""
    try:
        if is_own(law):
            return ask()
    except Exception:  # noqa: BLE001 - one law's failure is its own; no code of others ran
        return None
    return alone(ask, failed=None)
