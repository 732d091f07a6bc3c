"""A15 for declared tables: the type that one odd cell gives to a whole column changes no other cell."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from accord.tables import parse_schema
from accord.tables.frames import read_data

pd: Any = pytest.importorskip("pandas")


def column(cells: Any, kind: str, more: str = "", *, unreadable: str = "missing") -> list[float]:
    schema = parse_schema(
        f'version = 3\n[[columns]]\nname = "a"\nkind = "{kind}"\nunreadable = "{unreadable}"\n{more}\n'
    )
    data = cells if isinstance(cells, pa.Table) else {"a": cells}
    return [float(value) for value in read_data(data, schema=schema).columns[0]]


def same(found: list[float], expected: list[float]) -> bool:
    return len(found) == len(expected) and all(
        one == other or (math.isnan(one) and math.isnan(other)) for one, other in zip(found, expected, strict=True)
    )


WHOLE = [-99, 1, 1000, 0, 5, 2**53, 2**60, -(2**53)]
TOKENS = ["-99", "-99.0", "1e3", "0", "-0", "NA", "inf", "nan"]


@pytest.mark.parametrize("kind", ["number", "integer"])
@pytest.mark.parametrize("token", TOKENS)
def test_whole_numbers_are_read_alike_beside_any_cell(kind: str, token: str) -> None:
    more = f'missing = ["{token}"]'
    floats = [float(value) for value in WHOLE]
    expected = column(np.array(WHOLE), kind, more)
    assert same(expected, [math.nan if float(one) in numbers(token) else float(one) for one in WHOLE])
    beside: list[Any] = [
        np.array([*floats, math.nan]),  # what a gap makes of whole numbers
        pd.Series([*WHOLE, None]),
        pd.Series([*WHOLE, "x"], dtype=object),
        pd.Series([*floats, "x"], dtype=object),
        pd.array([*WHOLE, None], dtype="Int64"),
        np.array([*WHOLE, "x"]),
        np.array([*floats, "x"]),
        [*WHOLE, None],
        [*map(Decimal, WHOLE), "x"],
        [*map(Fraction, WHOLE), "x"],
        np.ma.array([*WHOLE, 7], mask=[*[False] * len(WHOLE), True]),
        [*np.array(WHOLE, dtype=np.longdouble), None],
    ]
    for cells in beside:
        assert same(column(cells, kind, more)[:-1], expected), (type(cells), getattr(cells, "dtype", None))


def numbers(token: str) -> set[float]:
    try:
        return {float(token)}
    except ValueError:
        return set()


def test_what_is_no_number_is_no_missing_cell() -> None:
    for token in ("nan", "inf", "-inf"):
        for odd in ("x", True, dt.date(2020, 1, 1), (1,), b"3"):
            with pytest.raises(Exception, match="not finite numbers"):
                column([1.5, odd], "number", f'missing = ["{token}"]', unreadable="refuse")
    assert same(
        column([1.5, "inf", " NA ", math.inf], "number", 'missing = ["NA", "inf"]', unreadable="refuse"),
        [1.5] + [math.nan] * 3,
    )


DAYS = ["20230101", "20230623", "19691231"]


@pytest.mark.parametrize("token", ["20230101", "0"])
def test_dates_written_as_whole_numbers_are_read_alike_beside_a_gap(token: str) -> None:
    more = f'format = "%Y%m%d"\nmissing = ["{token}"]'
    expected = column(DAYS, "date", more)
    assert [math.isnan(day) for day in expected] == [day == token for day in DAYS]
    whole = [int(day) for day in DAYS]
    stored = [dt.datetime.strptime(day, "%Y%m%d") for day in DAYS]  # noqa: DTZ007 - as it is written
    beside: list[Any] = [
        np.array([*whole, 0]),
        np.array([*map(float, whole), math.nan]),
        pd.Series([*whole, None]),
        pd.Series([*map(float, whole), "x"], dtype=object),
        np.array([*whole, "x"]),
        pd.Series([*stored, None]),
        pd.Series([*stored, "x"], dtype=object),
        pd.Series([*stored, None]).dt.tz_localize("UTC"),
        [*stored, None],
        [*(when.date() for when in stored), None],
        np.array([*stored, None], dtype="datetime64[s]"),
    ]
    for cells in beside:
        assert same(column(cells, "date", more)[:-1], expected), (type(cells), getattr(cells, "dtype", None))


TIMES = ["2020-03-04T05:06:07.900000001", "1969-12-31T23:59:59.500000001", "2020-03-04T05:06:00"]


@pytest.mark.parametrize("pattern", ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"])
def test_times_are_read_to_the_second_in_any_column(pattern: str) -> None:
    """Also where the format does not write seconds: a text in it would lose them in a column of objects alone."""
    more = f'format = "{pattern}"'
    expected = column(np.array(TIMES, dtype="datetime64[ns]"), "datetime", more)
    assert expected[1] == -1
    assert expected[0] - expected[2] == 7
    nano = [np.datetime64(text, "ns") for text in TIMES]
    stamps = [pd.Timestamp(text) for text in TIMES]
    beside: list[Any] = [
        [*nano, "x"],
        pd.Series([*stamps, "x"], dtype=object),
        pd.Series([*stamps, None]),
        pd.Series([*stamps, None]).dt.tz_localize("UTC"),
        pd.Series([*stamps, None]).dt.tz_localize("UTC").astype(object),
        [*(when.to_pydatetime(warn=False) for when in stamps), None],
        [*(when.to_pydatetime(warn=False).replace(tzinfo=dt.UTC) for when in stamps), None],
        pd.Series([*(np.datetime64(text, "s") for text in TIMES), np.datetime64("12000-01-01", "s")]),
    ]
    for cells in beside:
        assert same(column(cells, "datetime", more)[:-1], expected), (type(cells), getattr(cells, "dtype", None))


def test_what_means_missing_does_so_for_stored_dates_too() -> None:
    more = 'missing = ["1900-01-01", "NA"]'
    days = [dt.date(1900, 1, 1), dt.date(2020, 1, 1)]
    expected = [math.nan, 18262.0]
    for cells in (
        days,
        np.array(days, dtype="datetime64[D]"),
        pa.table({"a": days}),
        pa.table({"a": pa.array(days, pa.date32()).cast(pa.timestamp("ms"))}),
    ):
        assert same(column(cells, "date", more), expected)
