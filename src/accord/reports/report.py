"""A report as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from accord.accounting.account import stage_lines
from accord.reports.tables import ColumnTable, PairTable

__all__ = ["Claim", "Report"]


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
    account
        Of `accord.accounting.account`: guarantee, stages, their composition, warnings.
    claims
        What the guarantee takes from somebody's word.
    seeded
        Whether everything but the noise was seeded.
    rows
        Synthetic rows that were written.
    columns, pairs
        Tables of the synthetic rows.
    budget
        What a ledger says: amounts and counts; empty without one.

    """

    version: str
    account: Mapping[str, Any]
    claims: tuple[Claim, ...]
    seeded: bool
    rows: int
    columns: tuple[ColumnTable, ...]
    pairs: tuple[PairTable, ...]
    budget: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """What the guarantee protects: a record, or all records of one unit."""
        promise = self.account["guarantee"]
        column = promise["unit_column"]
        if column is None:
            return "one record" if promise["unit"] == "record" else "all records of one unit"
        return f'all records that share a value of the column "{column}"'

    @property
    def stages(self) -> list[dict[str, Any]]:
        """The mechanisms that ran, equal ones in one line."""
        return stage_lines(self.account["stages"])
