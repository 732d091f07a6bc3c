"""A report as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from accord.core import Verdict
from accord.privacy import ApproxDP
from accord.reports.tables import ColumnTable, PairTable

__all__ = ["Claim", "Report", "Stage"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One part of a release.

    Parameters
    ----------
    what
        What it found out, in words.
    mechanism
        By which mechanism.
    epsilon, delta
        What it spent, as text, or empty where the total is not a sum of single epsilons.
    detail
        Public numbers of it, in words.

    """

    what: str
    mechanism: str
    epsilon: str = ""
    delta: str = ""
    detail: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Something that the guarantee takes from a person's word."""

    what: str
    by: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that may be said about a release: a function of public facts and of what was released.

    Formal guarantees
    -----------------
    - Silence: it holds no count, agreement, checksum, name or time of the data, so that two neighbouring tables with
      the same released values have equal reports.

    Parameters
    ----------
    version
        Of accord.
    guarantee
        The promise.
    epsilon, delta
        The same, as the person wrote them.
    unit_column
        The column that named the units, or None.
    units
        How many records, or units, there are: public under "replace one".
    composition
        How the stages' parts make the total.
    stages
        In order.
    claims
        What the guarantee takes from somebody's word.
    learner
        What was learnt, in words.
    seeded
        Whether everything but the noise was seeded.
    rows
        Synthetic rows that were written.
    columns, pairs
        Tables of the synthetic rows.
    budget
        What a ledger says: amounts and counts; empty without one.
    warnings
        Verdicts, as printed.

    """

    version: str
    guarantee: ApproxDP
    epsilon: str
    delta: str
    unit_column: str | None
    units: int
    composition: str
    stages: tuple[Stage, ...]
    claims: tuple[Claim, ...]
    learner: str
    seeded: bool
    rows: int
    columns: tuple[ColumnTable, ...]
    pairs: tuple[PairTable, ...]
    budget: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Verdict, ...] = ()

    @property
    def unit(self) -> str:
        """What the guarantee protects: a record, or all records of one unit."""
        if self.unit_column is None:
            return "one record"
        return f'all records that share a value of the column "{self.unit_column}"'
