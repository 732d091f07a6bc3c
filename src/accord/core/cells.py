"""Read each cell by itself, as a number or as a label. Trusted core."""

import datetime as dt
import math
import re
import sys
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone

__all__ = [
    "Cells",
    "as_label",
    "as_number",
    "bare",
    "is_missing",
    "is_of_pandas",
    "is_plain",
    "labels_in",
    "numbers_in",
]


Cells: TypeAlias = Literal["numbers", "labels"]
"""What a learner reads: every cell as a float, or every cell as a plain Python value."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_INT64 = 2.0**63
_LONGEST = 400
_NUMPY = frozenset(np.sctypeDict.values()) - {np.void, np.object_}  # which may hold anybody's
_PLAIN = _NUMPY | {str, bytes, bool, int, float, complex, Decimal, Fraction, tuple, list, type(None)}
_PLAIN |= {dt.date, dt.datetime, dt.time, dt.timedelta, uuid.UUID}
"""Types whose methods are those of Python and numpy, and nobody's own."""
_NEVER_MISSING = (dt.date, dt.time, dt.timedelta, uuid.UUID)
_ALL = slice(None)


def _fields_of(kind: type, *names: str) -> Callable[[Any], Any]:
    """Return what makes a time of this type of one of a subclass, by the fields as the type stores them."""
    getters = [getattr(kind, name).__get__ for name in names]
    if "fold" not in names:
        return lambda value: kind(*(get(value) for get in getters))
    return lambda value: kind(*(get(value) for get in getters[:-1]), fold=getters[-1](value))


_CLOCK = ("hour", "minute", "second", "microsecond", "tzinfo", "fold")
_DAY = ("year", "month", "day")
_as_datetime = _fields_of(dt.datetime, *_DAY, *_CLOCK)
_BARE: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (bytes, lambda value: bytes.__getitem__(value, _ALL)),
    (int, int.__int__),
    (float, float.__float__),
    (complex, complex.__complex__),
    (Decimal, lambda value: Decimal(Decimal.__str__(value))),
    (tuple, lambda value: tuple.__getitem__(value, _ALL)),
    (list, lambda value: list.__getitem__(value, _ALL)),
    (dt.timedelta, _fields_of(dt.timedelta, "days", "seconds", "microseconds")),
    (dt.time, _fields_of(dt.time, *_CLOCK)),
    (dt.datetime, _as_datetime),  # which is a date too
    (dt.date, _fields_of(dt.date, *_DAY)),
)
"""How a value of a subclass becomes one of the plain type: by that type's methods, none of its own run."""
_OPEN: tuple[tuple[type, tuple[Any, ...]], ...] = (
    (Fraction, tuple(vars(Fraction)[name] for name in ("_numerator", "_denominator"))),
    (uuid.UUID, (vars(uuid.UUID)["int"],)),
)
"""Plain types whose fields anybody may set: one that holds anything but whole numbers there is missing."""


def is_plain(kind: type) -> bool:
    """Whether a type's methods are those of Python and numpy, and nobody's own. No code of its class runs.

    Looking a type up in a set runs the ``__hash__`` of its metaclass, so those are looked up that have none of their
    own; and asking an abstract class about it does the same: that is for `alone`.

    Examples
    --------
    >>> [is_plain(kind) for kind in (int, np.float32, Fraction, type("Own", (int,), {}))]
    [True, True, True, False]

    """
    return (type(kind) is type and kind in _PLAIN) or kind is Fraction


def is_of_pandas(kind: type) -> bool:
    """Whether this is a type of times of pandas: they know nanoseconds and years that Python's types do not."""
    return any(kind is own for own in (_of_pandas("Timestamp"), _of_pandas("Timedelta"), type(_of_pandas("NaT"))))


def numbers_in(cells: NDArray[Any]) -> NDArray[np.float64]:
    """Return cells of any shape as floats: each alone, NaN for what is no number.

    Examples
    --------
    >>> numbers_in(np.array([1, True, "2.5", None, "two"], dtype=object)).tolist()
    [1.0, 1.0, 2.5, nan, nan]

    """
    if isinstance(cells, np.ma.MaskedArray):
        found = numbers_in(np.asarray(cells.data))
        return np.where(np.ma.getmaskarray(cells), np.nan, found)
    with np.errstate(all="ignore"):
        if cells.dtype.kind in "biuf":
            return np.asarray(cells, dtype=np.float64)
        flat = [as_number(cell) for cell in cells.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(cells.shape)


def labels_in(cells: NDArray[Any]) -> NDArray[np.object_]:
    """Return cells of any shape as plain Python values: each alone, None for what is missing.

    Examples
    --------
    >>> labels_in(np.array([1.0, 2.5, np.nan])).tolist(), labels_in(np.array([True, False])).tolist()
    ([1, 2.5, None], [True, False])

    """
    if isinstance(cells, np.ma.MaskedArray):
        found = labels_in(np.asarray(cells.data))
        found[np.ma.getmaskarray(cells)] = None
        return found
    if cells.dtype.kind in "biu":
        return cells.astype(object)
    if cells.dtype.kind == "f" and cells.dtype.itemsize <= 8:
        return _labels_of_floats(cells.astype(np.float64))
    found = np.empty(cells.size, dtype=object)
    for place, cell in enumerate(_entries(cells)):
        found[place] = as_label(cell)
    return found.reshape(cells.shape)


def _entries(cells: NDArray[Any]) -> Any:  # noqa: ANN401 - whatever is in a table
    """Return cells one by one; dates keep their type, where a list would turn nanoseconds into whole numbers."""
    return cells.ravel() if cells.dtype.kind in "mM" else cells.ravel().tolist()


def _labels_of_floats(cells: NDArray[np.float64]) -> NDArray[np.object_]:
    found: NDArray[np.object_] = cells.astype(object)
    with np.errstate(all="ignore"):
        whole = np.isfinite(cells) & (np.floor(cells) == cells)
        small = whole & (np.abs(cells) < _INT64)
    found[small] = cells[small].astype(np.int64).astype(object)
    found[np.isnan(cells)] = None
    for place in np.argwhere(whole & ~small).tolist():
        found[tuple(place)] = int(cells[tuple(place)])
    return found


def bare(value: Any) -> Any:  # noqa: ANN401 - whatever is in a table
    """Return a value of a subclass of a plain type as that type's; any other value as it is. No code of its own runs.

    Examples
    --------
    >>> class Odd(int):
    ...     def __int__(self):
    ...         return 7
    >>> bare(Odd(3))
    3

    """
    kind = type(value)
    for own, parts in _OPEN:
        if kind is own:
            return value if all(type(part.__get__(value)) is int for part in parts) else None
    if is_plain(kind) or issubclass(kind, np.generic) or is_of_pandas(kind):
        return value
    for base, plain in _BARE:
        if issubclass(kind, base):
            return plain(value)
    return value


def as_number(cell: object) -> float:
    """Return a cell as a float: a number of Python or numpy, a bool, or a text that writes one; NaN for anything else.

    No cell's own code runs: one of a subclass is what its plain type makes of it, see `bare`.
    """
    if type(cell) is float:
        return cell
    plain: Any = bare(cell)
    kind = type(plain)
    try:
        if kind is str:
            text = plain.strip() if len(plain) <= _LONGEST else ""
            return float(text) if _NUMBER.fullmatch(text) else math.nan
        if not is_plain(kind):
            return math.nan
        if kind in _NUMPY:
            number = issubclass(kind, (np.floating, np.integer, np.bool_)) and not issubclass(kind, np.timedelta64)
        else:
            number = kind in {int, float, bool, Decimal, Fraction}
        if number:
            return float(plain)
    except Exception:  # noqa: BLE001 - too large, or a signalling NaN
        return math.nan
    return math.nan


def as_label(cell: Any) -> Any:  # noqa: ANN401 - whatever is in a table
    """Return a cell as a plain Python value that tells nothing of its container.

    numpy's scalars and pandas's times become Python's, values of subclasses those of their plain type; a whole float
    becomes that int, because a single gap turns a container of ints into one of floats; what is missing becomes None.
    """
    cell = bare(cell)
    kind = type(cell)
    if kind is str or kind is int or kind is bool:
        return cell
    if kind is float and cell.is_integer():
        return int(cell)
    if is_missing(cell):
        return None
    if is_of_pandas(kind):
        return _plain_of_pandas(cell)
    return _plain(cell) if is_plain(kind) and kind in _NUMPY else cell


def _plain(cell: Any) -> Any:  # noqa: ANN401 - numpy's scalars
    """Return a scalar of numpy as a value of Python; itself where Python has none for it."""
    if isinstance(cell, (np.str_, np.bytes_)):
        return str(cell) if isinstance(cell, np.str_) else bytes(cell)
    if isinstance(cell, (np.datetime64, np.timedelta64)):
        return _plain_time(cell, "datetime64" if isinstance(cell, np.datetime64) else "timedelta64")
    if isinstance(cell, (np.floating, np.integer, np.bool_)):
        plain = float(cell) if isinstance(cell, np.floating) else cell.item()
        return as_label(plain) if plain == cell else cell  # a long double may say more than a float
    return cell


def _plain_time(cell: Any, kind: str) -> Any:  # noqa: ANN401 - numpy's scalars
    """Return a time as Python's date, datetime or timedelta; what these cannot hold, as words of its own."""
    plain = cell.astype(f"{kind}[us]") if np.datetime_data(cell.dtype)[0] in {"ns", "ps", "fs", "as"} else cell
    value = plain.item() if plain == cell else None
    if isinstance(value, (dt.date, dt.timedelta)):
        return value
    unit, step = np.datetime_data(cell.dtype)
    return f"{kind}[{unit}] {int(cell.astype(np.int64)) * step}"


def _plain_of_pandas(cell: Any) -> Any:  # noqa: ANN401 - a time or a duration of pandas
    """Return a time as Python's, with its zone; what Python cannot hold, as words. A column's type decides nothing."""
    if not issubclass(type(cell), dt.datetime):
        return _plain_time(cell.to_timedelta64(), "timedelta64")
    plain = _plain_time(cell.to_datetime64(), "datetime64")  # in UTC, if there is a zone
    if cell.tzinfo is None:
        return plain
    return _as_datetime(cell) if isinstance(plain, dt.datetime) else f"{plain} UTC"


def is_missing(value: object) -> bool:
    """Whether this stands for nothing: None, or what is not equal to itself or will not say (NaN, NaT, NA).

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), np.ma.masked, 0, "")]
    [True, True, True, False, False]

    """
    if value is None or value is np.ma.masked:
        return True
    kind = type(value)
    if issubclass(kind, _NEVER_MISSING):
        return value is _of_pandas("NaT")  # it calls itself a time
    if not is_plain(kind):
        return value is _of_pandas("NA") or not alone(lambda: bool(value == value), failed=False)  # noqa: PLR0124 - a cell's own code
    try:
        return not value == value  # noqa: PLR0124, SIM201 - NaN, NaT and NA are found this way
    except Exception:  # noqa: BLE001 - a signalling NaN; a tuple of arrays
        return True


def _of_pandas(name: str) -> object:
    """Return what has this name in pandas, if anybody has loaded it; something that nothing is otherwise."""
    return getattr(sys.modules.get("pandas"), name, _PLAIN)
