"""What may be spent, in exact numbers: a total is split once by whoever owns it, and the parts add up to it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, TypeVar, final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number

__all__ = ["NOTHING", "Budget", "Weight"]

_Name = TypeVar("_Name", bound=Hashable)
_MOST_EPSILON = 1000

Weight = Number | tuple[Number, Number]
"""Of a part: one for epsilon and delta alike, or one for each."""


@final
@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """An epsilon and a delta to spend, of a release or of one step of it.

    Whoever owns a total splits it, once; whoever plans a step takes the budget that it is given, and spends at most
    that. A plan, a forecast of it and the release read the same split.

    Formal guarantees
    -----------------
    - The parts of `split` are exact fractions and add up to the budget, in epsilon and in delta.
    - ``budget - part`` is refused where a part is larger than what it is taken from.
    - Not promised: any privacy. Steps that spend parts promise their sum by basic composition (theory C2), which the
      release checks against the mechanisms that ran.

    Parameters
    ----------
    epsilon
        From 0 to 1000, exact: ``"0.1"`` and the float ``0.1`` are 1/10.
    delta
        From 0 up to but not including 1, exact. 0 is the part of a step that needs none.

    Raises
    ------
    InvalidParameter
        Outside these ranges.

    Source
    ------
    theory C2.

    Examples
    --------
    >>> total = Budget.asked(1, "1e-6")
    >>> parts = total.split({"locate": (3, 1), "refine": (7, 1)})
    >>> parts["locate"]
    Budget(epsilon=Fraction(3, 10), delta=Fraction(1, 2000000))
    >>> parts["locate"] + parts["refine"] == total
    True
    >>> total - parts["locate"] == parts["refine"]
    True

    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        loss, slack = _check.exact("epsilon", epsilon), _check.exact("delta", delta)
        if not 0 <= loss <= _MOST_EPSILON:
            raise InvalidParameter(f"epsilon of a budget must be from 0 to {_MOST_EPSILON}.")
        if not 0 <= slack < 1:
            raise InvalidParameter("delta of a budget must be at least 0 and below 1.")
        _check.store(self, epsilon=loss, delta=slack)

    @classmethod
    def asked(cls, epsilon: Number, delta: Number) -> Self:
        """Return the budget of a release that somebody asks for, of which neither number may be 0.

        Raises
        ------
        InvalidParameter
            If a number is out of the range of a release.

        """
        return cls(_check.epsilon(epsilon), _check.delta(delta))

    def split(self, weights: Mapping[_Name, Weight]) -> dict[_Name, "Budget"]:
        """Return a part for each name, in proportion to the weights, which add up to the budget exactly.

        Parameters
        ----------
        weights
            At least 0 and not all 0: ``{"cuts": 1, "tables": 9}``, or for epsilon and delta apart as ``(2, 0)``.

        Raises
        ------
        InvalidParameter
            If a weight is negative, or all are 0 for a number that is not.

        Examples
        --------
        >>> Budget(1, 0).split(dict.fromkeys("ab", 1))
        {'a': Budget(epsilon=Fraction(1, 2), delta=Fraction(0, 1)), 'b': Budget(epsilon=Fraction(1, 2), ...)}

        """
        pairs = {name: weight if isinstance(weight, tuple) else (weight, weight) for name, weight in weights.items()}
        losses = _parts(self.epsilon, [loss for loss, _ in pairs.values()])
        slacks = _parts(self.delta, [slack for _, slack in pairs.values()])
        return {name: Budget(loss, slack) for name, loss, slack in zip(pairs, losses, slacks, strict=True)}

    def __add__(self, other: "Budget") -> "Budget":
        """Return the sum of two."""
        return Budget(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, part: "Budget") -> "Budget":
        """Return what is left without a part, which must not be larger."""
        if part.epsilon > self.epsilon or part.delta > self.delta:
            raise InvalidParameter("a part of a budget cannot be larger than the budget that it is taken from.")
        return Budget(self.epsilon - part.epsilon, self.delta - part.delta)

    def at_most(self, epsilon: Number) -> "Budget":
        """Return the budget with no more epsilon than this, where more would be of no use."""
        return Budget(min(self.epsilon, _check.exact("epsilon", epsilon)), self.delta)


NOTHING = Budget(0, 0)
"""Spent where nothing is."""


def _parts(total: Fraction, weights: list[Number]) -> list[Fraction]:
    exact = [_check.exact("weights", weight) for weight in weights]
    whole = sum(exact, Fraction(0))
    if any(weight < 0 for weight in exact) or (total > 0 and whole == 0):
        raise InvalidParameter("weights of a budget's parts must be at least 0, and not all 0.")
    return [total * weight / whole if total else Fraction(0) for weight in exact]
