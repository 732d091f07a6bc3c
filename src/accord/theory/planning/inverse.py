"""The planner asked the other way round: what n records can reach."""

import math
from collections.abc import Callable
from fractions import Fraction

from accord.core import check as _check
from accord.core.errors import InvalidParameter, NotEnoughRecords
from accord.core.exact import Number
from accord.theory.planning.plan import LearnerKind, Method, Plan, plan

__all__ = ["needed_epsilon", "reachable_alpha"]

_STEPS = 5
_SMALLEST = {"alpha": Fraction(1, 10_000), "epsilon": Fraction(1, 1000)}


def reachable_alpha(
    sample_complexity: object,
    *,
    records: int,
    beta: Number,
    epsilon: Number,
    delta: Number,
    method: Method = "theorem",
    learner: LearnerKind = "black-box",
    agnostic_factor: Number = 3,
) -> Plan:
    """Return the plan with the least alpha (to about two per cent) that ``records`` records are enough for.

    Raises
    ------
    NotEnoughRecords
        If they are not enough for any alpha below 1, as far as the method knows.

    """
    size = _check.integer("records", records, least=1)

    def at(alpha: Fraction) -> Plan:
        return plan(
            sample_complexity,
            alpha=alpha,
            beta=beta,
            epsilon=epsilon,
            delta=delta,
            method=method,
            learner=learner,
            agnostic_factor=agnostic_factor,
        )

    return _least(at, size, least=_SMALLEST["alpha"], most=Fraction(99, 100))


def needed_epsilon(
    sample_complexity: object,
    *,
    records: int,
    alpha: Number,
    beta: Number,
    delta: Number,
    method: Method = "theorem",
    learner: LearnerKind = "black-box",
    agnostic_factor: Number = 3,
) -> Plan:
    """Return the plan with the least epsilon (to about two per cent) that ``records`` records are enough for.

    Raises
    ------
    NotEnoughRecords
        If they are not enough at the largest epsilon that the method allows.

    """
    size = _check.integer("records", records, least=1)

    def at(epsilon: Fraction) -> Plan:
        return plan(
            sample_complexity,
            alpha=alpha,
            beta=beta,
            epsilon=epsilon,
            delta=delta,
            method=method,
            learner=learner,
            agnostic_factor=agnostic_factor,
        )

    return _least(at, size, least=_SMALLEST["epsilon"], most=Fraction(1 if method == "theorem" else 10))


def _least(at: Callable[[Fraction], Plan], records: int, *, least: Fraction, most: Fraction) -> Plan:
    """Halve, then bisect on a logarithmic scale; the number kept has been tried and is enough."""
    easiest = at(most)
    if easiest.records > records:
        message = "too few records for this method at any setting; nothing was spent."
        raise NotEnoughRecords(message, needed=easiest.records, present=records)
    best, high = easiest, most
    low = most / 2
    while low >= least and (found := _tried(at, low)) is not None and found.records <= records:
        best, high, low = found, low, low / 2
    for _ in range(_STEPS):
        middle = Fraction(math.sqrt(low * high)).limit_denominator(1_000_000)
        found = _tried(at, middle)
        if found is not None and found.records <= records:
            best, high = found, middle
        else:
            low = middle
    return best


def _tried(at: Callable[[Fraction], Plan], value: Fraction) -> Plan | None:
    try:
        return at(value)
    except InvalidParameter:
        return None
