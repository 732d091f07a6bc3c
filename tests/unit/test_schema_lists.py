"""Lists of labels in files, ids that do not clash, and files whose separator was not said."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from accord.cli.app import app
from accord.errors import DataError, SchemaMismatch
from accord.tables import CsvFormat, columns_as_bytes, parse_schema, read_header, read_schema, read_table

CODE = 'version = 3\n[[columns]]\nname = "code"\nkind = "category"\n{}\n'
IDS = 'version = 3\n[[columns]]\nname = "who"\nkind = "id"\n{}\n[[columns]]\nname = "x"\nkind = "number"\n'


def schema_in(folder: Path, keys: str, *, text: str = CODE) -> Path:
    path = folder / "schema.toml"
    path.write_text(text.format(keys))
    return path


# --- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parquet", [False, True])
def test_J8_ids_begin_where_the_schema_says(tmp_path: Path, *, parquet: bool) -> None:
    def ids(keys: str) -> list[str]:
        schema = parse_schema(IDS.format(keys))
        path = tmp_path / "out"
        path.write_bytes(columns_as_bytes([np.array([0.5, 1.5, 2.5])], schema=schema, parquet=parquet))
        read = parse_schema(
            'version = 3\n[[columns]]\nname = "who"\nkind = "category"\ncategories = '
            + str([f"P{n}" for n in [*range(1, 4), *range(1001, 1004)]]).replace("'", '"')
        )
        return [read.columns[0].categories[code] for code in read_table(path, schema=read).columns[0]]

    first, second = ids('prefix = "P"'), ids('prefix = "P"\nstart = 1001')
    assert first == ["P1", "P2", "P3"]
    assert second == ["P1001", "P1002", "P1003"]  # appended to the first, no two are equal


@pytest.mark.parametrize("start", ["-1", "1.0", "true", '"7"', "1000000000000000001"])
def test_J8_a_start_that_is_no_whole_number_is_refused(start: str) -> None:
    with pytest.raises(SchemaMismatch, match='start of column "who" must be a whole number from 0'):
        parse_schema(IDS.format(f"start = {start}"))


def test_J8_new_keys_need_the_new_version() -> None:
    for text in (IDS.format("start = 5"), CODE.format('categories_file = "c.txt"')):
        with pytest.raises(SchemaMismatch, match="needs version = 3"):
            parse_schema(text.replace("version = 3", "version = 2"))


# --- lists of labels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"a 1\nb\xc3\xa9\n c\n", b"\xef\xbb\xbfa 1\r\nb\xc3\xa9\r\n c", b"a 1\nb\xc3\xa9\n c"],
    ids=["lf", "bom", "end"],
)
def test_J8_categories_come_from_a_file_beside_the_schema(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "codes.txt").write_bytes(content)
    schema = read_schema(schema_in(tmp_path, 'categories_file = "lists/codes.txt"'))
    assert schema.columns[0].categories == ("a 1", "b\u00e9", " c")
    assert schema == parse_schema(CODE.format('categories = ["a 1", "b\u00e9", " c"]'))
    assert [path.name for path in schema.label_files] == ["codes.txt"]


def test_J8_eight_hundred_codes_from_a_named_column(tmp_path: Path) -> None:
    codes = [f"C{n:03}" for n in range(800)]
    (tmp_path / "codes.csv").write_text("text,code\n" + "".join(f'"one, or {code}",{code}\n' for code in codes))
    schema = read_schema(schema_in(tmp_path, 'categories_file = "codes.csv"\ncategories_column = "code"'))
    assert schema.columns[0].categories == tuple(codes)


REFUSED = {
    "not there": (None, "", ["is not there", "relative to the schema"]),
    "empty": (b"", "", ["no label"]),
    "blank line": (b"a\n\nb\n", "", ["empty label", "record 2"]),
    "twice": (b"a\nSECRET\nb\nSECRET\n", "", ["twice", "records 2 and 4"]),
    "latin-1": (b"a\n\xe9\n", "", ["not UTF-8"]),
    "nul": (b"a\0b\n", "", ["not UTF-8"]),
    "too many": ("".join(f"{n}\n" for n in range(65536)).encode(), "", ["65536 labels", "at most 65535"]),
    "no such column": (b"a,b\n1,2\n", 'categories_column = "SECRETS"', ["one column named"]),
    "column twice": (b"b,b\n1,2\n", 'categories_column = "b"', ["one column named"]),
    "ragged": (b"a,b\n1,2,3\n", 'categories_column = "b"', ["more or fewer cells"]),
    "open quote": (b'a,b\n1,"2\n', 'categories_column = "b"', ["not a CSV"]),
    "column of no text": (b"a,b\n1,2\n", "categories_column = 1", ["categories_column"]),
    "both": (b"a\n", 'categories = ["a"]', ["choose one"]),
    "also missing": (b"a\nNA\n", 'missing = ["NA"]', ["both"]),
}


@pytest.mark.parametrize(("content", "keys", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_J8_a_list_that_is_none_is_refused_by_name(
    tmp_path: Path, content: bytes | None, keys: str, words: list[str]
) -> None:
    if content is not None:
        (tmp_path / "codes.txt").write_bytes(content)
    with pytest.raises(SchemaMismatch) as caught:
        read_schema(schema_in(tmp_path, f'categories_file = "codes.txt"\n{keys}'))
    for word in [*words, '"code"']:
        assert word in str(caught.value)
    assert "SECRET " not in str(caught.value)
    assert '"SECRET"' not in str(caught.value)


def test_J8_categories_file_is_a_path_and_needs_a_schema_in_a_file() -> None:
    for given in ("1", '""', '["a"]'):
        with pytest.raises(SchemaMismatch, match="must be the path of a file"):
            parse_schema(CODE.format(f"categories_file = {given}"))
    with pytest.raises(SchemaMismatch, match="call read_schema"):
        parse_schema(CODE.format('categories_file = "codes.txt"'))
    with pytest.raises(SchemaMismatch, match="needs categories_file"):
        parse_schema(CODE.format('categories_column = "x"'))


def test_J8_the_data_are_no_list_of_labels(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("code\na\nb\n")
    (tmp_path / "link.csv").symlink_to(data)
    for name in ("data.csv", "link.csv"):
        path = schema_in(tmp_path, f'categories_file = "{name}"\ncategories_column = "code"')
        with pytest.raises(SchemaMismatch, match="is the data file itself"):
            read_table(data, schema=read_schema(path))
        for more in ([], ["--dry-run"]):
            out = str(tmp_path / "out.csv")
            words = [
                "synth",
                str(data),
                "--schema",
                str(path),
                "--epsilon",
                "1",
                "--delta",
                "1e-6",
                "--rows",
                "9",
                "--out",
                out,
                *more,
            ]
            result = CliRunner().invoke(app, words)
            assert result.exit_code != 0
            assert "is the data file itself" in result.stderr


def test_J8_a_list_of_labels_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("code\na\nb\n")
    (tmp_path / "codes.txt").write_text("a\nb\n")
    path = schema_in(tmp_path, 'categories_file = "codes.txt"')
    words = [
        "synth",
        str(tmp_path / "data.csv"),
        "--schema",
        str(path),
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--rows",
        "9",
        "--force",
    ]
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "codes.txt")])
    assert result.exit_code != 0
    assert "must not be a file that is also read" in result.stderr


# --- a separator that was not said ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "shown"), [(";", 'separator = ";"'), ("\t", r'separator = "\t"'), ("|", 'separator = "|"')]
)
def test_J8_another_separator_is_said_and_not_drafted_as_one_column(tmp_path: Path, mark: str, shown: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(mark.join(["site", "temp_c", "visits"]) + "\n" + mark.join(["north", "21", "3"]) + "\n")
    result = CliRunner().invoke(app, ["schema", str(path)])
    assert result.exit_code != 0
    assert shown in result.stderr
    assert "--separator" in result.stderr
    assert result.stdout == ""
    one = parse_schema(
        'version = 3\n[[columns]]\nname = "site' + mark.replace("\t", r"\t") + 'temp_c"\nkind = "number"\n'
    )
    with pytest.raises(DataError, match="has no comma"):
        read_table(path, schema=one)
    said = "tab" if mark == "\t" else mark
    drafted = CliRunner().invoke(app, ["schema", str(path), "--separator", said])
    assert drafted.exit_code == 0
    assert drafted.stdout.count("[[columns]]") == 3


def test_J8_commas_where_semicolons_were_said(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r'has no ";", but ","'):
        read_header(path, csv=CsvFormat(separator=";"))


@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_J8_an_only_column_may_have_any_name_in_quotation_marks(tmp_path: Path, start: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(f'{start}"a;b|c"\n1\n2\n', encoding="utf-8")
    assert read_header(path) == ("a;b|c",)
    path.write_text("plain\n1\n")
    assert read_header(path) == ("plain",)
    path.write_text("a;b\n1\n")
    with pytest.raises(DataError, match="rename it"):
        read_header(path, csv=CsvFormat(quote=""))
