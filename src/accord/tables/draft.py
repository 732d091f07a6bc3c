"""A schema to be completed by a person, drafted from the names of the columns alone."""

from collections.abc import Sequence

from accord.errors import SchemaMismatch
from accord.tables.names import escaped, normal_form, shown
from accord.tables.schema import UNDECIDED

__all__ = ["draft_schema"]

_HEAD = """\
# A draft: only the names of the columns were read, no row was.
# Complete it from what you know about the table, not from a look at its rows: what you write here is not protected.
# If the names below are values, the file has no header line: add one first.
#
# For each column: keep it and replace the "?" by "number" or "category", or delete its lines. Other keys:
#   decimals = 0                 number: digits after the point in the output (0 to 12)
#   categories = ["no", "yes"]   category: every value that may occur (needed)
#   missing = ["NA"]             texts that mean missing, besides the empty cell
#   unreadable = "missing"       count a cell that is not as declared as missing, instead of refusing the table
version = 1

# If several records may belong to one person, name the column that says whose they are, and delete it below:
# unit = "..."
"""


def draft_schema(header: Sequence[str]) -> str:
    """Return the text of a draft; `parse_schema` refuses it until every "?" is replaced.

    Parameters
    ----------
    header
        The names of the table's columns. One without a name cannot be declared and is left out.

    Raises
    ------
    SchemaMismatch
        If a name occurs twice, or no column has a name.

    """
    parts = [_HEAD]
    seen: set[str] = set()
    for place, name in enumerate(header, start=1):
        if not name:
            parts.append(f"\n# Column {place} has no name, so it cannot be declared.\n")
            continue
        if normal_form(name) in seen:
            raise SchemaMismatch(f"the table has two columns named {shown(name)}: rename one.")
        seen.add(normal_form(name))
        parts.append(f'\n[[columns]]\nname = "{escaped(name)}"\nkind = "{UNDECIDED}"\n')
    if not seen:
        raise SchemaMismatch("no column of the table has a name: add a header line.")
    return "".join(parts)
