"""No connection outlives a fork: SQLite and PostgreSQL connections must not be shared with, or closed by, a child."""

import os
import threading
import weakref
from typing import Protocol

__all__ = ["Forkable", "close_at_fork"]


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
