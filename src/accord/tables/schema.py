"""What a person states about a table without looking at its rows."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast, final

from accord.errors import SchemaMismatch
from accord.tables.names import listed, normal_form, shown

__all__ = ["UNDECIDED", "Column", "Kind", "Schema", "parse_schema", "read_schema"]

Kind = Literal["number", "category"]

UNDECIDED = "?"
"""The kind that a draft gives to every column; no schema with it is accepted."""

_KINDS = ("number", "category")
_POLICIES = ("refuse", "missing")
_MOST_DECIMALS = 12
_TOP_KEYS = ("version", "unit", "columns")
_KEYS = {
    "number": ("name", "kind", "decimals", "missing", "unreadable"),
    "category": ("name", "kind", "categories", "missing", "unreadable"),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One declared column; docs/schema.md says what each field means.

    Parameters
    ----------
    name
        As in the table's header.
    kind
        "number" or "category".
    decimals
        For a number: digits after the point in what is written, 0 to 12; None writes as many as the number needs.
    categories
        For a category: every value that may occur; public.
    missing
        What is written for a missing cell, besides the empty cell.
    unreadable
        What happens to a cell that is not as declared: "refuse" the table, or count it as "missing".

    """

    name: str
    kind: Kind
    decimals: int | None = None
    categories: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unreadable: Literal["refuse", "missing"] = "refuse"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The declared columns, in the order of the output, and the column that names the unit of privacy, if any."""

    columns: tuple[Column, ...]
    unit: str | None = None

    def with_unit(self, unit: str | None) -> "Schema":
        """Return this schema with ``unit`` as its unit column; None changes nothing.

        Raises
        ------
        SchemaMismatch
            If the schema states another unit, or ``unit`` is one of the declared columns.

        """
        if unit is None:
            return self
        if self.unit is not None and normal_form(self.unit) != normal_form(unit):
            raise SchemaMismatch(f"the schema says unit = {shown(self.unit)}, but the unit asked for is {shown(unit)}.")
        _unit(unit, self.columns)
        return replace(self, unit=unit)


def read_schema(path: Path) -> Schema:
    """Read a schema file.

    Raises
    ------
    SchemaMismatch
        If it cannot be read, is not TOML, or is not a schema. The text names the key and what is accepted.

    """
    if not path.exists():
        raise SchemaMismatch(f"the schema {shown(path.name)} does not exist.")
    if not path.is_file():
        raise SchemaMismatch(f"the schema {shown(path.name)} is not a file.")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError:
        text = None
    except UnicodeDecodeError:
        raise SchemaMismatch(f"the schema {shown(path.name)} is not UTF-8 text.") from None
    if text is None:
        raise SchemaMismatch(f"the schema {shown(path.name)} cannot be read: check its permissions.")
    return parse_schema(text)


def parse_schema(text: str) -> Schema:
    """Return the schema that ``text``, a TOML document, describes.

    Raises
    ------
    SchemaMismatch
        As for `read_schema`.

    Examples
    --------
    >>> parse_schema('version = 1' + chr(10) + '[[columns]]' + chr(10) + 'name = "age"' + chr(10) + 'kind = "number"')
    Schema(columns=(Column(name='age', kind='number', ...),), unit=None)

    """
    document = _toml(text.replace("\r\n", "\n"))
    unknown = [key for key in document if key not in _TOP_KEYS]
    if unknown:
        raise SchemaMismatch(f"the schema has an unknown key {shown(unknown[0])}: accepted are {listed(_TOP_KEYS)}.")
    version = document.get("version")
    if type(version) is not int or version != 1:
        raise SchemaMismatch("the schema must say version = 1.")
    entries = document.get("columns")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise SchemaMismatch("the schema must declare at least one column, each in a [[columns]] table.")
    columns = tuple(_column(entry, place=place) for place, entry in enumerate(entries, start=1))
    _refuse_twins(columns)
    unit = document.get("unit")
    if unit is not None:
        _unit(unit, columns)
    return Schema(columns=columns, unit=unit)


def _toml(text: str) -> dict[str, Any]:
    """Return the parsed document; of the parser's own message only the place is repeated."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = re.search(r"\(at [^()]*\)\s*$", str(error))
    raise SchemaMismatch(f"the schema is not valid TOML{' ' + place[0].strip() if place else ''}.")


def _column(entry: Mapping[str, Any], *, place: int) -> Column:
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise SchemaMismatch(f"column {place} of the schema needs a name: a text that is not empty.")
    kind = entry.get("kind")
    if kind == UNDECIDED:
        raise SchemaMismatch(
            f'column {shown(name)} of the schema is not completed: replace kind = "?" by "number" or "category", '
            f"or delete the column."
        )
    if not isinstance(kind, str) or kind not in _KINDS:
        raise SchemaMismatch(f"column {shown(name)} of the schema needs a kind: accepted are {listed(_KINDS)}.")
    unknown = [key for key in entry if key not in _KEYS[kind]]
    if unknown:
        raise SchemaMismatch(
            f"column {shown(name)} of the schema has an unknown key {shown(unknown[0])}: "
            f"accepted for a {kind} are {listed(_KEYS[kind])}."
        )
    unreadable = entry.get("unreadable", "refuse")
    if not isinstance(unreadable, str) or unreadable not in _POLICIES:
        raise SchemaMismatch(f"unreadable of column {shown(name)} must be one of {listed(_POLICIES)}.")
    missing = _texts(entry.get("missing", []), key="missing", name=name)
    categories = _categories(entry, name=name) if kind == "category" else ()
    if set(categories) & set(missing):
        raise SchemaMismatch(f"column {shown(name)} lists a text both in categories and in missing: choose one.")
    return Column(
        name=name,
        kind=cast("Kind", kind),
        decimals=_decimals(entry.get("decimals"), name=name),
        categories=categories,
        missing=missing,
        unreadable=cast("Literal['refuse', 'missing']", unreadable),
    )


def _categories(entry: Mapping[str, Any], *, name: str) -> tuple[str, ...]:
    categories = _texts(entry.get("categories", []), key="categories", name=name)
    if not categories or "" in categories:
        raise SchemaMismatch(
            f"categories of column {shown(name)} must list every value that may occur, each a text that is not empty."
        )
    return categories


def _texts(value: object, *, key: str, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SchemaMismatch(f'{key} of column {shown(name)} must be a list of texts, such as ["NA"].')
    if len(set(value)) < len(value):
        raise SchemaMismatch(f"{key} of column {shown(name)} must be distinct.")
    return tuple(value)


def _decimals(value: object, *, name: str) -> int | None:
    if value is None or (type(value) is int and 0 <= value <= _MOST_DECIMALS):
        return value
    raise SchemaMismatch(f"decimals of column {shown(name)} must be a whole number from 0 to {_MOST_DECIMALS}.")


def _refuse_twins(columns: tuple[Column, ...]) -> None:
    seen: set[str] = set()
    for column in columns:
        if normal_form(column.name) in seen:
            raise SchemaMismatch(f"column {shown(column.name)} is declared twice.")
        seen.add(normal_form(column.name))


def _unit(unit: object, columns: tuple[Column, ...]) -> None:
    if not isinstance(unit, str) or not unit:
        raise SchemaMismatch("unit must be the name of a column, as a text that is not empty.")
    if normal_form(unit) in {normal_form(column.name) for column in columns}:
        raise SchemaMismatch(
            f"unit column {shown(unit)} is also a declared column: the unit is only read to keep its records together, "
            f"so delete it from [[columns]]."
        )
