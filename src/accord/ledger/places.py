"""Which store a path or URL stands for."""

from pathlib import Path

from accord.core.errors import InvalidParameter
from accord.ledger.entry import Entry
from accord.ledger.postgres import PostgresStore, create_tables
from accord.ledger.sqlite import SqliteStore, create_file
from accord.ledger.store import Store

__all__ = ["create_store", "open_store"]

_SCHEMES = ("postgresql://", "postgres://")


def open_store(where: str | Path, *, timeout: float) -> Store:
    """Return the store at ``where``; nothing is opened yet."""
    if _is_url(where):
        return PostgresStore(str(where), timeout=timeout)
    return SqliteStore(_path(where), timeout=timeout)


def create_store(where: str | Path, *, first: Entry) -> None:
    """Make a store that holds its first entry."""
    if _is_url(where):
        create_tables(str(where), first=first)
    else:
        create_file(_path(where), first=first)


def _is_url(where: str | Path) -> bool:
    return isinstance(where, str) and where.startswith(_SCHEMES)


def _path(where: str | Path) -> Path:
    if not isinstance(where, (str, Path)) or not str(where) or "\0" in str(where):
        raise InvalidParameter(
            "a ledger is opened by the path of its file, or by a URL that begins with postgresql://."
        )
    return Path(where)
