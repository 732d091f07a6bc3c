"""Worst-case laws of the privacy loss of noise that is not Laplace: discrete Laplace, Gaussian, discrete Gaussian."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.accounting.losses import GridLaw, LaplaceLoss, above, share_out, small_loss
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import Neighbouring, PureDP

__all__ = ["ConcentratedLoss", "DiscreteGaussianLoss", "DiscreteLaplaceLoss", "GaussianLoss"]

Floats = NDArray[np.float64]
_MOST_STEPS = 4096
_REACH = 39  # standard deviations: what lies beyond has a chance below 1e-300
_MOST_ATOMS = 1 << 22
_FINE = 100
_MOST_RHO = 5000
_MANY_NODES, _FEW_NODES = np.polynomial.legendre.leggauss(10), np.polynomial.legendre.leggauss(6)


@final
@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplaceLoss:
    """Two-sided geometric noise on integers, shifted by ``steps`` in all, with ``epsilon = steps / scale``.

    The loss is ``(steps - 2 x) epsilon / steps`` for x = 0 .. steps, with masses ``1, 1 - q, .., (1 - q) q^(steps - 1),
    q^steps``, all over 1 + q, except that x = 0 has 1 and x = steps has q^steps; q = exp(-epsilon / steps). One step is
    randomised response; many are Laplace noise of a slightly larger epsilon.

    Source
    ------
    docs/proofs/privacy-loss.md.

    """

    epsilon: Fraction
    steps: int
    neighbouring: Neighbouring
    unit: str

    def __init__(
        self,
        epsilon: Number,
        steps: int,
        neighbouring: Neighbouring = Neighbouring.REPLACE_ONE,
        unit: str = "record",
    ) -> None:
        _check.store(
            self,
            epsilon=small_loss(epsilon),
            steps=_check.integer("steps", steps, least=1),
            neighbouring=PureDP(1, neighbouring, unit).neighbouring,
            unit=unit,
        )

    @property
    def guarantee(self) -> PureDP:
        """Pure, with the same epsilon."""
        return PureDP(self.epsilon, self.neighbouring, self.unit)

    @property
    def _continuous(self) -> LaplaceLoss:
        """Laplace noise that dominates: ``epsilon + 2 log cosh(epsilon / (2 steps))``, and log cosh x <= x^2 / 2."""
        return LaplaceLoss(self.epsilon + self.epsilon**2 / (4 * self.steps**2), self.neighbouring, self.unit)

    def _atoms(self) -> tuple[Floats, Floats]:
        x = np.arange(self.steps + 1, dtype=np.float64)
        rate = above(self.epsilon) / self.steps
        inner = -np.expm1(-rate) * np.exp(-x * rate)
        inner[0], inner[-1] = 1.0, math.exp(-above(self.epsilon))
        return (self.steps - 2 * x) * rate, inner / (1 + math.exp(-rate))

    def moments(self, orders: Floats) -> Floats:
        """Sums over the atoms; with many steps those of the Laplace law."""
        if self.steps > _MOST_STEPS:
            return self._continuous.moments(orders)
        losses, masses = self._atoms()
        epsilon = above(self.epsilon)
        grown = np.exp(np.multiply.outer(orders, losses - epsilon)) @ masses
        mixed = orders * epsilon + np.log(grown)
        cap = orders * np.minimum(epsilon, (1 + orders) * epsilon**2 / 2)
        return np.minimum(cap, mixed + 2.0**-53 * (self.steps + 64) * (1 + (2 * orders + 1) * epsilon))

    def on_grid(self, step: float) -> GridLaw:
        """The atoms; with many steps the Laplace law."""
        if self.steps > _MOST_STEPS:
            return self._continuous.on_grid(step)
        losses, masses = self._atoms()
        return share_out(losses, masses, step=step, error=16 + 4 * above(self.epsilon))


@final
@dataclass(frozen=True, slots=True, init=False)
class GaussianLoss:
    """Gaussian noise: ``squared = (sensitivity / sigma)^2``, the L2 sensitivity; the loss is normal.

    Several Gaussians are one, with the squares added: `accord.accounting.gaussian_composition` is exact.

    Source
    ------
    Balle and Wang (2018), Theorem 8; docs/proofs/privacy-loss.md.

    """

    squared: Fraction
    neighbouring: Neighbouring
    unit: str

    def __init__(
        self,
        *,
        sigma: Number,
        sensitivity: Number = 1,
        neighbouring: Neighbouring = Neighbouring.REPLACE_ONE,
        unit: str = "record",
    ) -> None:
        deviation, bound = _check.exact("sigma", sigma), _check.exact("sensitivity", sensitivity)
        if not deviation > 0 or bound < 0:
            raise InvalidParameter("sigma must be above 0 and sensitivity at least 0.")
        squared = (bound / deviation) ** 2
        if not (squared == 0 or Fraction(1, 10**12) <= squared <= 10**4):
            raise InvalidParameter("sensitivity / sigma must be 0 or from 1e-6 to 100.")
        _check.store(self, squared=squared, neighbouring=PureDP(1, neighbouring, unit).neighbouring, unit=unit)

    def with_square(self, squared: Fraction) -> "GaussianLoss":
        """Return the one Gaussian that equals several, ``squared`` being the sum of their squares."""
        merged = GaussianLoss(sigma=1, neighbouring=self.neighbouring, unit=self.unit)
        _check.store(merged, squared=squared)
        return merged

    @property
    def guarantee(self) -> None:
        """None: it is a curve."""
        return

    def moments(self, orders: Floats) -> Floats:
        """``order (order + 1) squared / 2``."""
        return np.asarray(orders * (1 + orders) * above(self.squared) / 2)

    def on_grid(self, step: float) -> GridLaw:
        """Each cell by Gauss-Legendre quadrature: 10 nodes up to a 20th of the deviation, 6 up to a 100th."""
        return gaussian_on_grid(above(self.squared), step=step)


def gaussian_on_grid(squared: float, *, step: float) -> GridLaw:
    """Return the grid law of a normal loss with variance ``squared`` and mean half of it."""
    if squared == 0:
        return share_out(np.zeros(1), np.ones(1), step=step, error=0)
    deviation = math.sqrt(squared)
    parts = max(1, math.ceil(20 * step / deviation))
    nodes, factors = _FEW_NODES if _FINE * step <= deviation else _MANY_NODES
    low, high = (math.floor((squared / 2 + side * _REACH * deviation) / step) for side in (-1, 1))
    starts = np.arange(low, high + 2)[:, None] * step
    within = ((np.arange(parts)[:, None] + (1 + nodes) / 2) * (step / parts)).reshape(1, -1)
    weights = np.tile(factors / 2 * (step / parts), parts)
    # e^(t / 2) times a density that is even in t; the exponent is -((t - squared / 2)^2) / (2 squared).
    centred = (starts + within - squared / 2) / deviation
    masses = np.exp(-(centred**2) / 2) * weights / (deviation * math.sqrt(2 * math.pi))
    scale = -math.expm1(-step)
    up = (masses * -np.expm1(-within)).sum(axis=1) / scale
    down = (masses * np.exp(-within) * -np.expm1(within - step)).sum(axis=1) / scale
    law = np.zeros(up.size + 1)
    law[:-1] += down
    law[1:] += up
    return GridLaw(first=low, masses=law, error=16 * _REACH**2, shift=16 * (squared + (_REACH + 1) * deviation + step))


@final
@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussianLoss:
    """Discrete Gaussian noise on one integer that moves by at most ``shift``; several integers: `ConcentratedLoss`.

    Source
    ------
    Canonne, Kamath and Steinke (2020); docs/proofs/privacy-loss.md.

    """

    sigma: Fraction
    shift: int
    neighbouring: Neighbouring
    unit: str

    def __init__(
        self,
        *,
        sigma: Number,
        shift: int = 1,
        neighbouring: Neighbouring = Neighbouring.REPLACE_ONE,
        unit: str = "record",
    ) -> None:
        deviation = _check.exact("sigma", sigma)
        moved = _check.integer("shift", shift, least=1)
        if not deviation > 0 or not 2 * _REACH * (deviation + moved) < _MOST_ATOMS or moved > 100 * deviation:
            raise InvalidParameter("sigma must be above 0 and below 50000, and shift / sigma at most 100.")
        _check.store(
            self, sigma=deviation, shift=moved, neighbouring=PureDP(1, neighbouring, unit).neighbouring, unit=unit
        )

    @property
    def guarantee(self) -> None:
        """None: it is a curve."""
        return

    def moments(self, orders: Floats) -> Floats:
        """At most those of Gaussian noise, ``order (order + 1) (shift / sigma)^2 / 2``."""
        return np.asarray(orders * (1 + orders) * above((self.shift / self.sigma) ** 2) / 2)

    def on_grid(self, step: float) -> GridLaw:
        """Loss ``(shift^2 - 2 shift x) / (2 sigma^2)`` with mass proportional to ``exp(-x^2 / (2 sigma^2))``."""
        reach = math.ceil(_REACH * self.sigma) + 1
        x = np.arange(-reach, reach + 1, dtype=np.float64)
        precision = float(1 / (2 * self.sigma**2))
        masses = np.exp(-(x**2) * precision)
        losses = (self.shift**2 - 2 * self.shift * x) * precision
        error = 8 * _REACH**2 + x.size
        return share_out(losses, masses / masses.sum(), step=step, error=error)


@final
@dataclass(frozen=True, slots=True, init=False)
class ConcentratedLoss:
    """Zero-concentrated privacy: discrete Gaussian noise on any number of integers.

    For integers that move by an L2 distance of S, all together, ``rho = S^2 / (2 sigma^2)``, however many of them move:
    `accord.mechanisms.DiscreteGaussian.zcdp`. Its moments are bounded and nothing else is known of it, so totals with
    it come from moments.

    Parameters
    ----------
    rho
        From 0 to 5000, exact.

    Source
    ------
    Canonne, Kamath and Steinke (2020), Theorem 4; docs/proofs/privacy-loss.md.

    """

    rho: Fraction
    neighbouring: Neighbouring
    unit: str

    def __init__(
        self,
        rho: Number,
        neighbouring: Neighbouring = Neighbouring.REPLACE_ONE,
        unit: str = "record",
    ) -> None:
        value = _check.exact("rho", rho)
        if not 0 <= value <= _MOST_RHO:
            raise InvalidParameter(f"rho must be from 0 to {_MOST_RHO}.")
        _check.store(self, rho=value, neighbouring=PureDP(1, neighbouring, unit).neighbouring, unit=unit)

    @property
    def guarantee(self) -> PureDP | None:
        """None: it is a curve; with ``rho = 0`` nothing is lost."""
        return None if self.rho else PureDP(0, self.neighbouring, self.unit)

    def moments(self, orders: Floats) -> Floats:
        """``order (order + 1) rho``: the Renyi divergence of order a is at most ``a rho``."""
        return np.asarray(orders * (1 + orders) * above(self.rho))

    def on_grid(self, step: float) -> GridLaw:
        """Return the law of no loss for ``rho = 0``; otherwise there is none to return."""
        if self.rho:
            raise InvalidParameter("a ConcentratedLoss is known by its moments alone: it has no law on a grid.")
        return share_out(np.zeros(1), np.ones(1), step=step, error=0)
