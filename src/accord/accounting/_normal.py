"""Normal tails at 60 digits and more, enclosed from both sides."""

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

__all__ = ["tail_bounds"]


def _context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


@lru_cache(maxsize=8)
def _root_of_two_pi(digits: int) -> Decimal:
    """Return sqrt(2 pi), correct to ``digits`` (pi by Machin's formula)."""
    scale = 10 ** (digits + 10)

    def arctan_inverse(n: int) -> int:
        term: int = scale // n
        total = term
        sign, k = -1, 3
        while term:
            term //= n * n
            total += sign * (term // k)
            sign, k = -sign, k + 2
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    context = _context(digits + 5, ROUND_FLOOR)
    return context.sqrt(context.divide(Decimal(2 * pi), Decimal(scale)))


def tail_bounds(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return ``(low, high)`` with ``low <= P[Z >= x] <= high``, Z standard normal, for |x| up to 200.

    ``P[Z <= x] - 1/2 = phi(x) (x + x^3 / 3 + x^5 / 15 + ..)``: positive terms, whose ratio ``x^2 / (2 k + 1)`` falls.
    The number of digits makes up for what the difference to 1/2 loses. 40 digits of the result are certain; it is
    widened by the 40th.
    """
    size = x.copy_abs()
    digits = 70 + int(0.22 * float(size) ** 2)
    context = _context(digits, ROUND_CEILING)
    square = context.multiply(x, x)
    term, total, k = size, Decimal(0), 1
    while term and term > context.scaleb(total, -digits):
        total = context.add(total, term)
        k += 2
        term = context.divide(context.multiply(term, square), Decimal(k))
    density = context.divide(context.exp(context.divide(square.copy_negate(), Decimal(2))), _root_of_two_pi(digits))
    half = context.multiply(density, total)
    tail = context.subtract(Decimal("0.5"), half) if x > 0 else context.add(Decimal("0.5"), half)
    slack = context.scaleb(tail.copy_abs(), -40)
    return context.subtract(tail, slack), context.add(tail, slack)
