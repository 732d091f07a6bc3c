"""The (epsilon, delta) curve of discrete Gaussian noise: certified upper bounds."""

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from accord.core.errors import InvalidParameter
from accord.core.exact import exp_lower, exp_upper
from accord.randomness._table import Bounds, exp_bounds, times

__all__ = ["LARGEST_VARIANCE", "curve", "least_epsilon", "shift_delta", "tail_upper", "zcdp_delta"]

LARGEST_VARIANCE = 1 << 20
"""Up to this variance sums are computed term by term."""

_BITS = 320
_FAR = Fraction(1000)
_SLACK = Fraction(1, 10**30)
_LARGEST_EPSILON = 1024
_HALVINGS = 30


@lru_cache(maxsize=8)
def _tails(variance: Fraction) -> tuple[Bounds, ...]:
    """Return bounds of ``2^320 * (w_n + w_(n+1) + ...)`` for n = 0, 1, .., w_n = exp(-n^2 / (2 variance)).

    The last entry holds the geometric series that is above everything left.
    """
    most = math.isqrt(int(450 * variance)) + 1  # w_most < 2^-320
    weight: Bounds = (1 << _BITS, 1 << _BITS)
    ratio, step = exp_bounds(1 / (2 * variance), _BITS), exp_bounds(1 / variance, _BITS)
    weights = []
    for _ in range(most):
        weights.append(weight)
        weight, ratio = times(weight, ratio, _BITS), times(ratio, step, _BITS)
    decay = exp_bounds(most / variance, _BITS)[1]
    low, high = 0, -((-weight[1] << _BITS) // ((1 << _BITS) - decay))
    tails = [(low, high)]
    for lower, upper in reversed(weights):
        low, high = low + lower, high + upper
        tails.append((low, high))
    return tuple(reversed(tails))


def _total(variance: Fraction) -> Bounds:
    low, high = _tails(variance)[1]
    return 2 * low + (1 << _BITS), 2 * high + (1 << _BITS)


def _tail(variance: Fraction, least: int) -> Bounds:
    """Return bounds of the weight of all z >= least; ``least`` may be negative."""
    tails = _tails(variance)
    if least >= len(tails):
        return 0, tails[-1][1]
    if least >= 0:
        return tails[least]
    (low, high), (other_low, other_high) = _total(variance), _tail(variance, 1 - least)
    return low - other_high, high - other_low


def tail_upper(least: int, *, variance: Fraction, dimension: int) -> Fraction:
    """Return an upper bound of P[some |Z_i| >= least] for ``dimension`` variables.

    Beyond `LARGEST_VARIANCE` it is the sub-Gaussian bound ``2 exp(-least^2 / (2 variance))``.
    """
    if least <= 0:
        return Fraction(1)
    if variance > LARGEST_VARIANCE:
        one = 2 * exp_upper(-min(Fraction(least**2) / (2 * variance), _FAR))
    else:
        one = Fraction(2 * _tail(variance, least)[1], _total(variance)[0])
    return min(Fraction(1), dimension * one)


def shift_delta(epsilon: Fraction, *, variance: Fraction, shift: int) -> Fraction:
    """Return the smallest delta between Z and Z + shift, shift >= 1, rounded up.

    By less than 2^-150 for epsilon up to 90.

    The privacy loss is monotone, so the worst event is a half line: delta = P[Z >= n - shift] - exp(epsilon) P[Z >= n]
    with n the first integer above ``variance * epsilon / shift + shift / 2``.
    """
    first = math.floor(variance * epsilon / shift + Fraction(shift, 2)) + 1
    gain = _tail(variance, first - shift)[1]
    loss = _tail(variance, first)[0]
    difference = gain - exp_lower(min(epsilon, _FAR)) * loss
    return min(Fraction(1), max(Fraction(0), difference) / _total(variance)[0])


def zcdp_delta(epsilon: Fraction, *, rho: Fraction) -> Fraction:
    """Return a delta that rho-zCDP implies at epsilon.

    It is ``exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1/a)^a`` for an order a > 1 that is nearly the best.
    """
    if rho > _FAR**2:
        return Fraction(1)
    epsilon = min(epsilon, _FAR**3)  # a smaller epsilon has a larger delta
    order = _order(float(epsilon), float(rho))
    context = decimal.Context(prec=60)
    log_order, log_less = (
        context.ln(Decimal(x.numerator)) - context.ln(Decimal(x.denominator)) for x in (order, order - 1)
    )
    power = (order - 1) * (order * rho - epsilon)
    rest = order * (Fraction(log_less) - Fraction(log_order)) - Fraction(log_less)
    slack = _SLACK * (1 + order) * (1 + abs(Fraction(log_less)))
    exponent = power + rest + slack
    return Fraction(1) if exponent >= 0 else exp_upper(max(exponent, -_FAR))


def _order(epsilon: float, rho: float) -> Fraction:
    """Return a nearly best order, in floats: every order above 1 gives a valid bound."""

    def log_delta(log_less: float) -> float:
        less = math.exp(log_less)
        return less * ((1 + less) * rho - epsilon) - (1 + less) * math.log1p(1 / less) - log_less

    low, high = -12.0, 30.0
    for _ in range(80):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if log_delta(left) < log_delta(right) else (left, high)
    return 1 + Fraction(math.exp(low)).limit_denominator(10**6)


def curve(epsilon: Fraction, *, bound: Fraction, variance: Fraction, single: bool) -> Fraction:
    """Return a delta at epsilon for integers at L2 distance ``bound``: the smallest one for a single integer.

    Beyond `LARGEST_VARIANCE`, and for several integers, it is what zero-concentrated DP implies.
    """
    shift = math.floor(bound)
    if shift == 0:  # integers closer than 1 are equal
        return Fraction(0)
    if single and variance <= LARGEST_VARIANCE:
        return shift_delta(epsilon, variance=variance, shift=shift)
    return zcdp_delta(epsilon, rho=bound**2 / (2 * variance))


@lru_cache(maxsize=64)
def least_epsilon(delta: Fraction, *, bound: Fraction, variance: Fraction, single: bool) -> Fraction:
    """Return an epsilon with ``curve(epsilon) <= delta``, above the least one by less than a millionth of it.

    Raises
    ------
    InvalidParameter
        If it would be above 1024.

    """

    def enough(epsilon: Fraction) -> bool:
        return curve(epsilon, bound=bound, variance=variance, single=single) <= delta

    if enough(Fraction(0)):
        return Fraction(0)
    good = Fraction(1, 1 << 30)
    while not enough(good):
        good *= 2
        if good > _LARGEST_EPSILON:
            message = "sigma is too small for this delta: epsilon would be above 1024."
            raise InvalidParameter(message)
    short = good / 2
    for _ in range(_HALVINGS):
        middle = (short + good) / 2
        short, good = (short, middle) if enough(middle) else (middle, good)
    return good
