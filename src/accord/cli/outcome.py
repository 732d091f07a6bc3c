"""What a synthesis gave."""

from dataclasses import dataclass
from typing import final

from accord.cli.request import Numbers, Request
from accord.ledger import Statement
from accord.synthesis.by_votes import Synthesis
from accord.synthesis.release import TableRelease
from accord.tables import Schema

__all__ = ["Outcome"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Public facts and the release, nothing else.

    ``synthesis`` holds the sizes of a release by blocks; it is None for other learners.
    """

    request: Request
    numbers: Numbers
    schema: Schema
    release: TableRelease
    synthesis: Synthesis | None = None
    ledger: Statement | None = None
