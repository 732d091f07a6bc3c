"""Count tables of coded records: every look at records that the table road takes goes through here.

Records are held column by column, as codes of one, two or four bytes, in one part or many. A table is asked for by its
columns; a look-up a column says which group each code belongs to, so that codes are put together, or told apart again,
without a second pass over cells. All tables that are asked for together are counted in one pass over the rows. Counts
are whole numbers: how the rows are cut into parts, and in which order parts are added up, changes nothing.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from accord.core.records import Records

__all__ = [
    "MOST_CELLS",
    "WHOLE",
    "Codes",
    "CountingEngine",
    "Groups",
    "Part",
    "Recode",
    "Request",
    "Run",
    "Tables",
    "coded",
    "count_part",
    "in_batches",
    "type_for",
    "unit_weights",
    "weights_at",
    "weights_of",
]

Ints = NDArray[np.int64]
Tables = Sequence[tuple[int, ...]]
WHOLE = 2520
"""What a unit's records weigh together where units are given: divisible by 1 to 10, so that few weights are uneven."""

MOST_CELLS = 1 << 24
"""Cells of the tables that are counted at once: 128 MB. What is asked for beyond is counted in further passes."""

_CHUNK = 1 << 14
"""Rows whose codes are looked up at once: those of some dozen columns stay in the cache of a core."""
_FEW = 1 << 17
"""Up to so many rows threads cost more than they give."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """The codes of some records.

    Parameters
    ----------
    columns
        One array of unsigned whole numbers a column, shape (n,) each.
    weights
        Whole numbers of any type, shape (n,); None where each record weighs 1.

    """

    columns: tuple[NDArray[Any], ...]
    weights: NDArray[Any] | None = None

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.columns[0])

    def codes(self) -> "Codes":
        """Return itself: this part is in memory."""
        return self

    def recoded(self, recode: "Recode") -> "Part":
        """Return the same records in other codes, which are looked up when they are first asked for, and kept."""
        return _Recoded(self, recode)

    def between(self, low: int, high: int) -> "Codes":
        """Return some of the records, without copying them."""
        weights = None if self.weights is None else self.weights[low:high]
        return Codes(tuple(column[low:high] for column in self.columns), weights)


class Part(Protocol):
    """Some of the records, wherever they are: in memory, in a file, on another machine."""

    def codes(self) -> Codes:
        """Return their codes, by the same columns in every part."""
        ...

    def recoded(self, recode: "Recode") -> "Part":
        """Return the same records in other codes, looked up once and kept where these are, if there is room."""
        ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Which group each code belongs to; without either, its own.

    Parameters
    ----------
    starts
        The first code of each run of codes that belong together, increasing; codes before the first one belong to it.
    group_of
        The group of each run, or of each code where there are no runs.

    """

    starts: NDArray[np.uint32] | None = None
    group_of: Ints | None = None

    @staticmethod
    def runs(starts: Ints) -> "Groups":
        """Return groups that are runs of codes."""
        return Groups(starts=starts.astype(np.uint32))

    def then(self, group_of: Ints) -> "Groups":
        """Return the groups of these groups."""
        return Groups(self.starts, group_of if self.group_of is None else group_of[self.group_of])

    def of(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the group of each code."""
        found: NDArray[Any] = codes
        if self.starts is not None:
            found = np.searchsorted(self.starts[1:], codes.astype(np.uint32, copy=False), side="right")
        return found if self.group_of is None else self.group_of[found]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Recode:
    """From codes to their groups, in as few bytes as these need.

    Parameters
    ----------
    groups
        Of each column.
    shape
        Number of groups of each column.

    """

    groups: tuple[Groups, ...]
    shape: tuple[int, ...]

    @property
    def types(self) -> tuple[np.dtype[Any], ...]:
        """Of the groups of each column."""
        return tuple(np.dtype(type_for(size)) for size in self.shape)

    def __call__(self, codes: Codes) -> Codes:
        """Return the groups of some records as codes."""
        columns = zip(self.groups, codes.columns, self.types, strict=True)
        return Codes(tuple(lookup.of(column).astype(kind) for lookup, column, kind in columns), codes.weights)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Which tables to count: public, and small beside the records.

    Parameters
    ----------
    tables
        Columns of each table; the last one changes fastest.
    shape
        Number of groups of each column.
    groups
        Of each column.

    """

    tables: Tables
    shape: tuple[int, ...]
    groups: tuple[Groups, ...]

    @property
    def cells(self) -> list[int]:
        """Number of cells of each table."""
        return [math.prod(self.shape[column] for column in table) for table in self.tables]


Run: TypeAlias = Callable[[Callable[[Part], Ints], Sequence[Part]], Iterable[Ints]]
"""Apply a function to every part, in any order and place, each once, and return what came out."""


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CountingEngine:
    """Exact weights of the cells of any tables of the records.

    Formal guarantees
    -----------------
    - Counts: entry c of a table is the sum of the weights of the records whose groups are those of cell c. They do not
      depend on how records are cut into parts, nor on threads: `tests/exact/test_engine.py`.
    - Sensitivity: replacing the records of one unit by others of the same weight w moves at most w from the cells of
      any one table and adds at most w to them: by 2 w in L1, and by at most sqrt(2) w in L2. A record that adds to no
      cell of a table moves less.
    - Not promised: any privacy. Counts are functions of the records; they go to mechanisms and nowhere else.

    Parameters
    ----------
    parts
        The records, in parts.
    shape
        Number of groups of each column.
    total
        Sum of all weights, public.
    groups
        Of each column.
    run
        How the parts are visited; by threads of this process by default.
    uncounted
        Columns whose records may hold one code more, behind the last: such a record adds to no table of the column.

    """

    parts: tuple[Part, ...]
    shape: tuple[int, ...]
    total: int
    groups: tuple[Groups, ...]
    run: Run
    uncounted: frozenset[int] = frozenset()

    @staticmethod
    def of(
        codes: Codes, shape: tuple[int, ...], *, total: int, uncounted: frozenset[int] = frozenset()
    ) -> "CountingEngine":
        """Return an engine over records in memory, cut into one part a thread where they are many."""
        threads = 1 if codes.size <= _FEW else _threads()
        ends = np.linspace(0, codes.size, threads + 1).astype(np.int64).tolist()
        parts = tuple(codes.between(low, high) for low, high in pairwise(ends))
        groups = (Groups(),) * len(shape)
        return CountingEngine(parts=parts, shape=shape, total=total, groups=groups, run=in_threads, uncounted=uncounted)

    def grouped(self, group_of: Sequence[Ints], shape: tuple[int, ...]) -> "CountingEngine":
        """Return an engine of the same records whose groups, as they are now, are put together."""
        found = [
            np.append(one, size) if place in self.uncounted else one
            for place, (one, size) in enumerate(zip(group_of, shape, strict=True))
        ]
        groups = tuple(groups.then(one) for groups, one in zip(self.groups, found, strict=True))
        return replace(self, shape=shape, groups=groups)

    def in_runs(self, starts: Mapping[int, Ints]) -> "CountingEngine":
        """Return an engine of the same records whose codes in some columns are put together in runs, by first codes."""
        groups, shape = list(self.groups), list(self.shape)
        for column, first in starts.items():
            every = np.append(first, self.shape[column]) if column in self.uncounted else first
            groups[column], shape[column] = Groups.runs(every), len(first)
        return replace(self, shape=tuple(shape), groups=tuple(groups))

    def recoded(self) -> "CountingEngine":
        """Return an engine whose codes are the groups as they are now: each part looks them up once, where it is.

        Groups of a few hundred take a byte or two a cell where fine codes take four and a search each time.
        """
        recode = Recode(self.groups, self._held)
        parts = tuple(part.recoded(recode) for part in self.parts)
        return replace(self, parts=parts, groups=(Groups(),) * len(self.shape))

    def count(self, tables: Tables) -> list[Ints]:
        """Return the weight of each cell of tables, each flat; the last column of a table changes fastest."""
        found: list[Ints] = []
        for some in in_batches(tables, self._held, most=MOST_CELLS):
            request = Request(some, self._held, self.groups)
            counts = np.zeros(sum(request.cells), dtype=np.int64)
            for one in self.run(_Counting(request), self.parts):
                counts += one
            each = np.split(counts, np.cumsum(request.cells)[:-1])
            found.extend(self._counted(table, flat) for table, flat in zip(some, each, strict=True))
        return found

    @property
    def _held(self) -> tuple[int, ...]:
        """Number of groups of each column, with that of records which add to none of its tables."""
        return tuple(size + (place in self.uncounted) for place, size in enumerate(self.shape))

    def _counted(self, table: tuple[int, ...], counts: Ints) -> Ints:
        """Return the counts of a table without those of records that add to none."""
        if self.uncounted.isdisjoint(table):
            return counts
        every = counts.reshape([self._held[column] for column in table])
        return np.ascontiguousarray(every[tuple(slice(self.shape[column]) for column in table)]).ravel()

    def table(self, columns: tuple[int, ...]) -> Ints:
        """Return the weight of each cell of one table, flat."""
        return self.count([columns])[0]


def in_batches(tables: Tables, shape: Sequence[int], *, most: int) -> Iterable[Tables]:
    """Cut a list of tables into pieces of at most so many cells, or of one table that has more."""
    some: list[tuple[int, ...]] = []
    room = most
    for table in tables:
        cells = math.prod(shape[column] for column in table)
        if some and cells > room:
            yield some
            some, room = [], most
        some.append(table)
        room -= cells
    if some:
        yield some


@final
class _Recoded:
    """A part in memory whose codes are the groups of another's, kept once they are known."""

    __slots__ = ("_codes", "_kept", "_recode")

    def __init__(self, codes: Codes, recode: Recode) -> None:
        self._codes, self._recode = codes, recode
        self._kept: Codes | None = None

    def codes(self) -> Codes:
        if self._kept is None:
            self._kept = self._recode(self._codes)
        return self._kept

    def recoded(self, recode: Recode) -> Part:
        return _Recoded(self.codes(), recode)


@final
@dataclass(frozen=True, slots=True)
class _Counting:
    """The task that is sent to where a part is."""

    request: Request

    def __call__(self, part: Part) -> Ints:
        return count_part(part.codes(), self.request)


def in_threads(task: Callable[[Part], Ints], parts: Sequence[Part]) -> Iterable[Ints]:
    """Visit parts by threads of this process, each with a sum of its own; the loops hold no lock."""
    threads = min(_threads(), len(parts))
    shares = [parts[place::threads] for place in range(threads)]
    if threads <= 1:
        return [_sum(task, share) for share in shares]
    with ThreadPoolExecutor(max_workers=threads) as pool:
        return list(pool.map(partial(_sum, task), shares))


def _sum(task: Callable[[Part], Ints], parts: Sequence[Part]) -> Ints:
    found = task(parts[0])
    for part in parts[1:]:
        found += task(part)
    return found


def _threads() -> int:
    """Return how many threads to use: as many as those of linear algebra may, or one a core."""
    stated = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, int(stated))) if stated.isascii() and stated.isdigit() else cores


def coded(codes: NDArray[Any], shape: Sequence[int], *, weights: Ints | None = None) -> Codes:
    """Return codes of shape (n, d), each in the domain of its column, column by column in as few bytes as they need."""
    columns = [np.ascontiguousarray(codes[:, place], dtype=type_for(size)) for place, size in enumerate(shape)]
    return Codes(tuple(columns), weights)


def type_for(size: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type for codes below ``size``."""
    return np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.uint32


def unit_weights(records: Records) -> Ints | None:
    """Return the weight of each record, shape (n,); None where each is a unit of its own and weighs 1."""
    return None if records.owners is None else weights_of(records.owners)


def weights_of(owners: NDArray[Any]) -> Ints:
    """Return the weight of each record, shape (n,), of the numbers of their units.

    The r records of a unit share `WHOLE` evenly in whole numbers, in the order of the file: record j of them weighs
    ``floor((j + 1) WHOLE / r) - floor(j WHOLE / r)``.
    """
    counts = np.bincount(owners)
    order = np.argsort(owners, kind="stable")
    starts = np.cumsum(counts) - counts
    rank = np.empty(len(owners), dtype=np.int64)
    rank[order] = np.arange(len(owners)) - np.repeat(starts, counts)
    return weights_at(rank, counts[owners])


def weights_at(rank: Ints, size: Ints) -> Ints:
    """Return the weight of records by their rank, from 0, among those of their unit, and how many it has."""
    return (rank + 1) * WHOLE // size - rank * WHOLE // size


def count_part(codes: Codes, request: Request) -> Ints:
    """Return the tables of a request on some records, one after the other, flat.

    Examples
    --------
    >>> codes = coded(np.array([[0, 1], [1, 1], [0, 0], [0, 1]]), (2, 2))
    >>> count_part(codes, Request([(0, 1), (1,)], (2, 2), (Groups(), Groups()))).tolist()
    [1, 2, 0, 1, 1, 3]

    """
    from accord.marginals.kernels import add_counts  # noqa: PLC0415 - compiled at its first use: slow to import

    used = sorted({column for table in request.tables for column in table})
    row_of = {column: row for row, column in enumerate(used)}
    widest = max(map(len, request.tables))
    axes = np.full((len(request.tables), widest), -1, dtype=np.int64)
    strides = np.zeros((len(request.tables), widest), dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(request.cells)]).astype(np.int64)
    for place, table in enumerate(request.tables):
        axes[place, : len(table)] = [row_of[column] for column in table]
        sizes = [request.shape[column] for column in table]
        strides[place, : len(table)] = [math.prod(sizes[axis + 1 :]) for axis in range(len(table))]
    counts = np.zeros(starts[-1], dtype=np.int64)
    groups = np.empty((len(used), min(_CHUNK, max(1, codes.size))), dtype=np.uint32)
    ones = np.ones(groups.shape[1], dtype=np.int64)
    for low in range(0, codes.size, _CHUNK):
        piece = codes.between(low, low + _CHUNK)
        for row, column in enumerate(used):
            groups[row, : piece.size] = request.groups[column].of(piece.columns[column])
        weights = ones[: piece.size] if piece.weights is None else piece.weights.astype(np.int64)
        add_counts(groups, weights, axes, strides, starts, counts)
    return counts
