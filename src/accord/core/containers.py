"""Take columns out of arrays, lists and data frames, without importing any library of data frames. Trusted core."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.cells import bare, is_plain
from accord.core.errors import InvalidParameter

__all__ = [
    "Held",
    "column_of",
    "held_in",
    "holds_columns",
    "library_of",
]


_PLAIN_POLARS = re.compile("U?Int(8|16|32|64)|Float(32|64)|Boolean")
"""Types of polars whose cells are the same alone, in a list, and in an array of numpy."""
_LIBRARIES = ("pandas", "polars", "pyarrow")
_ELSEWHERE = (
    "data of dask are read where they are by synthesise_table, PrivateSampler, PrivateLearner and PrivateDensity with "
    "workers alone: compute() them first."
)
_NOT_A_TABLE = "data must have shape (n, d) with d at least 1, or (n,) for one column."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a container holds: one array of numbers or objects for all columns, or one for each.

    Parameters
    ----------
    table
        Shape (n, d), where one array holds all columns; masked cells stay masked.
    columns
        Otherwise an array of shape (n,) for each column.
    names
        Of the columns, where the container has names.
    kinds
        The type that the container declares for each column, in its own words; "object" where it declares none.

    """

    table: NDArray[Any] | None = None
    columns: tuple[NDArray[Any], ...] = ()
    names: tuple[str, ...] | None = None
    kinds: tuple[str, ...]


def held_in(data: Any, *, columns: int | None = None) -> Held:  # noqa: ANN401 - any container
    """Return the columns of a table: an array, a list of values or rows, or a data frame.

    Formal guarantees
    -----------------
    - Declared ``columns``: an entry of a list becomes that many cells by itself, whatever the others are; an entry that
      is no such row becomes missing cells, and none refuses the table. Proof: the width is ``columns``.
    - Undeclared: the width of a list is a public fact that whoever passes it claims, and the list is held to it: it is
      the number of cells that at least three quarters of the entries have. Then, too, an odd entry is missing cells and
      moves no other entry's: two lists of n entries that are read with different widths differ in at least n / 2
      entries, because 3n/4 entries of one and 3n/4 of the other share n/2 places, and differ at each.
    - Not promised, without ``columns``: that no entry decides whether a list is refused in which about a quarter of the
      entries is odd. Such a list is not what was claimed.

    Raises
    ------
    InvalidParameter
        If this is no table: another shape, a single value, a text, a list of mappings or of rows of many lengths; or
        of other than the declared columns.
    """
    held = _held(data, columns)
    width = len(held.kinds)
    if columns is not None and width != columns:
        raise InvalidParameter(f"data must have {columns} columns, as declared: it has {width}.")
    return held


def _held(data: Any, columns: int | None) -> Held:  # noqa: ANN401 - any container
    library = library_of(data)
    if library is not None:
        return _frame(data, library)
    if isinstance(data, (str, bytes)):
        raise InvalidParameter("data must be an array of shape (n, d), or a list of values, not text.")
    if hasattr(data, "to_delayed"):  # it would be brought here whole by asking it for an array
        raise InvalidParameter(_ELSEWHERE)
    if isinstance(data, Sequence):
        table: NDArray[Any] = _rows(data, columns)
    elif hasattr(data, "__array__"):
        table = data if isinstance(data, np.ndarray) else np.asarray(data)
    else:
        raise InvalidParameter(f"{_NOT_A_TABLE} It is a {type(data).__name__}: make a list or an array of it.")
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidParameter(_NOT_A_TABLE)
    return Held(table=table, kinds=(_kind(table.dtype),) * table.shape[1])


def holds_columns(data: Any) -> bool:  # noqa: ANN401 - any container
    """Return whether this is a list or a data frame: what it holds has no common type that it declares as one array."""
    if library_of(data) is not None:
        return getattr(data, "columns", None) is not None
    return isinstance(data, Sequence) and not isinstance(data, (str, bytes, bytearray))


def column_of(values: Any) -> NDArray[Any]:  # noqa: ANN401 - any container
    """Return what a container holds as one array, each entry as it is: a list's entries as objects.

    Raises
    ------
    InvalidParameter
        If this is no container of entries in an order.

    """
    library = library_of(values)
    if library is not None:
        return _series(values, library)
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray)):
        return _objects(values)
    if hasattr(values, "__array__"):
        return np.asarray(values)
    raise InvalidParameter("there must be one entry a record, in a list or an array of shape (n,).")


def _objects(values: Sequence[Any]) -> NDArray[np.object_]:
    """Return entries as objects, each put in its place alone."""
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return column


def _rows(entries: Sequence[Any], columns: int | None) -> NDArray[np.object_]:
    """Return a list of values or of rows as cells; an entry that is no row of the right length is missing."""
    rows = [_row(entry) for entry in entries]
    width = _claimed_width(entries, rows) if columns is None else columns
    table = np.empty((len(rows), width), dtype=object)
    for place, row in enumerate(rows):
        if len(row) == width:
            for column, cell in enumerate(row):
                table[place, column] = cell
    return table


def _claimed_width(entries: Sequence[Any], rows: Sequence[Sequence[Any]]) -> int:
    """Return how many cells at least three quarters of the rows have, 1 if there are none."""
    if not rows:
        return 1
    kinds = Counter(
        _DICT if len(row) == 1 and _is_mapping(entry) else len(row) for entry, row in zip(entries, rows, strict=True)
    )
    width, count = kinds.most_common(1)[0]
    if 4 * count < 3 * len(rows):
        raise InvalidParameter(
            "data is a list whose entries are not rows of one length: give an array of shape (n, d), or say how many "
            "columns there are by Records.of(data, columns=d), which reads other rows as missing. Nothing was spent."
        )
    if width == _DICT:
        raise InvalidParameter(
            "data is a list of dicts: give rows as lists, [[row[name] for name in names] for row in data], or a data "
            "frame. Nothing was spent."
        )
    return width


_DICT = -1
"""Stands for the length of a mapping, which is no row."""


def _is_mapping(entry: object) -> bool:
    kind = type(entry)
    return not is_plain(kind) and alone(lambda: issubclass(kind, Mapping), failed=False)  # a metaclass's own code


def _row(entry: Any) -> Sequence[Any]:  # noqa: ANN401 - whatever is in a list
    """Return an entry as a row; one that is none is a row of itself. No code of its own runs."""
    plain = bare(entry)
    kind = type(plain)
    if kind is list or kind is tuple:
        return plain  # type: ignore[no-any-return]
    if (kind is np.ndarray or kind is np.ma.MaskedArray) and plain.ndim == 1:
        return list(plain)
    return (entry,)


# --- data frames ------------------------------------------------------------------------------------------------------


def library_of(value: object) -> str | None:
    """Return the library of data frames that a value comes from."""
    for kind in type(value).__mro__:
        root = kind.__module__.partition(".")[0]
        if root in _LIBRARIES:
            return root
    return None


def _frame(data: Any, library: str) -> Held:  # noqa: ANN401 - another library's object
    """Return the columns of a data frame, each read alone: a common type would depend on all columns."""
    many = getattr(data, "columns", None)
    names: tuple[str, ...] | None = None
    if many is None:
        series = [data]
    elif library == "pandas":
        series = [data.iloc[:, place] for place in range(len(many))]
        names = tuple(map(str, many))
    elif library == "polars":
        series = data.get_columns()
        names = tuple(map(str, many))
    else:
        series = list(many)
        names = tuple(map(str, data.schema.names))
    columns = tuple(_series(one, library) for one in series)
    kinds = tuple(map(_declared, series))
    if not columns:
        raise InvalidParameter(_NOT_A_TABLE)
    return Held(columns=columns, names=names, kinds=kinds)


def _declared(series: Any) -> str:  # noqa: ANN401 - another library's object
    kind = getattr(series, "dtype", None)
    return str(getattr(series, "type", "object") if kind is None else kind)


def _series(series: Any, library: str) -> NDArray[Any]:  # noqa: ANN401 - another library's object
    """Return a column: a plain array where nothing is missing or the type has its own word for that, else objects.

    A column of whole numbers with gaps becomes floats in most libraries; here its cells stay whole numbers.
    """
    if getattr(series, "ndim", 1) != 1 or getattr(series, "columns", None) is not None:
        raise InvalidParameter("this must be one column, not a table: one entry a record, shape (n,).")
    if library == "pandas":
        if isinstance(series.dtype, np.dtype):
            return np.asarray(series.to_numpy())
        places = getattr(series, "iloc", series)
        return _each(lambda start, stop: np.asarray(places[start:stop].astype(object)).tolist(), len(series))
    if library == "polars":
        # The type decides how cells are read; a gap would make whole numbers floats.
        kind = str(series.dtype)
        plain = series.dtype.is_temporal() or (series.null_count() == 0 and _PLAIN_POLARS.fullmatch(kind) is not None)
        if plain:
            return np.asarray(series.to_numpy())
        return _each(lambda start, stop: series.slice(start, stop - start).to_list(), len(series))
    return _arrow(series)


def _each(read: Callable[[int, int], Sequence[Any]], size: int) -> NDArray[np.object_]:
    """Return a column as objects; a cell that its library cannot turn into one of Python is missing, and no other is.

    Text whose bytes are none, a time beyond Python's years: a library stops for the whole column there. Halves are read
    until such a cell stands alone.
    """
    column = np.empty(size, dtype=object)
    spans = [(0, size)]
    while spans:
        start, stop = spans.pop()
        found = alone(lambda start=start, stop=stop: read(start, stop), failed=None)  # type: ignore[misc]
        if found is not None:
            column[start:stop] = _objects(found)
        elif stop - start > 1:
            middle = (start + stop) // 2
            spans += [(start, middle), (middle, stop)]
    return column


def _arrow(series: Any) -> NDArray[Any]:  # noqa: ANN401 - another library's object
    """Return a column of pyarrow: which way it is read follows from its type; a null decides about no other cell."""
    kind = str(getattr(series, "type", ""))
    if kind.startswith("dictionary"):
        return _arrow(series.cast(series.type.value_type))
    if kind == "time64[ns]":
        raise InvalidParameter("a column of type time64[ns] cannot be read: cast it to time64[us]. Nothing was spent.")
    if kind.startswith(("timestamp", "duration", "date")):
        return np.asarray(series.to_numpy() if hasattr(series, "num_chunks") else series.to_numpy(zero_copy_only=False))
    if series.null_count == 0 and kind.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
        return np.asarray(series.to_numpy() if hasattr(series, "num_chunks") else series.to_numpy(zero_copy_only=False))
    return _each(lambda start, stop: series.slice(start, stop - start).to_pylist(), len(series))


def _kind(dtype: np.dtype[Any]) -> str:
    """Return numpy's word for the type of an array; "string" for any kind of text."""
    return "string" if dtype.kind in "UT" else "binary" if dtype.kind in "SV" else str(dtype)
