"""A declared table as codes in parts: read once, a batch at a time, and held in a few bytes a record."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accord.core.errors import DataError
from accord.marginals import Column as CodedColumn
from accord.marginals import Domain, Grid, NumericBinning
from accord.marginals.engine import (
    WHOLE,
    Codes,
    CountingEngine,
    Groups,
    Part,
    Recode,
    Run,
    in_threads,
    type_for,
    weights_of,
)
from accord.marginals.parts import CodeStore
from accord.tables import Column, Schema, Table
from accord.tables.cells import units_by_name
from accord.tables.reader import Batch

__all__ = ["CodedTable", "coded_batches", "coded_of", "coding_of", "decimals_of", "declared_edges", "domain_of"]

_ROWS = 1 << 18


@final
@dataclass(frozen=True, slots=True)
class Coding:
    """How the cells of a column become codes: a function of the schema and of each cell by itself.

    Parameters
    ----------
    column
        Of the codes.
    numbers
        The declared edges or the grid of numbers; None for labels, whose codes are their positions, the last one for
        missing cells.

    """

    column: CodedColumn
    numbers: NumericBinning | Grid | None

    @property
    def type(self) -> np.dtype[Any]:
        """The smallest type that holds all codes."""
        return np.dtype(type_for(self.column.codes + self.column.uncounted))

    def encode(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the code of each cell, as `Table.columns` holds them."""
        if self.numbers is not None:
            return self.numbers.encode(values).astype(self.type)
        return np.where(values < 0, self.column.values, values).astype(self.type)


def coding_of(column: Column) -> Coding:
    """Return how a column is coded; the last code is that of missing cells, which are not counted if it is required."""
    never = column.required
    if column.is_label:
        kind = "ordered" if column.kind == "ordinal" else "category"
        size = len(column.categories) + (not never)
        return Coding(CodedColumn(column.name, size, kind=kind, missing=not never, uncounted=never), None)
    edges = declared_edges(column)
    if edges is not None:
        return Coding(edges.column(column.name, uncounted=never), edges)
    grid = Grid(bounds=column.bounds, decimals=decimals_of(column), missing=True)
    return Coding(CodedColumn.of_grid(column.name, grid, uncounted=never), grid)


def declared_edges(column: Column) -> NumericBinning | None:
    """Return the cells that a schema declares for a column of numbers, None where it declares none."""
    if not column.edges:
        return None
    return NumericBinning(column.edges, decimals=decimals_of(column), missing=True)


def decimals_of(column: Column) -> int | None:
    """Return how many decimals numbers of a column have; days and seconds are whole."""
    return 0 if column.format is not None or column.kind == "integer" else column.decimals


def domain_of(schema: Schema) -> Domain:
    """Return the codes of all columns that are read."""
    return Domain(coding_of(column).column for column in schema.read)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class CodedTable:
    """Records of a declared table in parts, coded as the schema says.

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
        The columns that are read, in their order.
    sizes
        Number of records in each part.
    owners
        The number of each record's unit; None where each is a unit of its own, or where parts have weights.
    counted
        Number of units where it was counted elsewhere.
    run
        How the parts are visited where they are elsewhere.

    """

    schema: Schema
    parts: tuple[Part, ...]
    sizes: tuple[int, ...]
    owners: NDArray[np.int64] | None = None
    counted: int | None = None
    run: Run | None = None

    @property
    def several_records(self) -> bool:
        """Whether a unit may have several records."""
        return self.owners is not None or (self.counted is not None and self.schema.unit is not None)

    @cached_property
    def units(self) -> int:
        """Number of units of privacy, public."""
        if self.counted is not None:
            return self.counted
        return sum(self.sizes) if self.owners is None else int(self.owners.max(initial=-1)) + 1

    def engine(self) -> CountingEngine:
        """Return what counts the tables of these records."""
        domain = domain_of(self.schema)
        codes, uncounted = domain.codes, domain.uncounted
        weights = None if self.owners is None else weights_of(self.owners).astype(np.uint16)
        total = self.units * (WHOLE if self.several_records else 1)
        whole = CountingEngine(
            parts=(), shape=codes, total=total, groups=(Groups(),) * len(codes), run=in_threads, uncounted=uncounted
        )
        if self.run is not None:
            return replace(whole, parts=self.parts, run=self.run)
        if len(self.parts) == 1 and isinstance(self.parts[0], Codes):  # it may be cut for threads
            return CountingEngine.of(Codes(self.parts[0].columns, weights), codes, total=total, uncounted=uncounted)
        parts: list[Part] = []
        low = 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            if weights is None:
                parts.append(part)
            else:
                own = weights[low : low + size]
                parts.append(Codes(part.columns, own) if isinstance(part, Codes) else _Weighted(part, own))
            low += size
        return replace(whole, parts=tuple(parts))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Weighted:
    """A part that is not in memory, with the weights of its records."""

    part: Part
    weights: NDArray[Any]

    def codes(self) -> Codes:
        return Codes(self.part.codes().columns, self.weights)

    def recoded(self, recode: Recode) -> Part:
        return _Weighted(self.part.recoded(recode), self.weights)


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
    store = CodeStore([coding.type for coding in codings], memory=memory)
    names: list[pa.Array] = []
    count = 0
    for batch in batches:
        count += len(batch)
        store.add(
            [coding.encode(values) for coding, values in zip(codings, batch.columns, strict=True)], count=len(batch)
        )
        if batch.units is not None:
            names.append(batch.units)
    if count == 0:
        raise DataError(f"{what} holds no records, only a header.")
    return _table(schema, store, owners=units_by_name(names) if schema.unit is not None else None)


def coded_of(table: Table) -> CodedTable:
    """Return a table in memory as codes."""
    codings = [coding_of(column) for column in table.schema.read]
    store = CodeStore([coding.type for coding in codings])
    for low in range(0, len(table), _ROWS):
        high = min(low + _ROWS, len(table))
        codes = [coding.encode(values[low:high]) for coding, values in zip(codings, table.columns, strict=True)]
        store.add(codes, count=high - low)
    return _table(table.schema, store, owners=table.units)


def _table(schema: Schema, store: CodeStore, *, owners: NDArray[np.int64] | None) -> CodedTable:
    stored = store.parts()
    return CodedTable(
        schema=schema,
        parts=tuple(part for part, _ in stored),
        sizes=tuple(size for _, size in stored),
        owners=owners,
    )
