"""Every nasty file through the command line: an exit code, one clear line, no cell, the right records and types."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from accord.cli.app import app
from accord.tables import parse_schema, read_table

CASES = Path(__file__).parent / "cases"
ROWS = 12
TEXT, FLOAT, WHOLE, TRUTH = pa.string(), pa.float64(), pa.int64(), pa.bool_()
DAY, TIME = pa.date32(), pa.timestamp("ms")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A file, what is declared of it, and what comes out.

    ``types`` are those of the Parquet output; ``refusal`` is a phrase of the line if there is none. ``secrets`` are
    cells that no output may hold, ``missing`` is how many cells of each column are read as missing.
    """

    schema: str
    records: int = 0
    types: tuple[Any, ...] = ()
    missing: tuple[int, ...] = ()
    refusal: str = ""
    secrets: tuple[str, ...] = ()
    draft: tuple[str, ...] | str = ()
    options: tuple[str, ...] = ()


def declared(*columns: tuple[str, str] | tuple[str, str, str], head: str = "") -> str:
    """Return a schema; a column is its name, kind, and further lines."""
    parts = ["version = 2", head]
    for name, kind, *more in columns:
        parts += ["[[columns]]", f'name = "{name}"', f'kind = "{kind}"', *more]
    return "\n".join(parts) + "\n"


def labels(*texts: str) -> str:
    return "categories = [" + ", ".join(f'"{text}"' for text in texts) + "]"


BITS = 'true = ["1"]\nfalse = ["0"]'
LENIENT = '\nunreadable = "missing"'
UNIT = "bounds = [0, 1]"
TEN = "bounds = [0, 10]"
HUNDRED = "bounds = [0, 100]"
WIDE = "bounds = [-1e6, 1e6]"
SITES = (("site", "category", labels("north", "south")), ("temp_c", "number", "bounds = [0, 40]"))
VISITS = ("visits", "integer", TEN)
ABC = (("a", "number", HUNDRED), ("b", "number", HUNDRED))
PRICES = (("price", "number", TEN), ("t", "datetime", 'bounds = ["1960-01-01 00:00:00", "2030-01-01 00:00:00"]'))


CASE: dict[str, Case] = {
    "01_bom_quoted_header.csv": Case(
        schema=declared(*SITES, VISITS), records=3, types=(TEXT, FLOAT, WHOLE), draft=("site", "temp_c", "visits")
    ),
    "02_semicolon.csv": Case(
        schema=declared(*SITES, VISITS, head='[csv]\nseparator = ";"'),
        records=3,
        types=(TEXT, FLOAT, WHOLE),
        draft='[csv] separator = ";"',
    ),
    "03_mixed_types.csv": Case(
        schema=declared(("reading", "number", TEN)), refusal='column "reading"', secrets=("unknown", "0x1F", "five")
    ),
    "03_mixed_types.csv lenient": Case(
        schema=declared(("reading", "number", TEN + LENIENT), ("note", "category", labels("ok", "low", "odd"))),
        records=8,
        types=(FLOAT, TEXT),
        missing=(3, 0),
        secrets=("unknown", "0x1F", "five"),
    ),
    "04_missing_tokens.csv": Case(
        schema=declared(
            ("a", "number", TEN + '\nmissing = ["NA", "nan", "N/A", "-", " "]'),
            ("b", "category", labels("x", "y") + '\nmissing = ["NULL", "None", "n/a", "?", "null"]'),
            ("c", "integer", "bounds = [2000, 2030]"),
        ),
        records=8,
        types=(FLOAT, TEXT, WHOLE),
        missing=(6, 6, 1),
    ),
    "05_na_is_a_code.csv": Case(
        schema=declared(("country", "category", labels("NA", "NC", "NE", "NO", "NULL")), ("n", "integer", TEN)),
        records=6,
        types=(TEXT, WHOLE),
        missing=(0, 0),
    ),
    "06_constant_columns.csv": Case(
        schema=declared(
            ("k_num", "integer", HUNDRED),
            ("k_str", "constant", 'value = "same"'),
            ("k_zero", "number", UNIT),
            ("x", "number", TEN),
        ),
        records=8,
        types=(WHOLE, TEXT, FLOAT, FLOAT),
        missing=(0, 0, 0),
    ),
    "07_near_constant.csv": Case(
        schema=declared(("x", "integer", "bounds = [900, 1000]"), ("y", "integer", TEN)),
        records=40,
        types=(WHOLE, WHOLE),
    ),
    "08_huge_integers.csv": Case(
        schema=declared(("id", "number", "bounds = [0, 1e19]"), ("amount", "integer", TEN)),
        refusal="2^53",
        secrets=("9007199254740993", "1582218195625938945"),
    ),
    "08_huge_integers.csv as units": Case(
        schema=declared(("amount", "integer", TEN), head='unit = "id"'),
        refusal='"id" has missing cells',
        secrets=("9007199254740993", "1582218195625938945"),
    ),
    "09_dates_mixed.csv": Case(
        schema=declared(("d", "date")), refusal="dates written as", secrets=("13/04/2021", "05112025", "2021-02-29")
    ),
    "09_dates_mixed.csv lenient": Case(
        schema=declared(
            ("d", "date", 'bounds = ["1900-01-01", "2100-01-01"]' + LENIENT),
            ("ts", "datetime", 'bounds = ["1900-01-01 00:00:00", "2100-01-01 00:00:00"]' + LENIENT),
        ),
        records=9,
        types=(DAY, TIME),
        missing=(6, 8),
        secrets=("13/04/2021", "05112025", "NaT"),
    ),
    "10_unicode_headers.csv": Case(
        schema=declared(
            ("âge", "integer", HUNDRED),
            ("价格", "number", "bounds = [0, 20]"),
            ("😀", "boolean", BITS),
        ),
        records=4,
        types=(WHOLE, FLOAT, TRUTH),
        secrets=("Zürich", "北京"),
    ),
    "12_quotes_newlines.csv": Case(
        schema=declared(("score", "integer", TEN)), records=7, types=(WHOLE,), missing=(0,), secrets=("apostrophe",)
    ),
    "13_ragged_rows.csv": Case(schema=declared(*ABC), refusal="2 records have more or fewer cells"),
    "14_trailing_delimiter.csv": Case(schema=declared(*ABC), refusal="3 records have more or fewer cells"),
    "15_single_row.csv": Case(
        schema=declared(("age", "integer", HUNDRED), ("city", "category", labels("north"))),
        records=1,
        types=(WHOLE, TEXT),
    ),
    "15_single_row.csv without bounds": Case(
        schema=declared(("age", "integer")), records=1, types=(WHOLE,), missing=(0,)
    ),
    "16_single_column.csv": Case(schema=declared(("x", "number", TEN)), records=8, types=(FLOAT,)),
    "17_header_only.csv": Case(
        schema=declared(("age", "integer", HUNDRED)), refusal="no records", draft=("age", "city", "income")
    ),
    "18_empty.csv": Case(schema=declared(("x", "number")), refusal="is empty", draft="is empty"),
    "19_blank_lines_only.csv": Case(schema=declared(("x", "number")), refusal="is blank", draft="is blank"),
    "20_all_missing_column.csv": Case(
        schema=declared(
            ("valid", "integer", TEN), ("never_filled", "number", UNIT), ("city", "category", labels("n", "s"))
        ),
        records=6,
        types=(WHOLE, FLOAT, TEXT),
        missing=(0, 6, 0),
    ),
    "21_all_missing_table.csv": Case(
        schema=declared(("a", "number", UNIT), ("b", "category", labels("q"))),
        records=6,
        types=(FLOAT, TEXT),
        missing=(6, 6),
    ),
    "22_extremely_skewed.csv": Case(
        schema=declared(("spend", "number", "bounds = [0, 1e6]"), ("tier", "category", labels("free", "paid"))),
        records=200,
        types=(FLOAT, TEXT),
        missing=(0, 0),
    ),
    "23_infinities.csv": Case(
        schema=declared(("x", "number", TEN)), refusal='column "x"', secrets=("1e400", "Infinity")
    ),
    "23_infinities.csv lenient": Case(
        schema=declared(("x", "number", "bounds = [-10, 10]" + LENIENT), ("y", "integer", TEN)),
        records=9,
        types=(FLOAT, WHOLE),
        missing=(6, 0),
        secrets=("1e400", "Infinity"),
    ),
    "24_negative_zero.csv": Case(
        schema=declared(("delta", "number", "bounds = [-1, 1]"), ("grp", "category", labels("a", "b"))),
        records=8,
        types=(FLOAT, TEXT),
        missing=(0, 0),
    ),
    "25_extreme_floats.csv": Case(schema=declared(("x", "number", "bounds = [-1.7e308, 1.7e308]")), refusal="1e100"),
    "25_extreme_floats.csv bounded": Case(
        schema=declared(("x", "number", "bounds = [-1e100, 1e100]")), records=10, types=(FLOAT,), missing=(0,)
    ),
    "26_high_cardinality_ids.csv": Case(
        schema=declared(
            ("record_id", "id", 'prefix = "r"'), ("grp", "category", labels("a", "b", "c", "d")), ("x", "number", TEN)
        ),
        records=500,
        types=(TEXT, TEXT, FLOAT),
        secrets=("93d3c99764cc4e3341c0f7e3e0c65cfd",),
    ),
    "27_leading_zeros.csv": Case(
        schema=declared(
            ("zip", "category", labels("02116", "00501", "10001")),
            ("when_ddmmyyyy", "date", 'format = "%d%m%Y"\nbounds = ["01012000", "31122030"]'),
            ("n", "integer", TEN),
        ),
        records=4,
        types=(TEXT, DAY, WHOLE),
        missing=(0, 0, 0),
    ),
    "28_booleans.csv": Case(
        schema=declared(
            ("t", "boolean", 'true = ["True"]\nfalse = ["False"]'),
            ("tm", "boolean", 'true = ["True"]\nfalse = ["False"]'),
            ("yn", "boolean", 'true = ["yes"]\nfalse = ["no"]'),
            ("bit", "boolean", BITS),
            ("mixed", "boolean", 'true = ["TRUE", "1", "yes"]\nfalse = ["false", "F"]'),
        ),
        records=5,
        types=(TRUTH,) * 5,
        missing=(0, 2, 0, 0, 0),
    ),
    "28_booleans.csv other spellings": Case(
        schema=declared(("mixed", "boolean")), refusal="spellings of true and false", secrets=("TRUE", "yes")
    ),
    "29_ints_written_as_floats.csv": Case(
        schema=declared(("count", "integer", TEN), ("year", "integer", "bounds = [2000, 2030]")),
        records=5,
        types=(WHOLE, WHOLE),
        missing=(1, 1),
    ),
    "30_whitespace.csv": Case(schema=declared(("age", "integer", HUNDRED)), refusal='but one named " age "'),
    "30_whitespace.csv as it stands": Case(
        schema=declared((" age ", "integer", HUNDRED), ("income ", "integer", "bounds = [0, 500]")),
        records=4,
        types=(WHOLE, WHOLE),
        missing=(0, 0),
        secrets=("NORTH",),
    ),
    "31_latin1.csv": Case(
        schema=declared(("montant", "integer", HUNDRED)), refusal="UTF-8", draft="UTF-8", secrets=("Mélève",)
    ),
    "31_latin1.csv declared": Case(
        schema=declared(("prénom", "drop"), ("montant", "integer", HUNDRED), head='[csv]\nencoding = "latin-1"'),
        records=2,
        types=(WHOLE,),
    ),
    "32_utf16.csv": Case(schema=declared(*ABC), refusal="UTF-16", draft="UTF-16"),
    "32_utf16.csv declared": Case(
        schema=declared(*ABC, head='[csv]\nencoding = "utf-16"'), records=2, types=(FLOAT, FLOAT)
    ),
    "33_cr_only_no_final_newline.csv": Case(schema=declared(*ABC), records=3, types=(FLOAT, FLOAT), missing=(0, 0)),
    "34_nul_and_control_bytes.csv": Case(schema=declared(*ABC), refusal="NUL", secrets=("\x1b", "31mred")),
    "35_thousands_and_currency.csv": Case(
        schema=declared(("price", "number", WIDE)), refusal='column "price"', secrets=("1,234.50", "2.000,00", "(300)")
    ),
    "35_thousands_and_currency.csv lenient": Case(
        schema=declared(("price", "number", WIDE + LENIENT), ("share", "number", UNIT + LENIENT)),
        records=4,
        types=(FLOAT, FLOAT),
        missing=(4, 4),
        secrets=("1,234.50", "2.000,00", "(300)"),
    ),
    "36_formula_cells.csv": Case(
        schema=declared(
            ("label", "category", labels("=1+1", "+44", "-7", "@cmd", "\\t=2", "plain")), ("v", "integer", TEN)
        ),
        records=6,
        types=(TEXT, WHOLE),
        missing=(0, 0),
    ),
    "37_several_rows_per_person.csv": Case(
        schema=declared(
            ("visit", "integer", "bounds = [0, 30]"), ("cost", "number", HUNDRED), head='unit = "person_id"'
        ),
        records=6,
        types=(WHOLE, FLOAT),
        secrets=("P00", "P05"),
    ),
    "38_collinear.csv": Case(
        schema=declared(
            ("x", "integer", "bounds = [0, 20]"), ("two_x", "integer", "bounds = [0, 40]"), ("const", "number", TEN)
        ),
        records=12,
        types=(WHOLE, WHOLE, FLOAT),
    ),
    "39_two_rows.csv": Case(
        schema=declared(("x", "number", TEN), ("y", "number", TEN)), records=2, types=(FLOAT, FLOAT)
    ),
    "40_numeric_headers.csv": Case(
        schema=declared(("1", "number", UNIT), ("2", "number", TEN), ("2024", "category", labels("a", "b"))),
        records=3,
        types=(FLOAT, FLOAT, TEXT),
        draft=("1", "2", "2024"),
    ),
    "41_wide_more_columns_than_rows.csv": Case(
        schema=declared(*((f"c{place}", "number", WIDE) for place in range(10))), records=5, types=(FLOAT,) * 10
    ),
    "42_reserved_names.csv": Case(
        schema=declared(*((name, "integer", TEN) for name in ("index", "count", "_RARE_", "__null__", "epsilon"))),
        records=3,
        types=(WHOLE,) * 5,
        draft=("index", "count", "_RARE_", "__null__", "epsilon", "Unnamed: 0"),
    ),
    "43_gzip.csv.gz": Case(schema=declared(*ABC), records=2, types=(FLOAT, FLOAT), draft=("a", "b")),
    "44_truncated.csv.gz": Case(schema=declared(*ABC), refusal="cut short"),
    "45_edge_of_bounds.csv": Case(schema=declared(("x", "number", HUNDRED)), records=8, types=(FLOAT,), missing=(0,)),
    "45_edge_of_bounds.csv outside": Case(
        schema=declared(("x", "number", HUNDRED + '\noutside = "unreadable"' + LENIENT)),
        records=8,
        types=(FLOAT,),
        missing=(1,),
    ),
    "46_out_of_schema.csv": Case(
        schema=declared(("age", "integer", "bounds = [0, 120]"), ("sex", "category", labels("F", "M"))),
        refusal="none of its 2 declared categories",
        secrets=('"X"', "230"),
    ),
    "46_out_of_schema.csv outside": Case(
        schema=declared(("age", "integer", 'bounds = [0, 120]\noutside = "unreadable"')),
        refusal="within the bounds",
        secrets=("230", "-4"),
    ),
    "46_out_of_schema.csv lenient": Case(
        schema=declared(
            ("age", "integer", 'bounds = [0, 120]\noutside = "unreadable"' + LENIENT),
            ("sex", "category", labels("F", "M") + LENIENT),
        ),
        records=5,
        types=(WHOLE, TEXT),
        missing=(2, 2),
    ),
    "47_mixed_beyond_100k_rows.csv": Case(
        schema=declared(("v", "integer", TEN)), refusal='column "v"', secrets=("late_text",)
    ),
    "47_mixed_beyond_100k_rows.csv lenient": Case(
        schema=declared(("v", "integer", TEN + LENIENT)),
        records=120_001,
        types=(WHOLE,),
        missing=(1,),
        secrets=("late_text",),
    ),
    "48_csv_named_parquet.parquet": Case(schema=declared(*ABC), records=2, types=(FLOAT, FLOAT), draft=("a", "b")),
    "49_header_is_data.csv": Case(
        schema=declared(("age", "integer", HUNDRED)),
        refusal="the first line must name the columns",
        secrets=("north", "31"),
    ),
    "50_two_header_lines_and_footer.csv": Case(
        schema=declared(("age", "integer", HUNDRED)),
        refusal="the first line must name the columns",
        secrets=("exported",),
    ),
    "51_long_field.csv": Case(
        schema=declared(("id", "integer", TEN)), records=2, types=(WHOLE,), missing=(0,), secrets=("xxxxx",)
    ),
    "52_case_and_spelling_of_levels.csv": Case(
        schema=declared(("sex", "category", labels("F", "M"))),
        refusal="none of its 2 declared categories",
        secrets=("female", "Female", '"f"'),
    ),
    "52_case_and_spelling_of_levels.csv lenient": Case(
        schema=declared(("sex", "category", labels("F", "M") + LENIENT), ("n", "integer", TEN)),
        records=6,
        types=(TEXT, WHOLE),
        missing=(4, 0),
    ),
    "53_gaussian_two_clusters_float32.csv": Case(
        schema=declared(("x", "number", "bounds = [0, 10000]")), records=32, types=(FLOAT,), missing=(0,)
    ),
    "54_single_column_with_blank_cell.csv": Case(
        schema=declared(("x", "number", TEN)), records=5, types=(FLOAT,), missing=(2,)
    ),
    "p01_nullable_int64.parquet": Case(
        schema=declared(("id", "number", "bounds = [0, 1e19]")), refusal="2^53", secrets=("9007199254740993",)
    ),
    "p01_nullable_int64.parquet small": Case(
        schema=declared(("k", "integer", TEN)), records=4, types=(WHOLE,), missing=(1,), secrets=("9007199254740993",)
    ),
    "p02_dictionary_with_unused_level.parquet": Case(
        schema=declared(("diagnosis", "category", labels("flu", "cold"))), records=5, types=(TEXT,), missing=(0,)
    ),
    "p03_decimal_and_timezones.parquet": Case(
        schema=declared(*PRICES, ("d", "date", 'bounds = ["1960-01-01", "2030-01-01"]'), ("dur", "drop")),
        records=3,
        types=(FLOAT, TIME, DAY),
        missing=(1, 1, 1),
    ),
    "p03_decimal_and_timezones.parquet duration": Case(schema=declared(("dur", "number", TEN)), refusal="duration[s]"),
    "p04_nested.parquet": Case(
        schema=declared(("tags", "category", labels("a"))), refusal="nested values", draft=("tags", "pt")
    ),
    "p05_nan_versus_null.parquet": Case(schema=declared(("x", "number", UNIT)), refusal='column "x"'),
    "p05_nan_versus_null.parquet lenient": Case(
        schema=declared(("x", "number", UNIT + LENIENT)), records=5, types=(FLOAT,), missing=(3,)
    ),
    "p06_zero_rows.parquet": Case(schema=declared(("x", "number", UNIT)), refusal="no records", draft=("x", "c")),
    "p07_uint64_max.parquet": Case(
        schema=declared(("u", "number", TEN)), refusal="2^53", secrets=("18446744073709551615", "1.8446744")
    ),
    "p08_bool_with_null.parquet": Case(
        schema=declared(("f", "boolean"), ("all_null", "number", UNIT)),
        records=4,
        types=(TRUTH, FLOAT),
        missing=(1, 4),
    ),
    "p10_row_groups_differ.parquet": Case(
        schema=declared(("c", "category", labels("a", "b", "c"))), records=6, types=(TEXT,), missing=(0,)
    ),
    "p11_pandas_index_column.parquet": Case(
        schema=declared(("x", "number", TEN)), records=3, types=(FLOAT,), draft=("x", "person")
    ),
    "p12_pandas_categoricals.parquet": Case(
        schema=declared(("A", "category", labels("1", "2")), ("B", "category", labels("x", "y"))),
        records=3,
        types=(TEXT, TEXT),
        missing=(0, 1),
    ),
    "p13_truncated.parquet": Case(
        schema=declared(("x", "number")), refusal="damaged or incomplete Parquet", draft="damaged or incomplete Parquet"
    ),
    "p14_binary_and_empty_string.parquet": Case(schema=declared(("b", "category", labels("a"))), refusal="binary"),
    "p14_binary_and_empty_string.parquet text": Case(
        schema=declared(("s", "category", labels(" ") + LENIENT)), records=3, types=(TEXT,), missing=(2,)
    ),
}
"""By the file's name, and a word if it is read in more than one way."""


def _long(folder: Path) -> None:
    text = "\n".join(["v", *["1"] * 120_000, "late_text"]) + "\n"
    (folder / "47_mixed_beyond_100k_rows.csv").write_text(text, encoding="utf-8")


def _wide_cell(folder: Path) -> None:
    (folder / "51_long_field.csv").write_text(f"id,blob\n1,{'x' * 200_000}\n2,y\n", encoding="utf-8")


GENERATED: dict[str, Callable[[Path], None]] = {
    "47_mixed_beyond_100k_rows.csv": _long,
    "51_long_field.csv": _wide_cell,
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCORD_DEBUG", raising=False)
    return tmp_path


def file_of(key: str, folder: Path) -> Path:
    name = key.split(" ", maxsplit=1)[0]
    if name in GENERATED:
        GENERATED[name](folder)
        return folder / name
    return CASES / name


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def one_line(result: Result, phrase: str) -> None:
    assert result.exit_code == 2, (result.exit_code, result.stderr)
    assert result.stdout == ""
    assert result.stderr.startswith("accord: ")
    assert result.stderr.endswith(".\n")
    assert result.stderr.count("\n") == 1
    assert phrase in result.stderr


def test_every_file_has_a_case() -> None:
    named = {key.split(" ", maxsplit=1)[0] for key in CASE}
    assert named == {path.name for path in CASES.iterdir()} | set(GENERATED)
    assert len(named) >= 66


@pytest.mark.parametrize("key", CASE)
def test_E49_E86_synth(key: str, folder: Path) -> None:
    case, data = CASE[key], file_of(key, folder)
    before = data.read_bytes()
    Path("s.toml").write_text(case.schema, encoding="utf-8")
    fixed = ["--schema", "s.toml", "--epsilon", "1", "--delta", "1e-6", "--rows", str(ROWS), "--json"]
    accounts = ["--report", "r.html", "--release", "r.json", "--model", "m.json"]
    result = call("synth", data, *fixed, "--out", "o.parquet", *accounts)
    assert data.read_bytes() == before
    written = {path.name for path in Path().iterdir()} - {"s.toml", *GENERATED}
    if case.refusal:
        one_line(result, case.refusal)
        assert written == set()
    else:
        assert result.exit_code == 0, result.stderr
        assert written == {"o.parquet", "r.html", "r.json", "m.json"}
        assert json.loads(result.stdout)["plan"]["units"] == case.records
        table = pq.read_table("o.parquet")
        assert table.num_rows == ROWS
        assert tuple(field.type for field in table.schema) == case.types
        assert not set(table.schema.metadata or {}) - {b"ARROW:schema"}
    public = result.output.encode() + b"".join(Path(name).read_bytes() for name in written)
    for secret in case.secrets:
        assert secret.encode() not in public, "a cell of the file"


@pytest.mark.parametrize("key", [key for key, case in CASE.items() if not case.refusal])
def test_E49_E86_records_and_missing_cells(key: str, folder: Path) -> None:
    case = CASE[key]
    table = read_table(file_of(key, folder), schema=parse_schema(case.schema))
    if table.units is None:
        assert len(table) == case.records
    if case.missing:
        read = tuple(
            int((values != values).sum() if column.is_number else (values < 0).sum())  # noqa: PLR0124 - NaN
            for column, values in zip(table.schema.read, table.columns, strict=True)
        )
        assert read == case.missing


@pytest.mark.parametrize("key", [key for key in CASE if " " not in key])
def test_E49_E86_drafts(key: str, folder: Path) -> None:
    case = CASE[key]
    result = call("schema", file_of(key, folder))
    if isinstance(case.draft, str):
        one_line(result, case.draft)
        return
    assert result.exit_code == 0, result.stderr
    for name in case.draft:
        assert f'name = "{name}"' in result.stdout
    if key not in {"49_header_is_data.csv", "50_two_header_lines_and_footer.csv"}:  # their first line is data
        for secret in case.secrets:
            assert secret not in result.output, "a cell of the file"


@pytest.mark.parametrize("key", [key for key in CASE if " " not in key])
def test_E49_E86_discovery(key: str, folder: Path) -> None:
    """A label of few records is never found, whatever the file; and no file makes it fail in an odd way."""
    data = file_of(key, folder)
    words = ["--encoding", "latin-1"] if "latin1" in key else ["--encoding", "utf-16"] if "utf16" in key else []
    result = call("schema", data, "--discover", "--epsilon", "1", "--delta", "1e-9", *words)
    assert result.exit_code in {0, 2}, result.stderr
    if result.exit_code == 2:
        one_line(result, "the ")
        return
    assert parse_draft(result.stdout)
    for secret in CASE[key].secrets:
        assert key[:2] in {"49", "50"} or secret not in result.output, "a cell of the file"


def parse_draft(text: str) -> bool:
    """Return whether a draft is a schema once its undecided columns are."""
    parse_schema(text.replace('kind = "drop"', 'kind = "number"').replace('kind = "?"', 'kind = "number"'))
    return True
