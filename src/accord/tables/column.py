"""One declared column, and how the text of a schema declares it."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast, final

from accord.core.errors import SchemaMismatch
from accord.tables.dates import FORMATS, check_format, seconds_of
from accord.tables.names import listed, normal_form, shown

__all__ = [
    "COLUMN_KINDS",
    "LABEL_KINDS",
    "LARGEST",
    "NUMBER_KINDS",
    "UNDECIDED",
    "Column",
    "Kind",
    "label_file",
    "labels_of_file",
    "parse_column",
    "refuse_data_as_labels",
]


_LARGEST_FILE = 64 << 20


def label_file(entry: Mapping[str, Any], *, folder: Path | None, name: str) -> Path | None:
    """Return the file that ``categories_file`` of a column names, None if there is none.

    Parameters
    ----------
    entry
        The column's [[columns]] table.
    folder
        Where the schema's file stands; a path is relative to it.
    name
        The column's name, for messages.

    Raises
    ------
    SchemaMismatch
        If it is no text, or the schema is not read from a file.

    """
    given = entry.get("categories_file")
    if given is None:
        if "categories_column" in entry:
            raise SchemaMismatch(f"categories_column of column {shown(name)} needs categories_file: the CSV it is in.")
        return None
    if not isinstance(given, str) or not given or "\0" in given:
        raise SchemaMismatch(f"categories_file of column {shown(name)} must be the path of a file, as a text.")
    if "categories" in entry:
        raise SchemaMismatch(f"column {shown(name)} has both categories and categories_file: choose one.")
    if folder is None:
        raise SchemaMismatch(
            f"categories_file of column {shown(name)} is a path beside the schema, and this schema is no file: "
            f"save it and call read_schema."
        )
    return folder / given


def labels_of_file(path: Path, *, column: object, name: str) -> tuple[str, ...]:
    """Read labels: a line each in UTF-8, or the cells of one column of a CSV file.

    Parameters
    ----------
    path
        The file.
    column
        None for lines, or the name of a column in the first line of a CSV file (UTF-8, commas).
    name
        Name of the schema's column, for messages.

    Raises
    ------
    SchemaMismatch
        If the file is not there or not such a text, or a label is empty or stands there twice. No label is repeated.

    """
    what = f"categories_file {shown(path.name)} of column {shown(name)}"
    text = _text(path, what=what)
    if column is None:
        lines = text.replace("\r\n", "\n").split("\n")
        labels = lines[:-1] if lines[-1] == "" else lines
        first = 1
    elif isinstance(column, str) and column:
        labels = _cells(text, column=column, what=what)
        first = 2
    else:
        raise SchemaMismatch(f"categories_column of column {shown(name)} must be the name of a column, as a text.")
    if not labels:
        raise SchemaMismatch(f"{what} lists no label: write every value that may occur, one a line.")
    places: dict[str, int] = {}
    for place, label in enumerate(labels, start=first):
        if not label:
            raise SchemaMismatch(f"{what} has an empty label (record {place}): delete it.")
        if label in places:
            raise SchemaMismatch(f"{what} lists a label twice (records {places[label]} and {place}): delete one.")
        places[label] = place
    return tuple(labels)


def refuse_data_as_labels(data: Path, *, files: tuple[Path, ...]) -> None:
    """Refuse a table that the schema also reads as a list of labels: labels are public, and cells are not.

    Raises
    ------
    SchemaMismatch
        If ``data`` is one of ``files``.

    """
    for path in files:
        if data.exists() and path.exists() and data.samefile(path):
            raise SchemaMismatch(
                f"categories_file {shown(path.name)} is the data file itself: a list of labels is public, so write it "
                f"from what you know, or find frequent labels privately with accord schema --discover."
            )


def _text(path: Path, *, what: str) -> str:
    if not path.is_file():
        raise SchemaMismatch(f"{what} is not there: its path is relative to the schema's folder.")
    content = None
    text = None
    try:
        with path.open("rb") as handle:
            content = handle.read(_LARGEST_FILE + 1)
        text = content.decode("utf-8-sig")
    except OSError:
        content = None
    except UnicodeDecodeError:
        text = None
    if content is None:
        raise SchemaMismatch(f"{what} cannot be read: check its permissions.")
    if len(content) > _LARGEST_FILE:
        raise SchemaMismatch(f"{what} is larger than {_LARGEST_FILE >> 20} MiB: it is no list of labels.")
    if text is None or "\0" in text:
        raise SchemaMismatch(f"{what} is not UTF-8 text: convert it first, for example with iconv.")
    return text


def _cells(text: str, *, column: str, what: str) -> list[str]:
    records = None
    try:
        records = list(csv.reader(text.splitlines(keepends=True), strict=True))
    except csv.Error:
        records = None
    if not records:
        raise SchemaMismatch(
            f"{what} is not a CSV file with a header: leave categories_column out if it has a label a line."
        )
    forms = [normal_form(found) for found in records[0]]
    if forms.count(normal_form(column)) != 1:
        raise SchemaMismatch(f"{what} must have one column named {shown(column)} in its first line.")
    place = forms.index(normal_form(column))
    if any(len(record) != len(forms) for record in records[1:]):
        raise SchemaMismatch(f"{what} has a record with more or fewer cells than its first line.")
    return [record[place] for record in records[1:]]


Kind = Literal["number", "integer", "category", "ordinal", "boolean", "date", "datetime", "constant", "id", "drop"]
Policy = Literal["refuse", "missing"]
Outside = Literal["clamp", "unreadable"]

UNDECIDED = "?"
"""The kind that a draft gives to every column; no schema with it is accepted."""

NUMBER_KINDS = ("number", "integer", "date", "datetime")
"""Kinds that are learned as numbers: dates as days, datetimes as seconds since 1970."""

LABEL_KINDS = ("category", "ordinal", "boolean")
"""Kinds that are learned as labels of a public list."""

_MOST_DECIMALS = 12
_MOST_LABELS = (1 << 16) - 1  # with a missing cell they are levels of 16 bits
_LARGEST_START = 10**18
LARGEST = 1e100
"""No bound and no edge is larger in size, so that squares and widths are numbers."""
_FIRST_KINDS = ("number", "category")
_POLICIES = ("refuse", "missing")
_OUTSIDE = ("clamp", "unreadable")
_ALWAYS = ("name", "kind")
_READ = ("missing", "unreadable", "required", "mostly_missing")
_KEYS: dict[str, tuple[str, ...]] = {
    "number": (*_ALWAYS, "decimals", "bounds", "outside", "edges", *_READ),
    "integer": (*_ALWAYS, "bounds", "outside", "edges", *_READ),
    "category": (*_ALWAYS, "categories", *_READ),
    "ordinal": (*_ALWAYS, "categories", *_READ),
    "boolean": (*_ALWAYS, "true", "false", *_READ),
    "date": (*_ALWAYS, "format", "bounds", "outside", *_READ),
    "datetime": (*_ALWAYS, "format", "bounds", "outside", *_READ),
    "constant": (*_ALWAYS, "value"),
    "id": (*_ALWAYS, "prefix"),
    "drop": _ALWAYS,
}
COLUMN_KINDS = tuple(_KEYS)
"""All kinds that a schema can declare."""
_FIRST_KEYS: dict[str, tuple[str, ...]] = {
    "number": (*_ALWAYS, "decimals", "missing", "unreadable"),
    "category": (*_ALWAYS, "categories", "missing", "unreadable"),
}
_THIRD_KEYS = {
    **_KEYS,
    "category": ("name", "kind", "categories", "categories_file", "categories_column", *_READ),
    "ordinal": ("name", "kind", "categories", "categories_file", "categories_column", *_READ),
    "id": (*_ALWAYS, "prefix", "start"),
}
_OF_VERSION: dict[int, dict[str, tuple[str, ...]]] = {1: _FIRST_KEYS, 2: _KEYS, 3: _THIRD_KEYS}
_SPELLINGS = {"true": ("true",), "false": ("false",)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One declared column; docs/schema.md says what each field means.

    Parameters
    ----------
    name
        As in the table's header.
    kind
        What its cells are.
    decimals
        For a number: digits after the point in what is written, 0 to 12; None writes as many as the number needs.
    categories
        For a category or ordinal: every value that may occur, an ordinal's in their order; public. For a boolean: how
        false and true are written, in this order.
    missing
        What is written for a missing cell, besides the empty cell.
    unreadable
        What happens to a cell that is not as declared: "refuse" the table, or count it as "missing".
    required
        Whether the output never has a missing cell; with "refuse", a missing cell of the input is refused too.
    mostly_missing
        Whether it is known that most of its cells are missing: then a release says nothing of it.
    bounds
        For numbers: the least and the largest value there can be; public. Dates as days, datetimes as seconds.
    outside
        What a number outside the bounds is: the nearer bound ("clamp"), or "unreadable".
    edges
        For a number or integer: where the learner cuts it into bins, increasing; public.
    true, false
        For a boolean: all spellings of each.
    format
        For a date or datetime: how it is written, in the codes of strftime.
    value
        For a constant: the text of every cell of the output. The column is not read.
    prefix
        For an id: made-up ids are this text and a number. The column is not read.
    start
        For an id: the number of the first row, so that files put together share no id.

    """

    name: str
    kind: Kind
    decimals: int | None = None
    categories: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unreadable: Policy = "refuse"
    required: bool = False
    mostly_missing: bool = False
    bounds: tuple[float, float] | None = None
    outside: Outside = "clamp"
    edges: tuple[float, ...] = ()
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    format: str | None = None
    value: str | None = None
    prefix: str = ""
    start: int = 1

    @property
    def is_number(self) -> bool:
        """Whether its cells are read as float64."""
        return self.kind in NUMBER_KINDS

    @property
    def is_label(self) -> bool:
        """Whether its cells are read as positions in ``categories``."""
        return self.kind in LABEL_KINDS

    @property
    def is_read(self) -> bool:
        """Whether it is read and learned."""
        return self.is_number or self.is_label

    @property
    def is_written(self) -> bool:
        """Whether it is part of the output."""
        return self.kind != "drop"


def parse_column(entry: Mapping[str, Any], *, place: int, version: int, folder: Path | None = None) -> Column:
    """Return the column that one [[columns]] table declares; ``folder`` is where the schema's file stands, if any.

    Raises
    ------
    SchemaMismatch
        If it is not as docs/schema.md says; the text names the key and what is accepted.

    """
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise SchemaMismatch(f"column {place} of the schema needs a name: a text that is not empty.")
    kind = _kind(entry.get("kind"), name=name, version=version)
    accepted = _OF_VERSION[version][kind]
    unknown = [key for key in entry if key not in accepted]
    if unknown:
        newer = [later for later, keys in _OF_VERSION.items() if later > version and unknown[0] in keys.get(kind, ())]
        hint = f" (it needs version = {newer[0]})" if newer else ""
        raise SchemaMismatch(
            f"column {shown(name)} of the schema has an unknown key {shown(unknown[0])}{hint}: "
            f"accepted for a {kind} are {listed(accepted)}."
        )
    missing = _texts(entry.get("missing", []), key="missing", name=name)
    spelled = {key: _spelling(entry, key=key, name=name) for key in ("true", "false")} if kind == "boolean" else {}
    categories = _labels(entry, kind=kind, spelled=spelled, name=name, folder=folder)
    _refuse_overlap({"missing": missing, **(spelled or {"categories": categories})}, name=name)
    pattern = _format(entry, kind=kind, name=name)
    return Column(
        name=name,
        kind=kind,
        decimals=0 if kind == "integer" else _decimals(entry.get("decimals"), name=name),
        categories=categories,
        missing=missing,
        unreadable=cast("Policy", _choice(entry, "unreadable", _POLICIES, name=name)),
        required=_flag(entry, "required", name=name),
        mostly_missing=_flag(entry, "mostly_missing", name=name),
        bounds=_bounds(entry.get("bounds"), pattern=pattern, kind=kind, name=name),
        outside=cast("Outside", _choice(entry, "outside", _OUTSIDE, name=name)),
        edges=_edges(entry.get("edges", []), name=name),
        true=spelled.get("true", ()),
        false=spelled.get("false", ()),
        format=pattern,
        value=_value(entry, name=name) if kind == "constant" else None,
        prefix=_one_text(entry.get("prefix", ""), key="prefix", name=name),
        start=_start(entry.get("start", 1), name=name),
    )


def _kind(kind: object, *, name: str, version: int) -> Kind:
    accepted = _FIRST_KINDS if version == 1 else COLUMN_KINDS
    if kind == UNDECIDED:
        raise SchemaMismatch(
            f'column {shown(name)} of the schema is not completed: replace kind = "?" by one of {listed(accepted)}, '
            f"or delete the column."
        )
    if not isinstance(kind, str) or kind not in accepted:
        hint = f' (kind = "{kind}" needs version = 2)' if isinstance(kind, str) and kind in _KEYS else ""
        raise SchemaMismatch(f"column {shown(name)} of the schema needs a kind: accepted are {listed(accepted)}{hint}.")
    return cast("Kind", kind)


def _choice(entry: Mapping[str, Any], key: str, accepted: tuple[str, ...], *, name: str) -> str:
    value = entry.get(key, accepted[0])
    if not isinstance(value, str) or value not in accepted:
        raise SchemaMismatch(f"{key} of column {shown(name)} must be one of {listed(accepted)}.")
    return value


def _flag(entry: Mapping[str, Any], key: str, *, name: str) -> bool:
    value = entry.get(key, False)
    if not isinstance(value, bool):
        raise SchemaMismatch(f"{key} of column {shown(name)} must be true or false.")
    return value


def _one_text(value: object, *, key: str, name: str) -> str:
    if not isinstance(value, str):
        raise SchemaMismatch(f"{key} of column {shown(name)} must be a text.")
    return value


def _texts(value: object, *, key: str, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SchemaMismatch(f'{key} of column {shown(name)} must be a list of texts, such as ["NA"].')
    if len(set(value)) < len(value):
        raise SchemaMismatch(f"{key} of column {shown(name)} must be distinct.")
    return tuple(value)


def _start(value: object, *, name: str) -> int:
    if type(value) is int and 0 <= value <= _LARGEST_START:
        return value
    raise SchemaMismatch(f"start of column {shown(name)} must be a whole number from 0 to 10^18.")


def _value(entry: Mapping[str, Any], *, name: str) -> str:
    if "value" not in entry:
        raise SchemaMismatch(f"column {shown(name)} is a constant and needs value: the text of its cells.")
    return _one_text(entry["value"], key="value", name=name)


# --- labels -----------------------------------------------------------------------------------------------------------


def _labels(
    entry: Mapping[str, Any],
    *,
    kind: str,
    spelled: Mapping[str, tuple[str, ...]],
    name: str,
    folder: Path | None,
) -> tuple[str, ...]:
    if kind == "boolean":
        return spelled["false"][0], spelled["true"][0]
    if kind not in LABEL_KINDS:
        return ()
    path = label_file(entry, folder=folder, name=name)
    if path is None:
        categories = _texts(entry.get("categories", []), key="categories", name=name)
    else:
        categories = labels_of_file(path, column=entry.get("categories_column"), name=name)
    if len(categories) > _MOST_LABELS:
        where = "categories" if path is None else f"categories_file {shown(path.name)}"
        raise SchemaMismatch(
            f"{where} of column {shown(name)} lists {len(categories)} labels, and at most {_MOST_LABELS} "
            f"can be learned: group them."
        )
    if not categories or "" in categories:
        raise SchemaMismatch(
            f"categories of column {shown(name)} must list every value that may occur, each a text that is not empty."
        )
    return categories


def _spelling(entry: Mapping[str, Any], *, key: str, name: str) -> tuple[str, ...]:
    spelling = _texts(entry.get(key, list(_SPELLINGS[key])), key=key, name=name)
    if not spelling or "" in spelling:
        raise SchemaMismatch(f"{key} of column {shown(name)} must list its spellings, each a text that is not empty.")
    return spelling


def _refuse_overlap(groups: Mapping[str, tuple[str, ...]], *, name: str) -> None:
    names = list(groups)
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            if set(groups[one]) & set(groups[other]):
                raise SchemaMismatch(f"column {shown(name)} lists a text both in {other} and in {one}: choose one.")


# --- numbers ----------------------------------------------------------------------------------------------------------


def _decimals(value: object, *, name: str) -> int | None:
    if value is None or (type(value) is int and 0 <= value <= _MOST_DECIMALS):
        return value
    raise SchemaMismatch(f"decimals of column {shown(name)} must be a whole number from 0 to {_MOST_DECIMALS}.")


def _format(entry: Mapping[str, Any], *, kind: str, name: str) -> str | None:
    if kind not in FORMATS:
        return None
    return check_format(entry.get("format", FORMATS[kind]), kind=kind, name=name)


def _bounds(value: object, *, pattern: str | None, kind: str, name: str) -> tuple[float, float] | None:
    if value is None:
        return None
    number: Callable[[object], float | None] = _finite
    if pattern is not None:
        number = lambda text: seconds_of(text, pattern=pattern, kind=kind)  # noqa: E731 - one of two readings
    ends = [number(end) for end in value] if isinstance(value, list) and len(value) == 2 else []
    if len(ends) == 2 and ends[0] is not None and ends[1] is not None and ends[0] < ends[1]:
        return ends[0], ends[1]
    example = "[0, 120] (at most 1e100 in size)" if pattern is None else "two texts in the column's format"
    raise SchemaMismatch(f"bounds of column {shown(name)} must be the least and the largest value, as {example}.")


def _edges(value: object, *, name: str) -> tuple[float, ...]:
    numbers = [_finite(edge) for edge in value] if isinstance(value, list) else [None]
    edges = [number for number in numbers if number is not None]
    if len(edges) < len(numbers) or len(edges) == 1 or any(a >= b for a, b in pairwise(edges)):
        raise SchemaMismatch(f"edges of column {shown(name)} must be at least two increasing numbers of at most 1e100.")
    return tuple(edges)


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) <= LARGEST else None
