"""A ledger in one file, through Python's own sqlite3."""

import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, final

from accord.core.errors import LedgerError
from accord.ledger._forks import close_at_fork
from accord.ledger._sqlite_errors import translated
from accord.ledger._sqlite_file import (
    COMPANIONS,
    beside,
    identity,
    named,
    refuse_impossible,
    refuse_leftovers,
    refuse_mounted,
    refuse_second_name,
    still,
    write_through,
)
from accord.ledger._sqlite_schema import APPLICATION, SCRIPT, STRUCTURE
from accord.ledger.entry import COLUMNS, FORMAT, Cell, Entry

__all__ = ["SqliteStore", "create_file"]

_NAMES: Final = ", ".join(COLUMNS)
_INSERT: Final = f"INSERT INTO entries ({_NAMES}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608 - constants
_ROWS: Final = f"SELECT {_NAMES} FROM entries WHERE sequence >= ? ORDER BY sequence"  # noqa: S608 - constants
# On every commit the log is written through to the disk, and then folded into the file: whoever copies or moves the
# file alone after a crash takes the charges with it. A fold that fails, or that another connection holds up, is left
# to the next commit.
_PRAGMAS: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA wal_autocheckpoint = 1",
)


@final
class SqliteStore:
    """One connection a process, made on demand and closed before a fork; threads take turns.

    Formal guarantees
    -----------------
    - A write transaction excludes every other writer, in this process or another (``BEGIN IMMEDIATE``), and is on the
      disk when it ends (WAL with ``synchronous = FULL``); readers do not wait for writers nor writers for readers.
    - A file that was deleted, replaced or restructured under a running process, or got a second name, is refused, not
      written.
    - Not promised: anything on a network file system, where the locks of SQLite do not work.

    """

    __slots__ = ("__weakref__", "_connection", "_identity", "lock", "path", "timeout")

    def __init__(self, path: Path, *, timeout: float) -> None:
        self.path = path.absolute()
        self.timeout = timeout
        self.lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        close_at_fork(self)

    def __del__(self) -> None:
        self.close()

    @property
    def where(self) -> str:
        """The absolute path."""
        return str(self.path)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """See `Store`."""
        with self.lock, translated(named(self.path)):
            connection = self._connected()
            try:
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                self._refuse_replaced()
                yield
                connection.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    self.close()
                raise

    def rows(self, *, start: int) -> list[tuple[Cell, ...]]:
        """See `Store`."""
        return self._connected().execute(_ROWS, (start,)).fetchall()

    def head(self) -> tuple[int, str]:
        """See `Store`."""
        row = self._connected().execute("SELECT sequence, digest FROM head").fetchone()
        return (-1, "") if row is None else row

    def append(self, entry: Entry) -> None:
        """See `Store`."""
        self._connected().execute(_INSERT, entry.row())

    def flaw(self) -> str | None:
        """See `Store`."""
        found = self._connected().execute("PRAGMA integrity_check").fetchone()
        return None if found == ("ok",) else "the file is damaged."

    def close(self) -> None:
        """See `Store`."""
        with self.lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            refuse_impossible(self.path)
            refuse_second_name(self.path)
            refuse_mounted(self.path)
            self._connection = _connect(self.path, timeout=self.timeout)
            try:
                self._identity = self._identity or identity(self.path)
                _refuse_foreign(self._connection, self.path)
            except BaseException:
                self.close()
                raise
        return self._connection

    def _refuse_replaced(self) -> None:
        if identity(self.path) != self._identity:
            self.close()
            raise LedgerError(f"the ledger {named(self.path)} was deleted or replaced while it was in use.")
        refuse_second_name(self.path)


def create_file(path: Path, *, first: Entry) -> None:
    """Make a ledger that holds its first entry; the file is there whole, or not at all.

    Raises
    ------
    LedgerError
        If something is there already, or the folder cannot be written.

    """
    path = path.absolute()
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    name = named(path)
    try:
        with translated(name):
            refuse_leftovers(path)
            _fill(draft, first=first)
        write_through(draft)
        os.link(draft, path)  # unlike a rename, it never replaces a file
        draft.unlink()  # a ledger with two names is refused
        write_through(path.parent)
    except FileExistsError:
        raise LedgerError(f"there is a file at {name} already: a ledger is created once.") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LedgerError(f"the ledger {name} cannot be created ({reason}).") from error
    finally:
        for leftover in (draft, *(beside(draft, kind) for kind in COMPANIONS)):
            with suppress(OSError):
                leftover.unlink(missing_ok=True)


def _fill(draft: Path, *, first: Entry) -> None:
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        for statement in SCRIPT:
            connection.execute(statement)
        connection.execute(_INSERT, first.row())
        connection.execute("COMMIT")
    finally:
        connection.close()


def _connect(path: Path, *, timeout: float) -> sqlite3.Connection:
    mode = "mode=ro&immutable=1" if still(path) else "mode=rw"
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    name = named(path)
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
        raise LedgerError(f"{name} is not a ledger of accord.")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != FORMAT:
        raise LedgerError(f"the ledger {name} has format {version}; this version of accord knows format {FORMAT}.")
    if frozenset(connection.execute("SELECT name, sql FROM sqlite_master").fetchall()) != STRUCTURE:
        raise LedgerError(f"the ledger {name} was tampered with: its tables or triggers are not those of accord.")
    if not still(path) and connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        raise LedgerError(f"the ledger {name} was switched out of write-ahead logging, which accord relies on.")
