"""A law on finitely many outcomes, in exact arithmetic."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Self, final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.laws._labels import key_of, labelled
from accord.laws._weights import whole_numbers

__all__ = ["FiniteLaw"]


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
    object.__setattr__(law, "outcomes", labels)
    object.__setattr__(law, "numerators", numerators)
    object.__setattr__(law, "denominator", sum(numerators))
    object.__setattr__(law, "index", MappingProxyType(index))
