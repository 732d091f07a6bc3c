"""How a CSV file is written: what its header of a schema says about it."""

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from accord.core.errors import SchemaMismatch
from accord.tables.names import listed, shown

__all__ = ["SEPARATORS", "CsvFormat", "parse_csv_format"]

SEPARATORS = (",", ";", "\t", "|")
_QUOTES = ('"', "'", "")
_MARKS = (".", ",")
_KEYS = ("encoding", "separator", "quote", "decimal")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFormat:
    """Encoding, separator, quotation mark and decimal mark of a CSV file.

    Parameters
    ----------
    encoding
        A codec of Python, such as "utf-8", "latin-1" or "utf-16"; of the input. The output is UTF-8.
    separator
        A comma, semicolon, tab or bar.
    quote
        The double or the single quotation mark, or "" if there is none.
    decimal
        The decimal mark of numbers, a point or a comma.

    Raises
    ------
    SchemaMismatch
        If one is not accepted.

    """

    encoding: str = "utf-8"
    separator: str = ","
    quote: str = '"'
    decimal: str = "."

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", _codec(self.encoding))
        for key, accepted in (("separator", SEPARATORS), ("quote", _QUOTES), ("decimal", _MARKS)):
            if getattr(self, key) not in accepted:
                raise SchemaMismatch(f"{key} must be one of {listed(accepted)}.")
        if self.separator == self.decimal:
            raise SchemaMismatch("separator and decimal must differ.")


def parse_csv_format(entry: object) -> CsvFormat:
    """Return what the [csv] table of a schema says.

    Raises
    ------
    SchemaMismatch
        If it is no table, or has a key or value that is not accepted.

    """
    if not isinstance(entry, Mapping):
        raise SchemaMismatch("csv of the schema must be a table: [csv].")
    unknown = [key for key in entry if key not in _KEYS]
    if unknown:
        raise SchemaMismatch(f"[csv] has an unknown key {shown(str(unknown[0]))}: accepted are {listed(_KEYS)}.")
    given: dict[str, Any] = dict(entry)
    if not all(isinstance(value, str) for value in given.values()):
        raise SchemaMismatch("the values in [csv] must be texts.")
    return CsvFormat(**given)


def _codec(name: str) -> str:
    """Return the codec's own name; refuse what is no encoding of text."""
    found = None
    try:
        found = codecs.lookup(name).name
        known = b"a\n".decode(found) is not None if not found.startswith(("utf-16", "utf-32")) else True
    except (LookupError, ValueError, TypeError):
        known = False
    if found is None or not known:
        raise SchemaMismatch(
            f"encoding {shown(name)} is not known: write it as in Python, such as utf-8, latin-1, cp1252 or utf-16."
        )
    return found
