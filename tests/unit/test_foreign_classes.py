"""Cells and names of anybody's class: none of its code runs where it could be noticed, and no other cell is moved."""

import datetime as dt
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accord.core.containers import held_in
from accord.core.records import Records
from accord.core.unit_names import owners_named
from accord.errors import DataError, SchemaMismatch
from accord.tables import parse_schema
from accord.tables.frames import read_data

pd: Any = pytest.importorskip("pandas")
LOUD: list[str] = []
"""What ran."""
ARMED: list[bool] = []
"""Something, while a test runs: pytest looks at classes too."""


def stop(what: str) -> Any:
    LOUD.append(what)
    raise KeyboardInterrupt


class Meta(type):
    """A metaclass that is noticed whenever anybody asks about its classes."""

    def __hash__(cls) -> int:
        return stop("__hash__ of a metaclass") if ARMED else type.__hash__(cls)

    def __getattribute__(cls, name: str) -> Any:
        return stop(f"{name} of a metaclass") if ARMED else type.__getattribute__(cls, name)


class Own(metaclass=Meta):
    """A cell of a class that nobody knows."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return stop("__class__") if ARMED else Own

    def __hash__(self) -> int:
        stop("__hash__")
        return 0


class OwnWhole(int, metaclass=Meta):
    """A whole number of a class with a metaclass."""


class OwnTime(dt.datetime):
    """A datetime with methods of its own that says where it comes from."""

    __module__ = "pandas.own"

    def _stop(self, *_: Any) -> Any:
        return stop("a time's own method")

    strftime = astimezone = to_datetime64 = utcoffset = toordinal = _stop  # type: ignore[assignment]
    year = hour = nanosecond = property(_stop)


class OwnDay(dt.date, metaclass=Meta):
    """A date of a class whose module is no text."""

    __module__ = 5  # type: ignore[assignment]


class OwnZone(dt.tzinfo):
    """A time zone that says nothing."""

    def _stop(self, *_: Any) -> Any:
        raise KeyboardInterrupt

    utcoffset = tzname = dst = fromutc = _stop


class OwnSpan(dt.timedelta):
    """A span that makes of a time what it likes."""

    def __rsub__(self, other: object) -> Any:
        return stop("a span's own method")


class ShiftedZone(OwnZone):
    """A time zone with an offset of a class of its own."""

    def utcoffset(self, _: object) -> dt.timedelta:
        return OwnSpan(hours=1)


class OwnBytes(np.bytes_):  # type: ignore[misc]
    """Bytes of a class that makes of them what it likes."""

    def __bytes__(self) -> Any:
        return stop("bytes' own method")

    strip = __bytes__  # type: ignore[assignment]


def altered_fraction() -> Fraction:
    """Return a fraction in whose field somebody has put an object."""
    found = Fraction(1, 2)
    object.__setattr__(found, "_numerator", Own())
    return found


def altered_uuid() -> uuid.UUID:
    found = uuid.UUID(int=5)
    object.__setattr__(found, "int", Own())
    return found


def structured() -> Any:
    """Return a value of numpy that holds an object."""
    return np.array([(Own(),)], dtype=[("a", object)])[0]


MAKERS: dict[str, Callable[[], Any]] = {
    "own": Own,
    "whole": lambda: OwnWhole(3),
    "time": lambda: OwnTime(2020, 3, 4, 5),
    "day": lambda: OwnDay(2020, 3, 4),
    "zone": lambda: dt.datetime(2020, 3, 4, 5, tzinfo=OwnZone()),
    "shifted": lambda: dt.datetime(2020, 3, 4, 5, tzinfo=ShiftedZone()),
    "clock": lambda: dt.time(3, tzinfo=ShiftedZone()),
    "bytes": lambda: OwnBytes(b"x"),
    "fraction": altered_fraction,
    "uuid": altered_uuid,
    "structured": structured,
    "in a tuple": lambda: (Own(),),
}
NUMBERS = {"whole": 3.0}

SCHEMA = """
version = 3
[[columns]]
name = "a"
kind = "category"
categories = ["x", "3"]
unreadable = "missing"
[[columns]]
name = "n"
kind = "number"
unreadable = "missing"
[[columns]]
name = "t"
kind = "datetime"
format = "%Y-%m-%d %H:%M:%S"
unreadable = "missing"
"""
MOMENT = 5 * 3600
"""Of 2020-03-04 05:00, in seconds of that day."""


@pytest.fixture(autouse=True)
def quiet() -> Any:
    LOUD.clear()
    ARMED.append(True)
    yield
    ARMED.clear()


@pytest.mark.parametrize("kind", MAKERS)
def test_a_cell_of_anybodys_class_moves_no_other(kind: str) -> None:
    rows = Records.of([[7], [MAKERS[kind]()], [8], [9]]).rows[:, 0]
    assert rows[[0, 2, 3]].tolist() == [7, 8, 9]
    assert rows[1] == NUMBERS[kind] if kind in NUMBERS else math.isnan(rows[1])
    labels = Records.of([[7], [MAKERS[kind]()], [8]], cells="labels").rows[:, 0]
    assert labels[[0, 2]].tolist() == [7, 8]
    assert LOUD == []
    entries = held_in([7, MAKERS[kind](), 8, 9, 10]).table
    assert entries is not None
    assert entries[[0, 2, 3, 4], 0].tolist() == [7, 8, 9, 10]
    assert set(LOUD) <= {"__hash__ of a metaclass"}  # asked alone whether it is a mapping


@pytest.mark.parametrize("kind", MAKERS)
def test_a_name_of_anybodys_class_is_one_or_is_refused(kind: str) -> None:
    names = [MAKERS[kind](), "a", MAKERS[kind](), 3]
    for given in (names, [(1, name) for name in names]):
        try:
            found = owners_named(given, records=4).tolist()
        except DataError:
            continue
        assert found in ([0, 1, 0, 2], [0, 1, 0, 0])
    if kind not in {"own", "in a tuple"}:  # asked alone whether it is a number, or equal to itself
        assert "__hash__" not in LOUD


@pytest.mark.parametrize("kind", MAKERS)
def test_a_cell_of_anybodys_class_is_unreadable_in_a_declared_table(kind: str) -> None:
    schema = parse_schema(SCHEMA)
    usual = {"a": "x", "n": 2.5, "t": dt.datetime(2020, 3, 4, 5)}  # noqa: DTZ001 - as it is written
    cells: dict[str, Any] = {name: [cell, MAKERS[kind](), cell] for name, cell in usual.items()}
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in cells.items()})
    for data in (cells, frame):
        found = read_data(data, schema=schema).columns
        assert [column[[0, 2]].tolist() for column in found[:2]] == [[0, 0], [2.5, 2.5]]
        moment = found[2][0]
        assert found[2][2] == moment
        assert moment % 86_400 == MOMENT
        assert found[0][1] == (1 if kind == "whole" else -1)
        assert found[1][1] == 3 if kind == "whole" else math.isnan(found[1][1])
        expected = {"time": moment, "day": moment - MOMENT, "shifted": moment - 3600}.get(kind)
        assert math.isnan(found[2][1]) if expected is None else found[2][1] == expected
    assert LOUD == []


def test_a_year_that_python_has_not_is_one_unreadable_cell() -> None:
    """pandas cannot write it; a frame with a time zone ended the run."""
    schema = parse_schema(SCHEMA)
    moments = np.array(["2020-03-04T05:00", "12000-01-01T00:00", "2020-03-04T05:00:00"], dtype="datetime64[s]")
    zoned = pd.Series(moments).dt.tz_localize("UTC")
    for times in (zoned, zoned.astype(object), pd.Series(moments).astype(object)):
        frame = pd.DataFrame({"a": ["x"] * 3, "n": [1.0] * 3, "t": times})
        found = read_data(frame, schema=schema).columns[2]
        assert np.isnan(found).tolist() == [False, True, False]
        assert found[0] == found[2]


def test_a_unit_column_of_anybodys_class_is_refused_in_words() -> None:
    schema = parse_schema(SCHEMA.replace("version = 3", 'version = 3\nunit = "u"'))
    for name in (Own(), OwnTime(2020, 3, 4), np.str_, OwnBytes(b"x")):
        data = {"a": ["x"] * 2, "n": [1.0] * 2, "t": [None] * 2, "u": ["p", name]}
        with pytest.raises(SchemaMismatch, match="must hold texts or whole numbers"):
            read_data(data, schema=schema)
    assert LOUD == []


def test_times_of_pandas_with_a_zone_are_the_instants_they_were() -> None:
    """To the nanosecond, before 1970, and in years that Python's types do not have."""
    years = [pd.Timestamp(np.datetime64(f"{year}-01-01", "s")).tz_localize("UTC") for year in (12000, 16000, 12000)]
    assert owners_named(years, records=3).tolist() == [0, 1, 0]
    texts = ["1969-12-31 23:59:59.999999999", "1969-12-31 23:59:59.999999998", "1969-12-31 23:59:59.999999"]
    fine = [pd.Timestamp(text, tz="UTC") for text in texts]
    python = dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)
    berlin = pd.Timestamp(texts[0], tz="UTC").tz_convert("Europe/Berlin")
    assert owners_named([*fine, python, berlin], records=5).tolist() == [0, 1, 2, 2, 0]


@pytest.mark.parametrize("value", [Fraction(1, 3), Decimal("2.5"), np.float32(1.5), True, "4"])
def test_plain_values_are_read_as_ever(value: Any) -> None:
    assert Records.of([[value], [1]]).rows[0, 0] == float(value)


def test_times_of_pandas_are_those_of_python_in_columns_of_any_type() -> None:
    """One odd cell makes a column of times one of objects: a learner of labels sees nothing of it."""
    texts = ["2020-03-04 05:06:07", "1969-12-31 23:59:59.999999999", "2020-10-25 00:30:00"]
    naive = pd.Series(pd.to_datetime(pd.Index(texts), format="mixed"))
    zoned = naive.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    spans = pd.Series(pd.to_timedelta([1, 10**9, 10**15], unit="ns"))
    for times in (naive, zoned, spans):
        beside = pd.Series([*times, "x"], dtype=object)
        whole, mixed = (Records.of(one, cells="labels").rows[:3, 0].tolist() for one in (times, beside))
        assert [(type(one), one) for one in mixed] == [(type(one), one) for one in whole]
        assert {type(one).__module__ for one in whole} <= {"datetime", "builtins"}
    python = [dt.datetime(2020, 3, 4, 5, 6, 7, tzinfo=dt.UTC), dt.datetime(2021, 3, 4, tzinfo=dt.UTC)]
    kept, turned = (
        Records.of(one, cells="labels").rows[:2, 0].tolist()
        for one in (pd.Series([*python, "x"], dtype=object), pd.Series(python))
    )
    assert kept == turned == python
    assert {type(one) for one in turned} == {dt.datetime}
