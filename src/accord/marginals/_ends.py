"""Between which ends nearly all numbers lie, privately and without bounds."""

import math
from fractions import Fraction

import numpy as np

from accord.core.secret import PrivateRandomness
from accord.marginals._quantiles import Sorted, choose_point, dyadic_grid
from accord.mechanisms import AboveThreshold

__all__ = ["check_ends", "ends_around", "private_ends", "units_for_ends"]

_REACHES = 64
_LEAST_WIDTH, _FINEST = 2.0**-60, 2.0**-40
_RARE = 100
_LARGEST_SHARE = Fraction(1, 4)
_FURTHER = 2


def private_ends(numbers: Sorted, *, units: int, epsilon: Fraction, source: PrivateRandomness) -> tuple[float, float]:
    """Return ends between which nearly all numbers lie, epsilon-DP: quartiles on all scales, then outward from them.

    A quarter of epsilon for each quartile, by the exponential mechanism on a grid of all scales, the rest for
    `ends_around` them. Where nearly all numbers are equal, or closer together than a 4096th of their size, no point of
    the grid separates them and the quartiles are anywhere: locate such columns otherwise, or state bounds.

    Parameters
    ----------
    numbers
        What is cut.
    units
        Number of units of privacy, public; at least `units_for_ends` for ends that are any good.
    epsilon
        For all four.
    source
        Secret.

    """
    each = epsilon / 4
    grid = dyadic_grid()
    low, high = sorted(
        choose_point(numbers, grid, part=(-np.inf, np.inf), share=share, epsilon=each, source=source)
        for share in (Fraction(1, 4), Fraction(3, 4))
    )
    middle = low / 2 + high / 2
    width = max(high / 2 - low / 2, abs(middle) / 64)
    return ends_around(numbers, middle=middle, width=width, units=units, epsilon=2 * each, source=source)


def ends_around(
    numbers: Sorted, *, middle: float, width: float, units: int, epsilon: Fraction, source: PrivateRandomness
) -> tuple[float, float]:
    """Return ends beyond which few numbers are, found outward from a place that is public, epsilon-DP.

    Half of epsilon for each end, by the sparse vector technique, whose queries move by at most a unit's whole weight,
    however many records share it. Reaches grow by the square root of 2 until few numbers are beyond, so that an end is
    not far beyond the numbers: the search stops as soon as next to nothing is left.

    Parameters
    ----------
    numbers
        What is cut.
    middle, width
        About where the numbers are and how far they spread.
    units
        Number of units of privacy, public.
    epsilon
        For both ends.
    source
        Secret.

    """
    each = epsilon / 2
    reaches = max(width, abs(middle) * _FINEST, _LEAST_WIDTH) * 2.0 ** (np.arange(_REACHES) / 2)
    allowed = _allowed(units, each) * numbers.whole
    below = numbers.weight_below(middle - reaches)
    above = int(numbers.below[-1]) - numbers.weight_below(np.nextafter(middle + reaches, np.inf))
    first, last = (
        _first_with_few(outside, allowed=allowed, whole=numbers.whole, epsilon=each, source=source)
        for outside in (below, above)
    )
    return float(middle - reaches[first]), float(middle + reaches[last])


def units_for_ends(epsilon: Fraction) -> int:
    """Return the least number of units with which `private_ends` is any good, but for a chance of 1 in 100 a choice."""
    quartile = 4 * 2 * math.log(_RARE * len(dyadic_grid())) / float(epsilon / 4)
    return math.ceil(max(quartile, float(_error(epsilon / 4) / _LARGEST_SHARE)))


def _error(epsilon: Fraction) -> Fraction:
    """Return how far, in units, noise of a run of the sparse vector technique reaches but for a chance of 1 in 100."""
    return Fraction(math.ceil(8 * math.log(_REACHES * _RARE))) / epsilon


def _allowed(units: int, epsilon: Fraction) -> int:
    """Return how many units may be beyond an end: a 256th, or what noise hides if that is more."""
    return math.floor(max(Fraction(units, 256), min(_error(epsilon), units * _LARGEST_SHARE)))


def check_ends(*, units: int, whole: int, epsilon: Fraction) -> None:
    """Make the searches of `ends_around`, and draw nothing; reads no record.

    Raises
    ------
    InvalidParameter
        If they would be refused.

    """
    _search(allowed=_allowed(units, epsilon / 2) * whole, whole=whole, epsilon=epsilon / 2)


def _search(*, allowed: int, whole: int, epsilon: Fraction) -> AboveThreshold:
    return AboveThreshold(sensitivity=whole, epsilon=epsilon, threshold=-allowed)


def _first_with_few(
    outside: np.ndarray[tuple[int], np.dtype[np.int64]],
    *,
    allowed: int,
    whole: int,
    epsilon: Fraction,
    source: PrivateRandomness,
) -> int:
    """Return the place of the first reach beyond which few numbers are, and a little further."""
    mechanism = _search(allowed=allowed, whole=whole, epsilon=epsilon)
    answers = mechanism.release((-int(beyond) for beyond in outside), randomness=source).value
    found = len(answers) - 1 if isinstance(answers, tuple) else len(outside) - 1
    return min(found + _FURTHER, len(outside) - 1)
