"""What a guarantee calls a unit of privacy."""

import datetime as dt
import numbers
import unicodedata
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.cells import as_label, bare, is_missing, is_of_pandas, is_plain
from accord.core.containers import column_of
from accord.core.errors import DataError, InvalidParameter

__all__ = [
    "RECORD",
    "check_word",
    "keys_named",
    "owners_named",
    "unit_word",
]


RECORD = "record"
"""The word of a guarantee in which every record is a unit of its own."""

_RESERVED: Final = {RECORD, "voter"}
_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that are drawn as nothing though Unicode calls them printable; selectors of variants are others."""
_SELECTORS: Final = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))


def check_word(word: object) -> None:
    r"""Refuse what no reader of a promise can see as a word.

    Two units whose words look the same would be taken for one by whoever reads a ledger or a report.

    Raises
    ------
    InvalidParameter
        If this is no text, or blank, or has control characters, or characters that are drawn as nothing.

    Examples
    --------
    >>> check_word("person")
    >>> check_word("per\u200bson")
    Traceback (most recent call last):
    accord.errors.InvalidParameter: unit must be a word for the unit of privacy, ...

    """
    if isinstance(word, str) and word.strip() and all(_seen(letter) for letter in word):
        return
    raise InvalidParameter(
        "unit must be a word for the unit of privacy, such as 'record' or 'person': a text that is not blank, without "
        "control characters or characters that cannot be seen."
    )


def _seen(letter: str) -> bool:
    selects = any(first <= ord(letter) <= last for first, last in _SELECTORS)
    return letter.isprintable() and letter not in _UNSEEN and not selects


def unit_word(name: str | None, *, named: bool) -> str:
    """Return the word for a unit of privacy: the only place where a name, such as that of a column, becomes one.

    "record" is kept for guarantees in which every record is a unit, and "voter" for those of votes: a promise for what
    a column of that name holds is another one, and no ledger, session or total may take it for that.

    Parameters
    ----------
    name
        What the caller, or the schema's column, calls a unit; None for no name.
    named
        Whether each record was given its unit.

    Raises
    ------
    InvalidParameter
        If the name is none that a reader can see: see `check_word`.

    Examples
    --------
    >>> unit_word(None, named=False), unit_word(None, named=True), unit_word("person", named=True)
    ('record', 'unit', 'person')
    >>> unit_word("record", named=True)
    'unit "record"'

    """
    if not named:
        return RECORD
    if name is None:
        return "unit"
    check_word(name)
    plain = unicodedata.normalize("NFKC", name).strip().casefold()
    return f'unit "{name}"' if plain in _RESERVED else name


_MISSING = "a record has no unit of privacy: give every record one, so that no person is in two blocks."
_ODD = "a unit of privacy must be a plain name: text, a number, a date or a tuple of these."
_DEEPEST = 64
"""Tuples inside tuples."""
_SHAPE = "units must name one unit a record, in a list or an array of shape (n,)"


def owners_named(units: Any, *, records: int) -> NDArray[np.int64]:  # noqa: ANN401 - any container
    """Return the number of each record's unit, by first appearance, shape (n,).

    Raises
    ------
    InvalidParameter
        If there is not one name a record.
    DataError
        If a name, or a part of a tuple, is missing or blank, or cannot be a name.

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


def keys_named(units: Any, *, records: int) -> tuple[list[Any], NDArray[np.int64]]:  # noqa: ANN401 - any container
    """Return what makes each unit's name, by first appearance, and `owners_named`.

    Keys of units of several tables are equal if and only if the units are one, whatever containers name them.

    Raises
    ------
    InvalidParameter, DataError
        As `owners_named`.

    Examples
    --------
    >>> keys, owners = keys_named(np.array([7.0, 3.5, 7.0]), records=3)
    >>> keys, owners.tolist(), keys_named([7], records=1)[0] == keys[:1]
    ([7.0, 3.5], [0, 1, 0], True)

    """
    owners = owners_named(units, records=records)
    names, first = _container(units), np.unique(owners, return_index=True)[1]
    return [_key(names[row]) for row in first.tolist()], owners


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
        kind = type(name)
        key = name if kind is str or kind is int else _key(name)
        owner = owners[place] = known.setdefault(key, len(known))
        if owner == len(known) - 1 and type(key) is str:  # perhaps new
            _refuse_blank(key)
    return owners


def _refuse_blank(name: str) -> None:
    if not name.strip():
        raise DataError(_MISSING)


def _key(name: Any, depth: int = 0) -> Any:  # noqa: ANN401 - any name
    """Return what makes a name: equal keys are one unit.

    A text stands for itself, and nothing else does. A number is the exact Python number of its value, which is equal to
    no text and no tuple. Anything else is a pair of its kind and its content, and no name is a pair: a tuple is the
    pair of "tuple" and the keys of its parts. So two keys are equal if and only if kinds and contents are, and keys
    hold plain values only: what a subclass calls equal does not count.
    """
    name = bare(name)
    kind = type(name)
    if depth > _DEEPEST or (issubclass(kind, np.ndarray) and name is not np.ma.masked):
        raise DataError(_ODD)
    if kind is tuple:
        return "tuple", tuple(_key(part, depth + 1) for part in name)
    if issubclass(kind, frozenset):
        return "set", frozenset(_key(part, depth + 1) for part in frozenset.__iter__(name))
    if is_missing(name):
        raise DataError(_MISSING)
    known = is_plain(kind) or is_of_pandas(kind)
    key = _by_rule(name) if known else alone(lambda: _by_rule(name), failed=None)  # a number's own code, or its class's
    if key is None:
        raise DataError(_ODD)
    return key


def _by_rule(name: object) -> Any:  # noqa: ANN401 - a key, None for what names nobody
    kind = type(name)
    return next((rule(name) for kinds, rule in _RULES if issubclass(kind, kinds)), None)


def _text(name: str) -> str:
    plain = str.__str__(name)
    _refuse_blank(plain)
    return plain


def _bytes(name: bytes) -> tuple[str, bytes]:
    if not name.strip():
        raise DataError(_MISSING)
    return "bytes", bytes.__getitem__(name, slice(None))


def _whole(name: Any) -> int:  # noqa: ANN401 - any integer
    return int.__int__(int(name))


def _real(name: Any) -> float | Fraction:  # noqa: ANN401 - a float of Python or numpy
    if isinstance(name, float):
        return float(name)
    number = float(name)
    return number if number == name else Fraction(*map(int, name.as_integer_ratio()))  # a long double may say more


def _complex(name: Any) -> Any:  # noqa: ANN401 - a complex number of Python or numpy
    if name.imag == 0:
        return _real(name.real)
    return "complex", _real(name.real), _real(name.imag)


def _day(name: dt.date) -> tuple[str, int]:
    return "date", dt.date.toordinal(name) - _EPOCH


def _span(name: Any) -> Any:  # noqa: ANN401 - a duration of Python or pandas
    if is_of_pandas(type(name)):
        return _numpy_time(name.to_timedelta64())
    return "span", name.days, name.seconds, name.microseconds


def _clock(name: dt.time) -> Any:  # noqa: ANN401 - a pair
    ticks = alone(lambda: _ticks(0, name, name.utcoffset()), failed=None)  # a zone's own code
    return ticks and ("clock", *ticks, name.fold if ticks[0] == "as written" else 0)


def _moment(name: Any) -> Any:  # noqa: ANN401 - a datetime of Python or pandas
    """Return the instant that a time with a zone is, whatever the zone is called; or what is written, without one."""
    if is_of_pandas(type(name)):
        return _moment_of_pandas(name)
    ticks = alone(lambda: _ticks(_day(name)[1], name, name.utcoffset()), failed=None)
    return ticks and ("datetime", *ticks, name.fold if ticks[0] == "as written" else 0)


def _moment_of_pandas(name: Any) -> Any:  # noqa: ANN401 - a pair
    stamp = name.to_datetime64()  # in UTC, if there is a zone
    if name.tzinfo is None:
        return _numpy_time(stamp)
    seconds = int(stamp.astype(np.int64)) * _SECONDS[np.datetime_data(stamp.dtype)[0]]
    micro, beyond = divmod(seconds * 10**6, 1)
    return "datetime", "at", int(micro), int(beyond * 1000)


def _ticks(day: int, clock: Any, offset: dt.timedelta | None) -> tuple[str, int]:  # noqa: ANN401 - a time or a datetime
    """Return the microseconds since 1970, and whether they are those of an instant."""
    written = dt.timedelta(day, clock.second, clock.microsecond, 0, clock.minute, clock.hour)
    if offset is None:
        return "as written", written // _TICK
    return "at", (written - bare(offset)) // _TICK


_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_TICK: Final = dt.timedelta(microseconds=1)
_TIMES: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (dt.timedelta, _span),
    (dt.time, _clock),
    (dt.datetime, _moment),  # which is a date too
    (dt.date, _day),
)


def _numpy_time(name: np.datetime64 | np.timedelta64) -> Any:  # noqa: ANN401 - a pair
    """Return a time as Python's, where Python has it to the last digit; else as a whole number of one unit of time."""
    plain = as_label(name)
    for kind, rule in _TIMES:
        if isinstance(plain, kind):
            return rule(plain)
    unit, step = np.datetime_data(name.dtype)
    count = int(name.astype(np.int64)) * step
    if unit in {"Y", "M"}:
        months = count * (12 if unit == "Y" else 1)
        return ("date", _days(months)) if isinstance(name, np.datetime64) else ("months", months)
    if isinstance(name, np.datetime64) and unit in {"W", "D"}:
        return "date", count * (7 if unit == "W" else 1)
    word = "datetime64" if isinstance(name, np.datetime64) else "timedelta64"
    return word, count if unit == "generic" else ("s", Fraction(count) * _SECONDS[unit])


def _days(months: int) -> int:
    """Return the days from 1970 to the first of a month, by the calendar's 400 years of 146,097 days."""
    cycles, rest = divmod(months, 4800)
    return cycles * 146_097 + (dt.date(1970 + rest // 12, rest % 12 + 1, 1) - dt.date(1970, 1, 1)).days


_SECONDS: Final = {
    "W": Fraction(604_800),
    "D": Fraction(86_400),
    "h": Fraction(3600),
    "m": Fraction(60),
    "s": Fraction(1),
    **{unit: Fraction(1, 1000**power) for power, unit in enumerate(["ms", "us", "ns", "ps", "fs", "as"], start=1)},
}

_RULES: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    # The first rule that fits is taken: a bool is an int, and a duration of numpy calls itself an integer.
    (str, _text),
    ((bool, np.bool_), lambda name: ("bool", bool(name))),
    ((np.datetime64, np.timedelta64), _numpy_time),
    (numbers.Integral, _whole),
    ((float, np.floating), _real),
    (Decimal, Decimal),
    (numbers.Rational, lambda name: Fraction(int(name.numerator), int(name.denominator))),
    ((complex, np.complexfloating), _complex),
    (bytes, _bytes),
    *_TIMES,
    (uuid.UUID, lambda name: ("uuid", int(vars(uuid.UUID)["int"].__get__(name)))),
)
"""What names a unit. Anything else could hide that a name is missing: other libraries' scalars, objects with fields."""
