"""What was asked for on the command line, as it was written."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.synthesis.terms import MOST_ROWS, OPTIONS, Terms, terms_of
from accord.workers import DaskWorkers

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
    target: str | None = None
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
    workers: str | None = None
    scheduler: str | None = None

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

    @contextmanager
    def on_workers(self) -> Iterator[DaskWorkers | None]:
        """Give the workers that were asked for, None for none; those of this machine end behind the block.

        Raises
        ------
        InvalidParameter
            If both options are given, or the whole table is wanted here.

        """
        if self.workers is None and self.scheduler is None:
            yield None
            return
        if self.workers is not None and self.scheduler is not None:
            raise InvalidParameter("give --workers, which starts some on this machine, or --scheduler, not both.")
        if self.curator_report is not None:
            raise InvalidParameter("--curator-report needs the whole table on this machine: leave out the workers.")
        if self.scheduler is not None:
            yield DaskWorkers(scheduler=self.scheduler)
            return
        with DaskWorkers.local(_check.integer("--workers", self.workers, least=1, most=1024)) as workers:
            yield workers

    def count(self) -> int:
        """Return how many rows are to be drawn.

        Raises
        ------
        InvalidParameter
            If that is no number of rows.

        """
        return _check.integer(OPTIONS["rows"], self.rows, least=1, most=MOST_ROWS)
