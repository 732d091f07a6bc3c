"""What SQLite reports, in a sentence with a next step."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from accord.core.errors import LedgerError

__all__ = ["translated"]

_SENTENCES: Final = {
    "SQLITE_BUSY": "is locked by another process for longer than the time limit: try again when that one is done.",
    "SQLITE_LOCKED": "is locked by another process for longer than the time limit: try again when that one is done.",
    "SQLITE_READONLY": "is read-only here, and a charge must be written: allow writing to the file and its folder.",
    "SQLITE_FULL": "cannot grow: the disk is full. Make room and try again.",
    "SQLITE_IOERR": "cannot be written or read: the disk is full, over a limit, or failing.",
    "SQLITE_CORRUPT": "is damaged: restore a copy, and count what was released since as spent.",
    "SQLITE_NOTADB": "is not a ledger of accord, or is damaged.",
    "SQLITE_CANTOPEN": "cannot be opened: look at the rights of the file and its folder.",
    "SQLITE_PERM": "cannot be opened: look at the rights of the file and its folder.",
    "SQLITE_AUTH": "cannot be opened: look at the rights of the file and its folder.",
    "SQLITE_CONSTRAINT": "refuses the entry: it would not continue the chain. Run `accord ledger verify` on it.",
}


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Turn every error of SQLite or of the file system into a `LedgerError` about the ledger ``name``."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", "") or ""
        primary = "_".join(code.split("_")[:2])
        sentence = _SENTENCES.get(primary, f"cannot be used (SQLite reports {code or type(error).__name__}).")
        raise LedgerError(f"the ledger {name} {sentence}") from error
    except OSError as error:
        raise LedgerError(f"the ledger {name} cannot be used ({error.strerror or type(error).__name__}).") from error
