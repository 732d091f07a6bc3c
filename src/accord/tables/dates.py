"""Dates and times as numbers, and back to the text that the schema declares."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from accord.core.errors import SchemaMismatch
from accord.tables.names import shown

__all__ = [
    "DAY",
    "FORMATS",
    "check_format",
    "numbers_from_dates",
    "numbers_from_stored_dates",
    "seconds_of",
    "stamps_of_dates",
    "texts_of_dates",
]

DAY = 86_400
"""Seconds of a day: a date is the number of days since 1970-01-01, a datetime that of seconds, in no time zone."""

FORMATS = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%d %H:%M:%S"}
"""How days and times are written unless the schema says otherwise."""

_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_CODES = set("YmdHMSjbBaAyp") | {"I", "%"}
_TIME_CODES = set("HMSIp")
_DAY_CODES = ({"Y", "m", "d"}, {"Y", "b", "d"}, {"Y", "B", "d"}, {"Y", "j"}, {"y", "m", "d"}, {"y", "b", "d"})
_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999
_Floats = NDArray[np.float64]


def check_format(value: object, *, kind: str, name: str) -> str:
    """Return a format of strftime that says a day, and for a datetime the time of day.

    Raises
    ------
    SchemaMismatch
        If it does not, or uses a code that cannot be read back.

    """
    problem = "it must be a text such as %d/%m/%Y"
    if isinstance(value, str):
        codes = set(re.findall(r"%(.)", value))
        if not codes <= _CODES:
            problem = "accepted codes are %Y %m %d %H %M %S %j %b %B %a %A %y %I %p; time zones are not read"
        elif not any(day <= codes for day in _DAY_CODES):
            problem = "it must say year, month and day"
        elif kind == "date" and codes & _TIME_CODES:
            problem = 'a date has no time of day: use kind = "datetime"'
        elif kind == "datetime" and not codes & {"H", "I"}:
            problem = 'it must say the hour: else use kind = "date"'
        else:
            return value
    raise SchemaMismatch(f"format of column {shown(name)} is not accepted: {problem}.")


def seconds_of(text: object, *, pattern: str, kind: str) -> float | None:
    """Return the number of one text, or None if it is not written in the format."""
    if not isinstance(text, str):
        return None
    number = float(numbers_from_dates(pa.array([text], pa.string()), pattern=pattern, kind=kind)[0])
    return None if np.isnan(number) else number


def numbers_from_dates(cells: pa.Array, *, pattern: str, kind: str) -> _Floats:
    """Return days or seconds; NaN for null and for what is not written exactly as the format writes it.

    So an impossible day, a missing leading zero, or anything behind the date is unreadable.
    """
    parsed = pc.strptime(cells, format=pattern, unit="s", error_is_null=True)
    again = pc.strftime(parsed, format=pattern)
    exact = pc.fill_null(pc.equal(again, pc.cast(cells, again.type)), fill_value=False)
    return _numbers(pc.if_else(exact, parsed, pa.scalar(None, parsed.type)), kind=kind)


def numbers_from_stored_dates(cells: pa.Array, *, kind: str) -> _Floats:
    """Return days or seconds of a Parquet column of dates or timestamps; one with a time zone counts in UTC."""
    stored = cells.type
    ticks = pc.cast(pc.cast(cells, pa.int32()) if pa.types.is_date32(stored) else cells, pa.int64())
    missing = np.asarray(pc.is_null(ticks).to_numpy(zero_copy_only=False), dtype=bool)
    whole = np.asarray(pc.fill_null(ticks, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    if pa.types.is_date32(stored):
        seconds = whole * DAY
    else:  # a part of a second is cut off downwards, before 1970 too: a cast would move it to the next day
        seconds = whole // _TICKS["ms" if pa.types.is_date64(stored) else stored.unit]
    return _within(np.where(missing, np.nan, seconds), kind=kind)


def _numbers(stamps: pa.Array, *, kind: str) -> _Floats:
    seconds = np.asarray(
        pc.cast(pc.cast(stamps, pa.int64()), pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64
    )
    return _within(seconds, kind=kind)


def _within(seconds: _Floats, *, kind: str) -> _Floats:
    seconds = np.where((seconds >= _FIRST) & (seconds <= _LAST), seconds, np.nan)
    return np.floor(seconds / DAY) if kind == "date" else seconds


def texts_of_dates(values: _Floats, *, pattern: str, kind: str) -> Any:  # noqa: ANN401 - an array of pyarrow
    """Return the texts of days or seconds, rounded to whole ones and kept within the years 1 to 9999; null for NaN."""
    stamps = stamps_of_dates(values, kind=kind)
    return pc.strftime(stamps, format=pattern)


def stamps_of_dates(values: _Floats, *, kind: str) -> Any:  # noqa: ANN401 - an array of pyarrow
    """Return timestamps of days or seconds, null for NaN."""
    seconds = np.rint(values) * (DAY if kind == "date" else 1)
    missing = np.isnan(seconds)
    whole = np.where(missing, 0, np.clip(seconds, _FIRST, _LAST)).astype(np.int64)
    return pc.cast(pa.array(whole, mask=missing), pa.timestamp("s"))
