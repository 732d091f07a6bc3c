"""A law on finitely many outcomes, in exact arithmetic."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from itertools import compress, repeat
from operator import gt, mul
from types import MappingProxyType, NoneType
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number

__all__ = [
    "Event",
    "FiniteLaw",
    "Pair",
    "best_event",
    "key_of",
    "labelled",
    "side_by_side",
    "whole_numbers",
]


_PLAIN = frozenset({int, str, bytes, NoneType})


class _Truth(Enum):
    """Stands for True and False in keys, which Python calls equal to 1 and 0."""

    TRUE = True
    FALSE = False


def labelled(outcomes: Iterable[Any]) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """Return outcomes as plain Python values, and the key of each: equal keys are the same outcome.

    True and 1 differ, also inside tuples and frozen sets; 1 and 1.0 do not; a numpy scalar is the value it holds.

    Raises
    ------
    InvalidParameter
        If an outcome is not hashable or not equal to itself (NaN).

    """
    if isinstance(outcomes, (str, bytes)) or not isinstance(outcomes, Iterable):
        raise InvalidParameter("outcomes must be a list of labels, not a single value.")
    given = tuple(outcomes)
    if _PLAIN.issuperset(map(type, given)):
        return given, given
    plain = tuple(label.item() if isinstance(label, np.generic) else label for label in given)
    return plain, tuple(map(key_of, plain))


def key_of(outcome: Any) -> Hashable:  # noqa: ANN401 - an outcome is any hashable value
    """Return the key of one outcome; the rules are those of `labelled`."""
    label = outcome.item() if isinstance(outcome, np.generic) else outcome
    if isinstance(label, bool):
        return _Truth(label)
    parts = _PARTS.get(type(label))
    if parts is not None:
        return parts(map(key_of, label))
    if not _is_usable(label):
        raise InvalidParameter("outcomes must be hashable and equal to themselves: text, numbers, tuples ..., not NaN.")
    key: Hashable = label
    return key


_PARTS: dict[type, Callable[[Iterable[Hashable]], Hashable]] = {tuple: tuple, frozenset: frozenset}


def _is_usable(label: object) -> bool:
    copy = label
    try:
        hash(label)
        return bool(label == copy)
    except (TypeError, ValueError, ArithmeticError):
        return False


_MOST_BITS = 2**31
_LARGEST_FLOAT_EXPONENT = 1023
_MANTISSA_BITS = 53


def whole_numbers(weights: Iterable[Number]) -> tuple[int, ...]:
    """Return whole numbers without a common factor, in the same ratios as ``weights``.

    Raises
    ------
    InvalidParameter
        If a weight is not a finite number at least 0, all are 0, there are none, or their denominators have no common
        multiple of a size that memory can hold.

    """
    if isinstance(weights, (str, bytes)) or not isinstance(weights, Iterable):
        raise InvalidParameter("weights must be numbers, one for each outcome.")
    given = tuple(weights)
    _check.at_least_one("weights", given)
    numbers = _from_floats(given) if {float, np.float64}.issuperset(map(type, given)) else _from_numbers(given)
    if min(numbers) < 0:
        raise InvalidParameter("weights must be at least 0.")
    common = math.gcd(*numbers)
    if common == 0:
        raise InvalidParameter("weights must have a positive sum: all of them are 0.")
    return tuple(numbers) if common == 1 else tuple(number // common for number in numbers)


def _from_floats(weights: Sequence[Number]) -> Sequence[int]:
    """Return the exact binary values times one power of two."""
    array: NDArray[np.float64] = np.array(weights, dtype=np.float64)
    if not np.isfinite(array).all():
        raise InvalidParameter("weights must be finite: NaN and infinity are no weights.")
    exponents = np.frexp(array[array != 0])[1]
    if exponents.size == 0:
        return [0] * len(array)
    shift = _MANTISSA_BITS - int(exponents.min())
    if int(exponents.max()) + shift > _LARGEST_FLOAT_EXPONENT:
        return _from_numbers(weights)
    # ldexp is exact in two steps: every product stays below the largest float, and is a whole number at the end.
    scaled = np.ldexp(np.ldexp(array, shift // 2), shift - shift // 2)
    return [int(number) for number in scaled.tolist()]


def _from_numbers(weights: Sequence[Number]) -> Sequence[int]:
    if {int}.issuperset(map(type, weights)):
        return [int(number) for number in weights]
    exact = [_check.exact_data("weights", weight) for weight in weights]
    common = _common_multiple({weight.denominator for weight in exact}, count=len(exact))
    return [_times(weight, common) for weight in exact]


def _common_multiple(denominators: Iterable[int], *, count: int) -> int:
    common = 1
    for denominator in denominators:
        common = math.lcm(common, denominator)
        if common.bit_length() * count > _MOST_BITS:
            raise InvalidParameter("weights have too many different denominators: give them over a common one.")
    return common


def _times(weight: Fraction, common: int) -> int:
    return weight.numerator * (common // weight.denominator)


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class FiniteLaw:
    """A probability law on a finite set, normalised exactly.

    The probability of ``outcomes[i]`` is ``numerators[i] / denominator``: whole numbers, so that sums over 1e5 atoms
    are exact and take milliseconds.

    Formal guarantees
    -----------------
    - Value: immutable. The probabilities are the weights divided by their sum, with no rounding; a float weight is its
      exact binary value.
    - Order: outcomes are kept in the order of the input. Nothing but iteration depends on it: laws with the same
      probabilities are equal and have equal hashes, an outcome of probability 0 being as good as none.
    - Outcomes: True and 1 differ; 1 and 1.0 are the same outcome, as in Python.
    - Not promised: speed for weights without a common denominator of moderate size; those of absurd size are refused.

    Parameters
    ----------
    weights
        Outcome to weight. Weights are int, float, Fraction, Decimal or str, at least 0, with a positive sum.

    Raises
    ------
    InvalidParameter
        If it is no mapping, is empty, holds a weight that is negative, NaN or infinite, only zeros, or an outcome that
        is not hashable or not equal to itself.

    Source
    ------
    theory M9 (finite spaces); docs/proofs/laws.md.

    Examples
    --------
    >>> law = FiniteLaw({"no": "0.1", "yes": "0.3"})
    >>> law["yes"], law["perhaps"]
    (Fraction(3, 4), Fraction(0, 1))
    >>> law == FiniteLaw({"yes": 3, "no": 1})
    True

    """

    outcomes: tuple[Hashable, ...]
    numerators: tuple[int, ...]
    denominator: int
    index: Mapping[Hashable, int] = field(repr=False)
    """Position of each outcome, by its canonical key."""

    def __init__(self, weights: Mapping[Any, Number]) -> None:
        if not isinstance(weights, Mapping):
            raise InvalidParameter("weights must be a mapping from outcome to weight, such as {'no': 1, 'yes': 3}.")
        _fill(self, weights.keys(), weights.values())

    @classmethod
    def of(cls, outcomes: Iterable[Any], *, weights: Iterable[Number]) -> Self:
        """Return the law with these outcomes and weights, side by side; a dict cannot hold both True and 1.

        Examples
        --------
        >>> len(FiniteLaw.of([True, 1], weights=[1, 1]))
        2

        """
        law = object.__new__(cls)
        _fill(law, outcomes, weights)
        return law

    @property
    def probabilities(self) -> tuple[Fraction, ...]:
        """One exact probability for each outcome, in their order."""
        return tuple(Fraction(number, self.denominator) for number in self.numerators)

    def mass(self, event: Iterable[Any]) -> Fraction:
        """Return the probability of a set of outcomes; repeated and foreign ones add nothing."""
        found = {self.index[key] for key in map(key_of, event) if key in self.index}
        return Fraction(sum(self.numerators[position] for position in found), self.denominator)

    def expectation(self, function: Callable[[Any], Number]) -> Fraction:
        """Return the mean of ``function``, exact in the values it returns (theory M5 uses values in [0, 1])."""
        pairs = zip(self.outcomes, self.numerators, strict=True)
        total = sum(
            (number * _check.exact_data("function", function(outcome)) for outcome, number in pairs), Fraction(0)
        )
        return total / self.denominator

    def __getitem__(self, outcome: Any) -> Fraction:  # noqa: ANN401 - an outcome is any hashable value
        """Return the exact probability of one outcome; 0 for a foreign one."""
        return self.mass((outcome,))

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    def __contains__(self, outcome: object) -> bool:
        return key_of(outcome) in self.index

    def _positive(self) -> frozenset[tuple[Hashable, int]]:
        return frozenset((key, number) for key, number in zip(self.index, self.numerators, strict=True) if number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteLaw):
            return NotImplemented
        return self.denominator == other.denominator and self._positive() == other._positive()

    def __hash__(self) -> int:
        return hash(self._positive())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.outcomes, self.numerators)


def _rebuilt(outcomes: tuple[Hashable, ...], numerators: tuple[int, ...]) -> FiniteLaw:
    return FiniteLaw.of(outcomes, weights=numerators)


def _fill(law: FiniteLaw, outcomes: Iterable[Any], weights: Iterable[Number]) -> None:
    """Check and set the fields of a new law."""
    labels, keys = labelled(outcomes)
    numerators = whole_numbers(weights)
    if len(labels) != len(numerators):
        raise InvalidParameter("weights must be numbers, one for each outcome.")
    index = {key: position for position, key in enumerate(keys)}
    if len(index) != len(keys):
        raise InvalidParameter("outcomes must be distinct.")
    _check.store(
        law, outcomes=labels, numerators=numerators, denominator=sum(numerators), index=MappingProxyType(index)
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two laws on one list of outcomes: ``first[i] / first_total`` and ``second[i] / second_total``."""

    outcomes: tuple[Hashable, ...]
    first: tuple[int, ...]
    first_total: int
    second: tuple[int, ...]
    second_total: int

    @property
    def swapped(self) -> "Pair":
        """The same laws the other way round."""
        return Pair(
            outcomes=self.outcomes,
            first=self.second,
            first_total=self.second_total,
            second=self.first,
            second_total=self.first_total,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A set of outcomes and its probability under both laws of a pair."""

    members: tuple[bool, ...]
    first: Fraction
    second: Fraction

    def excess(self, ratio: Fraction) -> Fraction:
        """Return ``P(E) - ratio Q(E)``."""
        return self.first - ratio * self.second


def side_by_side(p: FiniteLaw, q: FiniteLaw) -> Pair:
    """Return both laws on the union of their outcomes: those of ``p`` in their order, then the others of ``q``."""
    if not isinstance(p, FiniteLaw) or not isinstance(q, FiniteLaw):
        raise InvalidParameter("p and q must be FiniteLaw, both of them.")
    outcomes, first, second = p.outcomes, p.numerators, q.numerators
    if list(p.index) != list(q.index):
        foreign = [position for key, position in q.index.items() if key not in p.index]
        places = map(q.index.get, p.index)
        outcomes += tuple(q.outcomes[position] for position in foreign)
        first += (0,) * len(foreign)
        second = tuple(0 if place is None else q.numerators[place] for place in places)
        second += tuple(q.numerators[position] for position in foreign)
    return Pair(outcomes=outcomes, first=first, first_total=p.denominator, second=second, second_total=q.denominator)


def best_event(pair: Pair, *, ratio: Fraction) -> Event:
    """Return the event ``{p > ratio q}``, which maximises ``P(E) - ratio Q(E)`` over all events.

    Whole numbers only: both sides are multiplied by the two denominators and that of ``ratio``.
    """
    left = pair.second_total * ratio.denominator
    right = pair.first_total * ratio.numerator
    members = tuple(map(gt, map(mul, pair.first, repeat(left)), map(mul, pair.second, repeat(right))))
    return Event(
        members=members,
        first=Fraction(sum(compress(pair.first, members)), pair.first_total),
        second=Fraction(sum(compress(pair.second, members)), pair.second_total),
    )
