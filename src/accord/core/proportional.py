"""The curve of proportional selection: a value is released with nearly its share of the votes, and checked exactly.

Chances are integers over 2^128, rounded down. ``exp(epsilon)`` is replaced by a dyadic rational below it. No float
occurs.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

from accord.core import check as _check
from accord.core.curve import CHANCE_BITS, RATIO_BITS, UnsafeCurve, scaled
from accord.core.errors import InvalidParameter
from accord.core.exact import Number

__all__ = ["proportional_curve", "verify_proportional"]

_ONE = 1 << CHANCE_BITS
_UNIT = 1 << RATIO_BITS


def proportional_curve(epsilon: Number, delta: Number, *, votes: int) -> tuple[int, ...]:
    """Return the chances ``c(0) .. c(k)``, over 2^128, that a value with n of k votes is released.

    With ``a`` for exp(epsilon) rounded down: ``c(0) = 0`` and ``c(n) = min(a c(n-1) + delta, n / (k + s))``. The spare
    votes s are the least number for which the curve passes the check.

    Formal guarantees
    -----------------
    - Privacy: every curve returned has passed `verify_proportional`.
    - Law: what is released has, but for the share that no answer takes, the law of a random voter's vote: in total
      variation within ``s / (k + s)`` plus what the values on the ramp fall short of the line together.
    - Not promised: an answer for values of few votes; the ramp begins at delta.

    Parameters
    ----------
    epsilon, delta
        The guarantee.
    votes
        The number k of voters, at least 1.

    Raises
    ------
    InvalidParameter
        If no curve with at most 2^20 spare votes is private: epsilon is too small.

    Source
    ------
    Theory S13, docs/proofs/proportional.md.

    Examples
    --------
    >>> proportional_curve(1, "1e-6", votes=100)[100] / 2**128 == 100 / 102  # two spare votes
    True

    """
    return _least_curve(_check.epsilon(epsilon), _check.delta(delta), _check.integer("votes", votes, least=1))[1]


_MOST_SPARE = 1 << 20


@lru_cache(maxsize=64)
def _least_curve(epsilon: Fraction, delta: Fraction, votes: int) -> tuple[int, tuple[int, ...]]:
    ratio, slack = scaled(epsilon, delta)

    def passes(spare: int) -> bool:
        return _fault(_curve(votes, spare, ratio=ratio, slack=slack), spare, ratio=ratio, slack=slack) is None

    spare = 1
    while not passes(spare):
        spare += max(1, spare // 16)
        if spare > _MOST_SPARE:
            raise InvalidParameter("epsilon is too small for proportional selection: use rule='exclusive'.")
    while spare > 1 and passes(spare - 1):
        spare -= 1
    curve = _curve(votes, spare, ratio=ratio, slack=slack)
    verify_proportional(curve, spare, epsilon=epsilon, delta=delta)
    return spare, curve


def _curve(votes: int, spare: int, *, ratio: int, slack: int) -> tuple[int, ...]:
    step, curve = slack >> RATIO_BITS, [0]
    for count in range(1, votes + 1):
        curve.append(min((ratio * curve[-1] >> RATIO_BITS) + step, count * _ONE // (votes + spare)))
    return tuple(curve)


def verify_proportional(curve: Sequence[int], spare: int, *, epsilon: Number, delta: Number) -> None:
    """Refuse a curve that is not private, by exact arithmetic over every move of one vote.

    Formal guarantees
    -----------------
    - If this returns, then releasing each value with chance ``curve[count] / 2^128``, at most one of them, is
      (epsilon, delta)-DP for one vote replaced by any vote or abstention, among ``len(curve) - 1`` voters.

    Parameters
    ----------
    curve
        Integers over 2^128; entry n is the chance of a value with n votes.
    spare
        s: no chance is above ``n / (k + s)``.
    epsilon, delta
        The guarantee to be shown.

    Raises
    ------
    UnsafeCurve
        If any move breaks the guarantee, a chance is above the line, or the curve falls.

    Source
    ------
    Theory S13; docs/proofs/proportional.md derives the inequality and why its two counts part.

    """
    ratio, slack = scaled(_check.epsilon(epsilon), _check.delta(delta))
    fault = _fault(curve, spare, ratio=ratio, slack=slack)
    if fault is not None:
        message = f"the curve is not private: {fault}."
        raise UnsafeCurve(message)


def _fault(curve: Sequence[int], spare: int, *, ratio: int, slack: int) -> str | None:
    """Return what is wrong with a curve, or None. Everything is scaled by 2^256 (k + s)."""
    if len(curve) < 2 or curve[0] != 0 or any(after < before for before, after in pairwise(curve)):
        return "it must start at 0, have one entry more than there are votes, and never fall"
    votes = len(curve) - 1
    whole = votes + spare
    short = [count * _ONE - whole * chance for count, chance in enumerate(curve)]
    if spare < 1 or min(short) < 0:
        return "a chance is above the share of the votes"
    grows = [after - before for before, after in pairwise(curve)]
    # What one vote more for a value takes from no answer, at most: the largest over values of up to so many votes.
    takes = (whole * _UNIT * grow - (ratio - _UNIT) * left for grow, left in zip(grows, short[1:], strict=True))
    taken = list(accumulate(takes, max))
    if taken[-1] - (ratio - _UNIT) * spare * _ONE > whole * slack:
        return "an abstention that becomes a vote takes too much from no answer"
    for count in range(1, votes + 1):
        gain = max(0, (curve[count] << RATIO_BITS) - ratio * curve[count - 1])
        given = whole * _UNIT * grows[count - 1] + (ratio - _UNIT) * (spare * _ONE + short[count - 1])
        if whole * gain + max(0, taken[votes - count] - given) > whole * slack:
            return "a vote that moves changes too much"
    return None
