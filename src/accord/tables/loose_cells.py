"""Cells of arrays, lists and columns of pandas: each by its own value, whatever type its container has."""

import contextlib
import datetime as dt
import zoneinfo
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.cells import as_label, as_number, bare, is_missing, is_of_pandas, is_plain
from accord.tables.cells import labels_from_text, missing_numbers, numbers_by_policy
from accord.tables.column import Column
from accord.tables.dates import numbers_from_dates, numbers_from_stored_dates

__all__ = ["LooseNumbers", "loose_cells", "loose_values"]

_UNREADABLE: Final = "\0"
"""A text that no schema declares and that writes no number."""
_ZONES: Final = (dt.timezone, zoneinfo.ZoneInfo)
"""Whose code is Python's."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class LooseNumbers:
    """The cells of a column of numbers or dates.

    Parameters
    ----------
    values
        Numbers, days or seconds, shape (n,); NaN or infinite for what is unreadable, and anything for what is missing.
    missing
        Which cells stand for nothing, shape (n,).

    """

    values: NDArray[np.float64]
    missing: NDArray[np.bool_]


def loose_cells(values: NDArray[Any], column: Column) -> LooseNumbers | pa.Array:
    """Return the cells of a declared column: numbers, or texts for columns of labels.

    Formal guarantees
    -----------------
    - Each cell's number is a function of its own value: a whole number, the float of that value and a text that writes
      it are one, in columns of any type; so are a date of Python, of numpy and of pandas. One odd cell, for which numpy
      or pandas gives the whole column another type, changes no other.
    - Not promised: a value that the container itself has changed, such as a truth value in an array of texts.

    Parameters
    ----------
    values
        One array, shape (n,).
    column
        What was declared.

    """
    gone = np.ma.getmaskarray(values)
    plain = np.asarray(values)
    if not column.is_number:
        return _texts([None if hidden else _text(cell, column) for cell, hidden in zip(plain, gone, strict=True)])
    return _numbers(plain, gone, column) if column.format is None else _dates(plain, gone, column)


def loose_values(cells: LooseNumbers | pa.Array, *, column: Column) -> NDArray[Any]:
    """Return float64 with NaN, or positions of labels with -1, for missing.

    Raises
    ------
    SchemaMismatch
        If cells are not as declared.

    """
    if isinstance(cells, LooseNumbers):
        return numbers_by_policy(cells.values, missing=cells.missing, column=column)
    return labels_from_text(cells, column=column)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(values: NDArray[Any], gone: NDArray[np.bool_], column: Column) -> LooseNumbers:
    if values.dtype.kind in "iuf" and values.dtype.itemsize <= 8:
        numbers = values.astype(np.float64)
        return LooseNumbers(numbers, gone | np.isnan(numbers) | _is_token(numbers, column))
    tokens = {token.strip() for token in column.missing}
    numbers, missing = np.full(len(values), np.nan), gone.copy()
    for place, cell in enumerate(values):
        if gone[place]:
            continue
        if is_missing(cell):
            missing[place] = True
            continue
        given = _plain(cell)
        label = as_label(given)
        if type(label) is bool:  # is no number, whatever Python says
            missing[place] = str(label).lower() in tokens
        elif type(label) is str and label.strip() in tokens:
            missing[place] = True
        else:
            numbers[place] = as_number(label if type(label) is str else given)
    return LooseNumbers(numbers, missing | _is_token(numbers, column))


def _is_token(numbers: NDArray[np.float64], column: Column) -> NDArray[np.bool_]:
    return np.isin(numbers, missing_numbers(column))


# --- dates ------------------------------------------------------------------------------------------------------------


def _dates(values: NDArray[Any], gone: NDArray[np.bool_], column: Column) -> LooseNumbers:
    pattern, kind = str(column.format), column.kind
    stamps: NDArray[np.datetime64] = np.full(len(values), np.datetime64("NaT", "s"))
    texts: list[str | None] = [None] * len(values)
    missing = gone.copy()
    if values.dtype.kind == "M":
        stamps = values.astype("datetime64[s]")
        missing |= np.isnat(stamps)
    else:
        for place, cell in enumerate(values):
            if gone[place]:
                continue
            missing[place] = is_missing(cell)
            stamp = None if missing[place] else _stamp(cell)
            if stamp is not None:
                stamps[place] = stamp
            elif not missing[place]:
                texts[place] = _text(cell, column)
    written = _texts(texts)
    numbers = numbers_from_dates(_texts([text and text.strip() for text in texts]), pattern=pattern, kind=kind)
    stored = numbers_from_stored_dates(pa.array(stamps, mask=np.isnat(stamps)), kind=kind)
    numbers = np.where(np.isnat(stamps), numbers, stored)
    tokens = {token.strip() for token in column.missing}
    named = np.array([text is not None and text.strip() in tokens for text in written.to_pylist()], dtype=bool)
    return LooseNumbers(numbers, missing | named | _is_token(numbers, column))


def _stamp(cell: object) -> np.datetime64 | None:
    """Return a date or time of Python, numpy or pandas to the second, in UTC if it has a zone; None for any other cell.

    NaT for one whose zone does not say what it is: it is unreadable.
    """
    given: Any = bare(cell)
    kind = type(given)
    if is_of_pandas(kind):
        given = given.to_datetime64() if hasattr(given, "to_datetime64") else None
    elif kind is dt.datetime:
        given = _in_utc(given)
    elif kind is dt.date:
        given = np.datetime64(given)
    return given.astype("datetime64[s]") if type(given) is np.datetime64 else None


def _in_utc(when: dt.datetime) -> np.datetime64:
    """Return a time of Python without its zone; NaT if that does not say what it is, or there is no such time."""
    zone = when.tzinfo
    written = np.datetime64(when.replace(tzinfo=None), "us")
    if zone is None:
        return written
    known = any(type(zone) is own for own in _ZONES)
    offset = when.utcoffset() if known else bare(alone(lambda: dt.datetime.utcoffset(when), failed=None))
    if type(offset) is not dt.timedelta:
        return np.datetime64("NaT", "us")
    return written - np.timedelta64(offset)


# --- labels -----------------------------------------------------------------------------------------------------------


def _text(cell: object, column: Column) -> str | None:  # noqa: PLR0911 - one line a type
    """Return a cell as CSV would write it, None for what is missing; what CSV has no way for is unreadable."""
    if cell is None or type(cell) is str:  # most cells are: the rest of this function gives the same
        return cell
    if is_missing(cell):
        return None
    match plain := as_label(_plain(cell)):
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
        case _:
            return _UNREADABLE


def _plain(cell: object) -> Any:  # noqa: ANN401 - a value of Python or numpy
    """Return a cell as a value of a type whose methods are nobody's own; any other as an unreadable text."""
    given = bare(cell)
    return given if is_plain(type(given)) else _UNREADABLE


def _texts(texts: list[str | None]) -> pa.Array:
    with contextlib.suppress(UnicodeEncodeError):
        return pa.array(texts, pa.large_string())
    return pa.array([None if text is None else _encodable(text) for text in texts], pa.large_string())


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _UNREADABLE
    return text
