"""Audit by enumeration: the laws of the output on neighbours, in rationals."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number, exp_lower, to_fraction
from accord.laws import FiniteLaw, hockey_stick, smallest_epsilon

__all__ = [
    "Evidence",
    "audit_laws",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A lower bound on the epsilon of a mechanism, at a given delta.

    Parameters
    ----------
    epsilon
        No ``(e, delta)`` with e below this holds; 0 if nothing was found. Rounded down. Infinite if an event that one
        neighbour makes likelier than delta never happens to the other (exact audits only).
    delta
        The delta of the statement.
    confidence
        1 for an exact audit; otherwise the statement is wrong with probability at most ``1 - confidence``.
    event
        In words, the event that shows it; empty if none does.
    likelier, rarer
        The event's probability under the two neighbours, the likelier one first: exact values, or a lower and an upper
        confidence bound.
    runs
        Runs behind it, on both neighbours together; 0 for an exact audit.

    """

    epsilon: float
    delta: Fraction
    confidence: float
    event: str = ""
    likelier: float = 0.0
    rarer: float = 0.0
    runs: int = 0

    def contradicts(self, epsilon: Number) -> bool:
        """Return whether a claim of ``(epsilon, delta)`` is refuted.

        Examples
        --------
        >>> Evidence(epsilon=1.5, delta=Fraction(0), confidence=1.0).contradicts("1.4")
        True

        """
        return self.epsilon > to_fraction(epsilon)


_SHORT = 1 - 2.0**-40
_CERTAIN = Fraction(1, 10**50)
_SHOWN = 4


def audit_laws(
    law: Callable[[Any], FiniteLaw | Mapping[Any, Fraction]], *, pairs: Iterable[tuple[Any, Any]], delta: Number = 0
) -> Evidence:
    """Return the largest epsilon that the exact laws of a mechanism prove, over pairs of neighbours.

    Formal guarantees
    -----------------
    - Certain: for the returned epsilon e and every e' < e, some event of some pair breaks ``(e', delta)``.
    - Tight: within one part in 10^12 of the best bound that these pairs allow.
    - Not promised: anything about pairs that were not given.

    Parameters
    ----------
    law
        From a dataset to the law of the output: a `FiniteLaw`, or a mapping of outcomes to probabilities that sum to 1,
        as the ``law`` methods of the mechanisms return.
    pairs
        Neighbouring datasets, at least one pair; each is looked at in both directions.
    delta
        At least 0, below 1.

    Raises
    ------
    InvalidParameter
        If there is no pair, or delta is out of range.

    Source
    ------
    theory M9; proof page ``docs/proofs/audit.md``.

    Examples
    --------
    >>> from accord.mechanisms import StableMode
    >>> mode = StableMode(epsilon=1, delta="0.01")
    >>> found = audit_laws(mode.law, pairs=[(["a"] * 6, ["a"] * 5 + ["b"])], delta="0.01")
    >>> round(found.epsilon, 9), found.contradicts(1)
    (1.0, False)

    """
    slack = _delta(delta)
    best = Evidence(epsilon=0.0, delta=slack, confidence=1.0)
    seen = False
    for one, other in pairs:
        seen = True
        first, second = _finite(law(one)), _finite(law(other))
        for p, q in ((first, second), (second, first)):
            epsilon = _proved(p, q, slack=slack, above=best.epsilon)
            if epsilon > best.epsilon:
                best = _described(p, q, epsilon=epsilon, slack=slack)
    if not seen:
        raise InvalidParameter("pairs must not be empty: an audit of no pair says nothing.")
    return best


def _delta(delta: Number) -> Fraction:
    slack = _check.exact("delta", delta)
    if not 0 <= slack < 1:
        raise InvalidParameter("delta must be at least 0 and below 1.")
    return slack


def _finite(law: FiniteLaw | Mapping[Any, Fraction]) -> FiniteLaw:
    return law if isinstance(law, FiniteLaw) else FiniteLaw(law)


def _proved(p: FiniteLaw, q: FiniteLaw, *, slack: Fraction, above: float) -> float:
    """Return a lower bound on the least epsilon of this ordered pair that was checked, at least ``above`` or 0."""
    guess = smallest_epsilon(p, q, delta=slack)
    if not math.isfinite(guess):
        never = sum((p[outcome] for outcome in p if not q[outcome]), Fraction(0))
        return math.inf if never > slack else 0.0
    lower = guess * _SHORT
    if lower <= above:
        return 0.0
    # the bound of the divergence is at most 1e-50 too large
    return lower if hockey_stick(p, q, epsilon=Fraction(lower)) - _CERTAIN > slack else 0.0


def _described(p: FiniteLaw, q: FiniteLaw, *, epsilon: float, slack: Fraction) -> Evidence:
    """Return the evidence, with the event: the outcomes that p makes likelier than e^epsilon times what q does."""
    ratio = None if math.isinf(epsilon) else exp_lower(Fraction(epsilon))
    event = [x for x in p if (not q[x] if ratio is None else p[x] > ratio * q[x])]
    names = ", ".join(repr(outcome) for outcome in event[:_SHOWN])
    more = f" and {len(event) - _SHOWN} more" if len(event) > _SHOWN else ""
    return Evidence(
        epsilon=epsilon,
        delta=slack,
        confidence=1.0,
        event=f"the output is {names}{more}",
        likelier=float(sum((p[x] for x in event), Fraction(0))),
        rarer=float(sum((q[x] for x in event), Fraction(0))),
    )
