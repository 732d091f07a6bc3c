"""From the cells of one column to numbers, to categories, or to units, by the rules of the schema."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from accord.core.errors import SchemaMismatch
from accord.tables.column import Column
from accord.tables.dates import FORMATS, numbers_from_dates, numbers_from_stored_dates, texts_of_dates
from accord.tables.names import shown

__all__ = [
    "as_stored",
    "as_text",
    "labels_from_text",
    "labels_from_typed",
    "missing_numbers",
    "numbers_by_policy",
    "numbers_from_text",
    "numbers_from_typed",
    "spellings",
    "unit_names",
    "units_by_name",
    "units_from_cells",
]

_Floats = NDArray[np.float64]
_WHOLE_LIMIT = 2.0**53
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE = r"^[+-]?[0-9]+$"


def numbers_from_text(cells: pa.Array, *, column: Column, decimal: str = ".") -> _Floats:
    """Return float64 with NaN for missing; ASCII spaces around a number or a missing token are ignored.

    A number is written as in Python, in ASCII digits and without underscores, with the declared decimal mark; it must
    be finite, and below 2^53 in size if it is written as a whole number, because beyond two of them could become one.
    Dates are written exactly as their format writes them.
    """
    if column.missing:
        cells = pc.ascii_trim_whitespace(cells)
        cells = _blanked(cells, pc.is_in(cells, value_set=_texts([token.strip() for token in column.missing])))
    if column.format is not None:
        cells = pc.ascii_trim_whitespace(cells)
        values = numbers_from_dates(cells, pattern=column.format, kind=column.kind)
        return _by_policy(values, readable=np.isfinite(values), missing=_mask(pc.is_null(cells)), column=column)
    if decimal != ".":
        cells = pc.if_else(_filled(pc.match_substring(cells, ".")), pa.scalar("?", cells.type), cells)
        cells = pc.replace_substring(cells, pattern=decimal, replacement=".")
    if not (column.required or column.bounds or column.kind == "integer"):
        with contextlib.suppress(pa.ArrowInvalid):
            values = _floats(pc.cast(cells, pa.float64()))
            # The usual case. Null is NaN by now, so a finite count tells whether each written cell is a plain number.
            sizes = np.abs(values)
            if np.count_nonzero(sizes < _WHOLE_LIMIT) == len(cells) - cells.null_count:
                return values
    return _careful(pc.ascii_trim_whitespace(cells), column=column)


def _careful(cells: pa.Array, *, column: Column) -> _Floats:
    """Return the numbers, looking at how each cell is written."""
    values = None
    with contextlib.suppress(pa.ArrowInvalid):  # plain numbers are known by their cast, which is quick
        values = _floats(pc.cast(cells, pa.float64()))
        if np.count_nonzero(np.abs(values) < _WHOLE_LIMIT) == len(cells) - cells.null_count:
            missing = _mask(pc.is_null(cells))
            return _by_policy(values, readable=~missing, missing=missing, column=column)
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
        nothing = np.full(len(cells), np.nan)
        return _by_policy(nothing, readable=np.isfinite(nothing), missing=np.isnan(nothing), column=column)
    if column.format is not None:
        return _dates_from_typed(cells, column=column)
    if not (whole or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise _wrong_type(kind, column=column)
    values = _floats(pc.cast(cells, pa.float64(), safe=False))
    tokens = missing_numbers(column)
    missing = _mask(pc.is_null(cells)) | np.isin(values, tokens) | (np.isnan(values) & np.isnan(tokens).any())
    readable = np.isfinite(values)
    if whole:
        readable &= np.abs(values) < _WHOLE_LIMIT
    return _by_policy(values, readable=readable, missing=missing, column=column)


def _dates_from_typed(cells: pa.Array, *, column: Column) -> _Floats:
    """Return days or seconds of dates, timestamps, or texts in the column's format."""
    if _is_text(cells.type):
        return numbers_from_text(pc.cast(cells, pa.string()), column=column)
    if not (pa.types.is_date(cells.type) or pa.types.is_timestamp(cells.type)):
        raise _wrong_type(cells.type, column=column)
    values = numbers_from_stored_dates(cells, kind=column.kind)
    return numbers_by_policy(
        values, missing=_mask(pc.is_null(cells)) | np.isin(values, missing_numbers(column)), column=column
    )


def missing_numbers(column: Column) -> _Floats:
    """Return the numbers, days or seconds that the texts which mean a missing cell write."""
    if column.format is not None:
        tokens = _texts([token.strip() for token in column.missing])
        found = numbers_from_dates(tokens, pattern=column.format, kind=column.kind)
        return found[np.isfinite(found)]
    numbers = []
    for token in column.missing:
        with contextlib.suppress(ValueError):
            numbers.append(float(token))
    return np.array(numbers, dtype=np.float64)


def numbers_by_policy(values: _Floats, *, missing: NDArray[np.bool_], column: Column) -> _Floats:
    """Return numbers as the column's policy has them: what is not finite is unreadable, unless it is missing."""
    return _by_policy(values, readable=np.isfinite(values), missing=missing, column=column)


def spellings(column: Column) -> tuple[list[str], list[int]]:
    """Return every text that stands for a label, and the label's position."""
    if column.kind == "boolean":
        return [*column.false, *column.true], [0] * len(column.false) + [1] * len(column.true)
    return list(column.categories), list(range(len(column.categories)))


def labels_from_text(cells: pa.Array, *, column: Column) -> NDArray[np.int32]:
    """Return each cell's position in the column's categories, -1 for missing; compared exactly."""
    texts, places = spellings(column)
    codes = pc.fill_null(pc.index_in(cells, value_set=_texts(texts)), -1)
    positions: NDArray[np.int32] = np.array([*places, -1], dtype=np.int32)[codes.to_numpy(zero_copy_only=False)]
    missing = _mask(pc.is_null(cells))
    if column.missing:
        missing |= _mask(pc.is_in(cells, value_set=_texts(column.missing)))
    if column.unreadable == "refuse" and column.required and missing.any():
        raise _missing_though_required(column)
    if column.unreadable == "refuse" and not (missing | (positions >= 0)).all():
        if column.kind == "boolean":
            raise SchemaMismatch(
                f"column {shown(column.name)} has cells that are none of the declared spellings of true and false: "
                f'list them there, or say unreadable = "missing" for this column in the schema.'
            )
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
    if pa.types.is_boolean(kind) and column.kind == "boolean":  # stored truth needs no spelling
        cells = pc.if_else(cells, column.true[0], column.false[0])
    return labels_from_text(pc.cast(cells, pa.string()), column=column)


def as_text(cells: pa.Array) -> pa.Array:
    """Return cells of any stored type as texts, null for what has no text; each by itself."""
    cells = _decoded(cells)
    kind = cells.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        form = "date" if pa.types.is_date(kind) else "datetime"
        days = numbers_from_stored_dates(cells, kind=form)
        return pc.cast(texts_of_dates(days, pattern=FORMATS[form], kind=form), pa.large_string())
    if _is_text(kind):
        return _well_formed(pc.cast(cells, pa.large_string()))
    if _is_plain(kind):
        return pc.cast(cells, pa.large_string())
    return pa.nulls(len(cells), pa.large_string())


def as_stored(cells: pa.Array) -> pa.Array:
    """Return cells in their own type: that of the values in place of a dictionary's, and one for all texts."""
    cells = _decoded(cells)
    return pc.cast(cells, pa.large_string()) if _is_text(cells.type) else cells


def _well_formed(cells: pa.Array) -> pa.Array:
    """Return texts, null where the stored bytes are none: Parquet files are not checked on the way."""
    stored = pc.cast(cells, pa.large_binary())
    with contextlib.suppress(pa.ArrowInvalid):
        return pc.cast(stored, pa.large_string())
    return pa.array([_text_or_none(cell) for cell in stored.to_pylist()], pa.large_string())


def _text_or_none(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode("utf-8")
    except UnicodeDecodeError:
        return None


def unit_names(cells: pa.Array, *, name: str) -> pa.Array:
    """Return the names of units as an array of pyarrow with a dictionary of texts.

    Units are compared as texts. In CSV every cell is a text: 1 with or without quotes is one unit, 1 and 01 are two. In
    Parquet the column's type says which texts: a column of whole numbers holds no text, so that no two kinds meet.

    Raises
    ------
    SchemaMismatch
        If the stored type is another, or a cell is missing: empty, in quotes or not, blank, or bytes that are no text.

    """
    part = _decoded(cells)
    kind = part.type
    if not (_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise SchemaMismatch(
            f"unit column {shown(name)} is stored as {_type_name(kind)}: it must hold texts or whole numbers."
        )
    encoded = pc.dictionary_encode(as_text(part))
    blank = pc.any(pc.equal(pc.utf8_trim_whitespace(encoded.dictionary), "")).as_py()
    if encoded.null_count or blank:
        raise SchemaMismatch(
            f"unit column {shown(name)} has missing cells, empty or blank, or cells that are no text: every record "
            f"needs a unit."
        )
    return encoded


def units_by_name(parts: Sequence[pa.Array]) -> NDArray[np.int64]:
    """Return for each record the number of its unit, in order of first appearance; ``parts`` from `unit_names`."""
    together = pa.chunked_array(parts, type=pa.dictionary(pa.int32(), pa.large_string())).unify_dictionaries()
    codes = [np.asarray(part.indices.to_numpy(zero_copy_only=False), dtype=np.int64) for part in together.chunks]
    return np.concatenate([np.empty(0, dtype=np.int64), *codes])


def units_from_cells(batches: Sequence[pa.Array], *, name: str) -> NDArray[np.int64]:
    """Return for each record the number of its unit, in order of first appearance.

    Raises
    ------
    SchemaMismatch
        As `unit_names`.

    """
    return units_by_name([unit_names(cells, name=name) for cells in batches])


def _by_policy(values: _Floats, *, readable: NDArray[np.bool_], missing: NDArray[np.bool_], column: Column) -> _Floats:
    """Return the values, NaN for missing, within the bounds; refuse what the column's policy does."""
    if column.kind == "integer":
        readable = readable & (np.floor(values) == values)
    if column.bounds is not None:
        least, most = column.bounds
        if column.outside == "clamp":
            values = np.clip(values, least, most)
        else:
            readable = readable & (values >= least) & (values <= most)
    if column.unreadable == "refuse":
        if column.required and missing.any():
            raise _missing_though_required(column)
        if not (readable | missing).all():
            raise SchemaMismatch(_unreadable(column))
    return np.where(readable & ~missing, values, np.nan)


def _unreadable(column: Column) -> str:
    """Say that cells are not as declared, and what to do."""
    what = {
        "number": "finite numbers (or are whole and 2^53 or more)",
        "integer": "whole numbers below 2^53 in size",
        "date": f"dates written as {column.format}",
        "datetime": f"times written as {column.format}",
    }[column.kind]
    outside = " within the bounds" if column.bounds is not None and column.outside != "clamp" else ""
    return (
        f"column {shown(column.name)} has cells that are not {what}{outside}: list what means missing under missing, "
        f'or say unreadable = "missing" for this column in the schema.'
    )


def _missing_though_required(column: Column) -> SchemaMismatch:
    return SchemaMismatch(
        f"column {shown(column.name)} is declared as required and has missing cells: say required = false, or "
        f'unreadable = "missing" to read them as missing and never write one.'
    )


def _decoded(cells: pa.Array) -> pa.Array:
    return pc.cast(cells, cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether a cell of this type is written as a number, or true or false."""
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(numbers or pa.types.is_boolean(kind) or pa.types.is_null(kind))


def _blanked(cells: pa.Array, where: pa.Array) -> pa.Array:
    return pc.if_else(_filled(where), pa.scalar(None, cells.type), cells)


def _texts(values: Any) -> pa.Array:  # noqa: ANN401 - any sequence of str
    return pa.array(list(values), pa.string())


def _filled(flags: pa.Array) -> pa.Array:
    return pc.fill_null(flags, fill_value=False)


def _mask(flags: pa.Array) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = np.array(_filled(flags).to_numpy(zero_copy_only=False), dtype=bool)
    return mask


def _floats(values: pa.Array) -> _Floats:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def _type_name(kind: pa.DataType) -> str:
    return "nested values" if pa.types.is_nested(kind) else str(kind)


def _wrong_type(kind: pa.DataType, *, column: Column) -> SchemaMismatch:
    return SchemaMismatch(
        f"column {shown(column.name)} is declared as a {column.kind}, but the file stores it as {_type_name(kind)}."
    )
