"""Turn what the user passes into one array, without letting one record decide how another is read. Trusted core."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.errors import DataError, InvalidParameter

__all__ = ["as_records", "as_unit_names"]


def as_records(data: ArrayLike) -> NDArray[Any]:
    """Return records as an array of shape (n, d).

    An array keeps its type. A list or tuple is one column: each entry becomes a cell as it is, because a common type
    for all would be found by looking at all records, and one odd record could then change how every block reads its
    own.

    Parameters
    ----------
    data
        An array of shape (n, d) or (n,), or a table that offers itself as one (a data frame); or a list of n values.

    Raises
    ------
    InvalidParameter
        If the shape is no table's, or the array is masked.
    DataError
        If there are no records.

    Examples
    --------
    >>> as_records(["a", "b", 3.0]).shape
    (3, 1)

    """
    if isinstance(data, np.ma.MaskedArray):
        raise InvalidParameter("data must not be masked: fill the gaps, with NaN for numbers or None for labels.")
    if isinstance(data, (str, bytes)):
        raise InvalidParameter("data must be an array of shape (n, d), or a list of values, not text.")
    records = _column(data) if isinstance(data, (list, tuple)) else np.asarray(data)
    if records.ndim == 1:
        records = records[:, None]
    if records.ndim != 2 or records.shape[1] == 0:
        raise InvalidParameter("data must have shape (n, d) with d at least 1, or (n,) for one column.")
    if len(records) == 0:
        raise DataError("there are no records.")
    return records


def _column(values: Sequence[Any]) -> NDArray[Any]:
    """Return a column of cells, each put in its place alone; a row of one cell is that cell."""
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value
    return column


def as_unit_names(units: ArrayLike) -> NDArray[np.object_] | NDArray[Any]:
    """Return the unit of each record, shape (n,), each name as it is.

    Raises
    ------
    InvalidParameter
        If there is not one name a record.
    DataError
        If names are masked, that is missing.

    """
    if isinstance(units, np.ma.MaskedArray) and np.ma.is_masked(units):
        raise DataError("a record has no unit of privacy: give every record one, so that no person is in two blocks.")
    if isinstance(units, (list, tuple)):
        names = np.empty(len(units), dtype=object)
        for place, name in enumerate(units):
            names[place] = name
        return names
    names = np.asarray(units)
    if names.ndim != 1:
        raise InvalidParameter("units must be one name a record, shape (n,).")
    return names
