"""How many records bring the frequencies of all sets of a family close to their chances."""

import math

__all__ = ["records_for_deviation"]

_ROUND_UP = 1.0 + 1e-12
_MOST = 1 << 62


def records_for_deviation(
    deviation: float, failure: float, *, sets: int, ends: int | None = None, vc: int | None = None
) -> int:
    """Return an n from which on ``sup_A |frequency - chance|`` is at most ``deviation``, but for chance ``failure``.

    The least of three bounds, each for every law: Hoeffding's for each set; that of Dvoretzky, Kiefer, Wolfowitz and
    Massart, where each set is a union of intervals with at most ``ends`` ends in all; and one by symmetrisation and
    Sauer's lemma, where the family has a known dimension of Vapnik and Chervonenkis. Proof: docs/proofs/learners.md.
    """
    if sets == 0 or ends == 0:
        return 1
    unit = 2 * deviation**2
    found = [_up(math.log(2 * sets / failure) / unit)]
    if ends is not None:
        found.append(_up(ends**2 * math.log(2 / failure) / unit))
    if vc is not None:
        found.append(_by_dimension(deviation, failure, vc=vc))
    return min(found)


def _by_dimension(deviation: float, failure: float, *, vc: int) -> int:
    """Return the n from which on ``sqrt(2 log(2 S(n)) / n) + sqrt(log(1 / failure) / (2 n))`` is small enough.

    ``S(n) <= (e n / v)^v`` for n >= v, and then the bound falls with n.
    """

    def enough(count: int) -> bool:
        shatter = math.log(2) + vc * (1 + math.log(count / vc))
        spread = math.sqrt(2 * shatter) + math.sqrt(-math.log(failure) / 2)
        return spread * _ROUND_UP <= deviation * math.sqrt(count)

    low = high = max(vc, 1)
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _up(value: float) -> int:
    return max(1, math.ceil(value * _ROUND_UP))
