"""Records of a data frame of dask: read on workers, shuffled there into blocks, and fitted there."""

import hashlib
import operator
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from accord.core.blocks import FarRecords
from accord.core.cells import Cells
from accord.core.coupling import Learner
from accord.core.errors import AccordError, InvalidParameter, NotEnoughRecords, WorkersLost
from accord.core.isolation import Isolation, Workers
from accord.core.records import Records, cells_read_by
from accord.core.unit_names import RECORD, keys_named, unit_word
from accord.learners.traits import columns_of, read_for
from accord.workers import DaskWorkers, answers_by, gathered, is_dask_frame, quietly

__all__ = ["far_records", "reading"]

_MOST_BUCKETS, _MOST_GROUPS = 16, 64
_FAN_IN = 8
_LOST = "a worker could not read its part of the records: nothing is released. Give workers more memory."
_CHANGED = (
    "a part of the data frame was lost and came out otherwise when dask computed it again, so that a record might have "
    "been in two blocks: nothing is released. Persist the frame, or save it as files and read these."
)
_NO_WORKERS = (
    "a data frame of dask needs workers, for a learner isolation=Isolation(kind='process', workers=...) with "
    "accord.workers.DaskWorkers: its blocks are fitted where its records are."
)

_Ints = NDArray[np.int64]
_T = TypeVar("_T")


@contextmanager
def reading(
    learner: Learner,
    data: Any,  # noqa: ANN401 - any container
    *,
    units: Any,  # noqa: ANN401 - any container
    unit: str | None,
    isolation: Isolation,
) -> Iterator[Records | FarRecords]:
    """Give records as a learner reads them: those of a data frame of dask stay on its workers until the end.

    Formal guarantees
    -----------------
    - Rows and names stay on workers, which send each other rows of blocks and names of units. Here come numbers of
      records and of units, a check sum of each part, and where each unit appears first.
    - A unit's number is its rank by first appearance in the frame, partition by partition. Blocks are runs of a secret
      order of these numbers, drawn here: partitions of dask are never blocks. The rows of a block stand in the order of
      the frame, whatever workers do first. So blocks and laws are those of the same table in memory.
    - A record is in at most one block, also if a part is lost and computed again: one that comes out otherwise, by its
      check sum, is an error.
    - Silence: what goes wrong on a worker comes as an error of accord's, or as none, so that dask has nothing to log.
    - Not promised: that workers, their scheduler or its dashboard keep records secret; they are trusted.

    Parameters
    ----------
    learner
        What the records are for.
    data
        As `Records.of` takes it; or a data frame of dask.
    units
        As `Records.of` takes them; for a frame of dask a column of dask with the same partitions.
    unit
        As in `Records.of`.
    isolation
        Its workers hold the partitions.

    Raises
    ------
    InvalidParameter
        If there are no workers for a frame of dask, or units are not as its partitions.
    AccordError
        As `Records.of`, by any part.
    WorkersLost
        If workers went away again and again.

    """
    if isinstance(data, _Far):
        yield data
        return
    if not is_dask_frame(data):
        yield read_for(learner, data, units=units, unit=unit)
        return
    with far_records(
        data,
        units=units,
        unit=unit,
        cells=cells_read_by(learner),
        columns=columns_of(learner),
        workers=isolation.workers,
    ) as found:
        yield found


@contextmanager
def far_records(
    data: Any,  # noqa: ANN401 - dask's
    *,
    units: Any,  # noqa: ANN401 - dask's
    unit: str | None,
    cells: Cells,
    columns: int | None,
    workers: Workers | None,
) -> Iterator[FarRecords]:
    """Give the records of a data frame of dask, which stay on workers until the end of the block: see `reading`.

    Parameters
    ----------
    data, units, unit
        As in `reading`.
    cells, columns
        As in `Records.of`.
    workers
        Where the partitions are.

    Raises
    ------
    AccordError
        As `reading`.

    """
    if not isinstance(workers, DaskWorkers):
        raise InvalidParameter(_NO_WORKERS)
    if units is not None and getattr(units, "npartitions", None) != data.npartitions:
        raise InvalidParameter("units of a data frame of dask must be a column of dask with the same partitions.")
    if units is None and unit not in {None, RECORD}:
        raise InvalidParameter(f"unit={unit!r} needs units=, which say whose each record is: else it is 'record'.")
    word = unit_word(unit, named=units is not None)
    with workers.client() as client:
        yield _far(client, data, units=units, word=word, cells=cells, columns=columns)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Held:
    """Some records on their worker, and what names their units; without a text, so that no log shows it."""

    rows: NDArray[Any]
    keys: list[Any] | None
    owners: _Ints | None
    check: bytes


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Far:
    """Records on workers, seen from here."""

    client: Any = field(repr=False)
    parts: list[Any] = field(repr=False)
    sizes: list[int]
    checks: list[bytes] = field(repr=False)
    units: int
    dimension: int
    word: str
    names: "_Names | None" = field(repr=False)
    whole: list[Any] = field(default_factory=list, repr=False)

    @property
    def several_records(self) -> bool:
        return self.names is not None

    def sums(self, task: Callable[[NDArray[Any], _Ints | int], _Ints]) -> _Ints:
        """Do the task where the records are: by parts, or by groups of units, which are gathered once."""
        submit = partial(self.client.submit, pure=False)
        if self.names is None:
            asked = [
                submit(_of_part, task, part, check)
                for part, check, size in zip(self.parts, self.checks, self.sizes, strict=True)
                if size
            ]
        else:
            if not self.whole:
                self.whole.extend(self._units_together(submit))
            asked = [submit(_of_units, task, one) for one in self.whole]
        while len(asked) > 1:
            asked = [submit(_added, asked[low : low + _FAN_IN]) for low in range(0, len(asked), _FAN_IN)]
        (found,) = gathered(self.client, asked, lost=_LOST)
        if isinstance(found, AccordError):
            raise found
        total: _Ints = found
        return total

    def _units_together(self, submit: Callable[..., Any]) -> list[Any]:
        """Gather whole units in groups: unit u in group u modulo their number, its rows in the order of the frame."""
        assert self.names is not None  # noqa: S101 - of several records
        groups = min(self.units, _MOST_GROUPS)
        known = self.names.spread(submit, np.arange(self.units))
        pieces = [
            submit(_cut, part, given, groups, self.units, check)
            for part, given, check in zip(self.parts, known, self.checks, strict=True)
        ]
        return [
            submit(_side_by_side, [submit(operator.getitem, one, group) for one in pieces]) for group in range(groups)
        ]

    def cut(self, block_of_unit: _Ints, /, *, blocks: int) -> "_Blocks":
        """Send each record to where its block is gathered."""
        submit = partial(self.client.submit, pure=False)
        groups = min(blocks, _MOST_GROUPS)
        if self.names is None:
            ends = np.cumsum([0, *self.sizes]).tolist()
            known: list[Any] = [block_of_unit[low:high].astype(np.int32) for low, high in pairwise(ends)]
        else:
            known = self.names.spread(submit, block_of_unit)
        pieces = [
            submit(_cut, part, given, groups, blocks, check)
            for part, given, check in zip(self.parts, known, self.checks, strict=True)
        ]
        together = [
            submit(_together, [submit(operator.getitem, one, group) for one in pieces], group, groups, blocks)
            for group in range(groups)
        ]
        told = gathered(self.client, [submit(_is_whole, one) for one in together], lost=_LOST)
        failed = next((one for one in told if isinstance(one, AccordError)), None)
        if failed is not None:
            raise failed
        return _Blocks(self.client, together, blocks)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """The records of each block, gathered on workers: block b is in group b modulo their number."""

    client: Any
    groups: list[Any]
    count: int
    columns: tuple[int, ...] | None = None

    def of_columns(self, columns: Sequence[int], /) -> "_Blocks":
        return replace(self, columns=tuple(columns))

    def __len__(self) -> int:
        return self.count

    def answers(
        self, task: Callable[[NDArray[Any], bytes], bytes | None], given: Sequence[bytes], /
    ) -> Iterator[tuple[int, bytes | None]]:
        """Fit where the records are."""
        ways = len(self.groups)
        asked = ((self.groups[block % ways], block // ways, one) for block, one in enumerate(given))
        return answers_by(self.client, partial(_with_rows, task, self.columns), asked)


def _with_rows(
    task: Callable[[NDArray[Any], bytes], bytes | None], columns: tuple[int, ...] | None, given: tuple[Any, int, bytes]
) -> bytes | None:
    tables, place, one = given
    if isinstance(tables, AccordError):  # a part was lost since, and came out otherwise
        raise tables
    rows = tables[place]
    return task(rows if columns is None else np.ascontiguousarray(rows[:, list(columns)]), one)


def _far(
    client: Any,  # noqa: ANN401 - dask's
    data: Any,  # noqa: ANN401 - dask's
    *,
    units: Any,  # noqa: ANN401 - dask's
    word: str,
    cells: Cells,
    columns: int | None,
) -> _Far:
    submit = partial(client.submit, pure=False)
    dimension, types = len(data.columns), [str(kind) for kind in data.dtypes]
    frames = client.compute(data.to_delayed())
    named = [None] * len(frames) if units is None else client.compute(units.to_delayed())
    parts = [submit(_read, frame, names, cells, columns, types) for frame, names in zip(frames, named, strict=True)]
    told = gathered(client, [submit(_size, part) for part in parts], lost=_LOST)
    failed = next((one for one in told if isinstance(one, AccordError)), None)
    if failed is not None:
        raise failed
    sizes, checks = [int(size) for size, _ in told], [check for _, check in told]
    if sum(sizes) == 0:
        raise NotEnoughRecords("there are no records.", needed=1, present=0)
    names = None if units is None else _Names.of(client, parts, sizes=sizes, checks=checks)
    return _Far(
        client=client,
        parts=parts,
        sizes=sizes,
        checks=checks,
        units=sum(sizes) if names is None else len(names.ranks),
        dimension=dimension,
        word=word,
        names=names,
    )


# --- on workers -------------------------------------------------------------------------------------------------------


def _quietly(task: Callable[[], _T]) -> _T | AccordError:
    return quietly(task, lost=_LOST)


def _read(
    frame: Any,  # noqa: ANN401 - of pandas
    names: Any,  # noqa: ANN401 - of pandas
    cells: Cells,
    columns: int | None,
    types: list[str],
) -> _Held | AccordError:
    return _quietly(lambda: _held(frame, names, cells=cells, columns=columns, types=types))


def _held(frame: Any, names: Any, *, cells: Cells, columns: int | None, types: list[str]) -> _Held:  # noqa: ANN401
    if [str(kind) for kind in frame.dtypes] != types:
        raise InvalidParameter("a part of the data frame holds columns of other types than the frame declares.")
    keys, owners = (None, None) if names is None else keys_named(names, records=len(frame))
    if len(frame) == 0:
        empty: NDArray[Any] = np.empty((0, len(types)), dtype=object if cells == "labels" else np.float64)
        return _Held(empty, keys, owners, b"")
    rows = Records.of(frame, cells=cells, columns=columns).rows
    check = hashlib.sha256(repr(rows.tolist()).encode(errors="surrogatepass") if cells == "labels" else rows.tobytes())
    if keys is not None and owners is not None:
        check.update(repr([_digest(key) for key in keys]).encode() + owners.tobytes())
    return _Held(rows, keys, owners, check.digest())


def _size(part: _Held | AccordError) -> tuple[int, bytes] | AccordError:
    return part if isinstance(part, AccordError) else (len(part.rows), part.check)


def _cut(
    part: _Held | AccordError, blocks_of: NDArray[Any] | AccordError, groups: int, blocks: int, check: bytes
) -> list[tuple[NDArray[Any], NDArray[Any]] | AccordError]:
    """Return for each group of blocks the rows of this part that are in them, in their order, and their blocks."""
    if isinstance(blocks_of, AccordError) or isinstance(part, AccordError) or part.check != check:
        return [WorkersLost(_CHANGED)] * groups
    block_of_row = blocks_of if part.owners is None else blocks_of[part.owners]
    group = np.where(block_of_row < blocks, block_of_row % groups, groups)
    inside = [np.flatnonzero(group == one) for one in range(groups)]
    return [(part.rows[ours], block_of_row[ours]) for ours in inside]


def _together(
    pieces: Sequence[tuple[NDArray[Any], NDArray[Any]] | AccordError], group: int, groups: int, blocks: int
) -> list[NDArray[Any]] | AccordError:
    """Return the rows of each block of a group, part after part."""
    found = [piece for piece in pieces if not isinstance(piece, AccordError)]
    if len(found) < len(pieces):
        return WorkersLost(_CHANGED)
    rows, block_of_row = (np.concatenate([piece[place] for piece in found]) for place in (0, 1))
    order = np.argsort(block_of_row, kind="stable")
    ours = np.arange(group, blocks, groups)
    ends = (
        np.searchsorted(block_of_row[order], ours, side="left"),
        np.searchsorted(block_of_row[order], ours, side="right"),
    )
    return [rows[order[low:high]] for low, high in zip(*ends, strict=True)]


def _side_by_side(
    pieces: Sequence[tuple[NDArray[Any], NDArray[Any]] | AccordError],
) -> tuple[NDArray[Any], _Ints] | AccordError:
    """Return the rows of a group of units, part after part, and the number of each row's unit in the group."""
    found = [piece for piece in pieces if not isinstance(piece, AccordError)]
    if len(found) < len(pieces):
        return WorkersLost(_CHANGED)
    rows, units = (np.concatenate([piece[place] for piece in found]) for place in (0, 1))
    return rows, np.unique(units, return_inverse=True)[1].astype(np.int64)


def _of_part(
    task: Callable[[NDArray[Any], _Ints | int], _Ints], part: _Held | AccordError, check: bytes
) -> _Ints | AccordError:
    if isinstance(part, AccordError) or part.check != check:
        return WorkersLost(_CHANGED)
    return _quietly(lambda: task(part.rows, len(part.rows)))


def _of_units(
    task: Callable[[NDArray[Any], _Ints | int], _Ints], group: tuple[NDArray[Any], _Ints] | AccordError
) -> _Ints | AccordError:
    return group if isinstance(group, AccordError) else _quietly(lambda: task(*group))


def _added(sums: Sequence[_Ints | AccordError]) -> _Ints | AccordError:
    failed = next((one for one in sums if isinstance(one, AccordError)), None)
    return failed or np.asarray(np.sum(np.array(sums), axis=0), dtype=np.int64)


def _is_whole(tables: list[NDArray[Any]] | AccordError) -> AccordError | None:
    return tables if isinstance(tables, AccordError) else None


# --- units: a shuffle of their names ----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Names:
    """Names of units, met in buckets on workers.

    Parameters
    ----------
    cut
        For each part its names by bucket.
    met
        For each bucket its names, numbered.
    ranks
        By bucket, and number in the bucket: the rank of each unit by first appearance in the frame.
    ends
        Where each bucket ends in ``ranks``.

    """

    cut: list[Any]
    met: list[Any]
    ranks: _Ints
    ends: list[int]

    @staticmethod
    def of(client: Any, parts: list[Any], *, sizes: list[int], checks: list[bytes]) -> "_Names":  # noqa: ANN401 - dask's
        """Let the names of all parts meet."""
        submit = partial(client.submit, pure=False)
        buckets = min(_MOST_BUCKETS, len(parts))
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        cut = [
            submit(_in_buckets, part, start, buckets, check)
            for part, start, check in zip(parts, starts, checks, strict=True)
        ]
        met = [submit(_met, [submit(operator.getitem, one, bucket) for one in cut]) for bucket in range(buckets)]
        first: list[_Ints] = gathered(client, [submit(operator.getitem, one, 1) for one in met], lost=_LOST)
        if any(isinstance(one, AccordError) for one in first):
            raise WorkersLost(_CHANGED)
        ranks = np.argsort(np.argsort(np.concatenate(first)))
        return _Names(cut, met, ranks.astype(np.int64), np.cumsum([len(one) for one in first]).tolist())

    def spread(self, submit: Callable[..., Any], block_of_unit: _Ints) -> list[Any]:
        """Return for each part what holds the block of each of its units, as the part numbers them."""
        by_bucket = np.split(block_of_unit[self.ranks].astype(np.int32), self.ends[:-1])
        answers = [submit(_blocks_of, one, blocks) for one, blocks in zip(self.met, by_bucket, strict=True)]
        return [submit(_put_back, one, answers) for one in self.cut]


_Cut = list[tuple[list[Any], _Ints, _Ints]]
_Met = tuple[dict[Any, int], _Ints]


def _in_buckets(part: _Held | AccordError, start: int, buckets: int, check: bytes) -> _Cut | list[AccordError]:
    """Return for each bucket the names in it, their numbers in this part, and the rows of the frame they begin at."""
    if isinstance(part, AccordError) or part.check != check:
        lost: list[AccordError] = [WorkersLost(_CHANGED)] * buckets
        return lost
    keys: list[Any] = part.keys or []
    owners = np.empty(0, dtype=np.int64) if part.owners is None else part.owners
    first = np.unique(owners, return_index=True)[1] + start
    place = np.array([_digest(key) % buckets for key in keys], dtype=np.int64)
    inside = [np.flatnonzero(place == bucket) for bucket in range(buckets)]
    return [([keys[one] for one in ours.tolist()], ours, first[ours]) for ours in inside]


def _digest(key: Any) -> int:  # noqa: ANN401 - what makes a name
    """Return a number that equal keys have in common on every machine: Python's own hash of texts is not one."""
    if isinstance(key, str):
        return zlib.crc32(key.encode(errors="surrogatepass"))
    if isinstance(key, bytes):
        return zlib.crc32(key)
    if isinstance(key, tuple):
        return zlib.crc32(repr([_digest(part) for part in key]).encode())
    if isinstance(key, frozenset):
        return zlib.crc32(repr(sorted(_digest(part) for part in key)).encode())
    return hash(key)  # of a number: equal numbers of any types have one


def _met(found: Sequence[tuple[list[Any], _Ints, _Ints] | AccordError]) -> _Met | list[AccordError]:
    """Return the number of each name in this bucket, and the row of the frame at which it begins."""
    numbers: dict[Any, int] = {}
    first: list[int] = []
    for piece in found:  # part by part: the first row of a name is in the first part that has it
        if isinstance(piece, AccordError):
            return [piece, piece]
        for key, row in zip(piece[0], piece[2].tolist(), strict=True):
            if key not in numbers:
                numbers[key] = len(numbers)
                first.append(row)
    return numbers, np.array(first, dtype=np.int64)


def _blocks_of(met: _Met | list[AccordError], blocks: NDArray[Any]) -> dict[Any, int]:
    """Return the block of each name in a bucket; none if names did not come."""
    return dict(zip(met[0], blocks.tolist(), strict=True)) if isinstance(met, tuple) else {}


def _put_back(cut: _Cut | list[AccordError], answers: Sequence[dict[Any, int]]) -> NDArray[np.int32] | AccordError:
    """Return the block of each name of a part, as the part numbers them."""
    known = [piece for piece in cut if not isinstance(piece, AccordError)]
    if len(known) < len(cut):
        return WorkersLost(_CHANGED)
    found = np.zeros(sum(len(keys) for keys, _, _ in known), dtype=np.int32)
    for (keys, ours, _), block_of in zip(known, answers, strict=True):
        if not block_of.keys() >= set(keys):
            return WorkersLost(_CHANGED)
        found[ours] = [block_of[key] for key in keys]
    return found
