"""A declared table on the workers of a cluster: encoded there once, counted there, and never brought together."""

import hashlib
import operator
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accord.core.errors import AccordError, DataError, WorkersLost
from accord.marginals.engine import Codes, Part, Recode, weights_at
from accord.synthesis.coded import CodedTable, coding_of
from accord.tables import Schema, read_batches
from accord.tables.cells import units_by_name
from accord.tables.files import files_of
from accord.tables.frames import frame_batch
from accord.tables.reader import Batch, Told
from accord.workers import DaskWorkers, gathered, is_dask_frame, quietly

__all__ = ["coded_on_workers"]

_FAN_IN = 8
_MOST_BUCKETS = 16
_LOST = "a worker could not read or count its part of the table: nothing is released. Give workers more memory."
_CHANGED = (
    "a part of the table was lost and came out otherwise when it was read again, so that a record might have been "
    "counted twice: nothing is released. Leave files as they are, and persist a data frame of dask."
)

_Ints = NDArray[np.int64]
_T = TypeVar("_T")


@contextmanager
def coded_on_workers(
    data: Any,  # noqa: ANN401 - any container
    *,
    schema: Schema,
    workers: DaskWorkers,
    told: Told | None = None,
) -> Iterator[CodedTable]:
    """Give a table whose parts stay on workers until the end of the block.

    Formal guarantees
    -----------------
    - Rows stay where they are: workers read and encode their parts, and send each other the names of units. Here come
      numbers of records and units, check sums of parts, and exact counts.
    - The counts are those of the same table read here, however it is cut: codes are functions of the schema and a cell,
      sums are of whole numbers, and a record's weight follows from its rank among those of its unit in the order of the
      table, partition by partition, whatever workers do first. So with given noise the release is the same.
    - Nothing random is drawn on a worker. A part that is lost is read again, and must come out as it was: one with
      another check sum is an error, as a record could else be counted in two parts.
    - Silence: what goes wrong on a worker comes as an error of accord's, or as none, so that dask has nothing to log.

    Parameters
    ----------
    data
        A data frame of dask, or the path of files as in `accord.tables.read_table`, which all workers can read under
        it: each file is a partition.
    schema
        What was declared.
    workers
        Where the partitions are.
    told
        Called with how many parts have been read, and how many there are.

    Raises
    ------
    DataError, SchemaMismatch
        As `accord.tables.read_table`.
    WorkersLost
        If workers went away again and again.

    """
    with workers.client() as client:
        parts = _encoded(client, data, schema=schema)
        found = _answers(client, [client.submit(_size, part, pure=False) for part in parts], told=told)
        failed = next((one for one in found if isinstance(one, AccordError)), None)
        if failed is not None:
            raise failed
        sizes, checks = [int(size) for size, _ in found], [check for _, check in found]
        if sum(sizes) == 0:
            raise DataError("the table on the workers holds no records.")
        units = sum(sizes)
        if schema.unit is not None:
            parts, units = _with_weights(client, parts, checks=checks)
        yield CodedTable(
            schema=schema,
            parts=tuple(_Far(client, part, check) for part, check in zip(parts, checks, strict=True)),
            sizes=tuple(sizes),
            counted=units,
            run=partial(_run, client),
        )


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Held:
    """A part on its worker; it has no text, so that no log shows it."""

    held: Codes
    check: bytes
    names: tuple[str, ...] = ()
    owners: _Ints | None = None

    def codes(self) -> Codes:
        return self.held

    def recoded(self, recode: Recode) -> Part:
        return replace(self, held=recode(self.held))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Far:
    """A part, seen from here."""

    client: Any
    future: Any
    check: bytes

    def codes(self) -> Codes:
        raise AssertionError("codes stay on their worker")

    def recoded(self, recode: Recode) -> Part:
        return replace(self, future=self.client.submit(_recoded, self.future, recode, pure=False))


def _encoded(client: Any, data: Any, *, schema: Schema) -> list[Any]:  # noqa: ANN401 - dask's
    if is_dask_frame(data):
        parts = client.compute(data.to_delayed())
        return [client.submit(_of_frame, part, schema, pure=False) for part in parts]
    files = files_of(Path(data))
    read_batches(Path(data), schema=schema)  # refuses what the headers show
    return [client.submit(_of_file, str(path.resolve()), schema, pure=False) for path in files]


def _of_file(path: str, schema: Schema) -> _Held | AccordError:
    return _quietly(lambda: _held(read_batches(Path(path), schema=schema), schema=schema))


def _of_frame(frame: Any, schema: Schema) -> _Held | AccordError:  # noqa: ANN401 - of pandas
    return _quietly(lambda: _held([frame_batch(frame, schema=schema)] if len(frame) else [], schema=schema))


def _quietly(task: Callable[[], _T]) -> _T | AccordError:
    return quietly(task, lost=_LOST)


def _held(batches: Iterable[Batch], *, schema: Schema) -> _Held:
    codings = [coding_of(column) for column in schema.read]
    columns: list[list[NDArray[Any]]] = [[np.empty(0, dtype=coding.type)] for coding in codings]
    names: list[pa.Array] = []
    for batch in batches:
        for coding, part, values in zip(codings, columns, batch.columns, strict=True):
            part.append(coding.encode(values))
        if batch.units is not None:
            names.append(batch.units)
    codes = Codes(tuple(np.concatenate(part) for part in columns))
    check = hashlib.sha256()
    for column in codes.columns:
        check.update(column.tobytes())
    if schema.unit is None:
        return _Held(codes, check.digest())
    together = pa.chunked_array(names, type=pa.dictionary(pa.int32(), pa.large_string())).unify_dictionaries()
    texts = together.chunk(0).dictionary.to_pylist() if together.num_chunks else []
    owners = units_by_name(names)
    check.update(repr(texts).encode(errors="surrogatepass"))
    check.update(owners.tobytes())
    return _Held(codes, check.digest(), tuple(texts), owners)


def _size(part: _Held | AccordError) -> tuple[int, bytes] | AccordError:
    return (part.held.size, part.check) if isinstance(part, _Held) else part


def _as_first_read(part: _Held | AccordError, check: bytes) -> bool:
    return isinstance(part, _Held) and part.check == check


# --- units: a shuffle of their names ----------------------------------------------------------------------------------


def _with_weights(client: Any, parts: list[Any], *, checks: list[bytes]) -> tuple[list[Any], int]:  # noqa: ANN401
    """Return the parts with weights, and the number of units."""
    buckets = min(_MOST_BUCKETS, len(parts))
    cut = [
        client.submit(_in_buckets, part, buckets, check, pure=False) for part, check in zip(parts, checks, strict=True)
    ]
    met = [
        client.submit(_met, [client.submit(operator.getitem, one, bucket, pure=False) for one in cut], pure=False)
        for bucket in range(buckets)
    ]
    counted = _answers(client, [client.submit(operator.getitem, one, 1, pure=False) for one in met])
    if any(isinstance(one, AccordError) for one in counted):
        raise WorkersLost(_CHANGED)
    ranked = [client.submit(operator.getitem, one, 0, pure=False) for one in met]
    weighted = [
        client.submit(
            _weighted,
            part,
            [client.submit(operator.getitem, one, place, pure=False) for one in ranked],
            check,
            pure=False,
        )
        for place, (part, check) in enumerate(zip(parts, checks, strict=True))
    ]
    return weighted, sum(int(one) for one in counted)


_Names = tuple[list[str], _Ints]


def _in_buckets(part: _Held | AccordError, buckets: int, check: bytes) -> list[_Names] | list[AccordError]:
    """Return the names of units in each bucket, and how many records of this part each has."""
    if isinstance(part, AccordError) or not _as_first_read(part, check):
        lost: list[AccordError] = [WorkersLost(_CHANGED)] * buckets
        return lost
    counts = np.bincount(_owners(part), minlength=len(part.names)).astype(np.int64)
    place = _bucket_of(part.names, buckets)
    inside = [np.flatnonzero(place == bucket) for bucket in range(buckets)]
    return [([part.names[one] for one in ours], counts[ours]) for ours in inside]


def _owners(part: _Held) -> _Ints:
    return np.empty(0, dtype=np.int64) if part.owners is None else part.owners


def _bucket_of(names: Sequence[str], buckets: int) -> _Ints:
    """Return the bucket of each name: the same on every machine."""
    return np.array([zlib.crc32(name.encode()) % buckets for name in names], dtype=np.int64)


_Ranked = tuple[_Ints, _Ints]


def _met(found: Sequence[_Names | AccordError]) -> tuple[list[_Ranked], int] | tuple[list[AccordError], AccordError]:
    """Return for each part how many records its units have in earlier parts and in all; and the number of units."""
    known = [one for one in found if not isinstance(one, AccordError)]
    if len(known) < len(found):
        lost: AccordError = WorkersLost(_CHANGED)
        return [lost for _ in found], lost
    total: dict[str, int] = {}
    before = []
    for names, counts in known:
        before.append(np.array([total.get(name, 0) for name in names], dtype=np.int64))
        for name, count in zip(names, counts.tolist(), strict=True):
            total[name] = total.get(name, 0) + count
    in_all = [np.array([total[name] for name in names], dtype=np.int64) for names, _ in known]
    return list(zip(before, in_all, strict=True)), len(total)


def _weighted(part: _Held | AccordError, ranked: Sequence[_Ranked | AccordError], check: bytes) -> _Held | AccordError:
    """Return the part with the weight of each record, by its rank among those of its unit in all parts before."""
    known = [one for one in ranked if not isinstance(one, AccordError)]
    if isinstance(part, AccordError) or not _as_first_read(part, check) or len(known) < len(ranked):
        return WorkersLost(_CHANGED)
    owners, units = _owners(part), len(part.names)
    place = _bucket_of(part.names, len(ranked))
    before, in_all = np.zeros(units, dtype=np.int64), np.ones(units, dtype=np.int64)
    for bucket, (first, all_of) in enumerate(known):
        before[place == bucket], in_all[place == bucket] = first, all_of
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=units)
    rank = np.empty(len(owners), dtype=np.int64)
    rank[order] = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    weights = weights_at(rank + before[owners], in_all[owners]).astype(np.uint16)
    return _Held(replace(part.held, weights=weights), check)


# --- counting ---------------------------------------------------------------------------------------------------------


def _run(client: Any, task: Callable[[Part], _Ints], parts: Sequence[Part]) -> list[_Ints]:  # noqa: ANN401 - dask's
    """Count every part where it is, and add up in a tree."""
    far = [part for part in parts if isinstance(part, _Far)]
    counts = [client.submit(_counted, task, part.future, part.check, pure=False) for part in far]
    while len(counts) > 1:
        counts = [
            client.submit(_added, counts[low : low + _FAN_IN], pure=False) for low in range(0, len(counts), _FAN_IN)
        ]
    (found,) = _answers(client, counts)
    if isinstance(found, WorkersLost):
        raise found
    if isinstance(found, AccordError):
        raise WorkersLost(_LOST)
    return [found]


def _recoded(part: _Held | AccordError, recode: Recode) -> Part | AccordError:
    return part if isinstance(part, AccordError) else _quietly(lambda: part.recoded(recode))


def _counted(task: Callable[[Part], _Ints], part: _Held | AccordError, check: bytes) -> _Ints | AccordError:
    if isinstance(part, AccordError):
        return part
    return _quietly(lambda: task(part)) if _as_first_read(part, check) else WorkersLost(_CHANGED)


def _added(counts: Sequence[_Ints | AccordError]) -> _Ints | AccordError:
    known = [one for one in counts if not isinstance(one, AccordError)]
    if len(known) == len(counts):
        total: _Ints = np.sum(known, axis=0)
        return total
    return next(one for one in counts if isinstance(one, AccordError))


def _answers(client: Any, futures: list[Any], *, told: Told | None = None) -> list[Any]:  # noqa: ANN401 - dask's
    return gathered(client, futures, lost=_LOST, told=told)
