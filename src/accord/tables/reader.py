"""Read the declared columns of a CSV or Parquet file, row by row as the file has them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accord.errors import DataError, SchemaMismatch
from accord.tables._cells import (
    labels_from_text,
    labels_from_typed,
    numbers_from_text,
    numbers_from_typed,
    units_from_cells,
)
from accord.tables._csv import csv_batches, csv_header
from accord.tables._parquet import parquet_batches, parquet_header
from accord.tables._source import Format, data_format
from accord.tables.names import listed, normal_form, shown
from accord.tables.schema import Column, Schema
from accord.tables.table import Table

__all__ = ["read_header", "read_table"]

_MOST_NAMES = 12


def read_header(path: Path) -> tuple[str, ...]:
    """Return the names of the columns of a CSV or Parquet file, without looking at a row.

    Raises
    ------
    DataError
        If the file is missing, empty, damaged, or has no header.

    """
    return _header(path, data_format(path))


def read_table(path: Path, *, schema: Schema) -> Table:
    """Read the declared columns, and the unit column if the schema names one.

    Formal guarantees
    -----------------
    - Alignment: as `Table`; no type is guessed, no row is dropped, and no other column is read.
    - Silence: the text of an error holds names of columns and files, counts and positions, never a cell.
    - Not promised: that a refusal does not depend on the records; it does with ``unreadable = "refuse"``.

    Parameters
    ----------
    path
        A CSV file (UTF-8, commas, a header; gzip or not) or a Parquet file, told apart by its first bytes.
    schema
        What to read, and how.

    Raises
    ------
    DataError
        If the file is missing, empty, damaged, or holds no records.
    SchemaMismatch
        If a declared column is not there, or its cells are not as declared.

    """
    form = data_format(path)
    header = _header(path, form)
    names = [column.name for column in schema.columns] + ([schema.unit] if schema.unit is not None else [])
    wanted = _positions(header, names=names, path=path)
    parts: list[list[NDArray[Any]]] = [[] for _ in schema.columns]
    units: list[pa.Array] = []
    for batch in _batches(path, form, header=header, wanted=wanted):
        for column, cells, part in zip(schema.columns, batch, parts, strict=False):
            part.append(_converted(cells, column=column, typed=form == "parquet"))
        units.extend(batch[len(schema.columns) :])
    if sum(len(part) for part in parts[0]) == 0:
        raise DataError(f"the data file {shown(path.name)} holds no records, only a header.")
    records = _records([np.concatenate(part) for part in parts], schema=schema)
    return Table(
        records=records,
        units=units_from_cells(units, name=schema.unit) if schema.unit is not None else None,
        schema=schema,
    )


def _header(path: Path, form: Format) -> tuple[str, ...]:
    return parquet_header(path) if form == "parquet" else csv_header(path, compressed=form == "csv.gz")


def _batches(path: Path, form: Format, *, header: Sequence[str], wanted: Sequence[int]) -> Iterator[list[pa.Array]]:
    if form == "parquet":
        return parquet_batches(path, wanted=[header[position] for position in wanted])
    return csv_batches(path, compressed=form == "csv.gz", width=len(header), wanted=wanted)


def _positions(header: Sequence[str], *, names: Sequence[str], path: Path) -> list[int]:
    """Return where each name stands in the header."""
    forms = [normal_form(name) for name in header]
    found = []
    for name in names:
        count = forms.count(normal_form(name))
        if count > 1:
            raise SchemaMismatch(
                f"the data file {shown(path.name)} has {count} columns named {shown(name)}: rename them."
            )
        if count == 0:
            raise SchemaMismatch(_not_there(name, header=header, names=names, path=path))
        found.append(forms.index(normal_form(name)))
    return found


def _not_there(name: str, *, header: Sequence[str], names: Sequence[str], path: Path) -> str:
    """Say that a column is missing. The first line is only repeated if it is plainly a header, and not a record."""
    text = f"the data file {shown(path.name)} has no column {shown(name)}"
    close = [other for other in header if other.strip().casefold() == name.strip().casefold()]
    if close:
        return f"{text}, but one named {shown(close[0])}: names must be equal, spaces and capitals included."
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        return f"{text}: its first line has no comma, and accord reads files whose cells are separated by commas."
    known = {normal_form(other) for other in names} & {normal_form(other) for other in header}
    if known and len(header) <= _MOST_NAMES:
        return f"{text}; its columns are {listed(header)}."
    return f"{text}: the first line must name the columns, and its {len(header)} names must include the schema's."


def _converted(cells: pa.Array, *, column: Column, typed: bool) -> NDArray[Any]:
    if column.kind == "number":
        return numbers_from_typed(cells, column=column) if typed else numbers_from_text(cells, column=column)
    return labels_from_typed(cells, column=column) if typed else labels_from_text(cells, column=column)


def _records(columns: Sequence[NDArray[Any]], *, schema: Schema) -> NDArray[Any]:
    if all(column.kind == "number" for column in schema.columns):
        return np.column_stack(columns)
    records = np.empty((len(columns[0]), len(columns)), dtype=object)
    for place, (column, values) in enumerate(zip(schema.columns, columns, strict=True)):
        if column.kind == "category":
            records[:, place] = np.array([*column.categories, None], dtype=object)[values]
        else:
            records[:, place] = values
            records[np.isnan(values), place] = None
    return records
