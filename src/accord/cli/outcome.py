"""What a synthesis gave."""

from dataclasses import dataclass
from typing import final

from accord.cli.request import Numbers, Request
from accord.learning.synthesis import Synthesis
from accord.ledger import Statement
from accord.tables import Schema

__all__ = ["Outcome"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Public facts and the release, nothing else: the request, its numbers, the schema, the synthesis, the ledger."""

    request: Request
    numbers: Numbers
    schema: Schema
    synthesis: Synthesis
    ledger: Statement | None = None
