"""One synthesis from request to files: the order of its steps is part of the promise."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from accord.cli.document import model_file
from accord.cli.guard import NO_ANSWER, UNEXPECTED, Stop
from accord.cli.ledger import login_name
from accord.cli.outcome import Outcome
from accord.cli.request import Numbers, Request, learner_for
from accord.errors import FitFailed, LedgerError, SchemaMismatch
from accord.learners import Learner
from accord.learning.synthesis import Synthesis, sample_rows, synthesise
from accord.ledger import Ledger, Statement
from accord.privacy import ApproxDP, Neighbouring
from accord.tables import (
    Outputs,
    Schema,
    Table,
    check_output,
    outputs,
    read_schema,
    read_table,
    rows_as_bytes,
)
from accord.tables.names import shown

__all__ = ["Progress", "run"]

Progress = Callable[[int, int, str], None]

NO_MODEL = "no answer: no model fits what was released; nothing was written, and the budget is spent all the same."


def run(
    request: Request,
    *,
    warn: Callable[[str], None],
    progress: Callable[[], AbstractContextManager[Progress | None]],
) -> Outcome:
    """Check, read, charge, release, write, in this order.

    Nothing is opened before the numbers are checked, nothing is spent before all of the files are, and nothing is
    written unless there is an answer, but for the charge in the ledger.

    Raises
    ------
    AccordError
        If the request cannot be met; nothing was spent or written.
    Stop
        If the release was made but could not be written.

    """
    numbers = request.numbers()
    schema, learner = _schema(request)
    out, model = _places(request)
    with _ledger(request, numbers=numbers, schema=schema) as ledger:
        table = read_table(request.data, schema=schema)
        _warn_of_delta(table, numbers=numbers, warn=warn)
        with outputs([out] if model is None else [out, model]) as files:
            with progress() as report:
                synthesis = _release(
                    table, learner=learner, numbers=numbers, report=report, ledger=ledger, unit=schema.unit
                )
            statement = _statement(ledger, warn=warn)
            outcome = Outcome(request=request, numbers=numbers, schema=schema, synthesis=synthesis, ledger=statement)
            if synthesis.model is not None:
                _write(outcome, files=files, out=out, model=model)
    return outcome


def _ledger(request: Request, *, numbers: Numbers, schema: Schema) -> AbstractContextManager[Ledger | None]:
    """Open the ledger, and refuse a request that it would refuse before any row is read."""
    if request.ledger is None:
        return nullcontext()
    ledger = Ledger(request.ledger, who=login_name() if request.who is None else request.who, why=request.why)
    try:
        ledger.check(ApproxDP(numbers.epsilon, numbers.delta, Neighbouring.REPLACE_ONE, schema.unit or "record"))
    except BaseException:
        ledger.close()
        raise
    return ledger


def _statement(ledger: Ledger | None, *, warn: Callable[[str], None]) -> Statement | None:
    try:
        return None if ledger is None else ledger.statement()
    except LedgerError as error:  # the release is charged and made: it is not lost for want of a total
        warn(f"warning: the total cannot be shown: {error}")
        return None


def _schema(request: Request) -> tuple[Schema, Learner]:
    if request.schema is None:
        raise SchemaMismatch(
            "a schema is needed, because nothing may be guessed from the rows: run `accord schema DATA --out "
            "schema.toml`, complete that file, and pass --schema schema.toml."
        )
    schema = read_schema(request.schema).with_unit(request.unit)
    return schema, learner_for(schema, name=request.learner)


def _places(request: Request) -> tuple[Path, Path | None]:
    inputs = [request.data, *([request.schema] if request.schema is not None else []), *_ledger_files(request.ledger)]
    out = check_output(request.out, option="--out", force=request.force, inputs=inputs)
    if request.model is None:
        return out, None
    return out, check_output(request.model, option="--model", force=request.force, inputs=[*inputs, out])


def _ledger_files(where: str | None) -> list[Path]:
    """Return the ledger's file and those that SQLite keeps beside it: charges may stand in the log alone."""
    if where is None:
        return []
    resolved = os.path.realpath(where)
    return [Path(where), *(Path(f"{resolved}-{kind}") for kind in ("wal", "shm", "journal"))]


def _warn_of_delta(table: Table, *, numbers: Numbers, warn: Callable[[str], None]) -> None:
    count = len(table) if table.units is None else int(table.units.max()) + 1
    kind = "records" if table.units is None else "units"
    if numbers.delta * count >= 1:
        warn(
            f"warning: delta is not below 1 / number of {kind} (which is {count}), so the guarantee is weak: it would "
            f"even allow to publish one of the {kind} as it is."
        )


def _release(
    table: Table,
    *,
    learner: Learner,
    numbers: Numbers,
    report: Progress | None,
    ledger: Ledger | None,
    unit: str | None,
) -> Synthesis:
    try:
        return synthesise(
            table.records,
            learner=learner,
            epsilon=numbers.epsilon,
            delta=numbers.delta,
            units=table.units,
            blocks=numbers.blocks,
            draws=numbers.draws,
            records_per_vote=numbers.records,
            seed=numbers.seed,
            progress=report,
            ledger=ledger,
            unit=unit,
        )
    except FitFailed:  # a fit in a block is that block's affair, so this was the last one, on what was released
        raise Stop(NO_ANSWER, NO_MODEL) from None


def _write(outcome: Outcome, *, files: Outputs, out: Path, model: Path | None) -> None:
    rows = sample_rows(outcome.synthesis, rows=outcome.numbers.rows, seed=outcome.numbers.seed)
    parquet = outcome.request.out.suffix.lower() == ".parquet"
    try:
        files.write(out, rows_as_bytes(rows, schema=outcome.schema, parquet=parquet))
        if model is not None:
            files.write(model, model_file(outcome))
        files.commit()
    except Exception as error:
        reason = (isinstance(error, OSError) and error.strerror) or type(error).__name__
        message = (
            f"the release was made but {shown(outcome.request.out.name)} could not be written ({reason}): "
            f"nothing is left of it, and its budget is spent all the same."
        )
        raise Stop(UNEXPECTED, message) from error
