"""What a mechanism does to privacy, beyond its epsilon: worst-case laws of its privacy loss."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP

__all__ = [
    "ExponentialLoss",
    "GridLaw",
    "GuaranteeLoss",
    "LaplaceLoss",
    "PrivacyLoss",
    "share_out",
    "share_out_smooth",
    "small_loss",
]


Floats = NDArray[np.float64]
_SHARING = 64  # units of rounding that sharing out costs, generously


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridLaw:
    """Masses at losses ``(first + j) * step``.

    Parameters
    ----------
    first
        Index of the first mass.
    masses
        Not negative.
    error
        Relative error of every mass, in units of rounding.
    shift
        How far a loss may have been placed too low, in units of rounding.

    """

    first: int
    masses: Floats
    error: float
    shift: float


def _finished(indices: NDArray[np.int64], masses: Floats, *, error: float, shift: float) -> GridLaw:
    first = int(indices.min())
    summed = np.zeros(int(indices.max()) - first + 1)
    np.add.at(summed, indices - first, masses)
    return GridLaw(first=first, masses=summed, error=error + _SHARING + 2, shift=shift)


def share_out(losses: Floats, masses: Floats, *, step: float, error: float) -> GridLaw:
    """Return the grid law of atoms whose losses are correct to 8 units of rounding of the largest."""
    below = np.floor(losses / step)
    beyond = np.clip(losses - below * step, 0.0, step)
    scale = -np.expm1(-step)
    up = masses * (-np.expm1(-beyond) / scale)
    down = masses * (np.exp(-beyond) * -np.expm1(beyond - step) / scale)
    indices = below.astype(np.int64)
    shift = 16 * float(np.abs(losses).max() + step)
    return _finished(np.concatenate([indices, indices + 1]), np.concatenate([down, up]), error=error, shift=shift)


def share_out_smooth(
    largest: float, *, step: float, atoms: tuple[float, float], weight: float, error: float
) -> GridLaw:
    """Return the grid law of density ``weight e^(t / 2)`` on [-largest, largest] and atoms at its two ends.

    In a cell that starts at ``j step``, from a to b: the upper end gets ``weight e^(j step / 2) 8 sinh((a + b) / 4)
    sinh((b - a) / 4) / (1 - e^-step)``; the lower end the same with ``step - b`` and ``step - a``, and
    ``e^(-step / 2)`` times that.
    """
    low = int(np.floor(-largest / step))
    cells = np.arange(low, int(np.ceil(largest / step)) + 1)
    a = np.clip(-largest - cells * step, 0.0, step)
    b = np.clip(largest - cells * step, 0.0, step)
    scale = weight * np.exp(cells * step / 2) * 8 / -np.expm1(-step)
    up = scale * np.sinh((a + b) / 4) * np.sinh((b - a) / 4)
    down = scale * np.exp(-step / 2) * np.sinh((2 * step - a - b) / 4) * np.sinh((b - a) / 4)
    ends = share_out(np.array([-largest, largest]), np.array(atoms), step=step, error=error)
    ends_at = np.arange(ends.first, ends.first + ends.masses.size)
    return _finished(
        np.concatenate([cells, cells + 1, ends_at]),
        np.concatenate([down, up, ends.masses]),
        error=error + 4 * largest,
        shift=16 * (largest + step),
    )


_LARGEST = 1000
_LARGEST_STATED = 10**9


class PrivacyLoss(Protocol):
    """A worst-case pair of laws: no two neighbours are told apart better by the mechanism than the pair is.

    The pair is the same in both directions. Values are frozen and hashable: equal ones are counted together.
    """

    @property
    def neighbouring(self) -> Neighbouring:
        """The relation between datasets."""
        ...

    @property
    def unit(self) -> str:
        """The unit of privacy."""
        ...

    @property
    def guarantee(self) -> PureDP | ApproxDP | None:
        """What one release promises by epsilon and delta alone; None if that is a curve."""
        ...

    def moments(self, orders: Floats) -> Floats:
        """Return ``log E exp(order * loss)`` for each order, without rounding error beyond 64 units, or above it."""
        ...

    def on_grid(self, step: float) -> GridLaw:
        """Return a law on multiples of ``step`` that dominates; the delta of `guarantee` is left out of it."""
        ...


def small_loss(value: Number) -> Fraction:
    """Return an epsilon from 0 to 1000."""
    result = _check.exact("epsilon", value)
    if not 0 <= result <= _LARGEST:
        raise InvalidParameter("epsilon must be from 0 to 1000.")
    return result


def above(value: Fraction) -> float:
    """Return the least float at or above ``value``."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def even_shift(epsilon: float) -> float:
    """Return ``1 / (1 + e^-epsilon)``."""
    return 1 / (1 + math.exp(-epsilon))


@final
@dataclass(frozen=True, slots=True)
class GuaranteeLoss:
    """All that follows from a guarantee: with chance delta all is given away, otherwise the loss is +-epsilon.

    Above an epsilon of 1000 only sums are known, no law on a grid.

    Also the worst case of a `StableMode`, whose chances rise by exactly e^epsilon and delta a vote in the middle of
    their curve.

    Source
    ------
    Kairouz, Oh and Viswanath (2015); docs/proofs/privacy-loss.md.

    Examples
    --------
    >>> GuaranteeLoss(ApproxDP(1, "1e-6")).guarantee.delta
    Fraction(1, 1000000)

    """

    guarantee: PureDP | ApproxDP

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, PureDP | ApproxDP):
            raise InvalidParameter("guarantee must be a PureDP or an ApproxDP.")
        if self.guarantee.epsilon > _LARGEST_STATED:
            raise InvalidParameter("epsilon must be at most 1e9: such a guarantee is none.")

    @property
    def neighbouring(self) -> Neighbouring:
        """The relation between datasets."""
        return self.guarantee.neighbouring

    @property
    def unit(self) -> str:
        """The unit of privacy."""
        return self.guarantee.unit

    def moments(self, orders: Floats) -> Floats:
        """``log((e^((order + 1) epsilon) + e^(-order epsilon)) / (1 + e^epsilon))``, at most ``order epsilon``."""
        epsilon = above(self.guarantee.epsilon)
        mixed = np.logaddexp((orders + 1) * epsilon, -orders * epsilon) - np.logaddexp(0, epsilon)
        cap = orders * np.minimum(epsilon, (1 + orders) * epsilon**2 / 2)
        # The difference of two logarithms loses digits when it is small; the cap does not.
        return np.asarray(np.minimum(cap, mixed + 2.0**-48 * (1 + (orders + 1) * epsilon)))

    def on_grid(self, step: float) -> GridLaw:
        """Two atoms."""
        small_loss(self.guarantee.epsilon)
        epsilon = above(self.guarantee.epsilon)
        masses = np.array([even_shift(-epsilon), even_shift(epsilon)])
        return share_out(np.array([-epsilon, epsilon]), masses, step=step, error=8)


@final
@dataclass(frozen=True, slots=True, init=False)
class LaplaceLoss:
    """Laplace noise, for any number of coordinates whose summed shift over the scale is at most epsilon.

    The loss is epsilon with chance 1/2, -epsilon with chance ``e^-epsilon / 2``, and has density
    ``e^((t - epsilon) / 2) / 4`` between.

    Source
    ------
    docs/proofs/privacy-loss.md, also for several coordinates.

    """

    epsilon: Fraction
    neighbouring: Neighbouring
    unit: str

    def __init__(
        self, epsilon: Number, neighbouring: Neighbouring = Neighbouring.REPLACE_ONE, unit: str = "record"
    ) -> None:
        _check.store(
            self, epsilon=small_loss(epsilon), neighbouring=PureDP(1, neighbouring, unit).neighbouring, unit=unit
        )

    @property
    def guarantee(self) -> PureDP:
        """Pure, with the same epsilon."""
        return PureDP(self.epsilon, self.neighbouring, self.unit)

    def moments(self, orders: Floats) -> Floats:
        """``log(((order + 1) e^(order epsilon) + order e^(-(order + 1) epsilon)) / (2 order + 1))``."""
        epsilon = above(self.epsilon)
        up = np.log((orders + 1) / (2 * orders + 1)) + orders * epsilon
        down = np.log(orders / (2 * orders + 1)) - (orders + 1) * epsilon
        cap = orders * np.minimum(epsilon, (1 + orders) * epsilon**2 / 2)
        return np.minimum(cap, np.logaddexp(up, down) + 2.0**-48 * (1 + (orders + 1) * epsilon))

    def on_grid(self, step: float) -> GridLaw:
        """Two atoms and a density between them."""
        epsilon = above(self.epsilon)
        if epsilon == 0:
            return share_out(np.zeros(1), np.ones(1), step=step, error=0)
        atoms = (math.exp(-epsilon) / 2, 0.5)
        return share_out_smooth(epsilon, step=step, atoms=atoms, weight=math.exp(-epsilon / 2) / 4, error=16)


@final
@dataclass(frozen=True, slots=True, init=False)
class ExponentialLoss:
    """The exponential mechanism: losses of any two outcomes differ by at most epsilon (bounded range).

    Worst case over all such mechanisms, for every level at once: density ``e^(t / 2) / (4 sinh(epsilon / 2))`` on
    [-epsilon, epsilon]. Its moments are also at most those of epsilon^2 / 8 zero-concentrated DP.

    Source
    ------
    Dong, Durfee and Rogers (2020); Cesar and Rogers (2021), Lemma 3.2; docs/proofs/privacy-loss.md.

    """

    epsilon: Fraction
    neighbouring: Neighbouring
    unit: str

    def __init__(
        self, epsilon: Number, neighbouring: Neighbouring = Neighbouring.REPLACE_ONE, unit: str = "record"
    ) -> None:
        _check.store(
            self, epsilon=small_loss(epsilon), neighbouring=PureDP(1, neighbouring, unit).neighbouring, unit=unit
        )

    @property
    def guarantee(self) -> PureDP:
        """Pure, with the same epsilon."""
        return PureDP(self.epsilon, self.neighbouring, self.unit)

    def moments(self, orders: Floats) -> Floats:
        """The least of ``order (order + 1) epsilon^2 / 8`` and the moment of the density below."""
        epsilon = above(self.epsilon)
        cap = np.asarray(orders * np.minimum(epsilon, (1 + orders) * epsilon**2 / 8))
        if epsilon == 0:
            return cap
        # log(sinh((order + 1/2) epsilon) / ((2 order + 1) sinh(epsilon / 2)))
        both = np.log(-np.expm1(-(2 * orders + 1) * epsilon)) - math.log(-math.expm1(-epsilon))
        density = orders * epsilon + both - np.log(2 * orders + 1)
        return np.minimum(cap, density + 2.0**-48 * (1 + (orders + 1) * epsilon + np.abs(both)))

    def on_grid(self, step: float) -> GridLaw:
        """A density on an interval."""
        epsilon = above(self.epsilon)
        if epsilon == 0:
            return share_out(np.zeros(1), np.ones(1), step=step, error=0)
        weight = math.exp(-epsilon / 2) / (-2 * math.expm1(-epsilon))
        return share_out_smooth(epsilon, step=step, atoms=(0.0, 0.0), weight=weight, error=16)
