"""What a guarantee calls a unit of privacy."""

import unicodedata
from typing import Final

from accord.errors import InvalidParameter

__all__ = ["RECORD", "check_word", "unit_word"]

RECORD = "record"
"""The word of a guarantee in which every record is a unit of its own."""

_RESERVED: Final = {RECORD, "voter"}
_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that are drawn as nothing though Unicode calls them printable; selectors of variants are others."""
_SELECTORS: Final = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))


def check_word(word: object) -> None:
    r"""Refuse what no reader of a promise can see as a word.

    Two units whose words look the same would be taken for one by whoever reads a ledger or a report.

    Raises
    ------
    InvalidParameter
        If this is no text, or blank, or has control characters, or characters that are drawn as nothing.

    Examples
    --------
    >>> check_word("person")
    >>> check_word("per\u200bson")
    Traceback (most recent call last):
    accord.errors.InvalidParameter: unit must be a word for the unit of privacy, ...

    """
    if isinstance(word, str) and word.strip() and all(_seen(letter) for letter in word):
        return
    raise InvalidParameter(
        "unit must be a word for the unit of privacy, such as 'record' or 'person': a text that is not blank, without "
        "control characters or characters that cannot be seen."
    )


def _seen(letter: str) -> bool:
    selects = any(first <= ord(letter) <= last for first, last in _SELECTORS)
    return letter.isprintable() and letter not in _UNSEEN and not selects


def unit_word(name: str | None, *, named: bool) -> str:
    """Return the word for a unit of privacy: the only place where a name, such as that of a column, becomes one.

    "record" is kept for guarantees in which every record is a unit, and "voter" for those of votes: a promise for what
    a column of that name holds is another one, and no ledger, session or total may take it for that.

    Parameters
    ----------
    name
        What the caller, or the schema's column, calls a unit; None for no name.
    named
        Whether each record was given its unit.

    Raises
    ------
    InvalidParameter
        If the name is none that a reader can see: see `check_word`.

    Examples
    --------
    >>> unit_word(None, named=False), unit_word(None, named=True), unit_word("person", named=True)
    ('record', 'unit', 'person')
    >>> unit_word("record", named=True)
    'unit "record"'

    """
    if not named:
        return RECORD
    if name is None:
        return "unit"
    check_word(name)
    plain = unicodedata.normalize("NFKC", name).strip().casefold()
    return f'unit "{name}"' if plain in _RESERVED else name
