"""Reading: every record one row, nothing guessed, nothing of a cell in a message."""

import gzip
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import DataError, SchemaMismatch
from accord.tables import Column, CsvFormat, Schema, Table, read_header, read_table, read_texts, units_from_cells
from accord.tables import csv_file as _csv
from accord.tables.cells import numbers_from_text

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "contract" / "cases"
CANARY = "CANARY7301"


def number(name: str, **options: Any) -> Column:
    return Column(name=name, kind="number", **options)


def category(name: str, *categories: str, **options: Any) -> Column:
    return Column(name=name, kind="category", categories=categories, **options)


def read(path: Path, *columns: Column, unit: str | None = None) -> Table:
    return read_table(path, schema=Schema(columns=columns, unit=unit))


def first(path: Path, *columns: Column, unit: str | None = None) -> list[Any]:
    """The first column's cells, None for missing."""
    values = read(path, *columns, unit=unit).records[:, 0].tolist()
    return [None if value is None or value != value else value for value in values]  # noqa: PLR0124 - NaN


def csv_file(folder: Path, content: str | bytes) -> Path:
    path = folder / "data.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def parquet_file(folder: Path, **columns: Any) -> Path:
    path = folder / "data.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def refusal(path: Path, *columns: Column, unit: str | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read(path, *columns, unit=unit)
    message = str(caught.value)
    assert "\n" not in message
    assert CANARY not in message
    return message


# --- records ----------------------------------------------------------------------------------------------------------


def test_E64_byte_order_mark_is_not_part_of_the_header() -> None:
    assert first(CASES / "01_bom_quoted_header.csv", category("site", "north", "south")) == ["north", "south", "north"]
    assert read_header(CASES / "01_bom_quoted_header.csv") == ("site", "temp_c", "visits")


def test_E69_line_breaks_in_quotes_do_not_add_records() -> None:
    table = read(CASES / "12_quotes_newlines.csv", number("score"))
    assert len(table.records) == 7


def test_E71_blank_lines_are_records_of_a_one_column_file(tmp_path: Path) -> None:
    assert first(CASES / "54_single_column_with_blank_cell.csv", number("x")) == [1.0, None, 2.0, None, 3.0]
    for ending in ("\n", "\r\n", "\r"):
        path = csv_file(tmp_path, ending.join(["x", "1", "", "2", "", ""]))
        assert first(path, number("x")) == [1.0, None, 2.0, None], repr(ending)


def test_blank_lines_are_records_of_wider_files_too(tmp_path: Path) -> None:
    assert first(csv_file(tmp_path, "x,y\n1,2\n\n3,4\n"), number("x")) == [1.0, None, 3.0]


@pytest.mark.parametrize("ending", ["", "\n"])
def test_carriage_returns_alone_end_records(tmp_path: Path, ending: str) -> None:
    assert first(CASES / "33_cr_only_no_final_newline.csv", number("b")) == [2.0, 4.0, 6.0]
    assert first(csv_file(tmp_path, f"x\n1\n2{ending}"), number("x")) == [1.0, 2.0]


def test_gzip_is_found_by_its_first_bytes(tmp_path: Path) -> None:
    content = b"x\n1\n\n2\n"
    path = tmp_path / "data.csv"
    path.write_bytes(gzip.compress(content))
    assert first(path, number("x")) == [1.0, None, 2.0]
    assert len(read_header(CASES / "43_gzip.csv.gz")) > 0


def test_the_name_does_not_say_what_a_file_is(tmp_path: Path) -> None:
    header = read_header(CASES / "48_csv_named_parquet.parquet")
    assert read(CASES / "48_csv_named_parquet.parquet", number(header[0], unreadable="missing")).records.shape[0] > 0
    path = parquet_file(tmp_path, x=[1.0]).rename(tmp_path / "data.csv")
    assert first(path, number("x")) == [1.0]


@given(
    cells=st.lists(
        st.sampled_from(["1", "", "-2.5", '"3"', "\n4"]).map(lambda cell: f'"{cell}"' if "\n" in cell else cell)
    ),
    block=st.integers(16, 64),
)
def test_block_borders_change_nothing(tmp_path_factory: pytest.TempPathFactory, cells: list[str], block: int) -> None:
    path = csv_file(tmp_path_factory.mktemp("blocks"), "x\n" + "".join(cell + "\n" for cell in cells))
    meaning = {"1": 1.0, "": None, "-2.5": -2.5, '"3"': 3.0, '"\n4"': 4.0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_csv, "BLOCK", block)
        if cells:
            assert first(path, number("x")) == [meaning[cell] for cell in cells]
        else:
            assert "no records" in refusal(path, number("x"))


def test_order_and_number_of_records_do_not_depend_on_cells(tmp_path: Path) -> None:
    odd = ["", "NA", "nan", "1e999", "text", '"a\nb"', "0x1", " ", '""']
    path = csv_file(tmp_path, "x,y\n" + "".join(f"{cell},{row}\n" for row, cell in enumerate(odd)))
    table = read(path, number("y"), number("x", unreadable="missing"))
    assert table.records[:, 0].tolist() == list(range(len(odd)))
    assert np.isnan(table.records[:, 1]).all()


def test_only_declared_columns_are_looked_at(tmp_path: Path) -> None:
    path = csv_file(tmp_path, f"a,x,b\n{CANARY},1,{CANARY}\n,2,\n")
    assert first(path, number("x")) == [1.0, 2.0]


# --- numbers ----------------------------------------------------------------------------------------------------------

READABLE = {
    "1": 1.0,
    "+1": 1.0,
    "-1": -1.0,
    "01": 1.0,
    "1.": 1.0,
    ".5": 0.5,
    "1e3": 1000.0,
    "1E-3": 0.001,
    " 1 ": 1.0,
    "\t1": 1.0,
    "5e-324": 5e-324,
    "1e-400": 0.0,
    "1.7976931348623157e308": 1.7976931348623157e308,
    "1e16": 1e16,
    "9007199254740991": 9007199254740991.0,
    "9007199254740992.0": 9007199254740992.0,
    "-0": 0.0,
}
UNREADABLE = [
    "nan", "NaN", "inf", "-inf", "Infinity", "1e400", "-1e400", "0x1F", "1_0", "1,5", "1 2", "five", "-", "+", ".",
    "e5", "1e", "--1", "1d", "1f", "\uff11", "\u0663", "(300)", "$5", "12%", " ",
    "9007199254740992", "-9007199254740993", "1\0",
]  # fmt: skip


@pytest.mark.parametrize("company", [[], ["7"], ["bad"]])
@pytest.mark.parametrize("text", READABLE)
def test_what_is_a_number(text: str, company: list[str]) -> None:
    cells = pa.array([text, None, *company])
    values = numbers_from_text(cells, column=number("x", unreadable="missing"))
    assert values[0] == READABLE[text]
    assert np.isnan(values[1])


@pytest.mark.parametrize("company", [[], ["7"], ["+7"]])
@pytest.mark.parametrize("text", UNREADABLE)
def test_what_is_not_a_number(text: str, company: list[str]) -> None:
    cells = pa.array([text, *company])
    values = numbers_from_text(cells, column=number("x", unreadable="missing"))
    assert np.isnan(values[0])
    assert (values[1:] == 7.0).all()
    with pytest.raises(SchemaMismatch, match='"x"'):
        numbers_from_text(cells, column=number("x"))
    assert np.isnan(numbers_from_text(cells, column=number("x", missing=(text,)))[0])


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_as_python_writes_them(value: float) -> None:
    assert numbers_from_text(pa.array([repr(value)]), column=number("x"))[0] == value


@given(st.lists(st.text(alphabet="0123456789+-.eE _xnaif", max_size=6), min_size=1))
def test_the_quick_and_the_careful_way_agree(texts: list[str]) -> None:
    column = number("x", unreadable="missing")
    together = numbers_from_text(pa.array([*texts, "bad"]), column=column)[:-1]
    alone = np.concatenate([numbers_from_text(pa.array([text]), column=column) for text in texts])
    assert np.array_equal(together, alone, equal_nan=True)
    for text, value in zip(texts, alone, strict=True):
        if not np.isnan(value):
            assert value == float(text)


def test_E65_large_whole_numbers_are_never_merged() -> None:
    assert '"id"' in refusal(CASES / "p01_nullable_int64.parquet", number("id"))
    assert '"u"' in refusal(CASES / "p07_uint64_max.parquet", number("u"))
    assert first(CASES / "p01_nullable_int64.parquet", number("id", unreadable="missing")) == [None, None, None, 5.0]
    assert first(CASES / "p07_uint64_max.parquet", number("u", unreadable="missing")) == [0.0, None, None]


def test_E72_a_late_text_is_one_cell_not_another_type(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "v\n" + "1\n" * 400_000 + f"{CANARY}\n")
    message = refusal(path, number("v"))
    assert '"v"' in message
    assert 'unreadable = "missing"' in message
    values = first(path, number("v", unreadable="missing"))
    assert values == [1.0] * 400_000 + [None]


# --- categories and missing cells -------------------------------------------------------------------------------------


def test_E63_NA_is_missing_only_if_the_schema_says_so() -> None:
    countries = ("NA", "NC", "NE", "NO", "NULL")
    assert first(CASES / "05_na_is_a_code.csv", category("country", *countries)).count("NA") == 2
    declared = category("country", "NC", "NE", "NO", missing=("NA", "NULL"))
    assert first(CASES / "05_na_is_a_code.csv", declared) == [None, "NC", "NE", None, "NO", None]


def test_only_the_empty_cell_without_quotes_is_missing(tmp_path: Path) -> None:
    path = csv_file(tmp_path, 'c,n\n,1\n"",2\nyes,3\n')
    message = refusal(path, category("c", "yes"))
    assert '"c"' in message
    assert "1 declared" in message
    assert first(path, category("c", "yes", missing=("",))) == [None, None, "yes"]
    assert first(path, category("c", "yes", unreadable="missing")) == [None, None, "yes"]


def test_E77_categories_are_compared_exactly(tmp_path: Path) -> None:
    path = csv_file(tmp_path, f"sex\nF\nf\nfemale \n{CANARY}\n")
    message = refusal(path, category("sex", "F", "M"))
    assert "2 declared categories" in message
    assert first(path, category("sex", "F", "M", unreadable="missing")) == ["F", None, None, None]


def test_spaces_around_numbers_and_tokens_are_ignored(tmp_path: Path) -> None:
    assert first(csv_file(tmp_path, "x,y\n 1 ,a\n NA ,b\n"), number("x", missing=("NA",))) == [1.0, None]


def test_numbers_and_categories_together(tmp_path: Path) -> None:
    table = read(csv_file(tmp_path, "c,x\na,1\n,\nb,2\n"), number("x"), category("c", "a", "b"))
    assert table.records.tolist() == [[1.0, "a"], [None, None], [2.0, "b"]]


def test_units_are_numbered_by_first_appearance(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "x,who\n1,b\n2,a\n3,b\n4, b\n")
    units = read(path, number("x"), unit="who").units
    assert units is not None
    assert units.tolist() == [0, 1, 0, 2]
    assert "unit" in refusal(csv_file(tmp_path, "x,who\n1,b\n2,\n"), number("x"), unit="who")


# --- files that are refused -------------------------------------------------------------------------------------------

REFUSED = {
    "02_semicolon.csv": (number("temp_c"), ["comma"]),
    "13_ragged_rows.csv": (number("a"), ["2 records", "(3)"]),
    "14_trailing_delimiter.csv": (number("a"), ["3 records", "(2)"]),
    "17_header_only.csv": (number("age"), ["no records"]),
    "18_empty.csv": (number("x"), ["empty"]),
    "19_blank_lines_only.csv": (number("x"), ["blank"]),
    "31_latin1.csv": (number("montant"), ["UTF-8", "iconv"]),
    "32_utf16.csv": (number("a"), ["UTF-16"]),
    "34_nul_and_control_bytes.csv": (number("a"), ["NUL"]),
    "44_truncated.csv.gz": (number("a"), ["damaged or cut short"]),
    "49_header_is_data.csv": (number("age"), ["first line must name the columns"]),
    "p04_nested.parquet": (category("tags", "a"), ["nested"]),
    "p06_zero_rows.parquet": (number("x"), ["no records"]),
    "p13_truncated.parquet": (number("x"), ["damaged or incomplete"]),
    "p14_binary_and_empty_string.parquet": (category("b", "a"), ["binary"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_files(name: str) -> None:
    column, phrases = REFUSED[name]
    message = refusal(CASES / name, column)
    assert name in message or column.name in message
    for phrase in phrases:
        assert phrase in message


def test_E73_a_first_line_that_may_be_a_record_is_not_repeated(tmp_path: Path) -> None:
    assert "north" not in refusal(CASES / "49_header_is_data.csv", category("city", "north"))
    message = refusal(csv_file(tmp_path, "age,city\n1,a\n"), number("age"), number("income"))
    assert '"age", "city"' in message
    message = refusal(csv_file(tmp_path, "Age ,city\n1,a\n"), number("age"))
    assert '"Age "' in message


def test_twins_in_the_header(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "x,x,y\n1,2,3\n")
    assert "2 columns named" in refusal(path, number("x"))
    assert first(path, number("y")) == [3.0]


def test_names_are_equal_in_normal_form(tmp_path: Path) -> None:
    assert first(csv_file(tmp_path, "e\u0301\n1\n"), number("\u00e9")) == [1.0]


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (b"", "empty"),
        (b"PK\x03\x04....", "zip"),
        (b"PAR1", "Parquet"),
        (b"PAR1" + b"\0" * 100 + b"PAR1", "Parquet"),
        (b"\x1f\x8b", "damaged"),
        (b"\x1f\x8b" + CANARY.encode() * 9, "damaged"),
        (f'x\n"{CANARY}\n1\n'.encode(), "quot"),
        (f'x,y\n1,2\n3,"{CANARY}\n1,2\n'.encode(), "quot"),
        (f'x,y\n1,"a"\n3,4\n"{CANARY}'.encode(), "quot"),
        (b'"x\n1\n2\n', "header"),
        (b"x\n1\n\xff\n", "position 4"),
        (b"x\n1\n\xc3", "position 4"),
        (b"\xff\n1\n", "UTF-8"),
        (b"x\0\n1\n", "NUL"),
        (b"\n1\n", "blank"),
        (b",\n1,2\n", "blank"),
        (b"x", "no records"),
        (b"x\n", "no records"),
        (b'x\n"' + b"\n" * (_csv.BLOCK + 10), "quot"),
        (b"x,y\n1,2\n3\n4,5,6\n", "2 records have"),
        (f"x,y\n1,2\n{CANARY}\n".encode(), "1 record has"),
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes, phrase: str) -> None:
    assert phrase in refusal(csv_file(tmp_path, content), number("x"))


def test_places_that_are_no_files(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "none.csv", number("x"))
    assert "has no files" in refusal(tmp_path, number("x"))
    assert "not a file" in refusal(Path("/dev/null"), number("x"))
    assert "names no file" in refusal(tmp_path / "*.csv", number("x"))


def test_a_long_record_is_read_or_refused_by_its_length(tmp_path: Path) -> None:
    assert first(csv_file(tmp_path, f"x,blob\n1,{'y' * 200_000}\n2,z\n"), number("x")) == [1.0, 2.0]
    message = refusal(csv_file(tmp_path, f"x,blob\n1,{CANARY * 1_000_000}\n2,z\n"), number("x"))
    assert "longer than" in message


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_gzip_cut_anywhere(tmp_path: Path, cut: int) -> None:
    whole = gzip.compress(b"x\n" + b"".join(b"%d\n" % row for row in range(1000)))
    path = tmp_path / "data.csv.gz"
    path.write_bytes(whole[:-cut])
    assert "damaged or cut short" in refusal(path, number("x"))


def test_parquet_cut_or_damaged_anywhere(tmp_path: Path) -> None:
    whole = parquet_file(tmp_path, x=[float(row) for row in range(2000)], c=[CANARY] * 2000).read_bytes()
    path = tmp_path / "bad.parquet"
    for length in range(4, len(whole), 397):
        path.write_bytes(whole[:length])
        assert "damaged or incomplete" in refusal(path, number("x"))
    texts = []
    for place in range(4, len(whole), 101):
        path.write_bytes(whole[:place] + bytes(byte ^ 0x5A for byte in whole[place : place + 3]) + whole[place + 3 :])
        try:
            read(path, number("x"))
        except DataError as error:
            texts.append(str(error))
    assert texts
    assert not any(CANARY in text for text in texts)


# --- parquet ----------------------------------------------------------------------------------------------------------


def test_parquet_types_must_fit_the_kind(tmp_path: Path) -> None:
    path = parquet_file(tmp_path, s=["1"], f=[1.5], b=[True], i=[3], t=pa.array([0], pa.timestamp("s")))
    assert "string" in refusal(path, number("s"))
    assert "bool" in refusal(path, number("b"))
    assert "timestamp" in refusal(path, number("t"))
    assert "double" in refusal(path, category("f", "1.5"))
    assert "timestamp" in refusal(path, category("t", "0"))
    assert "double" in refusal(path, number("i"), unit="f")
    assert first(path, category("i", "3")) == ["3"]
    assert first(path, category("b", "true", "false")) == ["true"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)])
def test_parquet_numbers(tmp_path: Path, kind: pa.DataType) -> None:
    path = parquet_file(tmp_path, x=pa.array([1, None, 3], pa.int8()).cast(kind))
    assert first(path, number("x")) == [1.0, None, 3.0]
    assert first(path, number("x", missing=("3", "NA"))) == [1.0, None, None]


def test_parquet_nan_and_infinity_are_not_null() -> None:
    path = CASES / "p05_nan_versus_null.parquet"
    assert '"x"' in refusal(path, number("x"))
    assert first(path, number("x", unreadable="missing")) == [1.0, None, None, None, -0.0]
    assert '"x"' in refusal(path, number("x", missing=("nan",)))
    assert first(path, number("x", missing=("nan", "inf"))) == [1.0, None, None, None, -0.0]


def test_parquet_null_columns_and_booleans_with_gaps() -> None:
    path = CASES / "p08_bool_with_null.parquet"
    assert first(path, category("f", "false", "true")) == ["true", None, "false", "true"]
    assert first(path, number("all_null")) == [None] * 4
    assert first(path, category("all_null", "a")) == [None] * 4


def test_E76_dictionaries_of_the_file_are_not_used() -> None:
    unused = CASES / "p02_dictionary_with_unused_level.parquet"
    table = read(unused, category("diagnosis", "cold", "flu"))
    assert table.records[:, 0].tolist() == ["flu", "cold", "flu", "cold", "flu"]
    assert table.schema.columns[0].categories == ("cold", "flu")
    groups = category("c", "c", "b", "a")
    assert first(CASES / "p10_row_groups_differ.parquet", groups) == ["a", "b", "a", "c", "c", "a"]
    assert first(CASES / "p12_pandas_categoricals.parquet", category("B", "x", "y")) == ["x", None, "y"]
    assert first(CASES / "p12_pandas_categoricals.parquet", category("A", "1", "2")) == ["1", "2", "1"]


@pytest.mark.parametrize("cell", ["", '""', " ", '" "', "\t", '"\u00a0 "', '"\n"'])
def test_A7_a_blank_unit_is_a_missing_one_whatever_its_quotes(tmp_path: Path, cell: str) -> None:
    path = csv_file(tmp_path, f"x,who\n1,b\n2,{cell}\n3,b\n")
    assert "missing cells, empty or blank" in refusal(path, number("x"), unit="who")
    form = CsvFormat(quote="")
    if '"' not in cell:
        with pytest.raises(SchemaMismatch, match="missing cells, empty or blank"):
            read_table(path, schema=Schema(columns=(number("x"),), unit="who", csv=form))


@pytest.mark.parametrize(
    "who",
    [pa.array(["a", "", "b"]), pa.array(["a", None, "b"]), pa.array(["a", " ", "b"]).dictionary_encode()],
    ids=["empty", "null", "dictionary"],
)
def test_A7_a_blank_unit_of_a_parquet_file_is_a_missing_one(tmp_path: Path, who: Any) -> None:
    path = parquet_file(tmp_path, x=pa.array([1.0, 2.0, 3.0]), who=who)
    assert "missing cells, empty or blank" in refusal(path, number("x"), unit="who")


def test_A4_units_of_a_file_are_texts_in_csv_and_of_the_stored_type_in_parquet(tmp_path: Path) -> None:
    cells = ["1", '"1"', "01", "1.0", "ann", "Ann", "ann ", '"ann"']
    units = read(
        csv_file(tmp_path, "x,who\n" + "".join(f"0,{cell}\n" for cell in cells)), number("x"), unit="who"
    ).units
    assert units is not None
    assert units.tolist() == [0, 0, 1, 2, 3, 4, 5, 3]
    large = [2**53, 2**53 + 1, -1, 2**53]
    for who in (pa.array(large), pa.array([str(one) for one in large]), pa.array(large).dictionary_encode()):
        stored = read(parquet_file(tmp_path, x=pa.array([0.0] * 4), who=who), number("x"), unit="who").units
        assert stored is not None
        assert stored.tolist() == [0, 1, 2, 0]


def test_A4_a_unit_is_kept_as_it_is_stored_until_its_type_is_looked_at(tmp_path: Path) -> None:
    """Discovery reads all as texts, in which two times of one second look the same; it refuses such units as synth."""
    stamps = pa.array([0, 1], pa.timestamp("ns"))
    path = parquet_file(tmp_path, x=pa.array([0.0, 1.0]), who=stamps)
    _, texts = read_texts(path)
    assert texts[1][0].as_py() == texts[1][1].as_py()
    _, cells = read_texts(path, unit=1)
    with pytest.raises(SchemaMismatch, match="stored as timestamp"):
        units_from_cells([cells[1]], name="who")
    assert "stored as timestamp" in refusal(path, number("x"), unit="who")


def test_parquet_units_and_index_columns(tmp_path: Path) -> None:
    assert first(CASES / "p11_pandas_index_column.parquet", number("x"), unit="person") == [1.0, 2.0, 3.0]
    path = parquet_file(tmp_path, x=[1, 2, 3], who=pa.array([7, 5, 7]).dictionary_encode())
    units = read(path, number("x"), unit="who").units
    assert units is not None
    assert units.tolist() == [0, 1, 0]


def test_parquet_names_with_dots_and_prefixes(tmp_path: Path) -> None:
    path = parquet_file(tmp_path, **{"a.b": [1.0], "a": [2.0], "a.bc": [3.0]})
    assert first(path, number("a")) == [2.0]
    assert first(path, number("a.b")) == [1.0]
    assert first(path, number("a.bc"), number("a")) == [3.0]


@pytest.mark.parametrize("size", [1, 70_000])
def test_csv_and_parquet_give_the_same_table(tmp_path: Path, size: int) -> None:
    values = [None if row % 7 == 3 else row / 8 for row in range(size)]
    labels = [None if row % 5 == 2 else "abc"[row % 3] for row in range(size)]
    path = parquet_file(tmp_path, x=values, c=labels)
    text = csv_file(
        tmp_path,
        "c,x\n" + "".join(f"{c or ''},{'' if x is None else x}\n" for c, x in zip(labels, values, strict=True)),
    )
    columns: Sequence[Column] = (number("x"), category("c", "a", "b", "c"))
    assert read(path, *columns).records.tolist() == read(text, *columns).records.tolist()


# --- size -------------------------------------------------------------------------------------------------------------


def test_the_example_is_read_in_little_memory(tmp_path: Path) -> None:
    source = ROOT / "examples" / "flights.parquet"
    text = tmp_path / "flights.csv"
    pyarrow.csv.write_csv(pq.read_table(source), text)
    columns = (number("dep_delay"), number("arr_delay"))
    kept = []
    for path in (source, text):
        pool = pa.system_memory_pool()
        before, usual = pool.bytes_allocated(), pa.default_memory_pool()
        pa.set_memory_pool(pool)
        tracemalloc.start()
        try:
            kept.append(read(path, *columns).records)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            pa.set_memory_pool(usual)
        assert peak < 100e6
        assert pool.max_memory() - before < 150e6
    assert kept[0].shape == (336_776, 2)
    assert np.isnan(kept[0]).sum(axis=0).tolist() == [8255, 9430]
    assert np.array_equal(kept[0], kept[1], equal_nan=True)
