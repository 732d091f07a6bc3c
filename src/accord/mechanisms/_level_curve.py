"""The largest chances with which a level may be shown, by its count: truncated geometric, rounded down."""

from fractions import Fraction
from functools import lru_cache

from accord.core.errors import InvalidParameter
from accord.core.exact import exp_lower

__all__ = ["CHANCE_BITS", "level_curve"]

CHANCE_BITS = 128
_ONE = 1 << CHANCE_BITS
_SMALLEST_EPSILON = Fraction(1, 10_000)


@lru_cache(maxsize=32)
def level_curve(epsilon: Fraction, delta: Fraction) -> tuple[int, ...]:
    """Return chances over 2^128 for counts 0, 1, .. up to the first certain one; beyond it all are certain.

    ``pi(0) = 0``, then ``pi(n) = min(a pi(n-1) + delta, 1 - (1 - pi(n-1) - delta) / a, 1)`` rounded down, where a is a
    lower bound of exp(epsilon). A count that moves by one is (epsilon, delta)-DP (docs/proofs/thresholded-counts.md).

    Examples
    --------
    >>> curve = level_curve(Fraction(1), Fraction(1, 10**6))
    >>> len(curve), curve[16] / 2**128 > 0.95
    (29, True)

    """
    if epsilon < _SMALLEST_EPSILON:
        raise InvalidParameter("epsilon must be at least 1/10000 for each count that moves.")
    ratio = max(_ONE, int(exp_lower(epsilon) * _ONE))
    step = int(delta * _ONE)
    curve = [0]
    while curve[-1] < _ONE:
        last = curve[-1]
        grown = (ratio * last >> CHANCE_BITS) + step
        held = _ONE - max(0, -((last + step - _ONE) * _ONE // ratio))
        curve.append(min(grown, held, _ONE))
    return tuple(curve)
