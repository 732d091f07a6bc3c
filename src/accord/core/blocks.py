"""Cut the units of privacy into blocks, and fit each block alone. Part of the trusted core."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import ABSTAIN, Learner
from accord.core.errors import NotEnoughRecords
from accord.core.guarantee import Neighbouring
from accord.core.isolation import FarBlocks, Fitted, Isolation
from accord.core.records import Records
from accord.core.secret import PrivateRandomness, require_private, uniform_order
from accord.core.shared import SharedRandomness, require_shared

__all__ = [
    "FarRecords",
    "Progress",
    "child_key",
    "cut",
    "fit_blocks",
    "order_of_units",
    "partition",
    "relation_of",
]

Progress = Callable[[int, int, str], None]
"""Called with (done, total, what is being done); all three are public numbers or words."""


@runtime_checkable
class FarRecords(Protocol):
    """Records that stay on workers: what `Records` says of them, and blocks of them that stay there too."""

    @property
    def units(self) -> int:
        """How many units there are."""

    @property
    def dimension(self) -> int:
        """Number of columns."""

    @property
    def several_records(self) -> bool:
        """Whether units were named, so that one may have several records."""

    @property
    def word(self) -> str:
        """What the guarantee calls a unit."""

    def cut(self, block_of_unit: NDArray[np.int64], /, *, blocks: int) -> FarBlocks:
        """Return the records of the units of each block, in the order of the table, whatever that of the cutting.

        Parameters
        ----------
        block_of_unit
            The block of each unit, by first appearance in the table; ``blocks`` for one that is in none.
        blocks
            How many there are.

        """

    def sums(self, task: Callable[[NDArray[Any], NDArray[np.int64] | int], NDArray[np.int64]], /) -> NDArray[np.int64]:
        """Return the sum of ``task(rows, units)`` over groups of whole units, a unit's rows in the order of the table.

        ``units`` is the number of the group's records, each its own unit; or that of each record's unit in the group.
        """


def partition(
    records: Records | int,
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
    records
        From `Records.of`: all records of a unit go to one block. Or the number n of records, each its own unit; a
        number is never one of units.
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
    given = records if isinstance(records, Records) else None
    units = _check.integer("number of records", records, least=0) if given is None else given.units
    _refuse_few(units, blocks=blocks)
    order = order_of_units(units, in_place_key=in_place_key, randomness=randomness)
    size = units // blocks
    if given is None or given.owners is None:
        return tuple(np.sort(order[block * size : (block + 1) * size]) for block in range(blocks))
    block_of_row = _block_of_unit(order, blocks=blocks)[given.owners]
    rows = np.argsort(block_of_row, kind="stable")
    ends = np.searchsorted(block_of_row[rows], np.arange(blocks + 1))
    return tuple(rows[ends[block] : ends[block + 1]] for block in range(blocks))


def cut(
    records: Records | FarRecords,
    *,
    blocks: int,
    in_place_key: SharedRandomness | None = None,
    randomness: PrivateRandomness | None = None,
) -> Sequence[NDArray[np.int64]] | FarBlocks:
    """Do what `partition` does; the blocks of records on workers stay there.

    With equal randomness they hold the rows that `partition` gives of the same table, in the same order.
    """
    if isinstance(records, Records):
        return partition(records, blocks=blocks, in_place_key=in_place_key, randomness=randomness)
    blocks = _check.integer("blocks", blocks, least=1)
    _refuse_few(records.units, blocks=blocks)
    order = order_of_units(records.units, in_place_key=in_place_key, randomness=randomness)
    return records.cut(_block_of_unit(order, blocks=blocks), blocks=blocks)


def _refuse_few(units: int, *, blocks: int) -> None:
    if units < blocks:
        message = (
            f"{units} units of privacy do not fill {blocks} blocks: use at most {units} blocks."
            if units
            else "there are no records to cut into blocks."
        )
        raise NotEnoughRecords(message, needed=blocks, present=units)


def _block_of_unit(order: NDArray[np.int64], *, blocks: int) -> NDArray[np.int64]:
    """Return the block of each unit, by runs of an order of them; ``blocks`` for those at its end."""
    size = len(order) // blocks
    found = np.full(len(order), blocks)
    found[order[: size * blocks]] = np.repeat(np.arange(blocks), size)
    return found


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


def fit_blocks(
    learner: Learner,
    records: NDArray[Any] | Records | FarRecords,
    *,
    blocks: Sequence[NDArray[np.int64]] | FarBlocks,
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
        Shape (n, d), or what `cut` was given.
    blocks
        Row numbers of each block, from `partition`; or from `cut`.
    shared
        Gives block i the seed ``shared.seed("learner", i)``.
    isolation
        Copies by default; a process a block for learners that keep state elsewhere.
    progress
        Told after each block.

    """
    alone = isolation or Isolation()
    laws: list[Fitted] = [ABSTAIN] * len(blocks)
    seeds = [shared.seed("learner", block) for block in range(len(blocks))]
    if isinstance(blocks, FarBlocks):
        fits = alone.fit_far(learner, blocks, seeds=seeds)
    else:
        table: Any = records.rows if isinstance(records, Records) else records
        fits = alone.fit_blocks(learner, (table[rows] for rows in blocks), seeds=seeds)
    for done, (block, law) in enumerate(fits, start=1):
        laws[block] = law
        if progress is not None:
            progress(done, len(blocks), "fitting blocks")
    return laws
