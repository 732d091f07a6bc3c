"""Cut the units of privacy into blocks, and fit each block alone. Part of the trusted core."""

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord import _check
from accord.errors import DataError, NotEnoughRecords
from accord.learners import Learner
from accord.learning.isolation import Fitted, Isolation
from accord.learning.records import as_unit_names
from accord.privacy import Neighbouring
from accord.randomness import PrivateRandomness, SharedRandomness, require_private, require_shared, uniform_order

__all__ = [
    "Progress",
    "child_key",
    "count_units",
    "fit_blocks",
    "order_of_units",
    "partition",
    "relation_of",
    "unit_numbers",
]

Progress = Callable[[int, int, str], None]
"""Called with (done, total, what is being done); all three are public numbers or words."""


def partition(
    n_or_units: int | ArrayLike,
    *,
    blocks: int,
    in_place_key: SharedRandomness | None = None,
    randomness: PrivateRandomness | None = None,
) -> tuple[NDArray[np.int64], ...]:
    """Return the row numbers of each block.

    The units are put in a secret order, uniformly random; block i takes the i-th run of ``floor(units / blocks)`` of
    them, and the surplus at the end of that order is left out.

    Formal guarantees
    -----------------
    - Neighbours are two datasets with the same number of units that differ in one unit: the replaced one may have
      another name, another number of records, and its records may stand anywhere among the others, which keep their
      relative order. With a secret order the law of all other blocks is the same for both.
    - With ``in_place_key`` this holds only if the replaced unit keeps its place in the order of first appearance: then
      every block but its own is equal for every key. A guarantee built on it is `REPLACE_ONE_IN_PLACE`.
    - Not promised: that the order stays secret if somebody learns which records are in one block.

    Parameters
    ----------
    n_or_units
        The number n of records, each its own unit; or the unit of each record, shape (n,): all records of a unit go
        to one block. Units are numbered by their first appearance.
    blocks
        Number of blocks, at least 1 and at most the number of units.
    in_place_key
        A key that fixes the order, for who may know it. It must be chosen without looking at the data, and gives up
        neighbours whose records stand elsewhere. By default the order is secret.
    randomness
        Secret source of the order; leave it out.

    Returns
    -------
    tuple of arrays
        One a block, row numbers in the order of the file. Every record is in at most one block, and which one does not
        depend on what any record holds.

    Raises
    ------
    NotEnoughRecords
        If there are fewer units than blocks.
    DataError
        If a unit is missing.

    Source
    ------
    theory L8 and section 9; proof page ``docs/proofs/partition.md``.

    Examples
    --------
    >>> parts = partition(10, blocks=3)
    >>> [len(part) for part in parts], len(set(np.concatenate(parts)))
    ([3, 3, 3], 9)

    """
    blocks = _check.integer("blocks", blocks, least=1)
    number = unit_numbers(n_or_units)
    units = count_units(number)
    if units < blocks:
        message = (
            f"{units} units of privacy do not fill {blocks} blocks: use at most {units} blocks."
            if units
            else "there are no records to cut into blocks."
        )
        raise NotEnoughRecords(message, needed=blocks, present=units)
    order = order_of_units(units, in_place_key=in_place_key, randomness=randomness)
    size = units // blocks
    if isinstance(number, int):
        return tuple(np.sort(order[block * size : (block + 1) * size]) for block in range(blocks))
    block_of_unit = np.full(units, blocks)
    block_of_unit[order[: size * blocks]] = np.repeat(np.arange(blocks), size)
    block_of_row = block_of_unit[number]
    rows = np.argsort(block_of_row, kind="stable")
    ends = np.searchsorted(block_of_row[rows], np.arange(blocks + 1))
    return tuple(rows[ends[block] : ends[block + 1]] for block in range(blocks))


def order_of_units(
    count: int, *, in_place_key: SharedRandomness | None, randomness: PrivateRandomness | None
) -> NDArray[np.int64]:
    """Return the numbers 0 .. count - 1 in a secret uniform order, or in the order of a key that others may know.

    Whatever is cut by the numbers of units is cut along it, so that no other place decides how secret a cut is.
    """
    if in_place_key is not None:
        return require_shared(in_place_key).stream("partition").permutation(count)
    return uniform_order(count, randomness=require_private(randomness))


def relation_of(in_place_key: SharedRandomness | None) -> Neighbouring:
    """Return the relation under which blocks cut with this key, or with none, are blocks of neighbours."""
    return Neighbouring.REPLACE_ONE if in_place_key is None else Neighbouring.REPLACE_ONE_IN_PLACE


def child_key(in_place_key: SharedRandomness | None, *labels: int | str) -> SharedRandomness | None:
    """Return the key that hangs from a key by labels, None from none."""
    return None if in_place_key is None else require_shared(in_place_key).child(*labels)


def count_units(n_or_units: int | ArrayLike) -> int:
    """Return the number of units of privacy; it is public under 'replace one'."""
    number = unit_numbers(n_or_units)
    return number if isinstance(number, int) else int(number.max(initial=-1)) + 1


def unit_numbers(n_or_units: int | ArrayLike) -> int | NDArray[np.int64]:
    """Return n itself, or the number of each record's unit by first appearance, shape (n,).

    Numbers are their own numbers, so whoever has called this passes them on in place of the names.
    """
    if isinstance(n_or_units, numbers.Integral):
        return _check.integer("number of records", n_or_units, least=0)
    names = as_unit_names(n_or_units)
    if names.dtype.kind in "iu":  # nothing can be missing here, and sorting is quicker than a dict
        _, first, code = np.unique(names, return_index=True, return_inverse=True)
        return np.asarray(np.argsort(np.argsort(first))[code], dtype=np.int64)
    known: dict[Any, int] = {}
    number = np.empty(len(names), dtype=np.int64)
    for row, name in enumerate(names.tolist()):
        if _is_missing(name):
            message = "a record has no unit of privacy: give every record one, so that no person is in two blocks."
            raise DataError(message)
        try:
            number[row] = known.setdefault(name, len(known))
        except TypeError:
            raise DataError("a unit of privacy must be a plain name: text, a number or a tuple of these.") from None
    return number


def _is_missing(name: object) -> bool:
    """Whether this stands for no name: None, or what is not equal to itself or will not say (NaN, NaT, NA)."""
    if name is None or name is np.ma.masked:
        return True
    try:
        return not name == name  # noqa: PLR0124, SIM201 - NaN, NaT and NA are found this way
    except (TypeError, ValueError, ArithmeticError):
        return True


def fit_blocks(
    learner: Learner,
    records: NDArray[Any],
    *,
    blocks: Sequence[NDArray[np.int64]],
    shared: SharedRandomness,
    isolation: Isolation | None = None,
    progress: Progress | None = None,
) -> list[Fitted]:
    """Fit each block alone and return one law a block; a fit that fails is that block's abstention.

    With ``Isolation(kind="process")`` a law of another family than accord's comes sealed: `couple_apart` reads it.

    Block i's learner is a fresh copy of ``learner``. It sees a copy of block i's records, a seed of its own, and global
    generators seeded with it; nothing that another block did. No exception or warning of a fit comes out.

    Parameters
    ----------
    learner
        Any `Learner`; it is copied and never fitted itself.
    records
        Shape (n, d).
    blocks
        Row numbers of each block, from `partition`.
    shared
        Gives block i the seed ``shared.seed("learner", i)``.
    isolation
        Copies by default; a process a block for learners that keep state elsewhere.
    progress
        Told after each block.

    """
    alone = isolation or Isolation()
    laws: list[Fitted] = []
    for block, rows in enumerate(blocks):
        laws.append(alone.fit_block(learner, records[rows], seed=shared.seed("learner", block)))
        if progress is not None:
            progress(block + 1, len(blocks), "fitting blocks")
    return laws
