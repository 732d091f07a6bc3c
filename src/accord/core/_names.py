"""Number the units of privacy by their names, each read by itself. Trusted core."""

import datetime as dt
import numbers
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.core._cells import as_label, is_missing
from accord.core._containers import column_of
from accord.errors import DataError, InvalidParameter

__all__ = ["owners_named"]

_MISSING = "a record has no unit of privacy: give every record one, so that no person is in two blocks."
_ODD = "a unit of privacy must be a plain name: text, a number, a date or a tuple of these."
_PLAIN: Final = (str, bytes, numbers.Number, Decimal, np.generic, dt.date, dt.time, dt.timedelta, uuid.UUID)
"""What names a unit. Anything else could hide that a name is missing: other libraries' scalars, objects with fields."""
_SHAPE = "units must name one unit a record, in a list or an array of shape (n,)"


def owners_named(units: Any, *, records: int) -> NDArray[np.int64]:  # noqa: ANN401 - any container
    """Return the number of each record's unit, by first appearance, shape (n,).

    Raises
    ------
    InvalidParameter
        If there is not one name a record.
    DataError
        If a name, or a part of a tuple, is missing, or cannot be a name.

    """
    names = _container(units)
    if names.ndim != 1:
        raise InvalidParameter(f"{_SHAPE}: make a tuple of each row of names, or one name.")
    if names.dtype.kind == "V":
        raise InvalidParameter(f"{_SHAPE}: records with fields are no names, make a tuple of each, in a list.")
    if len(names) != records:
        raise InvalidParameter("units must name one unit a record.")
    if isinstance(names, np.ma.MaskedArray):
        if np.ma.getmaskarray(names).any():
            raise DataError(_MISSING)
        names = np.asarray(names.data)
    if names.dtype.kind in "biufmM":
        return _by_sorting(names)
    return _by_table(names.tolist())


def _container(units: Any) -> NDArray[Any]:  # noqa: ANN401 - any container
    """Return names as an array; a number, a text or what has no order is not one."""
    if isinstance(units, np.ndarray) and units.ndim == 0:
        raise InvalidParameter(f"{_SHAPE}: a single value names nobody.")
    try:
        return column_of(units)
    except InvalidParameter:
        kind = type(units).__name__
    raise InvalidParameter(f"{_SHAPE}, not a single {kind}.")


def _by_sorting(names: NDArray[Any]) -> NDArray[np.int64]:
    """Number names that all are of one type of numbers or times; quicker than a table."""
    if names.dtype.kind in "fmM" and (names != names).any():  # noqa: PLR0124 - NaN and NaT
        raise DataError(_MISSING)
    _, first, code = np.unique(names, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[code], dtype=np.int64)


def _by_table(names: Sequence[Any]) -> NDArray[np.int64]:
    known: dict[Any, int] = {}
    owners = np.empty(len(names), dtype=np.int64)
    for place, name in enumerate(names):
        key = name if type(name) is str else _key(name)
        try:
            owners[place] = known.setdefault(key, len(known))
        except Exception:  # noqa: BLE001 - unhashable, or a name's own code
            key = None
        if key is None:
            raise DataError(_ODD)
    return owners


def _key(name: Any) -> Any:  # noqa: ANN401 - any name
    """Return what makes a name: equal keys are one unit.

    Numbers are one if they are equal, 1 and 1.0; a bool is not a number, a text not either; a tuple is its parts.
    """
    if isinstance(name, tuple):
        return tuple, tuple(_key(part) for part in name)
    if isinstance(name, frozenset):
        return frozenset, frozenset(_key(part) for part in name)
    if isinstance(name, np.ndarray) and name is not np.ma.masked:
        raise DataError(_ODD)
    if is_missing(name):
        raise DataError(_MISSING)
    plain = as_label(name)
    if not isinstance(plain, _PLAIN):
        raise DataError(_ODD)
    return (bool, plain) if isinstance(plain, bool) else plain
