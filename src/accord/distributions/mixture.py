"""A mixture of laws."""

from collections.abc import Iterable, Sequence
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
    atom_columns,
    common_measure,
    every_column,
    log_density_at,
    normalised,
    own_log_density,
    union,
)
from accord.distributions.protocol import Rows, require_bounded, require_on_a_line

__all__ = ["Mixture"]

_AT_ONCE = 16
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False)
class Mixture:
    """One of several laws, chosen anew for each record.

    Formal guarantees
    -----------------
    - Value: immutable; equal components with equal weights in the same order are equal laws with equal hashes.
    - Sampling: exactly ``size`` independent records; they are not grouped by component.
    - Density: in logs; far from all components it is -inf, never NaN. A component of weight 0 is never evaluated.
    - Atoms: at an atom of any component the density parts of the others count as zero.
    - Not promised: that mixtures written differently (order, a weight of 0, one component twice) are equal.

    Parameters
    ----------
    components
        At least one law; all of one dimension.
    weights
        Non-negative numbers, one for each component, with a positive sum; normalised here.

    Raises
    ------
    InvalidParameter
        If a component is no law, the dimensions differ, or the weights are not as above. `cdf` and `interval` are
        refused unless every component of positive weight has them; so is `log_density_bound`.

    Source
    ------
    theory 1 (laws and densities).

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> law = Mixture([Normal(-2, 1), Normal(2, 1)], [1, 3])
    >>> law.weights
    (0.25, 0.75)
    >>> law.log_density([[0.0], [1e200]]).round(6).tolist()
    [-2.918939, -inf]
    >>> law.cdf([0.0]).round(6).tolist()
    [0.261375]

    """

    components: tuple[Distribution, ...]
    weights: tuple[float, ...]

    def __init__(self, components: Iterable[Distribution], weights: ArrayLike) -> None:
        parts = tuple(components)
        _check.at_least_one("components", parts)
        if not all(isinstance(part, Distribution) for part in parts):
            raise InvalidParameter("components must be distributions, such as Normal or Categorical.")
        if len({part.dimension for part in parts}) > 1:
            raise InvalidParameter("components must have the same dimension.")
        _check.store(self, components=parts, weights=normalised("weights", weights, count=len(parts), each="component"))

    @property
    def dimension(self) -> int:
        """Number of columns d of a record."""
        return self.components[0].dimension

    @property
    def measure(self) -> Measure:
        """That of the components of positive weight."""
        return common_measure(part for part, _ in self.positive)

    @property
    def positive(self) -> tuple[tuple[Distribution, float], ...]:
        """The components of positive weight, each with its weight."""
        return tuple((part, weight) for part, weight in zip(self.components, self.weights, strict=True) if weight > 0)

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` independent records, shape (size, d).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read for ``size`` uniform numbers, then by each component for its share.

        """
        count = _check.integer("size", size, least=0)
        steps = np.cumsum([weight for _, weight in self.positive])
        picks = np.searchsorted(steps / steps[-1], generator.random(count), side="right")
        shares = np.bincount(picks, minlength=len(steps))
        drawn = [part.sample(int(share), generator) for (part, _), share in zip(self.positive, shares, strict=True)]
        kinds = {records.dtype for records in drawn}
        kind = kinds.pop() if len(kinds) == 1 else _shared_kind(kinds)
        table: Rows = np.empty((count, self.dimension), dtype=kind)
        for place, records in enumerate(drawn):
            table[picks == place] = records
        return table

    def log_density(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log density at each record, shape (n,): the log mass at an atom.

        Parameters
        ----------
        x
            Shape (n, d); (n,) is accepted for d = 1.

        """
        return own_log_density(self, Points(x, dimension=self.dimension))

    def log_mass(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log probability of each single record, shape (n,)."""
        points = Points(x, dimension=self.dimension)
        return self.log_density_at(points, every_column(points))

    def atom_columns(self, points: Points) -> Flags:
        """Return in which columns the records have atoms of some component."""
        return union(atom_columns(part, points) for part, _ in self.positive)

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        parts = self.positive
        logs = [float(np.log(weight)) for _, weight in parts]
        total: _Floats | None = None
        for start in range(0, len(parts), _AT_ONCE):
            chunk = range(start, min(start + _AT_ONCE, len(parts)))
            rows = [log_density_at(parts[at][0], points, atoms) + logs[at] for at in chunk]
            rows = rows if total is None else [total, *rows]
            total = rows[0] if len(rows) == 1 else _log_sum(rows)
        return np.full(len(points), -np.inf) if total is None else total

    def cdf(self, x: ArrayLike) -> _Floats:
        """Return P(X <= x), shape (n,), for mixtures of laws on a line."""
        parts = [require_on_a_line(part).cdf(x) * weight for part, weight in self.positive]
        return np.asarray(np.minimum(sum(parts), 1.0))

    def interval(self, low: ArrayLike, high: ArrayLike) -> _Floats:
        """Return P(low < X <= high), shape (n,), for mixtures of laws on a line."""
        parts = [require_on_a_line(part).interval(low, high) * weight for part, weight in self.positive]
        return np.asarray(np.minimum(sum(parts), 1.0))

    def log_density_bound(self, low: _Floats, high: _Floats) -> _Floats:
        """Return an upper bound of the log density on each box, shape (n,) from corners of shape (n, d)."""
        rows = [require_bounded(part).log_density_bound(low, high) + np.log(weight) for part, weight in self.positive]
        return _log_sum(rows)


def _log_sum(rows: Sequence[_Floats]) -> _Floats:
    """Return the logarithm of the sum of exponentials, shape (n,); -inf where every row is."""
    top = rows[0]
    for row in rows[1:]:
        top = np.maximum(top, row)
    shift = np.where(np.isfinite(top), top, 0.0)
    total = np.zeros(len(top))
    with np.errstate(all="ignore"):
        for row in rows:
            total += np.exp(row - shift)
        found: _Floats = shift + np.log(total)
    return found


def _shared_kind(kinds: set[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the type of records that keeps each exactly: floats hold whole numbers of moderate size, else objects."""
    numbers = all(kind.kind == "f" for kind in kinds)
    return np.result_type(*kinds) if numbers else np.dtype(object)
