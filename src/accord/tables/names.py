"""Column names: when two are the same, and how they are shown in a message."""

import unicodedata
from collections.abc import Iterable

__all__ = ["escaped", "listed", "normal_form", "shown"]

_LONGEST = 60
_SHORT = {"\\": "\\\\", '"': '\\"'}


def normal_form(name: str) -> str:
    """Return the form under which names are compared: two ways to write one accented letter are one name."""
    return unicodedata.normalize("NFC", name)


def escaped(text: str) -> str:
    r"""Return ``text`` as the inside of a TOML basic string; nothing in it can move a cursor or hide a letter.

    Examples
    --------
    >>> escaped('a "b"')
    'a \\"b\\"'
    >>> escaped("bell: \a")
    'bell: \\u0007'

    """
    return "".join(_SHORT.get(letter) or (letter if letter.isprintable() else _code(letter)) for letter in text)


def shown(name: str) -> str:
    """Return ``name`` quoted for one line of a message, cut if it is long."""
    cut = name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..."
    return f'"{escaped(cut)}"'


def listed(names: Iterable[str]) -> str:
    """Return several names, quoted, separated by commas."""
    return ", ".join(shown(name) for name in names)


def _code(letter: str) -> str:
    point = ord(letter)
    return f"\\u{point:04X}" if point <= 0xFFFF else f"\\U{point:08X}"
