"""Mechanisms on disjoint parts of the data."""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from accord.accounting.composition import Relation, common_relation, read_guarantees
from accord.core.errors import InvalidParameter
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP

__all__ = ["parallel_composition"]

_ADVICE = (
    "give blocks=, one collection of positions for each guarantee, fixed without looking at the data; "
    "or, if you have a proof that every unit is read by one mechanism only, claimed_disjoint=True"
)


def parallel_composition(
    guarantees: Iterable[PureDP | ApproxDP],
    *,
    blocks: Sequence[Iterable[int]] | None = None,
    claimed_disjoint: bool = False,
) -> PureDP | ApproxDP:
    """Take the maximum, for mechanisms on disjoint parts of the data.

    Formal guarantees
    -----------------
    - Privacy: mechanism i reads the units at the positions ``blocks[i]`` only, the blocks are disjoint and were fixed
      without looking at the data: together the mechanisms are (largest epsilon, largest delta)-DP under "replace one in
      place", exactly. Not under "replace one": a record that is replaced by one that stands elsewhere moves all between
      to other positions, and so changes many blocks.
    - Disjointness of ``blocks`` is checked here. That they do not depend on the data is the caller's claim; with
      ``claimed_disjoint`` both are, and the relation is that of the guarantees.
    - Not promised: anything for blocks that are formed from the data (by a column, after sorting, by dropping rows).
      Replacing a record then changes two blocks, and two guarantees add up.

    Parameters
    ----------
    guarantees
        At least one, all under one relation and for one unit.
    blocks
        For each guarantee the positions that its mechanism reads, whole numbers of at least 0, in a collection that can
        be read again. Not under "add or remove one": a removed record moves all later ones to other positions.
    claimed_disjoint
        Claims, without ``blocks``, that each unit is read by one mechanism only, chosen by its position alone ("replace
        one in place"), by a secret uniform order of the units, as `accord.learning.partition` does ("replace one"), or
        by its own values alone ("add or remove one").

    Raises
    ------
    InvalidParameter
        If there is neither or both, if two blocks share a position, if their number differs from that of the
        guarantees, if an entry is a truth value (a mask is made from data) or no position, if ``blocks`` or a block is
        an iterator or a mapping; relations or units mixed.

    Source
    ------
    Theory C1; docs/proofs/composition.md.

    Examples
    --------
    >>> quarters = [range(0, 25), range(25, 50), range(50, 75), range(75, 100)]
    >>> parallel_composition([PureDP(1)] * 4, blocks=quarters)
    PureDP(epsilon=Fraction(1, 1), neighbouring=Neighbouring.REPLACE_ONE_IN_PLACE, unit='record')

    """
    found = read_guarantees(guarantees)
    relation = common_relation(found)
    if (blocks is None) == (claimed_disjoint is not True):
        raise InvalidParameter(f"parallel composition needs disjoint parts of the data: {_ADVICE}.")
    if blocks is not None:
        if not relation.neighbouring.implies(Neighbouring.REPLACE_ONE_IN_PLACE):
            raise InvalidParameter(
                "blocks of positions need the relation 'replace one in place' or 'replace one': removing one record "
                "moves all later ones to other positions, and so into other blocks."
            )
        _disjoint(blocks, expected=len(found))
        relation = Relation(Neighbouring.REPLACE_ONE_IN_PLACE, relation.unit)
    epsilon = max(guarantee.epsilon for guarantee in found)
    return relation.guarantee(epsilon, max(guarantee.delta for guarantee in found))


def _disjoint(blocks: Any, *, expected: int) -> None:  # noqa: ANN401
    if not _rereadable(blocks):
        raise InvalidParameter(
            "blocks must be a list or tuple with one collection of positions for each guarantee, in their order: no "
            "iterator, mapping, set or text."
        )
    if len(blocks) != expected:
        raise InvalidParameter(f"blocks must have one entry for each of the {expected} guarantees.")
    seen: set[int] = set()
    for block in blocks:
        if not (_rereadable(block) or isinstance(block, AbstractSet)):
            raise InvalidParameter(
                "blocks must hold collections of positions, such as range(0, 25): an iterator is empty when it is read "
                "again, so nothing can be checked of it. Write list(block)."
            )
        positions = {_position(entry) for entry in block}
        if not seen.isdisjoint(positions):
            raise InvalidParameter(
                "blocks must be disjoint: a position stands in two of them, so its record is read twice and the "
                "guarantees add up; use basic_composition."
            )
        seen |= positions


def _rereadable(found: Any) -> bool:  # noqa: ANN401
    """Say whether this is a list, a range, an array, ..: ordered, and the same at every reading."""
    if isinstance(found, Mapping | AbstractSet | str | bytes | Iterator):
        return False
    try:
        len(found)  # an array without dimensions has the method, but no length
    except TypeError:
        return False
    return hasattr(found, "__getitem__") and hasattr(found, "__iter__")


def _position(entry: Any) -> int:  # noqa: ANN401
    try:
        position = operator.index(entry)
    except TypeError:
        position = -1
    if isinstance(entry, bool) or type(entry).__name__ in {"bool", "bool_"} or position < 0:
        raise InvalidParameter(
            "blocks must hold positions, whole numbers of at least 0; a mask of truth values is made from the data."
        )
    return position
