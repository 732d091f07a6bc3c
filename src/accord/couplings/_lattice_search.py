"""For one law on R^D: where its mass is, and which cells of a cubic lattice its density can reach a level in."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import FitFailed
from accord.distributions import (
    Distribution,
    Exponential,
    Gamma,
    Measure,
    Mixture,
    Normal,
    Piecewise,
    Product,
    Uniform,
)

__all__ = ["BoundedLaw", "Floats", "Integers", "reach"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_DEVIATIONS = 7.0
"""A normal law has 2.6e-12 of its mass farther out in one column."""

_LOG_TAIL = 24.0
"""The tail of a gamma law that is left out has at most exp(-24) of the mass, below 4e-11."""

_SLACK = 2.0**-40
_LARGEST_INDEX = 2.0**50


def reach(law: object) -> tuple[Floats, Floats]:
    """Return corners, shape (D,) each, of a box that holds all but about 1e-9 of the law's mass.

    A law may say so itself by a method ``reach()`` that returns the two corners.

    Raises
    ------
    FitFailed
        If the law is none that is known and has no such method.

    """
    match law:
        case Normal():
            spread = np.sqrt(np.diag(np.array(law.covariance)))
            return np.array(law.mean) - _DEVIATIONS * spread, np.array(law.mean) + _DEVIATIONS * spread
        case Uniform():
            return np.array(law.low), np.array(law.high)
        case Piecewise() | Exponential() | Gamma():
            ends = _ends(law)
            return np.array(ends[:1]), np.array(ends[1:])
        case Product():
            corners = [reach(factor) for factor in law.factors]
            return np.concatenate([low for low, _ in corners]), np.concatenate([high for _, high in corners])
        case Mixture():
            corners = [reach(part) for part, _ in law.positive]
            return np.min([low for low, _ in corners], axis=0), np.max([high for _, high in corners], axis=0)
        case _:
            method = getattr(law, "reach", None)
            if method is None:
                raise FitFailed("a law must say where its mass is, by reach()")
            low, high = method()
            return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def _ends(law: Piecewise | Exponential | Gamma) -> tuple[float, float]:
    """Return where nearly all of the mass on a line begins and ends."""
    match law:
        case Piecewise():
            return law.edges[0], law.edges[-1]
        case Exponential():
            return 0.0, _LOG_TAIL * law.scale
        case Gamma():  # P(X > a + sqrt(2 a t) + t) <= exp(-t) for a scale of 1
            return 0.0, (law.shape + math.sqrt(2.0 * _LOG_TAIL * law.shape) + _LOG_TAIL) * law.scale


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundedLaw:
    """A law with a density and bounds of it, in the units of the lattice, and the box that holds its mass.

    Parameters
    ----------
    law
        The law.
    units
        Public numbers, shape (D,): the lattice counts column i in ``units[i]``.
    low, high
        The box, in units.
    log_top
        A bound of the log density (per unit volume) in the box.
    rotated
        For a normal law, the inverse of its factor and its mean, in units; bounds are then two matrix products.

    """

    law: Any
    units: Floats
    low: Floats
    high: Floats
    log_top: float
    rotated: tuple[Floats, Floats, float] | None

    @classmethod
    def seen(cls, law: Distribution, *, units: Floats) -> "BoundedLaw":
        """Return a law as the search needs it.

        Raises
        ------
        FitFailed
            If its dimension or measure is another, its box is not finite, or its density has no bound there.

        """
        if law.dimension != len(units) or law.measure is not Measure.LEBESGUE:
            raise FitFailed("the law has no density on this space")
        low, high = (np.asarray(corner, dtype=np.float64) / units for corner in reach(law))
        if not (low.shape == high.shape == units.shape and (low <= high).all() and np.isfinite([low, high]).all()):
            raise FitFailed("the law's box is no box")
        rotated = None
        if type(law) is Normal:
            factor = law.cholesky / units[:, None]
            inverse = np.linalg.inv(factor)
            constant = 0.5 * len(units) * math.log(2.0 * math.pi) + float(np.log(np.diag(factor)).sum())
            rotated = np.asarray(inverse, dtype=np.float64), np.asarray(law.mean) / units, constant
        made = cls(law, units, low, high, math.inf, rotated)
        top = float(made.log_bound(low[None], high[None])[0])
        if not math.isfinite(top):
            raise FitFailed("the law's density has no bound")
        return cls(law, units, low, high, top, rotated)

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume of the box, in units; of a box that is flat, that of one barely thicker."""
        return float(np.log(np.maximum(self.high - self.low, 2.0**-1000)).sum())

    def log_density(self, x: Floats) -> Floats:
        """Return the log density (per unit volume) at points in units, shape (n,) from (n, D).

        Raises
        ------
        FitFailed
            If one is NaN.

        """
        found = np.asarray(self.law.log_density(x * self.units), dtype=np.float64) + float(np.log(self.units).sum())
        if found.shape != (len(x),) or np.isnan(found).any():
            raise FitFailed("the law's density is not a number")
        return found

    def log_bound(self, low: Floats, high: Floats) -> Floats:
        """Return an upper bound of the log density (per unit volume) on boxes in units, shape (n,) from (n, D)."""
        if self.rotated is not None:
            return _normal_bound(*self.rotated, low, high)
        given = self.law.log_density_bound(low * self.units, high * self.units)
        found = np.asarray(given, dtype=np.float64) + float(np.log(self.units).sum())
        if found.shape != (len(low),) or np.isnan(found).any():
            raise FitFailed("the law's bound is not a number")
        return found

    def cells(self, side: float, shift: Floats, *, log_least: float, most: int) -> tuple[Integers, Floats]:
        """List the cells of a lattice that meet the box and where the density may reach a level, with its bounds there.

        Boxes of cells are halved along their longest side, and left out as soon as their bound is below the level.

        Parameters
        ----------
        side, shift
            Side of a cell in units, and shape (D,): cell i of a column is ``[i, i + 1) * side`` after a shift of so
            many sides.
        log_least
            The level.
        most
            More boxes than this at once are a failure.

        Returns
        -------
        tuple
            Indices, shape (n, D), and bounds, shape (n,).

        Raises
        ------
        FitFailed
            If there are too many, or an index is beyond 2^50.

        """
        ends = np.floor(self.low / side - shift), np.floor(self.high / side - shift)
        if not (np.abs(ends) < _LARGEST_INDEX).all():
            raise FitFailed("the law is too concentrated for double precision at its distance from zero")
        first, last = ends[0].astype(np.int64)[None], ends[1].astype(np.int64)[None]
        bound = self.log_bound((first + shift) * side, (last + (shift + 1.0)) * side)
        kept = bound >= log_least
        first, last, bound = first[kept], last[kept], bound[kept]
        done: list[tuple[Integers, Floats]] = []
        while len(first):
            width = last - first
            longest = width.argmax(axis=1)
            rows = np.arange(len(first))
            wide = width[rows, longest] > 0
            if not wide.all():
                done.append((first[~wide], bound[~wide]))
                first, last, longest = first[wide], last[wide], longest[wide]
            rows = np.arange(len(first))
            middle = first[rows, longest] + (last[rows, longest] - first[rows, longest]) // 2
            upper, lower = first.copy(), last.copy()
            lower[rows, longest], upper[rows, longest] = middle, middle + 1
            first, last = np.concatenate([first, upper]), np.concatenate([lower, last])
            bound = self.log_bound((first + shift) * side, (last + (shift + 1.0)) * side)
            kept = bound >= log_least
            first, last, bound = first[kept], last[kept], bound[kept]
            if len(first) + sum(len(cells) for cells, _ in done) > most:
                raise FitFailed("the law needs too many cells")
        if not done:
            return np.empty((0, len(self.low)), dtype=np.int64), np.empty(0)
        return np.concatenate([cells for cells, _ in done]), np.concatenate([bounds for _, bounds in done])


def _normal_bound(inverse: Floats, mean: Floats, constant: float, low: Floats, high: Floats) -> Floats:
    """Return a bound of a normal density on boxes: rows of ``inverse @ (x - mean)`` bounded one by one."""
    middle, half = 0.5 * (low + high) - mean, 0.5 * (high - low)
    absolute = np.abs(inverse)
    spread = half @ absolute.T
    size = np.abs(middle) @ absolute.T + spread + np.abs(mean) @ absolute.T * 2.0**-10
    distance = np.maximum(np.abs(middle @ inverse.T) - spread - _SLACK * size, 0.0)
    bound: Floats = -0.5 * np.square(distance).sum(axis=1) - constant
    return bound + _SLACK * (1.0 + abs(constant))
