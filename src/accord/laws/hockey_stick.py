"""How far two finite laws are from being epsilon-close: exactly, and in both directions if so named."""

import math
from fractions import Fraction
from itertools import compress

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.laws._loss import loss
from accord.laws._pairs import Pair, best_event, side_by_side
from accord.laws._rounding import log_above
from accord.laws.finite import FiniteLaw

__all__ = ["hockey_stick", "smallest_delta", "smallest_epsilon", "smallest_exp_epsilon"]


def hockey_stick(
    p: FiniteLaw, q: FiniteLaw, *, epsilon: Number | None = None, exp_epsilon: Number | None = None
) -> Fraction:
    """Largest ``P(E) - e^epsilon Q(E)`` over events E: one direction only.

    Formal guarantees
    -----------------
    - Exact for ``epsilon = 0`` and for ``exp_epsilon``, a rational in place of e^epsilon. Otherwise e^epsilon is
      irrational, and the result is an upper bound, at most 1e-50 too large.
    - Not promised: anything about ``Q(E) - e^epsilon P(E)``. Privacy needs both: `smallest_delta`.

    Parameters
    ----------
    p, q
        Laws; an outcome that one of them lacks has probability 0 there.
    epsilon
        From 0 to 1000.
    exp_epsilon
        In place of ``epsilon``: e^epsilon itself, at least 1.

    Returns
    -------
    Fraction
        From 0 to 1.

    Raises
    ------
    InvalidParameter
        If p or q is no `FiniteLaw`, or not exactly one of epsilon and exp_epsilon is given, in its range.

    Source
    ------
    theory M9; docs/proofs/laws.md.

    Examples
    --------
    >>> p, q = FiniteLaw({"a": 3, "b": 1}), FiniteLaw({"a": 1, "b": 3})
    >>> hockey_stick(p, q, exp_epsilon=2)
    Fraction(1, 4)

    """
    ratio = loss(epsilon, exp_epsilon).lower
    return best_event(side_by_side(p, q), ratio=ratio).excess(ratio)


def smallest_delta(
    p: FiniteLaw, q: FiniteLaw, *, epsilon: Number | None = None, exp_epsilon: Number | None = None
) -> Fraction:
    """Smallest delta for which p and q are (epsilon, delta)-close, in both directions.

    Formal guarantees
    -----------------
    - The larger of the two hockey-stick divergences, with the exactness of `hockey_stick`: exact for ``epsilon = 0``
      and for ``exp_epsilon``; otherwise an upper bound, at most 1e-50 too large.

    Parameters
    ----------
    p, q, epsilon, exp_epsilon
        As in `hockey_stick`.

    Raises
    ------
    InvalidParameter
        As in `hockey_stick`.

    Source
    ------
    theory M9; docs/proofs/laws.md.

    Examples
    --------
    >>> p, q = FiniteLaw({"a": 1, "b": 99}), FiniteLaw({"b": 1})
    >>> hockey_stick(q, p, exp_epsilon=2), smallest_delta(q, p, exp_epsilon=2)
    (Fraction(0, 1), Fraction(1, 100))

    """
    ratio = loss(epsilon, exp_epsilon).lower
    pair = side_by_side(p, q)
    return max(best_event(way, ratio=ratio).excess(ratio) for way in (pair, pair.swapped))


def smallest_epsilon(p: FiniteLaw, q: FiniteLaw, *, delta: Number) -> float:
    """Smallest epsilon for which p and q are (epsilon, delta)-close, in both directions, rounded up.

    Formal guarantees
    -----------------
    - An upper bound, within two units in the last place of the logarithm of `smallest_exp_epsilon`, which is exact;
      infinite if and only if no epsilon does.

    Parameters
    ----------
    p, q
        Laws; an outcome that one of them lacks has probability 0 there.
    delta
        From 0 to 1.

    Raises
    ------
    InvalidParameter
        If p or q is no `FiniteLaw`, or delta is not from 0 to 1.

    Source
    ------
    theory M9; docs/proofs/laws.md.

    Examples
    --------
    >>> p, q = FiniteLaw({"a": 3, "b": 1}), FiniteLaw({"a": 1, "b": 3})
    >>> smallest_epsilon(p, q, delta=0)
    1.0986122886681098
    >>> smallest_epsilon(p, q, delta="0.5")
    0.0

    """
    ratio = smallest_exp_epsilon(p, q, delta=delta)
    return math.inf if ratio is None else log_above(ratio)


def smallest_exp_epsilon(p: FiniteLaw, q: FiniteLaw, *, delta: Number) -> Fraction | None:
    """Smallest e^epsilon for which p and q are (epsilon, delta)-close, in both directions, exactly.

    Formal guarantees
    -----------------
    - Exact: with ``exp_epsilon`` equal to it, `smallest_delta` is at most delta; with any smaller one, it is more.
    - Cost: one sort of the likelihood ratios.

    Returns
    -------
    Fraction or None
        At least 1; None if no epsilon does, which is so when more than delta lies where the other law has nothing.

    Parameters
    ----------
    p, q, delta
        As in `smallest_epsilon`.

    Raises
    ------
    InvalidParameter
        As in `smallest_epsilon`.

    Source
    ------
    theory M9; docs/proofs/laws.md.

    Examples
    --------
    >>> smallest_exp_epsilon(FiniteLaw({"a": 3, "b": 1}), FiniteLaw({"a": 1, "b": 3}), delta="1/4")
    Fraction(2, 1)

    """
    slack = _check.exact("delta", delta)
    if not 0 <= slack <= 1:
        raise InvalidParameter("delta must be from 0 to 1.")
    pair = side_by_side(p, q)
    ways = [_smallest_ratio(way, slack) for way in (pair, pair.swapped)]
    known = [ratio for ratio in ways if ratio is not None]
    return max(known) if len(known) == len(ways) else None


def _smallest_ratio(pair: Pair, slack: Fraction) -> Fraction | None:
    """Return the least ``a >= 1`` with ``sum (p - a q)_+ <= slack``; None if there is none.

    Between two neighbouring likelihood ratios the sum is ``P(E) - a Q(E)`` for one event E, the outcomes of larger
    ratio. Walk down the ratios until the sum, which grows, exceeds the slack at the next one.
    """
    first_all, second_all = pair.first_total, pair.second_total
    nowhere = sum(compress(pair.first, [number == 0 for number in pair.second]))
    above, below = slack.numerator, slack.denominator
    if nowhere * below > above * first_all:
        return None
    first, second = nowhere, 0
    for number, other in _by_ratio(pair):
        # The sum at a = (number / first_all) / (other / second_all), times first_all and other, against the slack.
        if below * (first * other - number * second) > above * first_all * other:
            break
        first, second = first + number, second + other
    if second == 0:
        return Fraction(1)
    crossing = (Fraction(first, first_all) - slack) / Fraction(second, second_all)
    return max(crossing, Fraction(1))


def _by_ratio(pair: Pair) -> list[tuple[int, int]]:
    """Return the outcomes with ``p > q > 0`` by falling likelihood ratio, in whole numbers.

    Two different ratios differ by at least 1 / max(second)^2, so their floors after this shift differ in the same way.
    """
    shift = 2 * max(pair.second).bit_length()
    left, right = pair.second_total, pair.first_total
    pairs = zip(pair.first, pair.second, strict=True)
    atoms = [(number, other) for number, other in pairs if other and number * left > other * right]
    return sorted(atoms, key=lambda atom: (atom[0] << shift) // atom[1], reverse=True)
