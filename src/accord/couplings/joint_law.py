"""The exact joint law of the earliest-point coupling, on finite spaces."""

from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from accord.core.errors import InvalidParameter
from accord.laws import FiniteLaw

__all__ = ["joint_law"]

_MOST_STATES = 2_000_000

_Column = tuple[Fraction, ...]


def joint_law(laws: Sequence[FiniteLaw]) -> FiniteLaw:
    """Return the joint law of the values that k finite laws take under the earliest-point rule (theory L1, L2).

    Formal guarantees
    -----------------
    - Exact: rational arithmetic throughout. The outcomes are tuples ``(z_1, ..., z_k)``.
    - It is the law of Couple I for every reference measure, and of Couple II: of `TuplePoissonCoupling` on laws whose
      probabilities are multiples of 2^-62.
    - Not promised: speed. The work grows like the product of the laws' sizes times 2^k; what is too large is refused.

    Parameters
    ----------
    laws
        At least one law. An outcome that a law lacks has probability 0 there.

    Raises
    ------
    InvalidParameter
        If there is no law, or the joint law could have more than two million outcomes and states.

    Source: theory 4 L1, L2; docs/proofs/joint-law.md.

    Examples
    --------
    >>> law = joint_law([FiniteLaw({"a": 1, "b": 1}), FiniteLaw({"a": 1, "b": 3})])
    >>> law["a", "a"], law["a", "b"], law["b", "b"]
    (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))

    """
    given = tuple(laws)
    if not given or not all(isinstance(law, FiniteLaw) for law in given):
        raise InvalidParameter("laws must be a list of at least one FiniteLaw.")
    outcomes = _union(given)
    size = 2 ** len(given)
    for law in given:
        size *= sum(number > 0 for number in law.numerators)
        if size > _MOST_STATES:
            raise InvalidParameter("the joint law is too large to be written down: take fewer or smaller laws.")
    columns = [tuple(law[outcome] for law in given) for outcome in outcomes]
    table = _joint(columns, blocks=len(given))
    names = [tuple(outcomes[place] for place in places) for places in table]
    return FiniteLaw.of(names, weights=table.values())


def _union(laws: Sequence[FiniteLaw]) -> list[Hashable]:
    """Return every outcome once, in the order in which they are met."""
    seen: dict[Hashable, Any] = {}
    for law in laws:
        for key, outcome in zip(law.index, law.outcomes, strict=True):
            seen.setdefault(key, outcome)
    return list(seen.values())


def _joint(columns: Sequence[_Column], *, blocks: int) -> dict[tuple[int, ...], Fraction]:
    """Return the probability of every tuple of places of outcomes; ``columns[y][i]`` is law i's probability of y."""

    @cache
    def waiting(blocks_left: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
        """Return the joint law of those that have not taken a point yet, values in their order."""
        if not blocks_left:
            return {(): Fraction(1)}
        total = sum((max(column[i] for i in blocks_left) for column in columns), Fraction(0))
        result: dict[tuple[int, ...], Fraction] = {}
        for place, column in enumerate(columns):
            for takers, mass in _slabs(column, blocks_left):
                rest = tuple(i for i in blocks_left if i not in takers)
                for values, chance in waiting(rest).items():
                    later = dict(zip(rest, values, strict=True))
                    whole = tuple(later.get(i, place) for i in blocks_left)
                    result[whole] = result.get(whole, Fraction(0)) + mass / total * chance
        return result

    return waiting(tuple(range(blocks)))


def _slabs(column: _Column, blocks: tuple[int, ...]) -> Iterator[tuple[frozenset[int], Fraction]]:
    """Cut the heights from 0 to the largest probability: who accepts in each slab, and how high the slab is."""
    below = Fraction(0)
    for height in sorted({column[i] for i in blocks} - {Fraction(0)}):
        yield frozenset(i for i in blocks if column[i] >= height), height - below
        below = height
