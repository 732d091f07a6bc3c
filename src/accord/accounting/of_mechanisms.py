"""From a mechanism to the law of its privacy loss."""

import math
from functools import singledispatch
from typing import Any

from accord.accounting.losses import ExponentialLoss, GuaranteeLoss, LaplaceLoss, PrivacyLoss
from accord.accounting.noise_losses import ConcentratedLoss, DiscreteGaussianLoss, DiscreteLaplaceLoss
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.guarantee import ApproxDP, PureDP
from accord.noise.discrete_gaussian import DiscreteGaussian
from accord.noise.discrete_laplace import DiscreteLaplace
from accord.noise.exponential import Exponential
from accord.noise.laplace import Laplace

__all__ = ["loss_of"]

_FINE = 1 << 80  # the square of the least number of grid steps in a Laplace mechanism's sensitivity


def loss_of(mechanism: Any, *, dimension: int | None = None) -> PrivacyLoss:  # noqa: ANN401
    """Return the worst-case loss of one release.

    Known mechanisms have a sharper loss than their guarantee; of any other the guarantee is taken.

    Parameters
    ----------
    mechanism
        A mechanism or a guarantee.
    dimension
        How many numbers one release holds, if that is certain; None stands for any number. Only discrete Gaussian noise
        has a loss that depends on it: one integer that moves by S is told apart less well than several that move by S
        together. The others' losses hold whatever the number.

    Raises
    ------
    InvalidParameter
        If it has no guarantee, or ``dimension`` is no number from 1 on.

    Examples
    --------
    >>> from accord.mechanisms import DiscreteLaplace, StableMode
    >>> loss_of(DiscreteLaplace(sensitivity=1, scale=20)).epsilon
    Fraction(1, 20)
    >>> loss_of(StableMode(epsilon=1, delta="1e-6")).guarantee.unit
    'voter'
    >>> histogram = DiscreteGaussian(sensitivity="1.4143", sigma=20)
    >>> loss_of(histogram), loss_of(DiscreteGaussian(sensitivity=1, sigma=20), dimension=1).shift
    (ConcentratedLoss(rho=Fraction(200024449, 80000000000), neighbouring=Neighbouring.REPLACE_ONE, unit='record'), 1)

    """
    cells = None if dimension is None else _check.integer("dimension", dimension, least=1)
    if isinstance(mechanism, DiscreteGaussian):
        return _of_discrete_gaussian(mechanism, dimension=cells)
    return _loss_of(mechanism)


@singledispatch
def _loss_of(mechanism: Any) -> PrivacyLoss:  # noqa: ANN401
    stated = getattr(mechanism, "guarantee", None)
    if isinstance(stated, PureDP | ApproxDP):
        return GuaranteeLoss(stated)
    raise InvalidParameter("mechanism must be a mechanism with a guarantee, or a PrivacyLoss.")


@_loss_of.register(PureDP)
@_loss_of.register(ApproxDP)
def _of_guarantee(guarantee: PureDP | ApproxDP) -> PrivacyLoss:
    return GuaranteeLoss(guarantee)


@_loss_of.register
def _of_laplace(mechanism: Laplace) -> PrivacyLoss:
    """Discrete Laplace noise on a grid of at least 2^40 steps a sensitivity: Laplace noise with a hair more epsilon."""
    epsilon = mechanism.epsilon if mechanism.scale else mechanism.scale
    return LaplaceLoss(epsilon + epsilon**2 / (4 * _FINE), mechanism.sensitivity.neighbouring)


@_loss_of.register
def _of_discrete_laplace(mechanism: DiscreteLaplace) -> PrivacyLoss:
    """Integers move by whole steps: a sensitivity of 1.5 is 1."""
    steps = math.floor(mechanism.sensitivity.bound)
    if steps == 0:
        return LaplaceLoss(0, mechanism.sensitivity.neighbouring)
    return DiscreteLaplaceLoss(steps / mechanism.scale, steps, mechanism.sensitivity.neighbouring)


@_loss_of.register
def _of_exponential(mechanism: Exponential) -> PrivacyLoss:
    """The losses of two candidates differ by at most epsilon, roundings included: docs/proofs/privacy-loss.md."""
    return ExponentialLoss(mechanism.epsilon, mechanism.sensitivity.neighbouring)


def _of_discrete_gaussian(mechanism: DiscreteGaussian, *, dimension: int | None) -> PrivacyLoss:
    """Return its exact law for one integer, up to a sigma of about 50000; otherwise what zCDP says of any number."""
    neighbouring = mechanism.sensitivity.neighbouring
    shift = math.floor(mechanism.sensitivity.bound)
    if shift == 0:  # vectors of integers closer than 1 are equal
        return ConcentratedLoss(0, neighbouring)
    if dimension == 1:
        return DiscreteGaussianLoss(sigma=mechanism.sigma, shift=shift, neighbouring=neighbouring)
    return ConcentratedLoss(mechanism.zcdp, neighbouring)
