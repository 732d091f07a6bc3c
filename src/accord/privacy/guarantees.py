"""Guarantees are values: what was promised, under which relation, for which unit."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accord import _check
from accord._exact import Number
from accord.core.unit_word import check_word
from accord.errors import InvalidParameter
from accord.privacy.neighbouring import Neighbouring

__all__ = ["ApproxDP", "PureDP"]


def _relation(neighbouring: Neighbouring, unit: str) -> None:
    if not isinstance(neighbouring, Neighbouring):
        message = "neighbouring must be a Neighbouring, such as Neighbouring.REPLACE_ONE."
        raise InvalidParameter(message)
    check_word(unit)


def _non_negative(name: str, value: Number) -> Fraction:
    result = _check.exact(name, value)
    if result < 0:
        message = f"{name} must be at least 0."
        raise InvalidParameter(message)
    return result


@final
@dataclass(frozen=True, slots=True)
class PureDP:
    """Pure differential privacy: ``P[K(D) in B] <= exp(epsilon) P[K(D') in B]`` for all neighbours and events.

    Parameters
    ----------
    epsilon
        At least 0, exact: ``"0.1"`` is 1/10, and so is the float ``0.1``, read by its shortest decimal.
    neighbouring
        The relation between datasets.
    unit
        What one position of the dataset holds, for people who read the guarantee.

    Examples
    --------
    >>> PureDP(1) == PureDP("1.0")
    True
    >>> PureDP(1).at("1e-6")
    Fraction(1, 1)

    """

    epsilon: Fraction
    neighbouring: Neighbouring = Neighbouring.REPLACE_ONE
    unit: str = "record"

    def __init__(
        self, epsilon: Number, neighbouring: Neighbouring = Neighbouring.REPLACE_ONE, unit: str = "record"
    ) -> None:
        _relation(neighbouring, unit)
        object.__setattr__(self, "epsilon", _non_negative("epsilon", epsilon))
        object.__setattr__(self, "neighbouring", neighbouring)
        object.__setattr__(self, "unit", unit)

    @property
    def delta(self) -> Fraction:
        """Always 0."""
        return Fraction(0)

    def at(self, delta: Number) -> Fraction | float:
        """Return the epsilon promised when a slack of ``delta`` is allowed."""
        _non_negative("delta", delta)
        return self.epsilon


@final
@dataclass(frozen=True, slots=True)
class ApproxDP:
    """Approximate differential privacy: ``P[K(D) in B] <= exp(epsilon) P[K(D') in B] + delta``.

    Parameters
    ----------
    epsilon
        At least 0, exact.
    delta
        From 0 up to but not including 1, exact.
    neighbouring
        The relation between datasets.
    unit
        What one position of the dataset holds, for people who read the guarantee.

    Examples
    --------
    >>> guarantee = ApproxDP(1, "1e-6")
    >>> guarantee.delta
    Fraction(1, 1000000)
    >>> guarantee.at("1e-9")
    inf

    """

    epsilon: Fraction
    delta: Fraction
    neighbouring: Neighbouring = Neighbouring.REPLACE_ONE
    unit: str = "record"

    def __init__(
        self,
        epsilon: Number,
        delta: Number,
        neighbouring: Neighbouring = Neighbouring.REPLACE_ONE,
        unit: str = "record",
    ) -> None:
        _relation(neighbouring, unit)
        slack = _non_negative("delta", delta)
        if not slack < 1:
            message = "delta must be below 1: at 1 nothing is promised."
            raise InvalidParameter(message)
        object.__setattr__(self, "epsilon", _non_negative("epsilon", epsilon))
        object.__setattr__(self, "delta", slack)
        object.__setattr__(self, "neighbouring", neighbouring)
        object.__setattr__(self, "unit", unit)

    def at(self, delta: Number) -> Fraction | float:
        """Return the epsilon promised when a slack of ``delta`` is allowed: infinite below this guarantee's own."""
        return self.epsilon if _non_negative("delta", delta) >= self.delta else math.inf
