"""Read the declared columns of a data frame, a mapping of arrays or a file; and give rows as the same kind of frame."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accord.core.cells import as_label
from accord.core.containers import column_of
from accord.core.errors import InvalidParameter, SchemaMismatch
from accord.tables.dtypes import FrameKind, kind_of
from accord.tables.loose_cells import loose_cells, loose_values
from accord.tables.names import shown
from accord.tables.reader import (
    Batch,
    Convert,
    Table,
    Told,
    assembled,
    converted,
    from_typed,
    positions,
    read_table,
)
from accord.tables.schema import Schema

__all__ = ["as_frame", "frame_batch", "read_data"]

_WHAT = "the table"


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
    read = [loose_cells(one, column) for one, column in zip(arrays, schema.read, strict=False)]
    units = [_unit_cells(one, name=str(schema.unit)) for one in arrays[len(schema.read) :]]
    return _batch([*read, *units], loose_values, schema=schema)


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


def _batch(cells: list[Any], convert: Convert, *, schema: Schema) -> Batch:
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
