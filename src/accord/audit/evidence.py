"""What an audit found: plain data."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accord.core.exact import Number, to_fraction

__all__ = ["Evidence"]


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
