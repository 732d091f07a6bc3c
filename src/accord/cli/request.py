"""What was asked for on the command line, as it was written."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

from accord.core import check as _check
from accord.synthesis.terms import MOST_ROWS, OPTIONS, Terms, terms_of

__all__ = ["Request"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of a synthesis as they were written; an option that was not given is None.

    The meaning of each is in the help of ``accord synth``.
    """

    data: Path
    schema: Path | None
    epsilon: str
    delta: str
    rows: str
    out: Path
    learner: str | None = None
    unit: str | None = None
    blocks: str | None = None
    draws: str | None = None
    records: str | None = None
    model: Path | None = None
    report: Path | None = None
    release: Path | None = None
    curator_report: Path | None = None
    seed: str | None = None
    ledger: str | None = None
    who: str | None = None
    why: str | None = None
    force: bool = False

    def terms(self) -> Terms:
        """Return the numbers among them but for that of rows.

        Raises
        ------
        InvalidParameter
            Naming the option and what it accepts.

        """
        return terms_of(
            epsilon=self.epsilon,
            delta=self.delta,
            learner=self.learner,
            blocks=self.blocks,
            draws=self.draws,
            records_per_vote=self.records,
            seed=self.seed,
            called=OPTIONS,
        )

    def count(self) -> int:
        """Return how many rows are to be drawn.

        Raises
        ------
        InvalidParameter
            If that is no number of rows.

        """
        return _check.integer(OPTIONS["rows"], self.rows, least=1, most=MOST_ROWS)
