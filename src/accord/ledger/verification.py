"""Check a ledger from its first entry to its last."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import final

from accord.core.errors import InvalidParameter, LedgerError
from accord.ledger.account import Account
from accord.ledger.entry import Entry
from accord.ledger.places import open_store
from accord.ledger.store import Store

__all__ = ["Verification", "verify", "verify_ledger"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a check of a ledger found.

    Parameters
    ----------
    holds
        Whether everything is as accord wrote it.
    entries
        Number of entries that are in order, from the first on.
    head
        ``sequence:digest`` of the last of them.
    problem
        What is wrong, naming the entry; None if nothing is.

    """

    holds: bool
    entries: int
    head: str
    problem: str | None


def verify_ledger(where: str | Path, *, head: str | None = None) -> Verification:
    """Check a ledger that may be broken: every entry, the chain and the container.

    `Ledger` refuses to open such a one; this says where it is broken.

    Parameters
    ----------
    where
        As in `Ledger`.
    head
        A `Statement.head` that was noted elsewhere: the ledger must contain it. Without one, a ledger whose last
        entries were removed by somebody who also rewrote the rest of the file passes.

    """
    store = open_store(where, timeout=30)
    try:
        return verify(store, head=head)
    finally:
        store.close()


def verify(store: Store, *, head: str | None = None) -> Verification:
    """Follow all entries of ``store``; ``head`` must be among them if it is given."""
    anchor = None if head is None else _anchor(head)
    account = Account()
    try:
        with store.transaction(write=False):
            flaw = store.flaw()
            rows, noted = store.rows(start=1), store.head()
        seen = anchor is None
        for row in rows:
            account.follow(Entry.from_row(row))
            seen = seen or (account.sequence, account.digest) == anchor
        problem = flaw or _end(account, noted=noted, seen=seen)
    except LedgerError as error:
        problem = str(error)
    head_now = f"{account.sequence}:{account.digest}"
    return Verification(holds=problem is None, entries=account.sequence, head=head_now, problem=problem)


def _end(account: Account, *, noted: tuple[int, str], seen: bool) -> str | None:
    if noted != (account.sequence, account.digest):
        return f"entries after {account.sequence} are missing: the ledger notes {noted[0]} as the last."
    if not account.sequence:
        return "there is not a single entry."
    if not seen:
        return "the given head is not in this ledger: entries were changed or removed since it was noted."
    return None


def _anchor(head: str) -> tuple[int, str]:
    if not isinstance(head, str) or not re.fullmatch(r"[1-9][0-9]{0,17}:[0-9a-f]{64}", head):
        raise InvalidParameter("head must be written like the ledger shows it: number, colon, 64 hexadecimal digits.")
    sequence, _, digest = head.partition(":")
    return int(sequence), digest
