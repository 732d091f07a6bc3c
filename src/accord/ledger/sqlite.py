"""A ledger in a file of SQLite."""

import os
import re
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, final

from accord.core.errors import LedgerError
from accord.ledger.entry import COLUMNS, FORMAT, GENESIS, Cell, Entry
from accord.ledger.store import close_at_fork

__all__ = [
    "APPLICATION",
    "COMPANIONS",
    "SCRIPT",
    "STRUCTURE",
    "SqliteStore",
    "beside",
    "create_file",
    "identity",
    "named",
    "refuse_impossible",
    "refuse_leftovers",
    "refuse_mounted",
    "refuse_second_name",
    "still",
    "translated",
    "write_through",
]


APPLICATION: Final = 0x41434C47  # "ACLG", in the header of the file

_OBJECTS: Final = {
    "entries": """CREATE TABLE entries (sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, time TEXT NOT NULL,
        epsilon TEXT, delta TEXT, neighbouring TEXT, unit TEXT, charge INTEGER, what TEXT, who TEXT, why TEXT,
        note TEXT, previous TEXT NOT NULL, digest TEXT NOT NULL)""",
    "head": """CREATE TABLE head (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), sequence INTEGER NOT NULL,
        digest TEXT NOT NULL)""",
    "in_order": """CREATE TRIGGER in_order BEFORE INSERT ON entries
        WHEN NEW.sequence IS NOT (SELECT sequence + 1 FROM head) OR NEW.previous IS NOT (SELECT digest FROM head)
        BEGIN SELECT RAISE(ABORT, 'only grows'); END""",
    "moves_head": """CREATE TRIGGER moves_head AFTER INSERT ON entries
        BEGIN UPDATE head SET sequence = NEW.sequence, digest = NEW.digest; END""",
    "no_change": "CREATE TRIGGER no_change BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'only grows'); END",
    "no_removal": "CREATE TRIGGER no_removal BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'only grows'); END",
    "one_head": "CREATE TRIGGER one_head BEFORE INSERT ON head BEGIN SELECT RAISE(ABORT, 'only grows'); END",
    "head_stays": "CREATE TRIGGER head_stays BEFORE DELETE ON head BEGIN SELECT RAISE(ABORT, 'only grows'); END",
    "head_is_last": """CREATE TRIGGER head_is_last BEFORE UPDATE ON head
        WHEN NEW.sequence IS NOT (SELECT max(sequence) FROM entries)
            OR NEW.digest IS NOT (SELECT digest FROM entries WHERE sequence = NEW.sequence)
        BEGIN SELECT RAISE(ABORT, 'only grows'); END""",
}

STRUCTURE: Final = frozenset(_OBJECTS.items())
"""Name and SQL of every object, as SQLite's own catalogue must list them."""

_FIRST: Final = ("entries", "head")
SCRIPT: Final = (
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
    *(_OBJECTS[name] for name in _FIRST),
    f"INSERT INTO head VALUES (1, 0, '{GENESIS}')",  # noqa: S608 - a constant
    *(sql for name, sql in _OBJECTS.items() if name not in _FIRST),
)
"""Statements that make an empty ledger."""


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


COMPANIONS: Final = ("wal", "shm", "journal")
_MOUNTS = Path("/proc/self/mountinfo")


def refuse_impossible(path: Path) -> None:
    """Refuse what is plainly no ledger, before SQLite would make one of it."""
    name = named(path)
    if path.is_dir():
        raise LedgerError(f"{name} is a folder, not a ledger.")
    if not path.exists():
        raise LedgerError(
            f"there is no ledger at {name}: create one first, with `accord ledger create FILE --epsilon E --delta D`."
        )
    if path.stat().st_size == 0:
        raise LedgerError(f"{name} is empty, so it is no ledger: delete it and create one.")


def refuse_leftovers(path: Path) -> None:
    """Refuse to create a ledger where a part of another one is left."""
    for companion in (beside(path, kind) for kind in COMPANIONS):
        if companion.exists():  # SQLite would take another ledger's log for this one's
            raise LedgerError(f"a part of another ledger, {named(companion)}, is left there: move it away first.")


def refuse_second_name(path: Path) -> None:
    """Refuse a file with a second hard link."""
    name = named(path)
    if path.stat().st_nlink != 1:
        raise LedgerError(
            f"the ledger {name} has a second name (a hard link), by which it could be spent twice: keep one name and "
            f"delete the other. One like .{name}.0123456789abcdef beside it is left of a creation that was killed."
        )


def refuse_mounted(path: Path) -> None:
    """Refuse a file that is mounted by itself: it has another name elsewhere. A mounted folder brings the log along."""
    if os.fsencode(os.path.realpath(path)) in _mount_points():
        raise LedgerError(
            f"the ledger {named(path)} is mounted as a single file, so it has a second name, by which it could be "
            f"spent twice: mount its folder instead."
        )


def _mount_points() -> frozenset[bytes]:
    """Return where something is mounted, as Linux lists it; nothing on systems without such a list.

    ``os.path.ismount`` does not see a file that is mounted from the same file system.
    """
    try:
        lines = _MOUNTS.read_bytes().split(b"\n")
    except OSError:
        return frozenset()
    fields = [line.split(b" ") for line in lines]
    return frozenset(_unescaped(field[4]) for field in fields if len(field) > 4)


def _unescaped(field: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8) & 255]), field)


def write_through(path: Path) -> None:
    """Write a file or folder through to the disk."""
    if os.name == "nt":  # no folder can be opened there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one under the same name."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def still(path: Path) -> bool:
    """Return whether nobody can write here: the file, without a log, in a read-only folder, is read as it stands."""
    return not _writable(path) and not _writable(path.parent) and not beside(path, "wal").exists()


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def beside(path: Path, kind: str) -> Path:
    """Return the path of one of the files that SQLite keeps beside a file that is open."""
    return Path(f"{path.resolve()}-{kind}")


def named(path: Path) -> str:
    """Return the name of a file for a message."""
    return "".join(letter if letter.isprintable() else "?" for letter in path.name)


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
