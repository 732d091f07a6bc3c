"""From the cells of one column to numbers, to categories, or to units, by the rules of the schema."""

import contextlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from accord.errors import SchemaMismatch
from accord.tables.names import shown
from accord.tables.schema import Column

__all__ = ["labels_from_text", "labels_from_typed", "numbers_from_text", "numbers_from_typed", "units_from_cells"]

_Floats = NDArray[np.float64]
_WHOLE_LIMIT = 2.0**53
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE = r"^[+-]?[0-9]+$"


def numbers_from_text(cells: pa.Array, *, column: Column) -> _Floats:
    """Return float64 with NaN for missing; ASCII spaces around a number or a missing token are ignored.

    A number is written as in Python, in ASCII digits and without underscores; it must be finite, and below 2^53 in size
    if it is written as a whole number, because beyond two of them could become one.
    """
    if column.missing:
        cells = pc.ascii_trim_whitespace(cells)
        cells = _blanked(cells, pc.is_in(cells, value_set=_texts([token.strip() for token in column.missing])))
    with contextlib.suppress(pa.ArrowInvalid):
        values = _floats(pc.cast(cells, pa.float64()))
        # The usual case. Null is NaN by now, so a finite count tells whether each written cell is a plain number.
        sizes = np.abs(values)
        if np.count_nonzero(sizes < _WHOLE_LIMIT) == len(cells) - cells.null_count:
            return values
    return _careful(pc.ascii_trim_whitespace(cells), column=column)


def _careful(cells: pa.Array, *, column: Column) -> _Floats:
    """Return the numbers, looking at how each cell is written."""
    written = _mask(pc.match_substring_regex(cells, _NUMBER))
    whole = _mask(pc.match_substring_regex(cells, _WHOLE))
    candidates = _blanked(cells, pa.array(~written))
    try:
        values = _floats(pc.cast(candidates, pa.float64()))
    except pa.ArrowInvalid:  # a pyarrow that refuses a leading plus, or numbers out of range
        values = np.array([np.nan if cell is None else float(cell) for cell in candidates.to_pylist()])
    readable = written & np.isfinite(values) & ~(whole & (np.abs(values) >= _WHOLE_LIMIT))
    return _by_policy(values, readable=readable, missing=_mask(pc.is_null(cells)), column=column)


def numbers_from_typed(cells: pa.Array, *, column: Column) -> _Floats:
    """Return float64 with NaN for null; a missing token that is written as a number stands for that number."""
    cells = _decoded(cells)
    kind = cells.type
    whole = pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale <= 0)
    if pa.types.is_null(kind):
        return np.full(len(cells), np.nan)
    if not (whole or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise _wrong_type(kind, column=column)
    values = _floats(pc.cast(cells, pa.float64(), safe=False))
    missing = _mask(pc.is_null(cells))
    for token in column.missing:
        with contextlib.suppress(ValueError):
            number = float(token)
            missing |= np.isnan(values) if np.isnan(number) else values == number
    readable = np.isfinite(values)
    if whole:
        readable &= np.abs(values) < _WHOLE_LIMIT
    return _by_policy(values, readable=readable, missing=missing, column=column)


def labels_from_text(cells: pa.Array, *, column: Column) -> NDArray[np.int32]:
    """Return each cell's position in the column's categories, -1 for missing; compared exactly."""
    codes = pc.fill_null(pc.index_in(cells, value_set=_texts(column.categories)), -1)
    positions: NDArray[np.int32] = codes.to_numpy(zero_copy_only=False)
    missing = _mask(pc.is_null(cells))
    if column.missing:
        missing |= _mask(pc.is_in(cells, value_set=_texts(column.missing)))
    if column.unreadable == "refuse" and not (missing | (positions >= 0)).all():
        raise SchemaMismatch(
            f"column {shown(column.name)} has cells that are none of its {len(column.categories)} declared categories: "
            f'add what is missing there, or say unreadable = "missing" for this column in the schema.'
        )
    return positions


def labels_from_typed(cells: pa.Array, *, column: Column) -> NDArray[np.int32]:
    """Return positions as `labels_from_text`; whole numbers and booleans count as written: 3, true, false."""
    cells = _decoded(cells)
    kind = cells.type
    if not (_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise _wrong_type(kind, column=column)
    return labels_from_text(pc.cast(cells, pa.string()), column=column)


def units_from_cells(batches: list[pa.Array], *, name: str) -> NDArray[np.int64]:
    """Return for each record the number of its unit, in order of first appearance."""
    parts = []
    for cells in batches:
        part = _decoded(cells)
        kind = part.type
        if not (_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise SchemaMismatch(
                f"unit column {shown(name)} is stored as {_type_name(kind)}: it must hold texts or whole numbers."
            )
        if part.null_count:
            raise SchemaMismatch(f"unit column {shown(name)} has missing cells: every record needs a unit.")
        parts.append(pc.cast(part, pa.large_string()))
    together = pa.chunked_array(parts, type=pa.large_string()).combine_chunks()
    codes = pc.dictionary_encode(together).indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64)


def _by_policy(values: _Floats, *, readable: NDArray[np.bool_], missing: NDArray[np.bool_], column: Column) -> _Floats:
    if column.unreadable == "refuse" and not (readable | missing).all():
        raise SchemaMismatch(
            f"column {shown(column.name)} has cells that are not finite numbers (or are whole and 2^53 or more): list "
            f'what means missing under missing, or say unreadable = "missing" for this column in the schema.'
        )
    return np.where(readable & ~missing, values, np.nan)


def _decoded(cells: pa.Array) -> pa.Array:
    return pc.cast(cells, cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _blanked(cells: pa.Array, where: pa.Array) -> pa.Array:
    return pc.if_else(pc.fill_null(where, fill_value=False), pa.scalar(None, cells.type), cells)


def _texts(values: Any) -> pa.Array:  # noqa: ANN401 - any sequence of str
    return pa.array(list(values), pa.string())


def _mask(flags: pa.Array) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = np.array(pc.fill_null(flags, fill_value=False).to_numpy(zero_copy_only=False), dtype=bool)
    return mask


def _floats(values: pa.Array) -> _Floats:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def _type_name(kind: pa.DataType) -> str:
    return "nested values" if pa.types.is_nested(kind) else str(kind)


def _wrong_type(kind: pa.DataType, *, column: Column) -> SchemaMismatch:
    return SchemaMismatch(
        f"column {shown(column.name)} is declared as a {column.kind}, but the file stores it as {_type_name(kind)}."
    )
