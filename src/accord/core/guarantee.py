"""What is promised, about which pairs of datasets, and how far a query may move between them."""

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.unit_names import check_word

__all__ = [
    "ApproxDP",
    "Neighbouring",
    "PureDP",
    "Sensitivity",
]


class Neighbouring(Enum):
    """The relation under which a guarantee holds (theory 1).

    A dataset is a sequence of records, each of which belongs to a unit of privacy: itself, or a person who may have
    several. Units are numbered by their first appearance.
    """

    REPLACE_ONE = "replace one"
    """Both datasets have n units and differ in one: the unit that replaces it may have another number of records, which
    may stand anywhere among those of the others. The others keep their relative order. The number n is public.
    """

    REPLACE_ONE_IN_PLACE = "replace one in place"
    """The same, and both units have the same number: the order in which the units first appear is left as it was. A
    weaker promise, which `REPLACE_ONE` implies: it says nothing where a replaced record stands elsewhere in the file.
    """

    ADD_OR_REMOVE_ONE = "add or remove one"
    """One dataset is the other without one unit. The number of units is secret."""

    def implies(self, other: "Neighbouring") -> bool:
        """Return whether a guarantee under this relation is one under the other, with the same numbers.

        Examples
        --------
        >>> Neighbouring.REPLACE_ONE.implies(Neighbouring.REPLACE_ONE_IN_PLACE)
        True
        >>> Neighbouring.REPLACE_ONE_IN_PLACE.implies(Neighbouring.REPLACE_ONE)
        False

        """
        replacing = (Neighbouring.REPLACE_ONE, Neighbouring.REPLACE_ONE_IN_PLACE)
        return self is other or (self, other) == replacing

    def __repr__(self) -> str:
        return f"Neighbouring.{self.name}"


@final
@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest distance between a query's values on two neighbours.

    It is to hold for every pair of neighbours, and those are of whole units: under "replace one" the new unit may have
    another number of records than the old one, and they may stand elsewhere in the file; under "add or remove one" all
    of a unit's records come or go. A unit of m records is not m records that are replaced one by one: ten numbers of
    101 may become a single 100, which moves their sum by 910, not by 10 (`accord.mechanisms.ClampedSum`). Where every
    record is a unit of its own, "replace one" keeps their number.

    Parameters
    ----------
    bound
        At least 0; kept as an exact fraction. 0 says that the query does not depend on the data.
    neighbouring
        The relation that the bound holds for.

    Examples
    --------
    >>> Sensitivity("0.1").bound
    Fraction(1, 10)

    """

    bound: Fraction
    neighbouring: Neighbouring = Neighbouring.REPLACE_ONE

    def __init__(self, bound: Number, neighbouring: Neighbouring = Neighbouring.REPLACE_ONE) -> None:
        value = _check.exact("sensitivity bound", bound)
        if value < 0:
            message = "sensitivity bound must be at least 0."
            raise InvalidParameter(message)
        if not isinstance(neighbouring, Neighbouring):
            message = "neighbouring must be a Neighbouring, such as Neighbouring.REPLACE_ONE."
            raise InvalidParameter(message)
        _check.store(self, bound=value, neighbouring=neighbouring)


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
        _check.store(self, epsilon=_non_negative("epsilon", epsilon), neighbouring=neighbouring, unit=unit)

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
        _check.store(self, epsilon=_non_negative("epsilon", epsilon), delta=slack, neighbouring=neighbouring, unit=unit)

    def at(self, delta: Number) -> Fraction | float:
        """Return the epsilon promised when a slack of ``delta`` is allowed: infinite below this guarantee's own."""
        return self.epsilon if _non_negative("delta", delta) >= self.delta else math.inf
