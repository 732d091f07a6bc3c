"""Charge, compute, confirm: the order that every release with a ledger follows."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from accord.core.errors import AccordError
from accord.core.guarantee import ApproxDP, PureDP
from accord.core.verdict import Verdict, tell

__all__ = ["SPENT", "UNCONFIRMED", "Spends", "spending"]

SPENT = "The release had begun: its budget is spent."
"""A note on every error that leaves `spending`, with a ledger or without."""
UNCONFIRMED = "is spent but could not be confirmed"
"""Part of the warning that the charge of a release that was made is left unconfirmed."""

_LONGEST = 100


class Spends(Protocol):
    """What the core asks of a ledger; `accord.ledger.Ledger` is one."""

    def charge(self, guarantee: PureDP | ApproxDP, /, *, what: str) -> int:
        """Write a charge down durably and return its number, or raise and write nothing."""

    def confirm(self, charge: int, /) -> None:
        """Note that the release of a charge was made."""

    def abandon(self, charge: int, /, *, why: str) -> None:
        """Note in one line that nothing came of a charge; it stays spent."""


@contextmanager
def spending(ledger: Spends | None, guarantee: PureDP | ApproxDP, *, what: str) -> Iterator[None]:
    """Charge ``guarantee`` before the block runs; confirm after it, or note that it failed. Without a ledger, nothing.

    Formal guarantees
    -----------------
    - The block does not begin unless the charge is durable. Whatever happens in it, the charge stays.
    - An error of the block comes out as it is, also if it cannot be noted; of it only the type is noted, because its
      text may hold data. It carries the note `SPENT`, also without a ledger.
    - Not promised: a confirmation. If it cannot be written, or the block settled its charge itself, the value stands,
      with a warning; its charge is spent all the same.

    Examples
    --------
    >>> with spending(None, PureDP(1), what="nothing to count"):
    ...     pass

    """
    if ledger is None:
        try:
            yield
        except BaseException as error:
            error.add_note(SPENT)
            raise
        return
    charge = ledger.charge(guarantee, what=what)
    try:
        yield
    except BaseException as error:
        error.add_note(SPENT)
        with suppress(AccordError):
            ledger.abandon(charge, why=f"failed: {_printable(type(error).__name__)}")
        raise
    try:
        ledger.confirm(charge)
    except AccordError as error:
        tell(Verdict("charge-unconfirmed", f"charge {charge} {UNCONFIRMED}: {error}"), stacklevel=3)


def _printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name[:_LONGEST])
