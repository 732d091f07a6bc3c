"""The ledger of one dataset: what was spent on it, by whom, and what is left."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import final

from accord.core import check as _check
from accord.core.errors import BudgetExceeded, InvalidParameter, LedgerError
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP
from accord.ledger import words
from accord.ledger.account import Account, Statement, Total, totals
from accord.ledger.entry import Entry
from accord.ledger.places import create_store, open_store
from accord.ledger.verification import Verification, verify

__all__ = ["Ledger"]


@final
class Ledger:
    """Charge every release on a dataset before it is computed, within a cap that outlives the program.

    A ledger is an append-only list of entries in one SQLite file (or a PostgreSQL database) that many processes use
    at once. ``Ledger(where)`` opens one that exists; `Ledger.create` makes one. Every entry is sealed by a digest that
    covers the entry before it. Nothing is ever refunded.

    Formal guarantees
    -----------------
    - Privacy: all releases that were charged here before they were computed are together ``cap``-DP for a cap that was
      never changed, however each was chosen from earlier outputs; with amounts fixed in advance, ``spent``-DP (C2).
    - Cap: ``spent`` never exceeds the cap that held at the time, whatever the number of threads and processes, and
      whenever any of them is killed.
    - Durability: when `charge` returns, its entry is on the disk. When it raises, nothing may be released on it.
    - Exactness: amounts and totals are rational numbers; nothing is rounded.
    - Not promised: that releases made without a ledger are counted; anything against somebody who can rewrite the whole
      file, unless a `head` noted elsewhere is given to `verify`; a network file system.

    Parameters
    ----------
    where
        Path of the file, or ``postgresql://...`` without a password.
    who, why
        Written into every entry that does not name its own.
    timeout
        Seconds to wait for other processes' entries.

    Raises
    ------
    LedgerError
        If there is no ledger, or it cannot be read or trusted.

    Source
    ------
    theory C2; proof page ``docs/proofs/ledger.md``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> ledger = Ledger.create(Path(folder.name) / "patients.ledger", epsilon=3, delta="1e-5")
    >>> charge = ledger.charge(ApproxDP(1, "1e-6"), what="mean age", who="ana")
    >>> ledger.confirm(charge)
    >>> ledger.remaining
    ApproxDP(epsilon=Fraction(2, 1), delta=Fraction(9, 1000000), neighbouring=Neighbouring.REPLACE_ONE, unit='record')
    >>> ledger.verify().holds
    True
    >>> ledger.close(); folder.cleanup()

    """

    __slots__ = ("_account", "_store", "_timeout", "_who", "_why")

    def __init__(
        self, where: str | Path, *, who: str | None = None, why: str | None = None, timeout: float = 30
    ) -> None:
        if not _check.exact("timeout", timeout) >= 0:
            raise InvalidParameter("timeout must be at least 0 seconds.")
        self._who, self._why = words.line("who", who), words.line("why", why)
        self._timeout = timeout
        self._account = Account()
        self._store = open_store(where, timeout=float(timeout))
        try:
            self._read()
        except BaseException:
            self._store.close()
            raise

    @classmethod
    def create(
        cls,
        where: str | Path,
        *,
        epsilon: Number,
        delta: Number,
        neighbouring: Neighbouring = Neighbouring.REPLACE_ONE,
        unit: str = "record",
        who: str | None = None,
        why: str | None = None,
    ) -> "Ledger":
        """Make a ledger where there is none, and open it.

        Parameters
        ----------
        where
            Path of the file to be, or ``postgresql://...``.
        epsilon, delta
            The cap.
        neighbouring, unit
            What every charge must be stated for; never changed.
        who, why
            As in `Ledger`.

        Raises
        ------
        LedgerError
            If something is there already, or nothing can be written there.

        """
        cap = ApproxDP(*words.budget(epsilon, delta, name="cap"), neighbouring, words.required_line("unit", unit))
        first = Account().next(
            "create",
            epsilon=cap.epsilon,
            delta=cap.delta,
            neighbouring=cap.neighbouring,
            unit=cap.unit,
            who=words.line("who", who),
            why=words.line("why", why),
        )
        create_store(where, first=first)
        return cls(where, who=who, why=why)

    def charge(
        self,
        guarantee: PureDP | ApproxDP,
        *,
        what: str,
        who: str | None = None,
        why: str | None = None,
        note: str | None = None,
    ) -> int:
        """Spend a guarantee, durably, before its release is computed; return the number of the charge.

        Parameters
        ----------
        guarantee
            What the release promises, under the ledger's relation and unit.
        what, who, why, note
            One line each, kept as they are; write nothing into them that came out of the data.

        Raises
        ------
        BudgetExceeded
            If it would go over the cap. Nothing was written and the ledger stays usable.
        InvalidParameter
            If the guarantee is stated for another relation or unit.
        LedgerError
            If the charge could not be made durable. Nothing may be released.

        """
        said = {"what": words.required_line("what", what), **self._said(who, why), "note": words.line("note", note)}

        def entry(account: Account) -> Entry:
            pair = _admitted(account, guarantee)
            terms = {"neighbouring": account.neighbouring, "unit": account.unit}
            return account.next("charge", epsilon=pair[0], delta=pair[1], **terms, **said)

        return self._append(entry)

    def check(self, guarantee: PureDP | ApproxDP) -> None:
        """Raise what `charge` would raise for this guarantee now, and write nothing."""
        with self._store.lock:
            _admitted(self._read(), guarantee)

    def confirm(self, charge: int, *, note: str | None = None) -> None:
        """Note that the release of a charge was computed. It was spent before and is spent now.

        Raises
        ------
        InvalidParameter
            If there is no such charge, or it was confirmed or abandoned already.

        """
        self._settle("confirm", charge, note=note)

    def abandon(self, charge: int, *, why: str | None = None, note: str | None = None) -> None:
        """Note that nothing came of a charge. Never a refund: what was read of the data cannot be unread."""
        self._settle("abandon", charge, why=why, note=note)

    def set_cap(self, *, epsilon: Number, delta: Number, who: str, why: str) -> None:
        """Raise or lower the cap, by an entry that says who and why. What is spent stays spent."""
        cap = words.budget(epsilon, delta, name="cap")
        said = {"who": words.required_line("who", who), "why": words.required_line("why", why)}
        self._append(lambda account: account.next("cap", epsilon=cap[0], delta=cap[1], **said))

    @property
    def who(self) -> str | None:
        """Who is written into every entry that does not name its own; checked once, so it cannot be set."""
        return self._who

    @property
    def why(self) -> str | None:
        """Why, likewise."""
        return self._why

    @property
    def spent(self) -> ApproxDP:
        """What has been spent, by all processes."""
        return self.statement().spent

    @property
    def remaining(self) -> ApproxDP:
        """What is left, at least 0."""
        return self.statement().remaining

    @property
    def cap(self) -> ApproxDP:
        """What may be spent in all, with the relation and unit of every charge."""
        return self.statement().cap

    def statement(self) -> Statement:
        """Return cap, spent, remaining and head at one moment."""
        with self._store.lock:
            return self._read().statement()

    def totals(self) -> tuple[Total, ...]:
        """Return the total of all charges by every rule that accord knows; only the first is enforced."""
        with self._store.lock:
            return totals(self._read())

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, in order."""
        with self._store.transaction(write=False):
            rows = self._store.rows(start=1)
        return tuple(Entry.from_row(row) for row in rows)

    def verify(self, *, head: str | None = None) -> Verification:
        """Check every entry, the chain and the container, and say where it is broken.

        Parameters
        ----------
        head
            A `Statement.head` that was noted elsewhere: the ledger must contain it.

        """
        return verify(self._store, head=head)

    def close(self) -> None:
        """Close the connection of this process. The ledger can still be used: the next call opens another."""
        self._store.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self._store.where!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _opened, (self._store.where, self.who, self.why, self._timeout)

    def _read(self) -> Account:
        with self._store.transaction(write=False):
            return self._caught_up()

    def _append(self, entry: Callable[[Account], Entry]) -> int:
        with self._store.lock:
            with self._store.transaction(write=True):
                following = entry(self._caught_up())
                self._store.append(following)
            self._account.follow(following)
        return following.sequence

    def _caught_up(self) -> Account:
        """Follow what other processes wrote; refuse a ledger that is no continuation of what was read before."""
        account = self._account
        known = account.sequence
        rows = self._store.rows(start=max(known, 1))
        if known and (not rows or rows[0][-1] != account.digest or rows[0][0] != known):
            raise LedgerError("the ledger lost entries that were read before: it was tampered with, or rolled back.")
        for row in rows[1:] if known else rows:
            account.follow(Entry.from_row(row))
        if self._store.head() != (account.sequence, account.digest) or not account.sequence:
            raise LedgerError(
                "the ledger's last entries are missing: it was tampered with. Run `accord ledger verify`."
            )
        return account

    def _settle(self, kind: str, charge: int, *, why: str | None = None, note: str | None = None) -> None:
        number = _check.integer("charge", charge, least=1)
        said = {"who": self.who, "why": words.line("why", why), "note": words.line("note", note)}

        def entry(account: Account) -> Entry:
            if number in account.settled:
                raise InvalidParameter(f"charge {number} was confirmed or abandoned already.")
            if number not in account.pending:
                raise InvalidParameter(f"there is no charge {number} in this ledger.")
            return account.next(kind, charge=number, **said)

        self._append(entry)

    def _said(self, who: str | None, why: str | None) -> dict[str, str | None]:
        return {"who": words.line("who", who) or self.who, "why": words.line("why", why) or self.why}


def _admitted(account: Account, guarantee: PureDP | ApproxDP) -> tuple[Fraction, Fraction]:
    words.same_terms(guarantee, neighbouring=account.neighbouring, unit=account.unit)
    pair = words.budget(guarantee.epsilon, guarantee.delta, name="guarantee")
    if not account.allows(account.with_charge(pair)):
        now = account.statement()
        asked, spent = (words.shown(part, up=True) for part in (pair, account.spent))
        cap, left = (words.shown(part, up=False) for part in (account.cap, account.left))
        raise BudgetExceeded(
            f"a charge of {asked} would go over the cap of {cap}: {spent} is spent and {left} is left, as (epsilon, "
            f"delta). Nothing was spent on this request.",
            requested=guarantee,
            spent=now.spent,
            cap=now.cap,
        )
    return pair


def _opened(where: str, who: str | None, why: str | None, timeout: float) -> Ledger:
    return Ledger(where, who=who, why=why, timeout=timeout)
