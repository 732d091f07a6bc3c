"""Which store a path or URL stands for."""

from pathlib import Path

from accord.errors import InvalidParameter
from accord.ledger._sqlite import SqliteStore, create_file
from accord.ledger._store import Store
from accord.ledger.entry import Entry

__all__ = ["create_store", "open_store"]

_SCHEMES = ("postgresql://", "postgres://")


def open_store(where: str | Path, *, timeout: float) -> Store:
    """Return the store at ``where``; nothing is opened yet."""
    return SqliteStore(_path(where), timeout=timeout)


def create_store(where: str | Path, *, first: Entry) -> None:
    """Make a store that holds its first entry."""
    create_file(_path(where), first=first)


def _path(where: str | Path) -> Path:
    if not isinstance(where, (str, Path)) or not str(where) or "\0" in str(where):
        raise InvalidParameter(
            "a ledger is opened by the path of its file, or by a URL that begins with postgresql://."
        )
    return Path(where)
