"""What a table offers a private density: names of columns, and numbers; nothing is decided by a single record."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import SchemaMismatch
from accord.learning.column_location import as_float_table

__all__ = ["column_names", "read_columns", "refuse_declared_text"]

_NUMBERS = "biufO"
_NO_NUMBERS = (
    "string",
    "str",
    "large_string",
    "utf8",
    "category",
    "categorical",
    "enum",
    "date",
    "time",  # timedelta too
    "duration",
    "period",
    "interval",
    "list",
    "large_list",
    "dictionary",
    "map",
    "array",
    "struct",
    "binary",
)


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
    wrong = [name for name, kind in _declared(table) if kind.lower().startswith(_NO_NUMBERS)]
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
    names = getattr(schema, "names", getattr(table, "columns", None))
    if types is None or names is None or callable(names):
        return []
    return [(str(name), str(kind)) for name, kind in zip(list(names), list(types), strict=False)]


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
