"""What a table offers a private density: names of columns, and numbers; nothing is decided by a single record."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.core.records import NO_NUMBERS
from accord.errors import InvalidParameter, SchemaMismatch
from accord.learning.density.column_location import as_float_table

__all__ = ["column_names", "read_as_given", "read_columns", "refuse_declared_text", "without_cells"]

_NUMBERS = "biufO"


def column_names(names: NDArray[Any] | None, *, columns: int) -> tuple[str, ...]:
    """Return what columns are called in messages: their names, or their numbers from 0.

    Examples
    --------
    >>> column_names(None, columns=2)
    ('column 0', 'column 1')

    """
    if names is None:
        return tuple(f"column {number}" for number in range(columns))
    return tuple(str(name) for name in names)


def refuse_declared_text(table: object) -> None:
    """Refuse a data frame that declares a column to hold no numbers, by the column's name.

    Columns of Python objects pass: what they hold is known from the records only, and is a matter of each record.

    Raises
    ------
    SchemaMismatch
        Naming the columns; nothing has been spent.

    """
    wrong = [name for name, kind in _declared(table) if kind.lower().startswith(NO_NUMBERS)]
    if wrong:
        message = (
            f"columns without numbers: {', '.join(map(repr, wrong))}. Leave them out, or turn them into numbers by a "
            f"rule that does not look at other records. Nothing was spent."
        )
        raise SchemaMismatch(message)


def _declared(table: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - any data frame
    """Return name and declared type of each column: of pandas or polars frames, or of an Arrow table."""
    schema = getattr(table, "schema", None)
    types = getattr(table, "dtypes", getattr(schema, "types", None))
    names = getattr(schema, "names", None)
    if names is None or callable(names):  # a method in polars
        names = getattr(table, "columns", None)
    if types is None or names is None or callable(names):
        return []
    return [(str(name), str(kind)) for name, kind in zip(list(names), list(types), strict=False)]


def read_as_given(table: object) -> Any:  # noqa: ANN401 - what it was, or an array
    """Return rows given as lists as an array of floats, each cell read alone; anything else as it is.

    A common type for all cells would be found by looking at all records, and one odd cell could then stop a run.

    Raises
    ------
    InvalidParameter
        If the array is masked, or rows differ in length. Nothing has been spent.

    Examples
    --------
    >>> read_as_given([[1, "two"], [3j, 4.0]]).tolist()
    [[1.0, nan], [nan, 4.0]]

    """
    if isinstance(table, np.ma.MaskedArray):
        raise InvalidParameter("the records must not be masked: fill the gaps with NaN. Nothing was spent.")
    if not isinstance(table, (list, tuple)) or not all(isinstance(row, (list, tuple, np.ndarray)) for row in table):
        return table
    rows = [list(row) for row in table]
    if len({len(row) for row in rows}) > 1:
        raise InvalidParameter("the records must all have the same number of cells. Nothing was spent.")
    cells = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=object)
    for place, row in enumerate(rows):
        for column, cell in enumerate(row):
            cells[place, column] = cell
    return as_float_table(cells)


def without_cells(check: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Return what a check of scikit-learn returns; where its message would show cells, say the same without them."""
    try:
        return check()
    except ValueError as error:
        told = str(error)
        if told.startswith("Complex data"):
            message = "Complex data not supported: the records must be real numbers."
        elif told.startswith("Expected 2D array"):
            message = f"{told.splitlines()[0].rstrip(':')}. Reshape your data: reshape(-1, 1) makes one column of it."
        elif told.startswith(("could not convert", "Unable to convert", "setting an array element")):
            message = "the records are no table of numbers."
        else:
            raise
        raise InvalidParameter(f"{message} Nothing was spent.") from None


def read_columns(table: NDArray[Any]) -> NDArray[np.float64]:
    """Return the records as floats, shape (n, d); a cell that is no number is NaN.

    Raises
    ------
    SchemaMismatch
        If the array is of a type that holds no numbers, such as text or dates; nothing has been spent.

    """
    if table.dtype.kind not in _NUMBERS:
        message = f"the records must be numbers, and this is an array of {table.dtype.name}. Nothing was spent."
        raise SchemaMismatch(message)
    return as_float_table(table)
