"""Statements about sampled outcomes, each wrong with a chance of at most 1e-9: law, independence, privacy."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from scipy.stats import beta

from accord.core.exact import exp_lower
from accord.core.guarantee import ApproxDP, PureDP
from accord.testing._fault import MechanismFault

__all__ = ["check_independence", "check_sampled_law", "check_sampled_privacy"]

_TAIL = 1e-9
"""Each statistical statement is wrong with at most this probability; a run makes fewer than a thousand of them."""

_MOST_EVENTS = 40
_LAGS = (1, 2, 3)


def _bounds(count: int, runs: int) -> tuple[float, float]:
    """Return Clopper-Pearson bounds of a probability, each wrong with probability 1e-9."""
    low = float(beta.ppf(_TAIL, count, runs - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - _TAIL, count + 1, runs - count)) if count < runs else 1.0
    return low, high


def _line(outcomes: Iterable[Hashable]) -> list[Any]:
    """Return distinct outcomes in their own order, or by the names of their types and their texts if they have none."""
    distinct: set[Any] = set(outcomes)
    try:
        return sorted(distinct)
    except TypeError:
        return sorted(distinct, key=lambda outcome: (type(outcome).__name__, repr(outcome)))


# --- law --------------------------------------------------------------------------------------------------------------


def check_sampled_law(law: Mapping[Any, Fraction], found: Counter[Hashable]) -> None:
    """Refuse outcomes that do not follow the law."""
    runs = found.total()
    for outcome in {*law, *found}:
        low, high = _bounds(found[outcome], runs)
        if not low <= float(law.get(outcome, Fraction(0))) <= high:
            message = "sampled outcomes do not follow the law"
            raise MechanismFault(message)


# --- independence -----------------------------------------------------------------------------------------------------


def check_independence(outcomes: Sequence[Hashable]) -> None:
    """Refuse a sequence of runs whose near outcomes are equal more or less often than its distant ones.

    Pairs that share no run are independent, and each is a pair of equals with the sum of squared probabilities as its
    chance, ties of the law included: so both numbers are binomial with one chance. Outcomes are compared as they are,
    and by the half of the line that they are in.
    """
    order = {outcome: place for place, outcome in enumerate(_line(outcomes))}
    places = [order[outcome] for outcome in outcomes]
    middle = sorted(places)[len(places) // 2]
    for marks in (places, [int(place >= middle) for place in places], [int(place > middle) for place in places]):
        half = len(marks) // 2
        least, most = _share_of_equals(zip(marks[:half], marks[half:], strict=False))
        for lag in _LAGS:
            for start in (0, lag):
                low, high = _share_of_equals(_near(marks, lag=lag, start=start))
                if low > most or high < least:
                    message = "successive outcomes depend on each other: noise is used more than once"
                    raise MechanismFault(message)


def _near(marks: Sequence[int], *, lag: int, start: int) -> list[tuple[int, int]]:
    """Return pairs of runs ``lag`` apart, no run in two of them."""
    firsts = [place for block in range(start, len(marks) - 2 * lag + 1, 2 * lag) for place in range(block, block + lag)]
    return [(marks[place], marks[place + lag]) for place in firsts]


def _share_of_equals(pairs: Iterable[tuple[int, int]]) -> tuple[float, float]:
    equal = [first == second for first, second in pairs]
    return _bounds(sum(equal), len(equal))


# --- privacy ----------------------------------------------------------------------------------------------------------


def check_sampled_privacy(guarantee: PureDP | ApproxDP, p: Counter[Hashable], q: Counter[Hashable]) -> None:
    """Refuse an event that is likelier under ``p`` than the guarantee allows, given ``q``."""
    ratio = exp_lower(guarantee.epsilon)
    for event in _events(p, q):
        low, _ = _bounds(sum(p[outcome] for outcome in event), p.total())
        _, high = _bounds(sum(q[outcome] for outcome in event), q.total())
        if Fraction(low) > ratio * Fraction(high) + guarantee.delta:  # the ratio may be beyond the floats
            message = "an event is likelier for one neighbour than the promise allows"
            raise MechanismFault(message)


def _events(p: Counter[Hashable], q: Counter[Hashable]) -> list[frozenset[Hashable]]:
    """Return the most frequent single outcomes, and half-lines of outcomes."""
    events = [frozenset([outcome]) for outcome, _ in (p + q).most_common(_MOST_EVENTS)]
    line = _line([*p, *q])
    steps = range(1, len(line), max(1, len(line) // _MOST_EVENTS))
    return events + [frozenset(half) for step in steps for half in (line[:step], line[step:])]
