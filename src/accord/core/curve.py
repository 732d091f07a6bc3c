"""The curve of exclusive selection, and the exact check that stands between it and every release.

Chances are integers over 2^128 (a finer form of the 2^64 of theory 8), rounded down. ``exp(epsilon)`` is replaced by a
dyadic rational below it. No float occurs.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from operator import add

from accord.core import check as _check
from accord.core.errors import AccordError
from accord.core.exact import Number, exp_lower, exp_upper

__all__ = [
    "CHANCE_BITS",
    "RATIO_BITS",
    "UnsafeCurve",
    "exclusive_curve",
    "most_taken",
    "offset_of",
    "scaled",
    "verify_curve",
    "yes_no_test",
]

CHANCE_BITS = 128
_ONE = 1 << CHANCE_BITS
RATIO_BITS = 128
_UNIT = 1 << RATIO_BITS


class UnsafeCurve(AccordError, ArithmeticError):
    """A curve failed the exact privacy check. Nothing was released."""


def exclusive_curve(epsilon: Number, delta: Number, *, votes: int) -> tuple[int, ...]:
    """Return the chances ``c(0) .. c(k)``, over 2^128, that a value with n of k votes is released.

    With ``a`` for exp(epsilon) rounded down and R(t) for `most_taken`: ``c(n) = 0`` up to an offset s, then
    ``c(n) = min(a c(n-1) + delta, room, room - (room - c(n-1) - delta) / a)``, the last two only for ``n > k / 2``,
    where ``room = 1 - R(k - n)``. The offset is the least that passes the check.

    Formal guarantees
    -----------------
    - Privacy: every curve returned has passed `verify_curve`.
    - Optimality: ``c(n)`` never exceeds `yes_no_test`, which bounds every rule.
    - Not promised: that the offset is the least one: it is found by bisection, and privacy does not need it.

    Parameters
    ----------
    epsilon, delta
        The guarantee.
    votes
        The number k of voters, at least 1.

    Returns
    -------
    tuple of int
        Length ``votes + 1``.

    Source
    ------
    Theory S8, docs/proofs/exclusive-curve.md.

    Examples
    --------
    >>> curve = exclusive_curve(1, "1e-6", votes=16)
    >>> curve[16] / 2**128 > 0.95
    True

    """
    votes = _check.integer("votes", votes, least=1)
    return _least_curve(_check.epsilon(epsilon), _check.delta(delta), votes)


@lru_cache(maxsize=64)
def _least_curve(epsilon: Fraction, delta: Fraction, votes: int) -> tuple[int, ...]:
    ratio, slack = scaled(epsilon, delta)

    def passes(offset: int) -> bool:
        return _fault(_curve(offset, votes=votes, ratio=ratio, slack=slack), ratio=ratio, slack=slack) is None

    good, step = (votes + 1) // 2, 1  # no two values can pass this offset: it is safe
    while good > 0 and passes(max(0, good - step)):
        good, step = max(0, good - step), 2 * step
    bad = max(-1, good - step)
    while good - bad > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if passes(middle) else (good, middle)
    curve = _curve(good, votes=votes, ratio=ratio, slack=slack)
    verify_curve(curve, epsilon=epsilon, delta=delta)
    return curve


def scaled(epsilon: Fraction, delta: Fraction) -> tuple[int, int]:
    """Return exp(epsilon) over 2^128 (at least 1) and delta over 2^256, both rounded down."""
    return max(_UNIT, int(exp_lower(epsilon) * _UNIT)), int(delta * _UNIT * _ONE)


def _curve(offset: int, *, votes: int, ratio: int, slack: int) -> tuple[int, ...]:
    """Return the largest curve that is zero up to ``offset``; only `_fault` says whether it is safe."""
    step = slack >> RATIO_BITS
    curve = [0] * (offset + 1)
    for _ in range(offset, votes // 2):
        curve.append(min(_ONE, (ratio * curve[-1] >> RATIO_BITS) + step))
    most = most_taken(curve)
    for count in range(len(curve), votes + 1):
        room = max(0, _ONE - most[votes - count])
        held = room + ((curve[-1] + step - room) * _UNIT) // ratio
        curve.append(min((ratio * curve[-1] >> RATIO_BITS) + step, room, held))
    return tuple(curve)


def offset_of(curve: Sequence[int]) -> int:
    """Return the largest count whose chance is still zero (0 if there is no such count above 0)."""
    return next((count for count, chance in enumerate(curve) if chance > 0), len(curve)) - 1


def most_taken(curve: Sequence[int]) -> list[int]:
    """Return R(t) for t = 0, 1, ..: the largest sum of chances over all ways to split t votes among values.

    The curve must not fall. Either one value holds all t votes, or some value with a chance holds at most half of them.
    """
    most = list(curve)
    least = offset_of(curve) + 1
    for total in range(2 * least, len(curve)):
        half = total // 2
        split = list(map(add, curve[least : half + 1], reversed(most[total - half : total - least + 1])))
        most[total] = max(most[total], *split)
    return most


def verify_curve(curve: Sequence[int], *, epsilon: Number, delta: Number) -> None:
    """Refuse a curve that is not private, by exact arithmetic over every move of one vote.

    Formal guarantees
    -----------------
    - If this returns, then releasing each value with chance ``curve[count] / 2^128``, at most one of them, is
      (epsilon, delta)-DP for one vote replaced by any vote or abstention, among at most ``len(curve) - 1`` voters.

    Parameters
    ----------
    curve
        Integers over 2^128; entry n is the chance of a value with n votes.
    epsilon, delta
        The guarantee to be shown.

    Raises
    ------
    UnsafeCurve
        If any move breaks the guarantee, chances can add up to more than 1, or the curve falls.

    Source
    ------
    Theory S8. docs/proofs/exclusive-curve.md shows that the inequalities below are those of S8, that moves to and from
    an abstention are among them, and that no pair left out could be worse than one that is looked at.

    """
    ratio, slack = scaled(_check.epsilon(epsilon), _check.delta(delta))
    fault = _fault(curve, ratio=ratio, slack=slack)
    if fault is not None:
        message = f"the curve is not private: {fault}."
        raise UnsafeCurve(message)


def _fault(curve: Sequence[int], *, ratio: int, slack: int) -> str | None:
    """Return what is wrong with a curve, or None. Everything is scaled by 2^256."""
    if len(curve) < 2 or curve[0] != 0 or any(after < before for before, after in pairwise(curve)):
        return "it must start at 0, have one entry more than there are votes, and never fall"
    gains = [(after << RATIO_BITS) - ratio * before for before, after in pairwise(curve)]
    if max(gains) > slack:
        return "one vote more adds too much"
    most = most_taken(curve)
    if most[-1] > _ONE:
        return "chances can add up to more than 1"
    votes = len(curve) - 1
    rest = [(ratio - _UNIT) * (taken - _ONE) for taken in most]
    slow = [max(0, -gain) for gain in gains]
    first = next((count for count, excess in enumerate(slow) if excess > 0), votes)
    for count in {1, *range(offset_of(curve) + 1, votes + 1)}:
        others = votes - count
        lost = ratio * curve[count] - (curve[count - 1] << RATIO_BITS)
        worst = max(
            map(add, slow[first : others + 1], reversed(rest[: max(0, others - first + 1)])), default=rest[others]
        )
        if lost + max(worst, rest[others]) > slack:
            return "one vote less leaves too much for no answer"
    return None


def yes_no_test(epsilon: Number, delta: Number) -> Iterator[Fraction]:
    """Yield pi_0, pi_1, ..: the most that any (epsilon, delta)-DP rule can release a value with n votes.

    Rounded up, with exp(epsilon) rounded up: bounds for planning and tests, not chances to release by.

    Source
    ------
    Theory S7, docs/proofs/exclusive-curve.md; Desfontaines, Voss, Gipson and Mandayam (2022).

    Examples
    --------
    >>> bounds = yes_no_test(1, "1e-6")
    >>> next(n for n, bound in enumerate(bounds) if bound >= Fraction(95, 100))
    16

    """
    ratio = -int(-exp_upper(_check.epsilon(epsilon)) * _UNIT // 1)
    step = -int(-_check.delta(delta) * _ONE // 1)
    bound = 0
    while True:
        yield Fraction(bound, _ONE)
        held = _ONE - ((_ONE - bound - step) * _UNIT) // ratio
        bound = min(-(-ratio * bound >> RATIO_BITS) + step, held, _ONE)
