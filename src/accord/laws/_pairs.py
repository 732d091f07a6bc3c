"""Two finite laws side by side, and the event that tells them apart best."""

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress, repeat
from operator import gt, mul
from typing import final

from accord.core.errors import InvalidParameter
from accord.laws.finite import FiniteLaw

__all__ = ["Event", "Pair", "best_event", "side_by_side"]


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
