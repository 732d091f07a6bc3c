"""What a guarantee calls a unit of privacy."""

__all__ = ["RECORD", "unit_word"]

RECORD = "record"
"""The word of a guarantee in which every record is a unit of its own."""

_RESERVED = {RECORD, "voter"}


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
    return f'unit "{name}"' if name.strip().casefold() in _RESERVED else name
