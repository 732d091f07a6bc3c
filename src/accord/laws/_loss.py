"""The number e^epsilon, between rational bounds that can be made as narrow as a verdict needs."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number, exp_lower, exp_upper

__all__ = ["Loss", "loss"]

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
