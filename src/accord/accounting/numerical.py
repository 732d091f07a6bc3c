"""The least epsilon of a composed law of the privacy loss, as an upper bound."""

import math
from collections.abc import Mapping
from fractions import Fraction

from accord.accounting._tilted import compose, tilt
from accord.accounting.losses import PrivacyLoss
from accord.accounting.noise_losses import DiscreteGaussianLoss, GaussianLoss
from accord.privacy._loss_sums import ROUNDING, least_loss

__all__ = ["numerical_epsilon"]

_WORK = 1 << 24
_MOST_CELLS = 1 << 17
_MOST_GAUSSIAN_CELLS = 1 << 15
_FEWEST_CELLS = 1 << 12
_WIDTH = 20.0  # deviations that the cells are made to cover


def numerical_epsilon(losses: Mapping[PrivacyLoss, int], *, left: float, order: float, guess: float) -> float:
    """Return an epsilon at which the pure parts of these losses spend at most ``left``; infinity if none was found.

    Parameters
    ----------
    losses
        Losses and their numbers.
    left
        The delta that may be spent, beyond what the losses give away for certain.
    order
        The tilt. Every positive one gives a valid bound; that of the moment bound a nearly exact one.
    guess
        About the answer; only decides how fine the grid is.

    """
    parts = sorted(_merged(losses).items(), key=lambda part: repr(part[0]))
    step = _step(parts, guess=guess)
    order = max(order, 1e-6)
    tilted = [tilt(loss.on_grid(step), count=count, step=step, order=order) for loss, count in parts]
    law = compose(tilted, step=step, order=order, lowest=guess / 2)
    found = least_loss(left, losses=law.losses, masses=law.masses, excess=law.excess, added=law.added)
    found = max(found, float(law.losses[0]))  # below the window masses are missing: nothing is known there
    return found + law.shift + 4 * ROUNDING * max(abs(float(law.losses[-1])), found) if found > 0 else 0.0


def _merged(losses: Mapping[PrivacyLoss, int]) -> dict[PrivacyLoss, int]:
    """Return the same losses with all Gaussians as one: the squares add up."""
    others: dict[PrivacyLoss, int] = {}
    squared, gaussian = Fraction(0), None
    for loss, count in losses.items():
        if isinstance(loss, GaussianLoss):
            squared, gaussian = squared + count * loss.squared, loss
        else:
            others[loss] = others.get(loss, 0) + count
    if gaussian is not None and squared > 0:
        others[gaussian.with_square(squared)] = 1
    return others


def _size(loss: PrivacyLoss) -> float:
    """Return about the largest loss, or the deviation of a Gaussian."""
    if isinstance(loss, GaussianLoss):
        return math.sqrt(loss.squared)
    if isinstance(loss, DiscreteGaussianLoss):
        return float(loss.shift / loss.sigma)
    return float(loss.guarantee.epsilon) if loss.guarantee is not None else 1.0


def _step(parts: list[tuple[PrivacyLoss, int]], *, guess: float) -> float:
    """Return the step: as fine as the work allows, and a fraction of the largest part's epsilon if that is pure."""
    most = _MOST_GAUSSIAN_CELLS if any(isinstance(loss, GaussianLoss) for loss, _ in parts) else _MOST_CELLS
    cells = min(most, max(_FEWEST_CELLS, _WORK // len(parts)))
    deviation = math.sqrt(math.fsum(count * _size(loss) ** 2 for loss, count in parts))
    range_ = 2 * math.fsum(count * _size(loss) for loss, count in parts) + guess
    step = max(min(_WIDTH * deviation, range_), 1e-12) / cells
    heaviest = max(parts, key=lambda part: part[1] * _size(part[0]) ** 2)[0]
    if heaviest.guarantee is None or heaviest.guarantee.epsilon == 0:
        return step
    epsilon = float(heaviest.guarantee.epsilon)
    return epsilon / max(1, round(epsilon / step))
