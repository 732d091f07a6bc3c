"""How long a release of tables takes and how much memory, from public sizes alone."""

from dataclasses import dataclass
from typing import Any, final

from accord.marginals.engine import type_for
from accord.marginals.parts import usual_memory
from accord.synthesis.coded import coding_of
from accord.synthesis.learner import TablePlan
from accord.tables import Schema

__all__ = ["Effort", "effort_of"]

# Seconds of a core of 2024, measured by benchmarks/effort.py, which says how far they are off elsewhere.
_START = 1.5
_READ, _COUNT, _CUT = 60e-9, 1.5e-9, 2.5e-6
_FIT, _ROUND = 0.5, 0.1
_BLOCK, _VOTE = 0.6e-3, 2e-6
# Bytes.
_IDLE, _NUMBER, _LOCATED, _UNIT, _BALLOT = 180e6, 8, 24, 10, 150


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


def effort_of(plan: TablePlan, schema: Schema, *, records: int) -> Effort:
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
    about 3 seconds of one core and 0.2 GB of memory, with files of Parquet or CSV

    """
    codings = [coding_of(column) for column in schema.read]
    private = sum(coding is None for coding in codings)
    location = plan.cuts.location
    counted = sum(step.times for step in plan.marginals.steps) + len(codings) ** 2 / 2
    seconds = _START + records * (_READ * len(codings) + _CUT * private + _COUNT * counted)
    seconds += _FIT + _ROUND * sum(step.times for step in plan.marginals.steps if "choice" in step.what)
    coded = sum(2 if coding is None else type_for(coding.size)().itemsize for coding in codings)
    memory = _IDLE + min(records * coded, 1.25 * usual_memory()) + records * _NUMBER * private
    if schema.unit is not None:
        memory += records * _UNIT
    if location is not None:
        columns = len(plan.cuts.located)
        seconds += location.blocks * (_BLOCK + _VOTE * location.draws * len(location.groups))
        memory += records * _LOCATED * columns + location.blocks * location.draws * _BALLOT
    return Effort(seconds=seconds, memory=memory)
