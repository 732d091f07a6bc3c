"""How long a release of tables takes and how much memory, from public sizes alone."""

from dataclasses import dataclass
from statistics import mean
from typing import Any, final

from accord.marginals import MarginalPlan
from accord.marginals.parts import usual_memory
from accord.synthesis.coded import coding_of
from accord.tables import Schema

__all__ = ["Effort", "effort_of"]

# Seconds of a core of 2024, measured by benchmarks/effort.py, which says how far they are off elsewhere.
_START = 1.5
_READ, _COUNT, _SEARCH = 60e-9, 1.5e-9, 100e-9
_CHOICE, _CELL = 0.04, 2e-4
"""Of choosing a table and fitting it: each, and for each cell of a usual pair of columns."""
# Bytes.
_IDLE, _UNIT = 250e6, 10
_DRAWN, _FEWEST_DRAWN, _MOST_DRAWN = 16, 20_000, 200_000
"""Of each cell of the records of the model that tables are chosen by, and how many records these are."""
_SCORED, _MOST_SCORED = 24, 1 << 22
"""Of each cell of the pairs that are scored at once, and how many cells these are."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What a release is expected to take, within a factor of about three.

    Parameters
    ----------
    seconds
        Of one core.
    memory
        Bytes.

    """

    seconds: float
    memory: float

    def __str__(self) -> str:
        """Return it in words."""
        minutes = self.seconds / 60
        time = f"{self.seconds:.0f} seconds" if minutes < 2 else f"{minutes:.0f} minutes"
        return f"about {time} of one core and {self.memory / 1e9:.1f} GB of memory, with files of Parquet or CSV"

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"seconds": round(self.seconds, 1), "bytes": round(self.memory)}


def effort_of(plan: MarginalPlan, schema: Schema, *, records: int) -> Effort:
    """Return what a release of so many records is expected to take.

    Parameters
    ----------
    plan
        Of the release.
    schema
        What was declared.
    records
        How many there are, public; where units may have several, how many units there are is a lower bound.

    Examples
    --------
    >>> from accord.synthesis.learner import TableLearner
    >>> from accord.tables import Column
    >>> schema = Schema(columns=(Column(name="sex", kind="category", categories=("f", "m")),))
    >>> plan = TableLearner(schema, epsilon=1, delta="1e-6").plan(10**7)
    >>> print(effort_of(plan, schema, records=10**7))
    about 2 seconds of one core and 0.3 GB of memory, with files of Parquet or CSV

    """
    codings = [coding_of(column) for column in schema.read]
    counted = sum(step.times for step in plan.steps) + len(codings) ** 2 / 2
    searched = sum(coding.column.rounds for coding in codings if coding.column.rounds > 1)
    seconds = _START + records * (_READ * len(codings) + _SEARCH * searched + _COUNT * counted)
    groups = mean(min(coding.column.codes, plan.number_groups) for coding in codings)
    seconds += (_CHOICE + _CELL * groups**2) * sum(step.times for step in plan.steps if "choice" in step.what)
    width = sum(coding.type.itemsize for coding in codings)
    held = min(records, usual_memory() / width)  # in memory, as codes and as their groups of mostly a byte
    memory = _IDLE + held * (width + len(codings))
    if plan.mode != "full":
        memory += _DRAWN * len(codings) * min(max(records, _FEWEST_DRAWN), _MOST_DRAWN)
        memory += _SCORED * min(len(codings) ** 2 / 2 * groups**2, _MOST_SCORED)
    if schema.unit is not None:
        memory += records * _UNIT
    return Effort(seconds=seconds, memory=memory)
