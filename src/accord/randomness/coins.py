"""Exact coins: every comparison is between integers; no float decides anything.

A real number is compared with a uniform one bit block by bit block, reading further blocks only on a tie.
"""

from fractions import Fraction

from accord.errors import InvalidParameter
from accord.randomness.private import PrivateRandomness

__all__ = ["bernoulli", "geometric", "two_sided_geometric", "uniform_below"]

_BLOCK = 64


def uniform_below(bound: int, *, randomness: PrivateRandomness) -> int:
    """Return a uniform integer from 0 to ``bound - 1``, exactly.

    A draw of ``bit_length(bound - 1)`` bits is rejected until it falls below ``bound``: fewer than two tries on
    average.

    Raises
    ------
    InvalidParameter
        If ``bound`` is below 1.

    """
    if bound < 1:
        message = "bound must be at least 1."
        raise InvalidParameter(message)
    width = (bound - 1).bit_length()
    while True:
        draw = randomness.bits(width)
        if draw < bound:
            return draw


def bernoulli(probability: Fraction, *, randomness: PrivateRandomness) -> bool:
    """Return True with exactly this rational probability.

    A uniform real U is read 64 bits at a time and compared with the binary expansion of ``probability``; on a tie the
    next 64 bits are read, so the answer is that of the exact comparison ``U < probability``.

    Raises
    ------
    InvalidParameter
        If ``probability`` is outside [0, 1].

    """
    if not 0 <= probability <= 1:
        message = "probability must be from 0 to 1."
        raise InvalidParameter(message)
    rest, denominator = probability.numerator, probability.denominator
    while True:
        digit, rest = divmod(rest << _BLOCK, denominator)
        draw = randomness.bits(_BLOCK)
        if draw != digit:
            return draw < digit
        if rest == 0:
            return False


def geometric(ratio: Fraction, *, randomness: PrivateRandomness) -> int:
    """Return z >= 0 with probability exactly ``(1 - ratio) ratio^z``.

    One coin a step, so about ``ratio / (1 - ratio)`` coins: meant for ratios such as exp(-epsilon) at usual epsilons.

    Raises
    ------
    InvalidParameter
        If ``ratio`` is outside [0, 1).

    """
    if not 0 <= ratio < 1:
        message = "ratio must be at least 0 and below 1."
        raise InvalidParameter(message)
    count = 0
    while bernoulli(ratio, randomness=randomness):
        count += 1
    return count


def two_sided_geometric(ratio: Fraction, *, randomness: PrivateRandomness) -> int:
    """Return an integer z with probability exactly ``(1 - ratio) / (1 + ratio) * ratio^|z|``."""
    while True:
        size = geometric(ratio, randomness=randomness)
        negative = randomness.bits(1) == 1
        if size > 0 or not negative:
            return -size if negative else size
