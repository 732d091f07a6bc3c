"""Schemas: what is accepted, what is refused and by which words, and that a draft can be completed."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import SchemaMismatch
from accord.tables import Column, Schema, draft_schema, parse_schema, read_schema
from accord.tables.names import normal_form, shown

NUMBER = 'version = 1\n[[columns]]\nname = "x"\nkind = "number"\n'
CATEGORY = 'version = 1\n[[columns]]\nname = "c"\nkind = "category"\ncategories = ["a", "b"]\n'


def test_a_full_schema() -> None:
    text = (
        'version = 1\nunit = "person"\n'
        '[[columns]]\nname = "age"\nkind = "number"\ndecimals = 0\nmissing = ["NA"]\nunreadable = "missing"\n'
        '[[columns]]\nname = "sex"\nkind = "category"\ncategories = ["F", "M"]\n'
    )
    age = Column(name="age", kind="number", decimals=0, missing=("NA",), unreadable="missing")
    sex = Column(name="sex", kind="category", categories=("F", "M"))
    assert parse_schema(text) == Schema(columns=(age, sex), unit="person")


REFUSED = {
    "version": ("[[columns]]\nname='x'\nkind='number'\n", ["version = 2"]),
    "other version": (NUMBER.replace("= 1", "= 4"), ["version = 2"]),
    "version as boolean": (NUMBER.replace("= 1", "= true"), ["version = 1"]),
    "no columns": ("version = 1\n", ["at least one column"]),
    "columns is a text": ("version = 1\ncolumns = 'x'\n", ["at least one column"]),
    "columns is a list of texts": ("version = 1\ncolumns = ['x']\n", ["at least one column"]),
    "no name": ("version = 1\n[[columns]]\nkind = 'number'\n", ["column 1", "name"]),
    "empty name": ("version = 1\n[[columns]]\nname = ''\nkind = 'number'\n", ["column 1", "name"]),
    "name is a number": ("version = 1\n[[columns]]\nname = 3\nkind = 'number'\n", ["column 1", "name"]),
    "no kind": ("version = 1\n[[columns]]\nname = 'x'\n", ['"x"', '"number", "category"']),
    "draft": (NUMBER.replace('"number"', '"?"'), ['"x"', "not completed", '"number", "category"']),
    "unknown kind": (NUMBER.replace('"number"', '"integer"'), ['"x"', '"number", "category"']),
    "kind is a list": (NUMBER.replace('"number"', '["number"]'), ['"x"', '"number", "category"']),
    "unknown key at the top": ("colums = 3\n" + NUMBER, ['"colums"', '"version", "unit", "columns"']),
    "unknown key": (NUMBER + "lower = 3\n", ['"x"', '"lower"', '"decimals"']),
    "categories of a number": (NUMBER + 'categories = ["a"]\n', ['"x"', '"categories"']),
    "decimals of a category": (CATEGORY + "decimals = 0\n", ['"c"', '"decimals"']),
    "decimals too many": (NUMBER + "decimals = 13\n", ["decimals", '"x"', "0 to 12"]),
    "decimals negative": (NUMBER + "decimals = -1\n", ["decimals", "0 to 12"]),
    "decimals as float": (NUMBER + "decimals = 1.0\n", ["decimals", "0 to 12"]),
    "decimals as boolean": (NUMBER + "decimals = true\n", ["decimals", "0 to 12"]),
    "missing is a text": (NUMBER + 'missing = "NA"\n', ["missing", '"x"', "list of texts"]),
    "missing is a list of numbers": (NUMBER + "missing = [-9]\n", ["missing", '"x"', "list of texts"]),
    "missing repeats": (NUMBER + 'missing = ["NA", "NA"]\n', ["missing", "distinct"]),
    "unreadable": (NUMBER + 'unreadable = "drop"\n', ["unreadable", '"x"', '"refuse", "missing"']),
    "unreadable as boolean": (NUMBER + "unreadable = true\n", ["unreadable", '"x"', '"refuse", "missing"']),
    "no categories": (CATEGORY.replace('categories = ["a", "b"]\n', ""), ["categories", '"c"', "every value"]),
    "empty categories": (CATEGORY.replace('"a", "b"', ""), ["categories", '"c"', "every value"]),
    "empty category": (CATEGORY.replace('"a"', '""'), ["categories", '"c"', "not empty"]),
    "categories repeat": (CATEGORY.replace('"b"', '"a"'), ["categories", "distinct"]),
    "categories of numbers": (CATEGORY.replace('"a"', "1"), ["categories", "list of texts"]),
    "category that is missing": (CATEGORY + 'missing = ["a"]\n', ['"c"', "both"]),
    "twins": (NUMBER + '[[columns]]\nname = "x"\nkind = "number"\n', ['"x"', "twice"]),
    "twins up to the normal form": (
        NUMBER.replace('"x"', '"\\u00e9"') + '[[columns]]\nname = "e\\u0301"\nkind = "number"\n',
        ["twice"],
    ),
    "unit is a number": ("unit = 3\n" + NUMBER, ["unit"]),
    "unit is empty": ("unit = ''\n" + NUMBER, ["unit"]),
    "unit is a declared column": ("unit = 'x'\n" + NUMBER, ['"x"', "delete"]),
    "not TOML": ("version = \n", ["not valid TOML", "line 1"]),
    "deep": ("x = " + "[" * 20_000, ["not valid TOML"]),
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


def test_a_data_file_passed_as_schema_is_not_repeated() -> None:
    with pytest.raises(SchemaMismatch) as caught:
        parse_schema("a,b\nCANARY7301,2\n")
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe", "folder"])
def test_files_that_cannot_be_a_schema(tmp_path: Path, content: bytes | str | None) -> None:
    path = tmp_path / "s.toml"
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    with pytest.raises(SchemaMismatch, match=r"s\.toml"):
        read_schema(path)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_byte_order_mark_and_line_endings(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xef\xbb\xbf" + NUMBER.replace("\n", ending).encode())
    assert read_schema(path) == parse_schema(NUMBER)


def test_unit_of_the_command_line() -> None:
    schema = parse_schema(NUMBER)
    assert schema.with_unit(None) is schema
    assert schema.with_unit("person").unit == "person"
    assert schema.with_unit("person").with_unit("person").unit == "person"
    with pytest.raises(SchemaMismatch, match="person"):
        schema.with_unit("person").with_unit("household")
    with pytest.raises(SchemaMismatch, match="delete"):
        schema.with_unit("x")


# --- drafts -----------------------------------------------------------------------------------------------------------

ODD = [
    "index",
    "_RARE_",
    "a.b",
    'say "hi"',
    "back\\slash",
    "tab\there",
    "two\nlines",
    "\x7f\x1b[31m",
    "# no",
    "é",
    "价格",
    "😀",
    "'",
]


def names_of(draft: str) -> list[str]:
    return [column["name"] for column in tomllib.loads(draft)["columns"]]


def test_names_survive_the_draft() -> None:
    assert names_of(draft_schema(ODD)) == ODD


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5, unique_by=normal_form))
def test_any_names_survive_the_draft(names: list[str]) -> None:
    usable = [name for name in names if not any("\ud800" <= letter <= "\udfff" for letter in name)]
    if usable:
        draft = draft_schema(usable)
        assert names_of(draft) == usable
        assert draft.replace("\n", "").isprintable()


def test_a_draft_is_refused_until_completed() -> None:
    draft = draft_schema(["age", "city"])
    with pytest.raises(SchemaMismatch, match=r'"age".*not completed'):
        parse_schema(draft)
    half = draft.replace('kind = "?"', 'kind = "number"', 1)
    with pytest.raises(SchemaMismatch, match=r'"city".*not completed'):
        parse_schema(half)
    assert len(parse_schema(half.replace('kind = "?"', 'kind = "number"')).columns) == 2


def test_the_unit_line_of_a_draft_can_be_switched_on() -> None:
    draft = draft_schema(["age"]).replace('kind = "?"', 'kind = "number"').replace('# unit = "..."', 'unit = "person"')
    assert parse_schema(draft).unit == "person"


def test_nameless_columns_are_left_out_and_twins_refused() -> None:
    assert names_of(draft_schema(["", "x"])) == ["x"]
    with pytest.raises(SchemaMismatch, match='"x"'):
        draft_schema(["x", "x"])
    with pytest.raises(SchemaMismatch, match="header"):
        draft_schema(["", ""])


def test_names_in_messages_stay_on_one_short_line() -> None:
    assert shown("a\nb\x1b") == '"a\\u000Ab\\u001B"'
    assert len(shown("x" * 1000)) < 70


def test_a_target_is_a_column_that_is_read() -> None:
    columns = """
[[columns]]
name = "age"
kind = "number"
[[columns]]
name = "number"
kind = "drop"
"""
    schema = parse_schema('version = 3\ntarget = "age"' + columns)
    assert schema.target == "age"
    assert schema.with_target(None) is schema
    assert parse_schema("version = 3" + columns).with_target("age") == schema
    for target in ('"other"', '"number"', "1"):
        with pytest.raises(SchemaMismatch, match="target must be the name"):
            parse_schema(f"version = 3\ntarget = {target}" + columns)
    with pytest.raises(SchemaMismatch, match="unknown key"):
        parse_schema('version = 2\ntarget = "age"' + columns)
