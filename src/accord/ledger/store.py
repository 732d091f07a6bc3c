"""What a place that keeps a ledger must do, and how copies that parted are told."""

import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import Protocol

from accord.ledger.entry import Cell, Entry

__all__ = [
    "Forkable",
    "Store",
    "close_at_fork",
]


class Store(Protocol):
    """Entries in a place that many processes can reach.

    Every method but `close` and `transaction` is called inside a transaction. Every failure is a `LedgerError`.
    """

    @property
    def where(self) -> str:
        """A path or URL that opens the same ledger again."""
        ...

    @property
    def lock(self) -> threading.RLock:
        """Held while the connection of this process is used."""
        ...

    def transaction(self, *, write: bool) -> AbstractContextManager[None]:
        """All or nothing. With ``write`` no other process writes meanwhile, and on leaving the change is durable."""
        ...

    def rows(self, *, start: int) -> list[tuple[Cell, ...]]:
        """Return the rows from sequence number ``start`` on, in order."""
        ...

    def head(self) -> tuple[int, str]:
        """Return sequence number and digest that the store itself notes for the last entry."""
        ...

    def append(self, entry: Entry) -> None:
        """Add the next entry."""
        ...

    def flaw(self) -> str | None:
        """Return what is wrong with the container (damage, missing triggers), or None."""
        ...

    def close(self) -> None:
        """Close the connection, if there is one; the next use opens another."""
        ...


class Forkable(Protocol):
    """Something with a connection that is made again on demand."""

    lock: threading.RLock

    def close(self) -> None:
        """Close the connection, if there is one."""


_known: "weakref.WeakSet[Forkable]" = weakref.WeakSet()
_gate = threading.RLock()
_held: "list[Forkable]" = []


def close_at_fork(store: Forkable) -> None:
    """Close ``store`` before every fork of this process; parent and child each connect again when they need to.

    The fork waits for a transaction of another thread to end.
    """
    with _gate:
        _known.add(store)


def _before() -> None:
    _gate.acquire()
    for store in list(_known):
        store.lock.acquire()
        _held.append(store)
        store.close()


def _after() -> None:
    while _held:
        _held.pop().lock.release()
    _gate.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
