"""A ledger in a PostgreSQL database."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import parse_qs, urlsplit

from accord.core.errors import InvalidParameter, LedgerError
from accord.ledger.entry import COLUMNS, GENESIS, Cell, Entry
from accord.ledger.store import close_at_fork

if TYPE_CHECKING:
    import psycopg

__all__ = [
    "SCRIPT",
    "TRIGGERS",
    "PostgresStore",
    "create_tables",
]


_REFUSE: Final = "BEGIN RAISE EXCEPTION 'a ledger only grows'; END"
_IN_ORDER: Final = """BEGIN
    IF NEW.sequence IS DISTINCT FROM (SELECT sequence + 1 FROM accord_head)
            OR NEW.previous IS DISTINCT FROM (SELECT digest FROM accord_head) THEN
        RAISE EXCEPTION 'a ledger only grows';
    END IF;
    RETURN NEW;
END"""
_MOVES_HEAD: Final = """BEGIN
    UPDATE accord_head SET sequence = NEW.sequence, digest = NEW.digest;
    RETURN NULL;
END"""
_HEAD_IS_LAST: Final = """BEGIN
    IF NEW.sequence IS DISTINCT FROM (SELECT max(sequence) FROM accord_entries)
            OR NEW.digest IS DISTINCT FROM (SELECT digest FROM accord_entries WHERE sequence = NEW.sequence) THEN
        RAISE EXCEPTION 'a ledger only grows';
    END IF;
    RETURN NEW;
END"""

_WHEN: Final = {
    "accord_in_order": ("BEFORE INSERT ON accord_entries FOR EACH ROW", _IN_ORDER),
    "accord_moves_head": ("AFTER INSERT ON accord_entries FOR EACH ROW", _MOVES_HEAD),
    "accord_no_change": ("BEFORE UPDATE OR DELETE OR TRUNCATE ON accord_entries FOR EACH STATEMENT", _REFUSE),
    "accord_head_stays": ("BEFORE INSERT OR DELETE OR TRUNCATE ON accord_head FOR EACH STATEMENT", _REFUSE),
    "accord_head_is_last": ("BEFORE UPDATE ON accord_head FOR EACH ROW", _HEAD_IS_LAST),
}

TRIGGERS: Final = frozenset((name, body) for name, (_, body) in _WHEN.items())
"""Name and body of every trigger, as PostgreSQL's catalogue must list them, switched on."""

SCRIPT: Final = (
    """CREATE TABLE accord_entries (sequence bigint PRIMARY KEY, kind text NOT NULL, time text NOT NULL,
        epsilon text, delta text, neighbouring text, unit text, charge bigint, what text, who text, why text,
        note text, previous text NOT NULL, digest text NOT NULL)""",
    """CREATE TABLE accord_head (only_row integer PRIMARY KEY CHECK (only_row = 1), sequence bigint NOT NULL,
        digest text NOT NULL)""",
    f"INSERT INTO accord_head VALUES (1, 0, '{GENESIS}')",  # noqa: S608 - a constant
    *(
        sql
        for name, (when, body) in _WHEN.items()
        for sql in (
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $body${body}$body$",
            f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {name}()",
        )
    ),
)
"""Statements that make an empty ledger."""


_NAMES: Final = ", ".join(COLUMNS)
_INSERT: Final = f"INSERT INTO accord_entries ({_NAMES}) VALUES ({', '.join(['%s'] * len(COLUMNS))})"  # noqa: S608
_ROWS: Final = f"SELECT {_NAMES} FROM accord_entries WHERE sequence >= %s ORDER BY sequence"  # noqa: S608 - constants
_TRIGGERS: Final = """SELECT t.tgname, p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
    WHERE t.tgrelid IN ('accord_entries'::regclass, 'accord_head'::regclass) AND NOT t.tgisinternal
    AND t.tgenabled IN ('O', 'A')"""
_SENTENCES: Final = {
    "55P03": "is locked by another process for longer than the time limit: try again when that one is done.",
    "42P01": "is not there: create one first, with `accord ledger create URL --epsilon E --delta D`.",
    "42P07": "is there already: a ledger is created once.",
    "42723": "is there already: a ledger is created once.",
    "25006": "is read-only here, and a charge must be written.",
    "42501": "may not be used by this role: it needs SELECT and INSERT on accord_entries, SELECT and UPDATE on "
    "accord_head.",
    "53100": "cannot grow: the server's disk is full.",
    "P0001": "refuses the entry: it would not continue the chain. Run `accord ledger verify` on it.",
}


@final
class PostgresStore:
    """One connection a process, made on demand and closed before a fork; threads take turns.

    Formal guarantees
    -----------------
    - A write transaction excludes every other writer by a lock on the one row of ``accord_head``, and is on the
      server's disk when it ends; a server that runs with ``fsync = off`` is refused.
    - No password is kept: it comes from ``PGPASSWORD`` or the password file of the user.

    """

    __slots__ = ("__weakref__", "_connection", "lock", "timeout", "where")

    def __init__(self, url: str, *, timeout: float) -> None:
        _refuse_password(url)
        self.where = url
        self.timeout = timeout
        self.lock = threading.RLock()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        close_at_fork(self)

    def __del__(self) -> None:
        if hasattr(self, "_connection"):
            self.close()

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """See `Store`."""
        with self.lock, _translated():
            connection = self._connected()
            try:
                if write:
                    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
                    connection.execute("SELECT sequence FROM accord_head FOR UPDATE")
                else:
                    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield
                connection.execute("COMMIT")
            except BaseException:
                try:
                    connection.execute("ROLLBACK")
                except Exception:  # noqa: BLE001 - the connection is lost, and the server rolls back
                    self.close()
                raise

    def rows(self, *, start: int) -> list[tuple[Cell, ...]]:
        """See `Store`."""
        return self._connected().execute(_ROWS.encode(), (start,)).fetchall()

    def head(self) -> tuple[int, str]:
        """See `Store`."""
        row = self._connected().execute("SELECT sequence, digest FROM accord_head").fetchone()
        return (-1, "") if row is None else (row[0], row[1])

    def append(self, entry: Entry) -> None:
        """See `Store`."""
        self._connected().execute(_INSERT.encode(), entry.row())

    def flaw(self) -> str | None:
        """See `Store`."""
        found = self._connected().execute(_TRIGGERS).fetchall()
        return None if frozenset(found) == TRIGGERS else "the triggers are not those of accord."

    def close(self) -> None:
        """See `Store`."""
        with self.lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(Exception):
                    connection.close()

    def _connected(self) -> "psycopg.Connection[tuple[Any, ...]]":
        if self._connection is None or self._connection.closed:
            self._connection = _connect(self.where, timeout=self.timeout)
            flaw = None if self._connection.execute(_TABLES).fetchone() is None else self.flaw()
            if flaw is not None:
                self.close()
                raise LedgerError(f"the ledger in PostgreSQL was tampered with: {flaw}")
        return self._connection


_TABLES: Final = "SELECT 1 WHERE to_regclass('accord_entries') IS NOT NULL AND to_regclass('accord_head') IS NOT NULL"


def create_tables(url: str, *, first: Entry) -> None:
    """Make a ledger that holds its first entry: all of it, or nothing.

    Raises
    ------
    LedgerError
        If there is one already, or the server or role does not allow it.

    """
    _refuse_password(url)
    with _translated():
        connection = _connect(url, timeout=30)
        try:
            with connection.transaction():
                for statement in SCRIPT:
                    connection.execute(statement.encode())
                connection.execute(_INSERT.encode(), first.row())
        finally:
            connection.close()


def _refuse_password(url: str) -> None:
    parts = urlsplit(url)
    if parts.password is not None or "password" in parse_qs(parts.query, keep_blank_values=True):
        raise InvalidParameter(
            "a ledger's URL must hold no password, since it is shown and kept: put it into PGPASSWORD or ~/.pgpass."
        )


def _connect(url: str, *, timeout: float) -> "psycopg.Connection[tuple[Any, ...]]":
    connection: psycopg.Connection[tuple[Any, ...]]
    connection = _driver().connect(url, autocommit=True, connect_timeout=10)
    try:
        connection.execute("SET synchronous_commit = on")
        connection.execute(f"SET lock_timeout = {max(1, round(1000 * timeout))}".encode())
        _refuse_careless(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_careless(connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
    if connection.execute("SHOW fsync").fetchone() != ("on",):
        raise LedgerError("the PostgreSQL server runs with fsync off: a charge would not outlive a power cut.")


def _driver() -> Any:  # noqa: ANN401 - a module
    try:
        import psycopg  # noqa: PLC0415 - optional
    except ImportError:
        raise LedgerError("a ledger in PostgreSQL needs psycopg: pip install 'accord[postgres]'.") from None
    return psycopg


@contextmanager
def _translated() -> Iterator[None]:
    driver = _driver()
    try:
        yield
    except driver.Error as error:
        state = getattr(error, "sqlstate", None)
        if state is None:
            sentence = "cannot be reached: is the server running, and the URL right?"
        else:
            sentence = _SENTENCES.get(state, f"cannot be used (PostgreSQL reports {state}).")
        raise LedgerError(f"the ledger in PostgreSQL {sentence}") from error
