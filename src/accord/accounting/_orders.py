"""The bound from exponential moments: cheap, exact enough for a question after each charge, and certified."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["ORDERS", "epsilon_of_moments", "log_share"]

Floats = NDArray[np.float64]

ORDERS: Floats = np.exp(np.linspace(math.log(1e-3), math.log(1e6), 400))
"""The orders that are kept, from 0.001 to a million."""

_SLACK = 2.0**-40


def log_share(orders: Floats) -> Floats:
    """Return ``log(order^order / (order + 1)^(order + 1))``, the largest value of ``log((1 - e^-y) e^(-order y))``."""
    return np.asarray(-orders * np.log1p(1 / orders) - np.log1p(orders))


def epsilon_of_moments(moments: Floats, log_delta: float) -> tuple[float, float]:
    """Return an epsilon at which delta is at most ``exp(log_delta)``, and the order that gave it.

    ``delta <= exp(moment + log_share - order epsilon)`` for every order, so ``epsilon = (moment + log_share -
    log_delta) / order``. All terms are inflated by 2^-40 of their size, far more than their rounding errors.
    """
    share = log_share(ORDERS)
    size = np.abs(moments) + np.abs(share) + abs(log_delta) + 1
    bounds = (moments + share - log_delta + _SLACK * size) / ORDERS
    best = int(np.argmin(bounds))
    return max(0.0, float(bounds[best])), float(ORDERS[best])
