"""What a table offers a private density: names of columns, and numbers; nothing is decided by a single record."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from accord.core.containers import holds_columns
from accord.core.errors import InvalidParameter, SchemaMismatch
from accord.core.records import NO_NUMBERS, Records, table_of_numbers

__all__ = ["column_names", "read_records", "refuse_declared_text"]

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


def read_records(estimator: Any, table: Any, *, reset: bool) -> NDArray[np.float64]:  # noqa: ANN401 - any container
    """Return the records as floats, shape (n, d), after scikit-learn's checks; a cell that is no number is NaN.

    Formal guarantees
    -----------------
    - Lists and data frames are read by `accord.core`, each cell alone: an entry of a list that is no row, or a row of
      another length, is missing cells. scikit-learn sees the array of floats that comes of it, and a frame's names.
    - An array of numpy is checked by scikit-learn for its shape and type, which it declares.

    Parameters
    ----------
    estimator
        Keeps number and names of columns, as scikit-learn does.
    table
        Shape (n, d); `Records` too.
    reset
        Whether the estimator learns number and names here, from at least two records; else they are compared.

    Raises
    ------
    InvalidParameter
        If it is masked, or no table. Nothing has been spent.
    SchemaMismatch
        If the array is of a type that holds no numbers, such as text or dates. Nothing has been spent.

    """
    if isinstance(table, np.ma.MaskedArray):
        raise InvalidParameter("the records must not be masked: fill the gaps with NaN. Nothing was spent.")
    given = table
    if isinstance(table, Records):
        given = Records.of(table).rows
    elif holds_columns(table):
        given = table_of_numbers(table)
    options = {"dtype": None, "ensure_all_finite": False, "ensure_min_samples": 2 if reset else 1}
    if getattr(table, "columns", None) is not None and given is not table:  # a frame: its names are kept
        validate_data(estimator, table, skip_check_array=True, reset=reset)
        return _floats(_without_cells(lambda: check_array(given, **options)))
    return _floats(_without_cells(lambda: validate_data(estimator, given, reset=reset, **options)))


def _without_cells(check: Callable[[], NDArray[Any]]) -> NDArray[Any]:
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


def _floats(table: NDArray[Any]) -> NDArray[np.float64]:
    if table.dtype.kind not in _NUMBERS:
        message = f"the records must be numbers, and this is an array of {table.dtype.name}. Nothing was spent."
        raise SchemaMismatch(message)
    return table_of_numbers(table)
