"""``accord synth --dry-run``: the whole plan, before a single row is read."""

from dataclasses import dataclass
from fractions import Fraction
from statistics import median_low
from typing import Any, final

import pyarrow as pa
import pyarrow.parquet as pq

from accord.accounting.account import rows_stand_for
from accord.accounting.figures import short_text
from accord.accounting.verdicts import FAIR
from accord.cli.learner import block_learner, density_family, takes_blocks
from accord.cli.request import Request
from accord.core import check as _check
from accord.core.errors import InvalidParameter, SchemaMismatch
from accord.core.guarantee import ApproxDP
from accord.core.unit_names import unit_word
from accord.core.verdict import Verdict
from accord.density.plan import density_plan
from accord.marginals.verdicts import verdicts_of
from accord.synthesis.by_votes import sample_plan
from accord.synthesis.learner import TableLearner
from accord.tables import Schema, read_header, read_schema
from accord.tables.column import refuse_data_as_labels
from accord.tables.names import normal_form, shown

__all__ = ["DryRun", "document", "dry_run"]

_MOST_UNITS = 10**12
_GOOD = 0.02


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a run would do: lines for people, expected errors by column, a word on whether n is enough."""

    units: int
    lines: tuple[str, ...]
    errors: dict[str, float]
    enough: str
    verdicts: tuple[Verdict, ...]
    rows_stand_for: str


def dry_run(request: Request, *, size: str | None) -> DryRun:
    """Return the plan of a request; of the data only the header is read, and for Parquet the number of rows.

    Raises
    ------
    AccordError
        If the request could not be met.

    """
    numbers = request.numbers()
    if request.schema is None:
        raise SchemaMismatch("a schema is needed: run `accord schema DATA --out schema.toml` and complete that file.")
    schema = read_schema(request.schema).with_unit(request.unit)
    _refuse_missing_columns(request, schema)
    units = _units(request, schema, size=size)
    noun = "records" if schema.unit is None else "units"
    promised = ApproxDP(numbers.epsilon, numbers.delta, unit=unit_word(schema.unit, named=schema.unit is not None))
    stand_for = rows_stand_for(promised.unit)
    if takes_blocks(request.learner):
        plan = sample_plan(
            block_learner(schema, name=request.learner),
            units=units,
            dimension=len(schema.read),
            epsilon=numbers.epsilon,
            delta=numbers.delta,
            blocks=numbers.blocks,
            draws=numbers.draws,
            records=numbers.records,
            noun=noun,
        )
        lines = (
            f"{plan.blocks} blocks of {plan.block_size} {noun}, {plan.records} records per vote, {plan.draws} draws",
            f"one selection: epsilon {request.epsilon.strip()}, delta {request.delta.strip()}",
            f"typical error {plan.typical_error:.2g} in total variation, if the columns are of the learnt family",
        )
        verdicts = verdicts_of(promised, units=units, typical_error=plan.typical_error)
        enough = _word(plan.typical_error, "the typical error is {:.2g}")
        return DryRun(units=units, lines=lines, errors={}, enough=enough, verdicts=verdicts, rows_stand_for=stand_for)
    if density_family(schema, name=request.learner) is not None:
        stages = density_plan(units=units, columns=len(schema.read), epsilon=numbers.epsilon, delta=numbers.delta)
        located, rest = stages.location, stages.rest
        first = f"{located.blocks} blocks, {located.draws} draws, {_budget(located.epsilon, located.delta)}"
        steps = (f"locate {len(schema.read)} columns: {first}", f"open and refine: {_budget(*rest)}")
        verdicts = verdicts_of(promised, units=units, weighted=schema.unit is not None)
        return DryRun(
            units=units,
            lines=steps,
            errors={},
            enough="enough to locate the columns",
            verdicts=verdicts,
            rows_stand_for=stand_for,
        )
    tables = TableLearner(schema, epsilon=numbers.epsilon, delta=numbers.delta).plan(
        units, several_records=schema.unit is not None
    )
    errors = tables.expected_errors
    return DryRun(
        units=units,
        lines=tuple(tables.lines()),
        errors=errors,
        enough=_word(median_low(errors.values()), "half of the columns have an expected error of {:.2g} at most"),
        verdicts=verdicts_of(promised, units=units, weighted=schema.unit is not None, errors=errors),
        rows_stand_for=stand_for,
    )


def document(found: DryRun) -> dict[str, Any]:
    """Return it for ``--json``."""
    return {
        "dry_run": True,
        "units": found.units,
        "plan": list(found.lines),
        "expected_errors": dict(found.errors),
        "enough": found.enough,
        "warnings": [verdict.document() for verdict in found.verdicts],
        "rows_stand_for": found.rows_stand_for,
    }


def _budget(epsilon: Fraction, delta: Fraction) -> str:
    return f"epsilon {short_text(epsilon, up=True)}, delta {short_text(delta, up=True)}"


def _word(error: float, said: str) -> str:
    """Return whether n is enough, by the error of one law or of the better half of the columns."""
    text = said.format(error)
    if error <= _GOOD:
        return f"yes: {text}"
    if error <= FAIR:
        return f"for rough shares only: {text}"
    return f"no: {text}; more records or a larger epsilon are needed"


def _units(request: Request, schema: Schema, *, size: str | None) -> int:
    if size is not None:
        return _check.integer("--size", size, least=1, most=_MOST_UNITS)
    if schema.unit is None:
        try:
            return max(1, int(pq.read_metadata(request.data).num_rows))
        except (pa.ArrowException, OSError, ValueError):
            pass  # not Parquet: counting would read rows
    what = "records" if schema.unit is None else "units"
    raise InvalidParameter(f"--dry-run reads no row: say --size N, how many {what} the table has.")


def _refuse_missing_columns(request: Request, schema: Schema) -> None:
    """Refuse a schema that does not fit the header, or takes its labels from the data."""
    refuse_data_as_labels(request.data, files=schema.label_files)
    header = {normal_form(name) for name in read_header(request.data, csv=schema.csv)}
    wanted = [*(column.name for column in schema.read), *([schema.unit] if schema.unit is not None else [])]
    lost = [name for name in wanted if normal_form(name) not in header]
    if lost:
        raise SchemaMismatch(f"the data file {shown(request.data.name)} has no column {shown(lost[0])}.")
