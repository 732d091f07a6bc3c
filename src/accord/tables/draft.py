"""A schema to be completed by a person, drafted from the names of the columns alone."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import final

from accord.core.errors import SchemaMismatch
from accord.tables.column import UNDECIDED
from accord.tables.csv_format import CsvFormat
from accord.tables.names import escaped, normal_form, shown

__all__ = ["Draft", "draft_schema"]

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
"""
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
