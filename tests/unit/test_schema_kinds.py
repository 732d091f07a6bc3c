"""Version 2 of the schema: every kind is read, clamped or refused, and written back as it was declared."""

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import DataError, SchemaMismatch
from accord.tables import (
    Column,
    CsvFormat,
    Schema,
    Table,
    columns_as_bytes,
    draft_schema,
    parse_schema,
    read_batches,
    read_header,
    read_table,
)
from accord.tables.column import LABEL_KINDS, NUMBER_KINDS
from accord.tables.dates import numbers_from_dates, texts_of_dates

ALL_KINDS = """
version = 2
unit = "person"
[csv]
separator = ";"
decimal = ","
encoding = "latin-1"
[[columns]]
name = "weight"
kind = "number"
decimals = 1
bounds = [0, 300]
[[columns]]
name = "visits"
kind = "integer"
outside = "unreadable"
bounds = [0, 99]
edges = [0, 5, 99]
unreadable = "missing"
[[columns]]
name = "grade"
kind = "ordinal"
categories = ["low", "middle", "high"]
[[columns]]
name = "smokes"
kind = "boolean"
true = ["ja", "oui"]
false = ["nein"]
[[columns]]
name = "born"
kind = "date"
format = "%d.%m.%Y"
bounds = ["01.01.1900", "31.12.2030"]
[[columns]]
name = "seen"
kind = "datetime"
[[columns]]
name = "country"
kind = "constant"
value = "CH"
[[columns]]
name = "file"
kind = "id"
prefix = "p-"
[[columns]]
name = "note"
kind = "drop"
"""


def one(kind: str, more: str = "") -> str:
    return f'version = 2\n[[columns]]\nname = "x"\nkind = "{kind}"\n{more}\n'


def table(folder: Path, schema: str | Schema, text: str | bytes, name: str = "t.csv") -> Table:
    place = folder / name
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(place, schema=parse_schema(schema) if isinstance(schema, str) else schema)


def values(folder: Path, schema: str, *cells: str) -> list[float]:
    """Read a file with one column; NaN and -1 are missing."""
    return [float(value) for value in table(folder, schema, "x\n" + "".join(f"{c}\n" for c in cells)).columns[0]]


# --- the schema -------------------------------------------------------------------------------------------------------


def test_every_kind_is_declared() -> None:
    schema = parse_schema(ALL_KINDS)
    assert [column.kind for column in schema.columns] == [
        "number", "integer", "ordinal", "boolean", "date", "datetime", "constant", "id", "drop",
    ]  # fmt: skip
    assert [column.name for column in schema.read] == ["weight", "visits", "grade", "smokes", "born", "seen"]
    assert schema.csv == CsvFormat(separator=";", decimal=",", encoding="iso8859-1")
    assert schema.columns[1] == Column(
        name="visits",
        kind="integer",
        decimals=0,
        bounds=(0.0, 99.0),
        outside="unreadable",
        edges=(0.0, 5.0, 99.0),
        unreadable="missing",
    )
    assert schema.columns[3].categories == ("nein", "ja")
    assert schema.columns[4].bounds == (-25567.0, 22279.0)


REFUSED: dict[str, tuple[str, list[str]]] = {
    "new kind in version 1": (one("integer").replace("= 2", "= 1"), ["integer", "version = 2"]),
    "new key in version 1": (one("number", "bounds = [0, 1]").replace("= 2", "= 1"), ["bounds", "version = 2"]),
    "csv in version 1": (one("number", "").replace("= 2", "= 1") + "[csv]\n", ["csv", "version = 2"]),
    "bounds reversed": (one("number", "bounds = [3, 2]"), ["bounds", '"x"']),
    "bounds equal": (one("number", "bounds = [3, 3]"), ["bounds"]),
    "bounds of texts": (one("number", 'bounds = ["a", "b"]'), ["bounds", "[0, 120]"]),
    "bounds nan": (one("number", "bounds = [nan, 1]"), ["bounds"]),
    "bounds infinite": (one("number", "bounds = [0, inf]"), ["bounds"]),
    "bounds booleans": (one("number", "bounds = [false, true]"), ["bounds"]),
    "bounds of a date as numbers": (one("date", "bounds = [0, 1]"), ["bounds", "format"]),
    "bounds of a date in another format": (one("date", 'bounds = ["1/1/2000", "1/1/2001"]'), ["bounds"]),
    "edges": (one("number", "edges = [1]"), ["edges", "increasing"]),
    "edges unordered": (one("number", "edges = [1, 1]"), ["edges", "increasing"]),
    "edges of a date": (one("date", "edges = [1, 2]"), ["edges", '"x"']),
    "outside": (one("number", 'outside = "drop"'), ["outside", '"clamp", "unreadable"']),
    "required": (one("number", 'required = "yes"'), ["required", "true or false"]),
    "decimals of an integer": (one("integer", "decimals = 0"), ["decimals"]),
    "ordinal without categories": (one("ordinal"), ["categories"]),
    "boolean with categories": (one("boolean", 'categories = ["a"]'), ["categories"]),
    "boolean spelled twice": (one("boolean", 'true = ["1"]\nfalse = ["1"]'), ["both"]),
    "boolean that is missing": (one("boolean", 'true = ["1"]\nmissing = ["1"]'), ["both"]),
    "boolean without a spelling": (one("boolean", "true = []"), ["spellings"]),
    "format without a year": (one("date", 'format = "%d.%m."'), ["format", "year"]),
    "format with a zone": (one("datetime", 'format = "%Y-%m-%dT%H:%M:%S%z"'), ["format", "zone"]),
    "format of a date with a time": (one("date", 'format = "%Y-%m-%d %H"'), ["datetime"]),
    "format of a time without one": (one("datetime", 'format = "%Y-%m-%d"'), ["hour"]),
    "format is a number": (one("date", "format = 3"), ["format"]),
    "constant without a value": (one("constant"), ["value"]),
    "constant that is a number": (one("constant", "value = 3"), ["value", "text"]),
    "prefix": (one("id", "prefix = 3"), ["prefix", "text"]),
    "missing of an id": (one("id", 'missing = ["x"]'), ["missing"]),
    "nothing to learn": (one("id"), ["at least one column that is read"]),
    "csv is a text": ('version = 2\ncsv = "x"\n[[columns]]\nname = "x"\nkind = "number"\n', ["[csv]"]),
    "unknown key of csv": (one("number") + '[csv]\nsep = ";"\n', ['"sep"', '"separator"']),
    "separator": (one("number") + '[csv]\nseparator = "::"\n', ["separator"]),
    "number as separator": (one("number") + "[csv]\nseparator = 1\n", ["texts"]),
    "quote": (one("number") + '[csv]\nquote = "`"\n', ["quote"]),
    "decimal": (one("number") + '[csv]\ndecimal = "·"\n', ["decimal"]),
    "two commas": (one("number") + '[csv]\ndecimal = ","\n', ["differ"]),
    "encoding": (one("number") + '[csv]\nencoding = "klingon"\n', ["encoding", "latin-1"]),
    "encoding of bytes": (one("number") + '[csv]\nencoding = "hex"\n', ["encoding"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_key_and_what_is_accepted(case: str) -> None:
    text, phrases = REFUSED[case]
    with pytest.raises(SchemaMismatch) as caught:
        parse_schema(text)
    message = str(caught.value)
    assert "\n" not in message
    for phrase in phrases:
        assert phrase in message


def test_a_draft_says_how_the_file_is_written(tmp_path: Path) -> None:
    form = CsvFormat(encoding="latin-1", separator="\t", quote="'", decimal=",")
    place = tmp_path / "t.csv"
    place.write_bytes("prénom\t'a\tb'\n1\t2\n".encode("latin-1"))
    header = read_header(place, csv=form)
    assert header == ("prénom", "a\tb")
    completed = draft_schema(header, csv=form).replace('"?"', '"number"')
    assert parse_schema(completed).csv == form


# --- reading ----------------------------------------------------------------------------------------------------------


def test_numbers_outside_the_bounds(tmp_path: Path) -> None:
    """E10, E84."""
    clamped = one("number", "bounds = [0, 120]")
    assert values(tmp_path, clamped, "31", "230", "-4", "-0.0") == [31, 120, 0, 0]
    unreadable = one("number", 'bounds = [0, 120]\noutside = "unreadable"')
    with pytest.raises(SchemaMismatch, match="within the bounds"):
        values(tmp_path, unreadable, "31", "230")
    both = unreadable + '\nunreadable = "missing"\n'
    np.testing.assert_equal(values(tmp_path, both, "31", "230", "120"), [31, np.nan, 120])


def test_E10_the_edges_of_the_bounds_are_inside(tmp_path: Path) -> None:
    schema = one("number", 'bounds = [0, 100]\noutside = "unreadable"\nunreadable = "missing"')
    cells = ["0", "100", "0.0", "100.0", "99.99999999999999", "100.00000000000001", "-0.0", "50"]
    found = values(tmp_path, schema, *cells)
    assert np.isnan(found).tolist() == [False] * 5 + [True, False, False]


def test_E61_integers_may_be_written_with_a_zero_fraction(tmp_path: Path) -> None:
    assert values(tmp_path, one("integer"), "3.0", "4", "-5e1") == [3, 4, -50]
    with pytest.raises(SchemaMismatch, match="whole numbers"):
        values(tmp_path, one("integer"), "3", "3.5")
    lenient = one("integer", 'unreadable = "missing"')
    np.testing.assert_equal(values(tmp_path, lenient, "3.5", "9007199254740993", "7"), [np.nan, np.nan, 7])


def test_E67_booleans_in_their_spellings(tmp_path: Path) -> None:
    schema = one("boolean", 'true = ["TRUE", "yes", "1"]\nfalse = ["false", "F"]')
    assert values(tmp_path, schema, "TRUE", "false", "yes", "F", "", "1") == [1, 0, 1, 0, -1, 1]
    with pytest.raises(SchemaMismatch, match="spellings"):
        values(tmp_path, schema, "true")
    stored = pa.table({"x": pa.array([True, None, False])})
    pq.write_table(stored, tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet", schema=parse_schema(one("boolean")))
    assert found.columns[0].tolist() == [1, -1, 0]


def test_E68_dates_are_read_exactly_as_written(tmp_path: Path) -> None:
    lenient = one("date", 'unreadable = "missing"')
    cells = ["2020-02-29", "2021-02-29", "1970-01-02", "0001-01-01", "9999-12-31", "2021-2-9", "20210405", "", "NaT"]
    found = values(tmp_path, lenient, *cells)
    np.testing.assert_equal(found, [18321, np.nan, 1, -719162, 2932896, *[np.nan] * 4])
    with pytest.raises(SchemaMismatch, match="dates written as %Y-%m-%d"):
        values(tmp_path, one("date"), "2021-02-29")
    day_first = one("date", 'format = "%d%m%Y"\nbounds = ["01012000", "31122020"]')
    assert values(tmp_path, day_first, "05112025", "05111999", "31122023") == [18627, 10957, 18627]
    times = one("datetime", 'format = "%Y-%m-%dT%H:%M:%SZ"')
    assert values(tmp_path, times, "1970-01-01T00:01:00Z") == [60]


def test_E68_dates_of_parquet(tmp_path: Path) -> None:
    stamps = pa.array([0, 86_400_000 + 1, None], pa.timestamp("ms"))
    stored = pa.table(
        {
            "day": pa.array([0, 1, None], pa.date32()),
            "text": pa.array(["1970-01-01", "1970-01-02", None]),
            "time": stamps,
            "zone": pa.array([0, 86_400, None], pa.timestamp("s", tz="Europe/Zurich")),
        }
    )
    pq.write_table(stored, tmp_path / "t.parquet")
    for name in stored.column_names:
        for kind, size in (("date", 1.0), ("datetime", 86_400.0)):
            if (name, kind) == ("text", "datetime"):
                continue
            schema = parse_schema(one(kind).replace('"x"', f'"{name}"'))
            np.testing.assert_equal(read_table(tmp_path / "t.parquet", schema=schema).columns[0], [0.0, size, np.nan])
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "n.parquet")
    with pytest.raises(SchemaMismatch, match="declared as a date, but the file stores it as int64"):
        read_table(tmp_path / "n.parquet", schema=parse_schema(one("date")))


@pytest.mark.parametrize(
    ("schema", "cells"),
    [
        (one("number", "required = true"), ["1", ""]),
        (one("number", 'required = true\nmissing = ["NA"]'), ["1", "NA"]),
        (one("category", 'categories = ["a"]\nrequired = true'), ["a", ""]),
        (one("date", "required = true"), ["2020-01-01", ""]),
    ],
)
def test_E62_a_required_column_has_no_missing_cells(tmp_path: Path, schema: str, cells: list[str]) -> None:
    with pytest.raises(SchemaMismatch, match="required"):
        values(tmp_path, schema, *cells)
    found = values(tmp_path, schema + '\nunreadable = "missing"\n', *cells)
    assert not np.isnan(found[0])
    assert found[1] == -1 or np.isnan(found[1])


def test_E64_E75_separators_decimal_marks_and_encodings(tmp_path: Path) -> None:
    schema = 'version = 2\n[csv]\nseparator = ";"\ndecimal = ","\n[[columns]]\nname = "x"\nkind = "number"\n'
    schema += '[[columns]]\nname = "prénom"\nkind = "category"\ncategories = ["élève", "noël"]\n'
    text = 'prénom;x\nélève;1,5\n"noël";-2\nélève;"3,25"\n'
    declared = schema
    for encoding in ("utf-8", "latin-1", "utf-16", "utf-16-le", "utf-8-sig", "cp1252"):
        declared = schema.replace("[csv]", f'[csv]\nencoding = "{encoding}"')
        found = table(tmp_path, declared, text.encode(encoding))
        assert found.columns[0].tolist() == [1.5, -2, 3.25]
        assert found.columns[1].tolist() == [0, 1, 0]
    assert table(tmp_path, declared, gzip.compress(text.encode("cp1252"))).columns[0].tolist() == [1.5, -2, 3.25]
    with pytest.raises(SchemaMismatch, match="finite numbers"):
        table(tmp_path, schema, "prénom;x\nélève;1.5\n")
    ascii_only = schema.replace("[csv]", '[csv]\nencoding = "ascii"').replace("prénom", "prenom")
    with pytest.raises(DataError, match=r"is not ascii text .*position 9 "):
        table(tmp_path, ascii_only, "prenom;x\nélève;1\n")
    with pytest.raises(DataError, match="NUL"):
        table(tmp_path, declared, b"pr\xe9nom;x\n\xe9l\xe8ve;1\x00\n")


def test_quotation_marks_as_declared(tmp_path: Path) -> None:
    single = one("category", 'categories = ["a,b", "it is"]') + '[csv]\nquote = "\'"\n'
    assert table(tmp_path, single, "x,y\n'a,b',1\nit is,2\n").columns[0].tolist() == [0, 1]
    none = one("category", "categories = ['\"a', 'b']") + '[csv]\nquote = ""\n'
    assert table(tmp_path, none, 'x,y\n"a,1\nb,2\n').columns[0].tolist() == [0, 1]


@pytest.mark.parametrize("block", [1 << 12, 4 << 20])
def test_encodings_do_not_depend_on_block_borders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr("accord.tables.csv_file.BLOCK", block)
    schema = one("category", 'categories = ["é", "日本"]') + '[csv]\nencoding = "utf-16"\n'
    cells = ["é", "日本", ""] * 5000
    found = table(tmp_path, schema, ("x,y\n" + "".join(f"{cell},0\n" for cell in cells)).encode("utf-16"))
    assert found.columns[0].tolist() == [0, 1, -1] * 5000


def test_batches_together_are_the_table(tmp_path: Path) -> None:
    schema = parse_schema(one("number") + '[[columns]]\nname = "c"\nkind = "category"\ncategories = ["a"]\n')
    rows = "".join(f"{number},a\n" for number in range(200_000))
    whole = table(tmp_path, schema, "x,c\n" + rows)
    parts = list(read_batches(tmp_path / "t.csv", schema=schema))
    assert len(parts) > 1 or len(rows) < 4 << 20
    for place in range(2):
        assert (np.concatenate([part.columns[place] for part in parts]) == whole.columns[place]).all()


# --- writing ----------------------------------------------------------------------------------------------------------


def test_every_kind_is_written_as_declared() -> None:
    schema = parse_schema(ALL_KINDS)
    columns: list[Any] = [
        np.array([70.25, np.nan]),
        np.array([3.0, 99.0]),
        np.array([2, -1], dtype=np.int32),
        np.array([1, 0], dtype=np.int32),
        np.array([0.0, np.nan]),
        np.array([59.6, 0.0]),
    ]
    text = columns_as_bytes(columns, schema=schema, parquet=False).decode()
    assert text == (
        "weight;visits;grade;smokes;born;seen;country;file\n"
        "70,2;3;high;ja;01.01.1970;1970-01-01 00:01:00;CH;p-1\n"
        ";99;;nein;;1970-01-01 00:00:00;CH;p-2\n"
    )
    stored = pq.read_table(io.BytesIO(columns_as_bytes(columns, schema=schema, parquet=True)))
    assert [str(kind) for kind in stored.schema.types] == [
        "double", "int64", "string", "bool", "date32[day]", "timestamp[ms]", "string", "string",
    ]  # fmt: skip
    assert stored.column("smokes").to_pylist() == [True, False]
    assert stored.column("weight").to_pylist() == [70.2, None]


@pytest.mark.parametrize("parquet", [False, True])
@given(data=st.data())
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, *, parquet: bool
) -> None:
    schema = Schema(columns=parse_schema(ALL_KINDS).columns, csv=CsvFormat(separator=";", decimal=","))
    size = data.draw(st.integers(1, 5))

    def column(values: Any, none: Any, kind: Any) -> Any:
        return np.array(data.draw(st.lists(st.one_of(values, st.just(none)), min_size=size, max_size=size)), dtype=kind)

    tenths = st.integers(0, 3000).map(lambda number: number / 10)
    columns = [
        column(tenths, np.nan, float),
        column(st.integers(0, 99).map(float), np.nan, float),
        column(st.integers(0, 2), -1, np.int32),
        column(st.integers(0, 1), -1, np.int32),
        column(st.integers(-25567, 22279).map(float), np.nan, float),
        column(st.integers(-(10**9), 10**10).map(float), np.nan, float),
    ]
    place = tmp_path_factory.mktemp("written") / "t"
    place.write_bytes(columns_as_bytes(columns, schema=schema, parquet=parquet))
    again = read_table(place, schema=schema)
    for before, after in zip(columns, again.columns, strict=True):
        np.testing.assert_array_equal(before, after)


def test_E66_codes_with_leading_zeros_stay_texts(tmp_path: Path) -> None:
    schema = one("category", 'categories = ["02116", "00501"]')
    found = table(tmp_path, schema, "x,y\n02116,1\n00501,2\n")
    assert columns_as_bytes(found.columns, schema=parse_schema(schema), parquet=False) == b"x\n02116\n00501\n"


def test_E78_texts_that_a_spreadsheet_runs_are_written_as_declared() -> None:
    column = Column(name="=1+1", kind="category", categories=("=1+1", "-7", '"', " b", "a,b", "\r"))
    text = columns_as_bytes([np.arange(6, dtype=np.int32)], schema=Schema(columns=(column,)), parquet=False)
    assert [row[0] for row in csv.reader(io.StringIO(text.decode(), newline=""))] == ["=1+1", *column.categories]


@given(st.integers(-700_000, 2_900_000))
def test_days_and_texts_are_one_to_one(day: int) -> None:
    for pattern in ("%Y-%m-%d", "%d %b %Y", "%A, %d %B %Y", "%Y/%j"):
        texts = texts_of_dates(np.array([float(day)]), pattern=pattern, kind="date")
        assert numbers_from_dates(pa.array(texts, pa.string()), pattern=pattern, kind="date").tolist() == [day]


@pytest.mark.parametrize("kind", [*NUMBER_KINDS, *LABEL_KINDS])
def test_a_cell_that_is_not_of_its_kind_is_refused_in_words(kind: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n?!\n", encoding="utf-8")
    more = 'categories = ["a"]' if kind in {"category", "ordinal"} else ""
    with pytest.raises(SchemaMismatch, match="has cells that are no"):
        read_table(tmp_path / "t.csv", schema=parse_schema(one(kind, more)))
