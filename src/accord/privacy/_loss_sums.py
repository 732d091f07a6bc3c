"""From a law of the privacy loss, in floats with a known error, to an epsilon that is not too small."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROUNDING", "delta_above", "least_loss"]

ROUNDING = 2.0**-53
_HALVINGS = 60

Floats = NDArray[np.float64]


def delta_above(epsilon: float, *, losses: Floats, masses: Floats, excess: float, added: float) -> float:
    """Return ``excess * sum masses (1 - exp(epsilon - losses))_+ + added``, for losses in rising order.

    All terms are positive, so that the float sum has a small relative error, which ``excess`` must cover together with
    that of the masses: ``len(losses) + 16`` units of `ROUNDING` are enough for the sum, the product and ``expm1``.
    """
    first = int(np.searchsorted(losses, epsilon, side="right"))
    terms = -np.expm1(epsilon - losses[first:]) * masses[first:]
    return float(terms.sum()) * excess + added


def least_loss(allowed: float, *, losses: Floats, masses: Floats, excess: float, added: float) -> float:
    """Return a nearly least epsilon of at least 0 with `delta_above` at most ``allowed``; infinity if there is none."""

    def enough(epsilon: float) -> bool:
        return delta_above(epsilon, losses=losses, masses=masses, excess=excess, added=added) <= allowed

    short, good = 0.0, max(0.0, float(losses[-1]))
    if enough(short):
        return 0.0
    if not enough(good):
        return math.inf
    for _ in range(_HALVINGS):
        middle = (short + good) / 2
        if not short < middle < good:
            break
        short, good = (short, middle) if enough(middle) else (middle, good)
    return good
