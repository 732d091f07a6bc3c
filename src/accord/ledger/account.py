"""The state of a ledger: what its entries, followed one by one, add up to."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final, final

from accord.accounting.best import composition_table
from accord.accounting.composition import NoGuarantee
from accord.accounting.figures import short_text
from accord.core.errors import LedgerError
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP
from accord.ledger.entry import GENESIS, Entry

__all__ = [
    "Account",
    "Statement",
    "Total",
    "totals",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a ledger says at one moment.

    Parameters
    ----------
    cap, spent, remaining
        What may be spent, what is, and what is left; totals by basic composition, exact.
    charges, unconfirmed
        Number of charges, and of those neither confirmed nor abandoned: a run still going, or one that ended hard.
        All of them are spent. How runs ended may depend on the data, so a kept release does not say it: None there.
    head
        ``sequence:digest`` of the last entry. Noted elsewhere, it proves later that nothing before it was changed.

    """

    cap: ApproxDP
    spent: ApproxDP
    remaining: ApproxDP
    charges: int
    unconfirmed: int | None
    head: str

    @property
    def words(self) -> str:
        """One line on what is spent and left."""
        spent, cap, left = (
            f"({short_text(part.epsilon, up=up)}, {short_text(part.delta, up=up)})"
            for part, up in ((self.spent, True), (self.cap, False), (self.remaining, False))
        )
        return (
            f"in the ledger {spent} of {cap} is spent by {self.charges} charges and {left} is left, as (epsilon, "
            f"delta), by basic composition"
        )


@final
class Account:
    """Follow the entries of a ledger from the first on, refusing the first that does not continue the chain.

    Formal guarantees
    -----------------
    - After `follow` has accepted entries 1 to n: their digests form one chain, no charge was over the cap that held
      when it was made, and ``spent`` is the exact sum of all charges.
    - A refused entry changes nothing.

    """

    __slots__ = ("cap", "digest", "neighbouring", "pending", "sequence", "settled", "spendings", "spent", "unit")

    def __init__(self) -> None:
        self.sequence = 0
        self.digest = GENESIS
        self.neighbouring = Neighbouring.REPLACE_ONE
        self.unit = "record"
        self.cap = (Fraction(0), Fraction(0))
        self.spent = (Fraction(0), Fraction(0))
        self.spendings: Counter[tuple[Fraction, Fraction]] = Counter()
        self.pending: set[int] = set()
        self.settled: set[int] = set()

    def follow(self, entry: Entry) -> None:
        """Accept the next entry.

        Raises
        ------
        LedgerError
            Naming the entry and what is wrong with it.

        """
        self._refuse_broken_link(entry)
        match entry.kind:
            case "create" if entry.sequence == 1 and entry.neighbouring is not None and entry.unit is not None:
                self.cap = _pair(entry)
                self.neighbouring, self.unit = entry.neighbouring, entry.unit
            case "charge" if entry.sequence > 1:
                self._follow_charge(entry)
            case "confirm" | "abandon" if entry.charge in self.pending:
                self.pending.discard(entry.charge)
                self.settled.add(entry.charge)
            case "cap" if entry.sequence > 1:
                self.cap = _pair(entry)
            case _:
                raise LedgerError(f"entry {entry.sequence} ({entry.kind}) is out of place.")
        self.sequence, self.digest = entry.sequence, entry.digest

    def next(self, kind: str, **content: Any) -> Entry:  # noqa: ANN401 - the fields of an entry
        """Return the sealed entry that would come next."""
        time = datetime.now(UTC).isoformat(timespec="microseconds")
        entry = Entry(sequence=self.sequence + 1, kind=kind, time=time, previous=self.digest, **content)
        return entry.sealed()

    def statement(self) -> Statement:
        """Return the totals."""
        return Statement(
            cap=self.guarantee(self.cap),
            spent=self.guarantee(self.spent),
            remaining=self.guarantee(self.left),
            charges=self.spendings.total(),
            unconfirmed=len(self.pending),
            head=f"{self.sequence}:{self.digest}",
        )

    @property
    def left(self) -> tuple[Fraction, Fraction]:
        """What may still be spent."""
        return max(self.cap[0] - self.spent[0], Fraction(0)), max(self.cap[1] - self.spent[1], Fraction(0))

    def guarantee(self, pair: tuple[Fraction, Fraction]) -> ApproxDP:
        """Return a pair of epsilon and delta under this ledger's relation and unit."""
        return ApproxDP(*pair, self.neighbouring, self.unit)

    def with_charge(self, pair: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
        """Return what would be spent after one more charge."""
        return self.spent[0] + pair[0], self.spent[1] + pair[1]

    def allows(self, total: tuple[Fraction, Fraction]) -> bool:
        """Return whether a total is within the cap."""
        return total[0] <= self.cap[0] and total[1] <= self.cap[1]

    def _refuse_broken_link(self, entry: Entry) -> None:
        if entry.sequence != self.sequence + 1:
            raise LedgerError(f"entry {self.sequence + 1} is missing: entry {entry.sequence} stands in its place.")
        if entry.previous != self.digest:
            raise LedgerError(f"entry {entry.sequence} does not continue the chain: the entry before it is another.")
        if entry.digest != entry.seal():
            raise LedgerError(f"entry {entry.sequence} was changed: its digest does not match its content.")

    def _follow_charge(self, entry: Entry) -> None:
        pair = _pair(entry)
        if (entry.neighbouring, entry.unit) != (self.neighbouring, self.unit):
            raise LedgerError(f"entry {entry.sequence} charges under another relation or unit.")
        total = self.with_charge(pair)
        if not self.allows(total):
            raise LedgerError(f"entry {entry.sequence} goes over the cap.")
        self.spent = total
        self.spendings[pair] += 1
        self.pending.add(entry.sequence)


def _pair(entry: Entry) -> tuple[Fraction, Fraction]:
    if entry.epsilon is None or entry.delta is None or entry.epsilon < 0 or not 0 <= entry.delta < 1:
        raise LedgerError(f"entry {entry.sequence} ({entry.kind}) states no epsilon and delta.")
    return entry.epsilon, entry.delta


BASIC: Final = "basic"
_FIXED: Final = "if the amounts of all charges were fixed in advance, not chosen from earlier outputs"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A certified upper bound on what all charges cost together.

    Parameters
    ----------
    rule
        The composition rule.
    guarantee
        The total.
    condition
        When it holds.
    enforced
        Whether the cap is about this total.

    """

    rule: str
    guarantee: PureDP | ApproxDP
    condition: str
    enforced: bool


def totals(account: Account) -> tuple[Total, ...]:
    """Return the totals of an account: the enforced one, then the least of all rules within the cap's delta.

    Only sums are enforced. The better rules need amounts that were fixed in advance, and who asks for the next release
    has seen the last; and a cap that is raised later would void what they promised under the old one.
    """
    basic = Total(
        rule=BASIC,
        guarantee=account.statement().spent,
        condition="always, also when each release was chosen from earlier outputs",
        enforced=True,
    )
    guarantees = [account.guarantee(pair) for pair in account.spendings.elements()]
    if not guarantees:
        return (basic,)
    best = composition_table(guarantees, delta=account.cap[1]).best
    if isinstance(best.total, NoGuarantee) or best.total.epsilon >= basic.guarantee.epsilon:
        return (basic,)
    return basic, Total(rule=best.rule, guarantee=best.total, condition=_FIXED, enforced=False)
