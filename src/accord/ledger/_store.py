"""What a ledger needs from the place where its entries are kept."""

import threading
from contextlib import AbstractContextManager
from typing import Protocol

from accord.ledger.entry import Cell, Entry

__all__ = ["Store"]


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
