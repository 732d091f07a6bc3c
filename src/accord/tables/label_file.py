"""The labels of a column that a file beside the schema lists: too many to type, and just as public."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accord.core.errors import SchemaMismatch
from accord.tables.names import normal_form, shown

__all__ = ["label_file", "labels_of_file", "refuse_data_as_labels"]

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
