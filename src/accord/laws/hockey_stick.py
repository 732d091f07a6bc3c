"""How far two finite laws are from being epsilon-close: exactly, and in both directions if so named."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from itertools import compress
from typing import final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number, exp_lower, exp_upper, to_fraction
from accord.laws.finite import FiniteLaw, Pair, best_event, side_by_side

__all__ = [
    "Loss",
    "float_above",
    "hockey_stick",
    "log_above",
    "loss",
    "root_above",
    "smallest_delta",
    "smallest_epsilon",
    "smallest_exp_epsilon",
]


_FIRST_DIGITS = 60
_MOST = 1000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Rational bounds ``lower <= e^epsilon <= upper``, both at least 1; equal when e^epsilon is known exactly."""

    epsilon: Fraction | None
    lower: Fraction
    upper: Fraction
    digits: int = _FIRST_DIGITS

    def refined(self) -> "Loss":
        """Return bounds with twice as many digits."""
        if self.epsilon is None:
            return self
        digits = 2 * self.digits
        lower, upper = _exponential(self.epsilon, digits=digits)
        return Loss(epsilon=self.epsilon, lower=max(lower, Fraction(1)), upper=upper, digits=digits)

    def narrowing(self) -> Iterator["Loss"]:
        """Yield these bounds, then narrower and narrower ones, for ever."""
        bounds = self
        while True:
            yield bounds
            bounds = bounds.refined()


def loss(epsilon: Number | None, exp_epsilon: Number | None) -> Loss:
    """Return the bounds for ``epsilon``, or the exact value ``exp_epsilon`` given in its place.

    Raises
    ------
    InvalidParameter
        Unless exactly one is given, ``0 <= epsilon <= 1000`` or ``exp_epsilon >= 1``.

    """
    if (epsilon is None) == (exp_epsilon is None):
        raise InvalidParameter("epsilon or exp_epsilon must be given, not both: exp_epsilon is e^epsilon, such as 3.")
    if exp_epsilon is not None:
        ratio = _check.exact("exp_epsilon", exp_epsilon)
        if ratio < 1:
            raise InvalidParameter("exp_epsilon must be at least 1: it is e^epsilon for an epsilon of at least 0.")
        return Loss(epsilon=None, lower=ratio, upper=ratio)
    value = _check.exact("epsilon", 0 if epsilon is None else epsilon)
    if not 0 <= value <= _MOST:
        raise InvalidParameter(f"epsilon must be from 0 to {_MOST}; for more, give exp_epsilon.")
    if value == 0:
        return Loss(epsilon=None, lower=Fraction(1), upper=Fraction(1))
    return Loss(epsilon=value, lower=max(exp_lower(value), Fraction(1)), upper=exp_upper(value))


def _exponential(x: Fraction, *, digits: int) -> tuple[Fraction, Fraction]:
    """Return rational bounds of exp(x); `Decimal.exp` is correctly rounded, so one step outward is a bound."""
    floor, nearest, ceiling = (
        Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
        for rounding in (ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_CEILING)
    )
    above, below = Decimal(x.numerator), Decimal(x.denominator)
    lower = nearest.exp(floor.divide(above, below)).next_minus(floor)
    upper = nearest.exp(ceiling.divide(above, below)).next_plus(ceiling)
    return Fraction(lower), Fraction(upper)


_DIGITS = 40
_BITS = 80


def float_above(value: Fraction) -> float:
    """Return the least float that is not below ``value`` (at least 0), nor is its shortest decimal.

    A float that is given back is read by its shortest decimal. Infinity beyond the largest one.
    """
    try:
        nearest = value.numerator / value.denominator  # correctly rounded for whole numbers
    except OverflowError:
        return math.inf
    while math.isfinite(nearest) and min(Fraction(nearest), to_fraction(nearest)) < value:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def root_above(value: Fraction) -> float:
    """Return a float not below the square root of ``value`` (at least 0), within three units in the last place."""
    if value == 0:
        return 0.0
    shift = max(0, _BITS + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    scaled = -(-(value.numerator << 2 * shift) // value.denominator)
    root = math.isqrt(scaled)
    return float_above(Fraction(root + (root * root < scaled), 1 << shift))


def log_above(value: Fraction) -> float:
    """Return a float not below the logarithm of ``value`` (at least 1), within three units in the last place."""
    if value == 1:
        return 0.0
    beyond = value - 1
    extra = max(0, beyond.denominator.bit_length() - beyond.numerator.bit_length()) // 3
    context = Context(prec=_DIGITS + extra, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return float_above(Fraction(context.ln(quotient).next_plus(context)))


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
