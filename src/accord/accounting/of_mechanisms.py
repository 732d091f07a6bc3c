"""From a mechanism to the law of its privacy loss."""

import math
from functools import singledispatch
from typing import Any

from accord._exact import Number
from accord.accounting.losses import ExponentialLoss, GuaranteeLoss, LaplaceLoss, PrivacyLoss
from accord.accounting.noise_losses import DiscreteGaussianLoss, DiscreteLaplaceLoss, GaussianLoss
from accord.errors import InvalidParameter
from accord.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential, Laplace
from accord.privacy import ApproxDP, PureDP

__all__ = ["loss_of"]

_FINE = 1 << 80  # the square of the least number of grid steps in a Laplace mechanism's sensitivity


@singledispatch
def loss_of(mechanism: Any) -> PrivacyLoss:  # noqa: ANN401
    """Return the worst-case loss of one release.

    Known mechanisms have a sharper loss than their guarantee; of any other the guarantee is taken.

    Raises
    ------
    InvalidParameter
        If it has no guarantee.

    Examples
    --------
    >>> from accord.mechanisms import DiscreteLaplace, StableMode
    >>> loss_of(DiscreteLaplace(sensitivity=1, scale=20)).epsilon
    Fraction(1, 20)
    >>> loss_of(StableMode(epsilon=1, delta="1e-6")).guarantee.unit
    'voter'

    """
    stated = getattr(mechanism, "guarantee", None)
    if isinstance(stated, PureDP | ApproxDP):
        return GuaranteeLoss(stated)
    raise InvalidParameter("mechanism must be a mechanism with a guarantee, or a PrivacyLoss.")


@loss_of.register(PureDP)
@loss_of.register(ApproxDP)
def _of_guarantee(guarantee: PureDP | ApproxDP) -> PrivacyLoss:
    return GuaranteeLoss(guarantee)


@loss_of.register
def _of_laplace(mechanism: Laplace) -> PrivacyLoss:
    """Discrete Laplace noise on a grid of at least 2^40 steps a sensitivity: Laplace noise with a hair more epsilon."""
    epsilon = mechanism.epsilon if mechanism.scale else mechanism.scale
    return LaplaceLoss(epsilon + epsilon**2 / (4 * _FINE), mechanism.sensitivity.neighbouring)


@loss_of.register
def _of_discrete_laplace(mechanism: DiscreteLaplace) -> PrivacyLoss:
    """Integers move by whole steps: a sensitivity of 1.5 is 1."""
    steps = math.floor(mechanism.sensitivity.bound)
    if steps == 0:
        return LaplaceLoss(0, mechanism.sensitivity.neighbouring)
    return DiscreteLaplaceLoss(steps / mechanism.scale, steps, mechanism.sensitivity.neighbouring)


@loss_of.register
def _of_exponential(mechanism: Exponential) -> PrivacyLoss:
    """The losses of two candidates differ by at most epsilon, roundings included: docs/proofs/privacy-loss.md."""
    return ExponentialLoss(mechanism.epsilon, mechanism.sensitivity.neighbouring)


def discrete_gaussian_loss(mechanism: DiscreteGaussian, *, dimension: Number = 1) -> PrivacyLoss:
    """Return the loss of a `DiscreteGaussian` on this many integers.

    One integer: its exact law, up to a sigma of about 50000. Several integers, or more noise, are refused: count them
    by ``mechanism.guarantee_at``.
    """
    shift = math.floor(mechanism.sensitivity.bound)
    if dimension != 1:
        raise InvalidParameter(
            "a loss is known for one integer; for several use mechanism.guarantee_at(delta, dimension=)."
        )
    if shift == 0:
        return GaussianLoss(sigma=1, sensitivity=0, neighbouring=mechanism.sensitivity.neighbouring)
    neighbouring = mechanism.sensitivity.neighbouring
    return DiscreteGaussianLoss(sigma=mechanism.sigma, shift=shift, neighbouring=neighbouring)


loss_of.register(DiscreteGaussian, discrete_gaussian_loss)
