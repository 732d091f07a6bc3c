"""What fewer records than needed could reach, for the text of a refusal; within a few seconds."""

import math
import time
from collections.abc import Callable
from fractions import Fraction

from accord.core.errors import AccordError, NotEnoughRecords
from accord.planning import Plan

__all__ = ["not_enough"]

_SECONDS = 3.0
_STEPS = 4
_FIRST = 1.15
_EASIEST = Fraction(99, 100)


def not_enough(
    *, needed: int, present: int, alpha: Fraction | None = None, plan_at: Callable[[Fraction], Plan] | None = None
) -> NotEnoughRecords:
    """Return the refusal: n needed, n present and the alpha that the n present can reach with the same promise.

    The search begins where n that falls with the square of alpha would be enough, doubles alpha until the records are,
    then halves the gap; it begins no plan after three seconds.

    Parameters
    ----------
    needed, present
        Units of privacy.
    alpha
        The alpha that was asked for; without it only the numbers are told.
    plan_at
        The plan at another alpha, everything else as it was asked for.

    """
    text = (
        f"too few records or units of privacy: there are {present}, and {needed} are needed for these settings. "
        f"Nothing was spent."
    )
    if alpha is not None and plan_at is not None:
        found = _reachable(alpha, needed=needed, present=present, plan_at=plan_at)
        known = "no alpha below 1 was found that they can reach" if found is None else f"they can reach alpha = {found}"
        text = f"{text} With the other settings as they are, {known}."
    return NotEnoughRecords(text, needed=needed, present=present)


def _reachable(alpha: Fraction, *, needed: int, present: int, plan_at: Callable[[Fraction], Plan]) -> str | None:
    end = time.monotonic() + _SECONDS
    best: Fraction | None = None
    low, tried = alpha, alpha
    likely = Fraction(_FIRST * float(alpha) * math.sqrt(needed / max(present, 1))).limit_denominator(10_000)
    while best is None and tried < _EASIEST and time.monotonic() < end:
        tried = min(max(likely, 2 * tried) if tried == alpha else 2 * tried, _EASIEST)
        if _enough(plan_at, tried, present):
            best = tried
        else:
            low = tried
    for _ in range(_STEPS):
        if best is None or time.monotonic() >= end:
            break
        middle = Fraction(math.sqrt(low * best)).limit_denominator(10_000)
        if _enough(plan_at, middle, present):
            best = middle
        else:
            low = middle
    return None if best is None else f"{math.ceil(float(best) * 1000) / 1000:g}"


def _enough(plan_at: Callable[[Fraction], Plan], alpha: Fraction, present: int) -> bool:
    try:
        return plan_at(alpha).records <= present
    except AccordError:
        return False
