"""What a person states about a table without looking at its rows."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, final

from accord.core.errors import SchemaMismatch
from accord.tables.column import UNDECIDED, Column, Kind, label_file, parse_column
from accord.tables.csv_file import CsvFormat, parse_csv_format
from accord.tables.dtypes import suggested
from accord.tables.names import escaped, listed, normal_form, shown

__all__ = [
    "UNDECIDED",
    "Column",
    "Draft",
    "Kind",
    "Schema",
    "draft_schema",
    "parse_schema",
    "read_schema",
]


_VERSIONS = (1, 2, 3)
_NOW = ("version", "unit", "csv", "columns")
_TOP_KEYS = {1: ("version", "unit", "columns"), 2: _NOW, 3: ("version", "unit", "target", "csv", "columns")}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The declared columns, in the order of the output, and the column that names the unit of privacy, if any.

    ``target`` is a column that models of the synthetic rows will predict, if any: its relations with the others matter
    more than theirs among themselves.
    ``csv`` says how a CSV file is written; a Parquet file says so itself. ``label_files`` are the files that lists of
    categories were read from.
    """

    columns: tuple[Column, ...]
    unit: str | None = None
    csv: CsvFormat = field(default_factory=CsvFormat)
    label_files: tuple[Path, ...] = field(default=(), compare=False, repr=False)
    target: str | None = None

    @property
    def read(self) -> tuple[Column, ...]:
        """The columns that are read and learned, in their order."""
        return tuple(column for column in self.columns if column.is_read)

    @staticmethod
    def draft(frame: Any) -> str:  # noqa: ANN401 - any data frame
        """Return the text of a schema to complete, with the kinds that a data frame's types suggest.

        Only names and types are looked at: no cell, and no category of a categorical, which are cells. A type that a
        reader guessed from the cells, as `pandas.read_csv` does, is information about records: the draft says so. Where
        a type says nothing, there is a "?", which `parse_schema` refuses until a person has decided.

        Parameters
        ----------
        frame
            Of pandas, polars or pyarrow, or a mapping of names to arrays.

        Raises
        ------
        InvalidParameter
            If it is none.

        Examples
        --------
        >>> text = Schema.draft({"sex": ["f", "m"]})
        >>> text.splitlines()[-3:]
        ['name = "sex"', 'kind = "?"', "# the frame's type is list: say which labels there may be, or drop it"]

        """
        found = {
            name: Draft(kind=kind, comments=(f"the frame's type is {written}" + _LABELS * (kind == UNDECIDED),))
            for name, (kind, written) in suggested(frame).items()
        }
        return draft_schema(list(found), found=found, note=_OF_TYPES)

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

    def with_target(self, target: str | None) -> "Schema":
        """Return this schema with another target; None changes nothing.

        Raises
        ------
        SchemaMismatch
            If it is none of the columns that are read.

        """
        return self if target is None else replace(self, target=_target(target, self.columns))


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
    return parse_schema(text, folder=path.parent)


def parse_schema(text: str, *, folder: Path | None = None) -> Schema:
    """Return the schema that ``text``, a TOML document, describes; its ``categories_file`` are read in ``folder``.

    Raises
    ------
    SchemaMismatch
        As for `read_schema`.

    Examples
    --------
    >>> parse_schema('version = 1' + chr(10) + '[[columns]]' + chr(10) + 'name = "age"' + chr(10) + 'kind = "number"')
    Schema(columns=(Column(name='age', kind='number', ...),), unit=None, ...)

    """
    document = _toml(text.replace("\r\n", "\n"))
    version = document.get("version", 0)
    known = type(version) is int and version in _VERSIONS
    keys = _TOP_KEYS[version if known else _VERSIONS[-1]]
    unknown = [key for key in document if key not in keys]
    if unknown:
        hint = " (it needs version = 2)" if unknown[0] in _TOP_KEYS[2] else ""
        raise SchemaMismatch(f"the schema has an unknown key {shown(unknown[0])}{hint}: accepted are {listed(keys)}.")
    if not known:
        raise SchemaMismatch("the schema must say version = 3, or version = 2 or version = 1 for an older one.")
    entries = document.get("columns")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise SchemaMismatch("the schema must declare at least one column, each in a [[columns]] table.")
    columns = tuple(
        parse_column(entry, place=place, version=version, folder=folder) for place, entry in enumerate(entries, start=1)
    )
    _refuse_twins(columns)
    if not any(column.is_read for column in columns):
        raise SchemaMismatch("the schema must declare at least one column that is read: all are constant, id or drop.")
    unit = document.get("unit")
    if unit is not None:
        _unit(unit, columns)
    target = document.get("target")
    if target is not None:
        target = _target(target, columns)
    named = [label_file(entry, folder=folder, name=entry["name"]) for entry in entries]
    files = tuple(path for path in named if path is not None)
    form = parse_csv_format(document.get("csv", {}))
    return Schema(columns=columns, unit=unit, csv=form, label_files=files, target=target)


def _toml(text: str) -> dict[str, Any]:
    """Return the parsed document; of the parser's own message only the place is repeated."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = re.search(r"\(at [^()]*\)\s*$", str(error))
    raise SchemaMismatch(f"the schema is not valid TOML{' ' + place[0].strip() if place else ''}.")


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


def _target(target: object, columns: tuple[Column, ...]) -> str:
    for column in columns:
        if isinstance(target, str) and column.is_read and normal_form(column.name) == normal_form(target):
            return column.name
    raise SchemaMismatch("target must be the name of a declared column that is read.")


_HEAD = """\
# A draft: only the names of the columns were read, no row was.
# Complete it from what you know about the table, not from a look at its rows: what you write here is not protected.
# If the names below are values, the file has no header line: add one first.
#
# For each column: keep it and replace the "?" by one of these kinds, or delete its lines.
#   number, integer              with bounds = [0, 120] if you know them; decimals = 2 for a number
#   category, ordinal            with categories = ["no", "yes"]: every value that may occur, an ordinal's in order;
#                                or categories_file = "codes.txt": a label a line, in a file beside this one
#   boolean                      with true = ["yes"] and false = ["no"] if it is not written as true and false
#   date, datetime               with format = "%d/%m/%Y" if it is not written as 2024-12-31 (12:30:00)
#   constant, id, drop           not read: written as value = "...", made up anew (prefix = "P", start = 1), left out
# Other keys:
#   missing = ["NA"]             texts that mean missing, besides the empty cell
#   required = true              the output never has a missing cell
#   mostly_missing = true        most cells are missing, as you know: no warning says so
#   unreadable = "missing"       count a cell that is not as declared as missing, instead of refusing the table
version = 3

# If several records may belong to one person, name the column that says whose they are, and delete it below:
# unit = "..."
# If models of the synthetic rows will predict one of the columns, name it:
# target = "..."
"""
_OF_TYPES = (
    "A draft from the types of a data frame. If a reader guessed these from the cells, they tell of records: "
    "write what you know of the table instead."
)
_LABELS = ": say which labels there may be, or drop it"
_CSV = """
[csv]
encoding = "{encoding}"
separator = "{separator}"
quote = "{quote}"
decimal = "{decimal}"
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What to write for one column of a draft: a kind, labels, and comments; all of it released or public."""

    kind: str = UNDECIDED
    categories: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    lenient: bool = False

    def lines(self) -> str:
        """Return the lines of TOML after the column's name."""
        lines = [f'kind = "{self.kind}"']
        if self.categories:
            lines.append("categories = [" + ", ".join(f'"{escaped(one)}"' for one in self.categories) + "]")
        if self.lenient:
            lines.append('unreadable = "missing"')
        return "\n".join([*lines, *(f"# {escaped(comment)}" for comment in self.comments)]) + "\n"


def draft_schema(
    header: Sequence[str],
    *,
    csv: CsvFormat | None = None,
    found: Mapping[str, Draft] | None = None,
    note: str = "",
) -> str:
    """Return the text of a draft; `parse_schema` refuses it until every "?" is replaced.

    Parameters
    ----------
    header
        The names of the table's columns. One without a name cannot be declared and is left out.
    csv
        How the file is written, if it is not in UTF-8 with commas.
    found
        What is known of columns, by name; the others are left to be decided.
    note
        A line for the head, such as what was spent to find it out.

    Raises
    ------
    SchemaMismatch
        If a name occurs twice, or no column has a name.

    """
    known = found or {}
    parts = [_HEAD if not note else f"# {escaped(note)}\n" + _HEAD.split("\n", 1)[1]]
    if csv is not None and csv != CsvFormat():
        form = {key: escaped(value) for key, value in asdict(csv).items()}
        parts.append(_CSV.format(**form))
    seen: set[str] = set()
    for place, name in enumerate(header, start=1):
        if not name:
            parts.append(f"\n# Column {place} has no name, so it cannot be declared.\n")
            continue
        if normal_form(name) in seen:
            raise SchemaMismatch(f"the table has two columns named {shown(name)}: rename one.")
        seen.add(normal_form(name))
        parts.append(f'\n[[columns]]\nname = "{escaped(name)}"\n{known.get(name, Draft()).lines()}')
    if not seen:
        raise SchemaMismatch("no column of the table has a name: add a header line.")
    return "".join(parts)
