"""Records as a table of floats, or a failure that says nothing about them."""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import FitFailed

__all__ = ["fail", "finite_rows", "number_table"]

_Floats = NDArray[np.float64]


def number_table(records: NDArray[Any], *, law: str) -> _Floats:
    """Return the records as float64, shape (n, d); text, dates and complex numbers are refused."""
    table = None
    try:
        given = np.asarray(records)
        if given.dtype.kind in "biufO":
            with np.errstate(all="ignore"):
                table = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        table = None
    if table is None:  # raised here, outside the handler: numpy's own message quotes the cell
        fail("the records are not numbers", law=law)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        fail("the records are not a table of rows and columns", law=law)
    return table


def finite_rows(records: NDArray[Any], *, law: str) -> _Floats:
    """Return the rows without NaN and infinities as float64, shape (m, d)."""
    table = number_table(records, law=law)
    finite: _Floats = table[np.isfinite(table).all(axis=1)]
    return finite


def fail(reason: str, *, law: str) -> NoReturn:
    """Raise `FitFailed` for a kind of law."""
    raise FitFailed(f"no {law} can be fitted: {reason}.")
