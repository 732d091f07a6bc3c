"""A declared table as codes in parts: read once, a batch at a time, and held in a few bytes a record."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accord.core.errors import DataError
from accord.marginals import NumericBinning
from accord.marginals.engine import WHOLE, Codes, CountingEngine, Part, Run, in_threads, type_for, weights_of
from accord.marginals.parts import CodeStore
from accord.synthesis.cuts import public_binning
from accord.tables import Column, Schema, Table
from accord.tables.cells import units_by_name
from accord.tables.column import LARGEST
from accord.tables.reader import Batch

__all__ = ["CodedTable", "coded_batches", "coded_of", "coding_of"]

_ROWS = 1 << 18


@final
@dataclass(frozen=True, slots=True)
class Coding:
    """How the cells of a column become codes: a function of the schema and of each cell by itself.

    Parameters
    ----------
    size
        Number of codes.
    binning
        Of numbers; None for labels, whose codes are their positions, the last one for missing cells.

    """

    size: int
    binning: NumericBinning | None

    def encode(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the code of each cell, as `Table.columns` holds them."""
        kind = type_for(self.size)
        if self.binning is not None:
            return self.binning.encode(values).astype(kind)
        return np.where(values < 0, self.size - 1, values).astype(kind)


def coding_of(column: Column) -> Coding | None:
    """Return the coding of a column that needs no look at the data, None for the others."""
    if column.is_label:
        return Coding(len(column.categories) + 1, None)
    binning = public_binning(column)
    return None if binning is None else Coding(binning.cells + 1, binning)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class CodedTable:
    """Records of a declared table in parts, of which everything that the schema decides is coded.

    Formal guarantees
    -----------------
    - Each code is a function of the schema and of its cell; records stand in the order of the table, so that replacing
      one record replaces one code in each column.
    - The engine's counts, and so a release with given noise, do not depend on batches, parts or places.

    Parameters
    ----------
    schema
        What was declared.
    parts
        The columns that have a `coding_of`, in their order.
    sizes
        Number of records in each part.
    numbers
        The other columns, numbers that are cut privately, with the units of all records.
    weights
        Of each record; None where each is a unit of its own and weighs 1, or where parts have them.
    counted
        Number of units where it was counted elsewhere.
    run
        How the parts are visited where they are elsewhere; then every column is in them.

    """

    schema: Schema
    parts: tuple[Part, ...]
    sizes: tuple[int, ...]
    numbers: Table
    weights: NDArray[Any] | None = None
    counted: int | None = None
    run: Run | None = None

    @property
    def several_records(self) -> bool:
        """Whether a unit may have several records."""
        return self.numbers.units is not None or (self.counted is not None and self.schema.unit is not None)

    @cached_property
    def units(self) -> int:
        """Number of units of privacy, public."""
        if self.counted is not None:
            return self.counted
        return sum(self.sizes) if self.numbers.units is None else int(self.numbers.units.max()) + 1

    def binnings(self, found: Sequence[NumericBinning]) -> tuple[NumericBinning | None, ...]:
        """Return the binning of each column that is read, None for labels; ``found`` are those of `numbers`."""
        left = iter(found)
        binnings = []
        for column in self.schema.read:
            coding = coding_of(column)
            binnings.append(next(left) if coding is None else coding.binning)
        return tuple(binnings)

    def engine(self, binnings: Sequence[NumericBinning | None]) -> CountingEngine:
        """Return what counts the tables of these cells."""
        codings = [coding_of(column) for column in self.schema.read]
        shape: list[int] = []
        for coding, binning in zip(codings, binnings, strict=True):
            shape.append(coding.size if coding is not None else 0 if binning is None else binning.cells + 1)
        total = self.units * (WHOLE if self.several_records else 1)
        if self.run is not None:
            return CountingEngine(
                parts=self.parts, shape=tuple(shape), total=total, lookups=(None,) * len(shape), run=self.run
            )
        cut = [binning for coding, binning in zip(codings, binnings, strict=True) if coding is None]
        parts: list[Part] = []
        for part, high, size in zip(self.parts, accumulate(self.sizes), self.sizes, strict=True):
            low = high - size
            more = [
                Coding(binning.cells + 1, binning).encode(values[low:high])
                for binning, values in zip(cut, self.numbers.columns, strict=True)
                if binning is not None
            ]
            weights = None if self.weights is None else self.weights[low:high]
            parts.append(_Joined(part, tuple(more), tuple(coding is not None for coding in codings), weights))
        if len(parts) == 1 and isinstance(self.parts[0], Codes):  # it may be cut for threads
            return CountingEngine.of(parts[0].codes(), tuple(shape), total=total)
        return CountingEngine(
            parts=tuple(parts), shape=tuple(shape), total=total, lookups=(None,) * len(shape), run=in_threads
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    """A part with the columns that were cut privately put between the others, and with weights."""

    part: Part
    more: tuple[NDArray[Any], ...]
    stored: tuple[bool, ...]
    weights: NDArray[Any] | None

    def codes(self) -> Codes:
        stored, more = iter(self.part.codes().columns), iter(self.more)
        return Codes(tuple(next(stored if here else more) for here in self.stored), self.weights)


def coded_batches(batches: Iterable[Batch], *, schema: Schema, what: str, memory: int | None = None) -> CodedTable:
    """Read batches of a declared table, and keep what the tables need of them.

    Parameters
    ----------
    batches
        As from `accord.tables.read_batches`.
    schema
        What was declared.
    what
        What a refusal calls the data.
    memory
        Bytes of codes that stay in memory, as in `CodeStore`.

    Raises
    ------
    DataError
        If there are no records, or no room for them.

    """
    codings = [coding_of(column) for column in schema.read]
    store = CodeStore([np.dtype(type_for(coding.size)) for coding in codings if coding is not None], memory=memory)
    numbers: list[list[NDArray[Any]]] = [[] for coding in codings if coding is None]
    names: list[pa.Array] = []
    count = 0
    for batch in batches:
        count += len(batch)
        pairs = list(zip(codings, schema.read, batch.columns, strict=True))
        store.add([coding.encode(values) for coding, _, values in pairs if coding is not None], count=len(batch))
        private = [_within_size(column, values) for coding, column, values in pairs if coding is None]
        for part, values in zip(numbers, private, strict=True):
            part.append(values)
        if batch.units is not None:
            names.append(batch.units)
    if count == 0:
        raise DataError(f"{what} holds no records, only a header.")
    whole: list[NDArray[Any]] = []
    while numbers:  # the parts of a column go as soon as it is put together
        whole.append(np.concatenate(numbers.pop(0)))
    units = units_by_name(names) if schema.unit is not None else None
    return _table(schema, store, numbers=whole, units=units)


def coded_of(table: Table) -> CodedTable:
    """Return a table in memory as codes."""
    codings = [coding_of(column) for column in table.schema.read]
    store = CodeStore([np.dtype(type_for(coding.size)) for coding in codings if coding is not None])
    pairs = list(zip(codings, table.schema.read, table.columns, strict=True))
    for low in range(0, len(table), _ROWS):
        high = min(low + _ROWS, len(table))
        codes = [coding.encode(values[low:high]) for coding, _, values in pairs if coding is not None]
        store.add(codes, count=high - low)
    numbers = [_within_size(column, values) for coding, column, values in pairs if coding is None]
    return _table(table.schema, store, numbers=numbers, units=table.units)


def _table(
    schema: Schema, store: CodeStore, *, numbers: list[NDArray[Any]], units: NDArray[np.int64] | None
) -> CodedTable:
    stored = store.parts()
    private = tuple(column for column in schema.read if coding_of(column) is None)
    return CodedTable(
        schema=schema,
        parts=tuple(part for part, _ in stored),
        sizes=tuple(size for _, size in stored),
        numbers=Table(columns=tuple(numbers), units=units, schema=replace(schema, columns=private)),
        weights=None if units is None else weights_of(units).astype(np.uint16),
    )


def _within_size(column: Column, values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers of at most 1e100 in size: a function of each cell, and squares are numbers."""
    return np.clip(values, -LARGEST, LARGEST) if column.bounds is None else values
