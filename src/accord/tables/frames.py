"""Read the declared columns of a data frame, a mapping of arrays or a file; and give rows as the same kind of frame."""

import contextlib
import datetime as dt
import importlib
import zoneinfo
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.cells import as_label, bare, is_missing, is_of_pandas, is_plain
from accord.core.containers import column_of, library_of
from accord.core.errors import InvalidParameter, SchemaMismatch
from accord.tables.column import Column
from accord.tables.names import shown
from accord.tables.reader import (
    Batch,
    Convert,
    Table,
    Told,
    assembled,
    converted,
    from_text,
    from_typed,
    positions,
    read_table,
)
from accord.tables.schema import Schema

__all__ = ["FrameKind", "as_frame", "frame_batch", "kind_of", "read_data"]

FrameKind: TypeAlias = Literal["pyarrow", "pandas", "polars", "mapping"]
"""A library of data frames, or a mapping of names to arrays; files count as pyarrow."""

_WHAT = "the table"
_ZONES: Final = (dt.timezone, zoneinfo.ZoneInfo)
"""Whose code is Python's."""
_UNREADABLE: Final = "\0"
"""A text that no schema declares and that writes no number."""


def kind_of(data: Any) -> FrameKind:  # noqa: ANN401 - any container
    """Return what kind of frame this is; a path is read into one of pyarrow.

    Raises
    ------
    InvalidParameter
        If it is none.

    """
    if isinstance(data, (str, Path)):
        return "pyarrow"
    library = library_of(data)
    framed = getattr(data, "columns", None) is not None
    if library == "pyarrow" and isinstance(data, pa.Table):
        return "pyarrow"
    if library == "pandas" and framed:
        return "pandas"
    if library == "polars" and framed and hasattr(data, "to_arrow"):
        return "polars"
    if isinstance(data, Mapping):
        return "mapping"
    raise InvalidParameter(
        "data must be a data frame of pandas, polars or pyarrow, a mapping of names to arrays, or the path of a CSV or "
        f"Parquet file: this is a {type(data).__name__}."
    )


def read_data(data: Any, *, schema: Schema, told: Told | None = None) -> Table:  # noqa: ANN401 - any container
    """Read the declared columns, and the unit column if the schema names one; the others are not looked at.

    Formal guarantees
    -----------------
    - Alignment: as `Table`; each cell is read by itself and by the declared type of its column, never by the type of
      other cells.
    - Silence: the text of an error holds names of columns and counts, never a cell.
    - A frame of pyarrow or polars, and a path, are read as `read_table` reads the file. In arrays of numpy, lists and
      columns of pandas, NaN, NaT, NA and None are missing, and whole floats stand for whole numbers.
    - Not promised: that a refusal does not depend on the records, as in `read_table`.

    Raises
    ------
    InvalidParameter
        If this is no table.
    DataError, SchemaMismatch
        As `read_table`.

    """
    if isinstance(data, (str, Path)):
        return read_table(Path(data), schema=schema, told=told)
    return assembled([frame_batch(data, schema=schema)], schema=schema, what=_WHAT)


def frame_batch(data: Any, *, schema: Schema) -> Batch:  # noqa: ANN401 - any container
    """Return the records of a frame or a mapping; the guarantees are those of `read_data`.

    Raises
    ------
    InvalidParameter, SchemaMismatch
        As `read_data`.

    """
    kind = kind_of(data)
    if kind in {"pyarrow", "polars"}:
        return _typed(data if kind == "pyarrow" else data.to_arrow(), schema=schema)
    header = tuple(map(str, data.columns if kind == "pandas" else data.keys()))
    wanted = positions(header, names=_names(schema), what=_WHAT)
    if kind == "pandas":
        series = [data.iloc[:, place] for place in wanted]
    else:
        keys = tuple(data.keys())
        series = [data[keys[place]] for place in wanted]
    arrays = [_array(one, name=header[place]) for one, place in zip(series, wanted, strict=True)]
    if len({len(one) for one in arrays}) > 1:
        raise InvalidParameter("data must have columns of one length.")
    read = [_cells(one, column) for one, column in zip(arrays, schema.read, strict=False)]
    units = [_unit_cells(one, name=str(schema.unit)) for one in arrays[len(schema.read) :]]
    return _batch([*read, *units], _from_either, schema=schema)


def as_frame(table: pa.Table, *, kind: FrameKind) -> Any:  # noqa: ANN401 - other libraries' frames
    """Return a table of pyarrow as a frame of that kind."""
    match kind:
        case "pandas":
            return table.to_pandas()
        case "polars":
            return importlib.import_module("polars").from_arrow(table)
        case "mapping":
            return {
                name: np.asarray(table.column(name).combine_chunks().to_numpy(zero_copy_only=False))
                for name in table.column_names
            }
        case _:
            return table


def _names(schema: Schema) -> list[str]:
    return [column.name for column in schema.read] + ([schema.unit] if schema.unit is not None else [])


def _typed(table: pa.Table, *, schema: Schema) -> Batch:
    """Read a table of pyarrow as its Parquet file would be read."""
    wanted = positions(tuple(table.column_names), names=_names(schema), what=_WHAT)
    return _batch([table.column(place).combine_chunks() for place in wanted], from_typed, schema=schema)


def _batch(cells: list[pa.Array], convert: Convert, *, schema: Schema) -> Batch:
    return next(converted([cells], convert, schema=schema))


# --- arrays of numpy, lists, columns of pandas ------------------------------------------------------------------------


def _array(series: Any, *, name: str) -> NDArray[Any]:  # noqa: ANN401 - any container
    """Return a column as one array, each entry as it is."""
    try:
        found = column_of(series)
    except InvalidParameter:
        found = np.empty((0, 0))
    if found.ndim != 1:
        raise InvalidParameter(f"column {shown(name)} must have one entry a record, in a list or an array.")
    return found


def _cells(values: NDArray[Any], column: Column) -> pa.Array:
    """Return the cells of a column for pyarrow: numbers and dates of a declared type as these, all others as texts."""
    kind = values.dtype.kind
    missing = np.ma.getmaskarray(values)
    if kind == "M" and column.format is not None:
        stamps = np.asarray(values.astype("datetime64[s]"))
        return pa.array(stamps, mask=missing | np.isnat(stamps))
    if kind in "iuf" and column.is_number and column.format is None and values.dtype.itemsize <= 8:
        floats = kind == "f"
        numbers = np.asarray(values, dtype=np.float64 if floats else values.dtype)
        return pa.array(numbers, mask=missing | np.isnan(numbers) if floats else missing)
    return _as_texts(values, missing, column)


def _as_texts(values: NDArray[Any], missing: NDArray[np.bool_], column: Column) -> pa.Array:
    texts = [None if gone else _text(cell, column) for cell, gone in zip(values, missing, strict=True)]
    with contextlib.suppress(UnicodeEncodeError):
        return pa.array(texts, pa.large_string())
    return pa.array([None if text is None else _encodable(text) for text in texts], pa.large_string())


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _UNREADABLE
    return text


def _text(cell: object, column: Column) -> str | None:  # noqa: PLR0911 - one line a type
    """Return a cell as CSV would write it, None for what is missing; what CSV has no way for is unreadable."""
    if is_missing(cell):
        return None
    given = _plain(cell)
    if isinstance(given, (float, np.floating)) and column.is_number:
        return repr(float(given))
    match plain := as_label(given):
        case str():
            return plain
        case bool():
            return (column.true[0] if plain else column.false[0]) if column.kind == "boolean" else str(plain).lower()
        case int():
            return str(plain) if plain.bit_length() <= 1024 else _UNREADABLE
        case float():
            return repr(plain)
        case Decimal():
            return str(plain)
        case dt.datetime() | dt.date() if column.format is not None:
            return _written_date(plain, column.format)
        case _:
            return _UNREADABLE


def _written_date(when: dt.date, pattern: str) -> str:
    """Return a date as the column's format writes it; one with a time zone counts in UTC."""
    try:
        if isinstance(when, dt.datetime) and when.tzinfo is not None:
            when = _in_utc(when)
        return when.strftime(pattern)
    except (ValueError, OverflowError):
        return _UNREADABLE


def _in_utc(when: dt.datetime) -> dt.datetime:
    zone = when.tzinfo
    if any(type(zone) is own for own in _ZONES):
        return when.astimezone(dt.UTC)
    offset = bare(alone(lambda: dt.datetime.utcoffset(when), failed=None))  # a zone's own code
    if type(offset) is not dt.timedelta:
        raise ValueError
    return when.replace(tzinfo=dt.UTC) - offset


def _plain(cell: object) -> Any:  # noqa: ANN401 - a value of Python or numpy
    """Return a cell as a plain value, a time of pandas as one of Python in UTC if it has a zone; else as unreadable."""
    given: Any = bare(cell)
    kind = type(given)
    if is_of_pandas(kind):
        stamp = given.to_datetime64() if hasattr(given, "to_datetime64") else None
        found = None if stamp is None else stamp.astype("datetime64[us]").item()
        return found if isinstance(found, dt.datetime) else _UNREADABLE
    return given if is_plain(kind) else _UNREADABLE


def _unit_cells(values: NDArray[Any], *, name: str) -> pa.Array:
    """Return the cells of a unit column as texts: of texts, whole numbers and booleans alone."""
    found: list[str | None] = []
    for cell, gone in zip(values, np.ma.getmaskarray(values), strict=True):
        plain = None if gone else as_label(cell)
        if not (plain is None or type(plain) is str or type(plain) is int or type(plain) is bool):
            raise SchemaMismatch(f"unit column {shown(name)} must hold texts or whole numbers.")
        found.append(str(plain).lower() if isinstance(plain, bool) else None if plain is None else str(plain))
    try:
        return pa.array(found, pa.large_string())
    except UnicodeEncodeError:
        raise SchemaMismatch(f"unit column {shown(name)} has cells that are no text.") from None


def _from_either(cells: pa.Array, *, column: Column) -> NDArray[Any]:
    if pa.types.is_large_string(cells.type):
        return from_text(cells, column=column, decimal=".")
    return from_typed(cells, column=column)
