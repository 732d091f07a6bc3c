"""What is left when no finite guarantee holds: infinity, and the reason."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accord.core import check as _check
from accord.core.exact import Number
from accord.core.guarantee import Neighbouring

__all__ = ["NoGuarantee"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoGuarantee:
    """No finite epsilon holds at this delta, and why. Falsy; nothing can be admitted or charged with it.

    Parameters
    ----------
    delta
        The slack that was asked for.
    reason
        One sentence for people.
    neighbouring, unit
        As in the guarantees that were put together.

    Examples
    --------
    >>> from accord.privacy import ApproxDP, optimal_composition
    >>> total = optimal_composition(ApproxDP("0.1", "1e-8"), rounds=1000, delta="1e-6")
    >>> total.epsilon
    inf
    >>> print(total.reason)
    the guarantees alone spend a delta of 9.99995e-06, more than the 1e-06 that is allowed

    """

    delta: Fraction
    reason: str
    neighbouring: Neighbouring = Neighbouring.REPLACE_ONE
    unit: str = "record"

    @property
    def epsilon(self) -> float:
        """Always infinite."""
        return math.inf

    def at(self, delta: Number) -> float:
        """Return infinity, for every slack."""
        _check.exact("delta", delta)
        return math.inf

    def __bool__(self) -> bool:
        return False
