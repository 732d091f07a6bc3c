"""The numbers behind the distance rule: a rational noise law and the least safe threshold."""

from fractions import Fraction
from functools import lru_cache

from accord._exact import exp_upper

__all__ = ["half_gap", "noise_ratio", "safe_threshold", "tail"]

_RATIO_BITS = 64


@lru_cache(maxsize=64)
def noise_ratio(epsilon: Fraction) -> Fraction:
    """Return a ratio q of at most 64 binary places with exp(-epsilon) <= q: the noise is z with chance ~ q^|z|."""
    return Fraction(-int(-exp_upper(-epsilon) * 2**_RATIO_BITS // 1), 2**_RATIO_BITS)


def tail(ratio: Fraction, least: int) -> Fraction:
    """Return P[noise >= least], exactly."""
    if least <= 0:
        return 1 - tail(ratio, 1 - least)
    return ratio**least / (1 + ratio)


@lru_cache(maxsize=64)
def safe_threshold(epsilon: Fraction, delta: Fraction) -> int:
    """Return the least t for which a half gap of 1 passes with probability at most delta."""
    ratio = noise_ratio(epsilon)
    unsafe, safe = 0, 1
    while tail(ratio, safe) > delta:
        unsafe, safe = safe, 2 * safe
    while safe - unsafe > 1:
        middle = (safe + unsafe) // 2
        unsafe, safe = (unsafe, middle) if tail(ratio, middle) <= delta else (middle, safe)
    return 1 + safe


def half_gap(first: int, second: int) -> int:
    """Return how many votes must move before the second value can draw level: ``ceil((first - second) / 2)``."""
    return (first - second + 1) // 2
