"""The least number that is enough."""

from collections.abc import Callable

from accord.errors import InvalidParameter

__all__ = ["least"]


def least(enough: Callable[[int], bool], *, start: int, most: int) -> int:
    """Return the least n >= ``start`` with ``enough(n)``, which must stay true once it is true.

    Raises
    ------
    InvalidParameter
        If it is above ``most``.

    """
    short, step, good = start - 1, 1, start
    while good <= most and not enough(good):
        short, step = good, 2 * step
        good = short + step if short == most else min(short + step, most)
    if good > most:
        message = f"failure cannot be reached with {most} votes: allow a larger epsilon, delta or failure."
        raise InvalidParameter(message)
    while good - short > 1:
        middle = (good + short) // 2
        short, good = (short, middle) if enough(middle) else (middle, good)
    return good
