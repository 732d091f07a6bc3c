"""One synthesis from request to files: the order of its steps is part of the promise."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

from accord.cli.accounts import curator_account, report_of
from accord.cli.document import law_document, model_file
from accord.cli.guard import NO_ANSWER, UNEXPECTED, Stop
from accord.cli.learner import block_learner, density_family, takes_blocks
from accord.cli.ledger import login_name
from accord.cli.outcome import Outcome
from accord.cli.request import Numbers, Request
from accord.core.coupling import Learner
from accord.core.errors import FitFailed, LedgerError, SchemaMismatch
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.unit_names import unit_word
from accord.core.verdict import Verdict, tell
from accord.density.family import DensityFamily
from accord.ledger import Ledger, Statement
from accord.marginals.verdicts import verdicts_of
from accord.reports import release_json, report_page
from accord.synthesis.by_votes import Synthesis, synthesise
from accord.synthesis.release import TableRelease, of_synthesis, release_by_density, release_by_tables
from accord.tables import Outputs, Schema, Table, check_output, columns_as_bytes, outputs, read_schema, read_table
from accord.tables.names import shown

__all__ = ["Progress", "run"]

Progress = Callable[[int, int, str], None]
Engine = Callable[[Table, Numbers, Progress | None, Ledger | None], tuple[TableRelease, Synthesis | None]]

NO_MODEL = "no answer: no model fits what was released; nothing was written, and the budget is spent all the same."


def run(
    request: Request,
    *,
    verdicts: Sequence[Verdict],
    progress: Callable[[], AbstractContextManager[Progress | None]],
) -> Outcome:
    """Check, read, charge, release, write, in this order.

    Nothing is opened before the numbers are checked, nothing is spent before all of the files are, and nothing is
    written unless there is an answer, but for the charge in the ledger.

    Parameters
    ----------
    request
        What is asked for.
    verdicts
        Where those are that are told meanwhile: the caller collects them.
    progress
        Gives a function that is told how far the steps are.

    Raises
    ------
    AccordError
        If the request cannot be met; nothing was spent or written.
    Stop
        If the release was made but could not be written.

    """
    numbers = request.numbers()
    schema, engine = _schema(request)
    places = _places(request, schema=schema)
    with _ledger(request, numbers=numbers, schema=schema) as ledger:
        with _during(progress, "reading the table"):
            table = read_table(request.data, schema=schema)
        _tell_of_request(table, numbers=numbers, schema=schema, weighted=not takes_blocks(request.learner))
        with outputs([place for place in places.values() if place is not None]) as files:
            with progress() as report:
                release, synthesis = engine(table, numbers, report, ledger)
            statement = _statement(ledger)
            outcome = Outcome(
                request=request,
                numbers=numbers,
                schema=schema,
                release=release,
                synthesis=synthesis,
                ledger=statement,
            )
            if release.answered:
                with _during(progress, "writing"):
                    _write(outcome, table, files=files, places=places, warnings=tuple(verdicts))
    return outcome


@contextmanager
def _during(progress: Callable[[], AbstractContextManager[Progress | None]], what: str) -> Iterator[None]:
    """Show that a step takes its time."""
    with progress() as report:
        if report is not None:
            report(0, 0, what)
        yield


def _ledger(request: Request, *, numbers: Numbers, schema: Schema) -> AbstractContextManager[Ledger | None]:
    """Open the ledger, and refuse a request that it would refuse before any row is read."""
    if request.ledger is None:
        return nullcontext()
    ledger = Ledger(request.ledger, who=login_name() if request.who is None else request.who, why=request.why)
    try:
        word = unit_word(schema.unit, named=schema.unit is not None)
        ledger.check(ApproxDP(numbers.epsilon, numbers.delta, Neighbouring.REPLACE_ONE, word))
    except BaseException:
        ledger.close()
        raise
    return ledger


def _statement(ledger: Ledger | None) -> Statement | None:
    try:
        return None if ledger is None else ledger.statement()
    except LedgerError as error:  # the release is charged and made: it is not lost for want of a total
        tell(Verdict("total-not-shown", f"the total of the ledger cannot be shown: {error}"))
        return None


def _schema(request: Request) -> tuple[Schema, Engine]:
    if request.schema is None:
        raise SchemaMismatch(
            "a schema is needed, because nothing may be guessed from the rows: run `accord schema DATA --out "
            "schema.toml`, complete that file, and pass --schema schema.toml."
        )
    schema = read_schema(request.schema).with_unit(request.unit)
    if takes_blocks(request.learner):
        return schema, partial(_by_blocks, learner=block_learner(schema, name=request.learner), schema=schema)
    family = density_family(schema, name=request.learner)
    return schema, _by_tables if family is None else partial(_by_density, family=family)


def _places(request: Request, *, schema: Schema) -> dict[str, Path | None]:
    """Return where to write, by option; no two of them, and none that is read."""
    stated = [*([request.schema] if request.schema is not None else []), *schema.label_files]
    inputs = [request.data, *stated, *_ledger_files(request.ledger)]
    places: dict[str, Path | None] = {}
    wanted = {
        "--out": request.out,
        "--model": request.model,
        "--report": request.report,
        "--release": request.release,
        "--curator-report": request.curator_report,
    }
    for option, path in wanted.items():
        places[option] = None
        if path is not None:
            places[option] = check_output(path, option=option, force=request.force, inputs=inputs)
            inputs.append(path)
    return places


def _ledger_files(where: str | None) -> list[Path]:
    """Return the ledger's file and those that SQLite keeps beside it: charges may stand in the log alone."""
    if where is None:
        return []
    resolved = os.path.realpath(where)
    return [Path(where), *(Path(f"{resolved}-{kind}") for kind in ("wal", "shm", "journal"))]


def _tell_of_request(table: Table, *, numbers: Numbers, schema: Schema, weighted: bool) -> None:
    """Tell what public facts say, whatever the release will be."""
    count = len(table) if table.units is None else int(table.units.max()) + 1
    word = unit_word(schema.unit, named=table.units is not None)
    promised = ApproxDP(numbers.epsilon, numbers.delta, Neighbouring.REPLACE_ONE, word)
    for verdict in verdicts_of(promised, units=count, weighted=weighted and table.units is not None):
        tell(verdict)


# --- learners ---------------------------------------------------------------------------------------------------------


def _by_tables(
    table: Table, numbers: Numbers, progress: Progress | None, ledger: Ledger | None
) -> tuple[TableRelease, None]:
    release = release_by_tables(
        table,
        epsilon=numbers.epsilon,
        delta=numbers.delta,
        seed=numbers.seed,
        progress=progress,
        ledger=ledger,
    )
    return release, None


def _by_density(
    table: Table, numbers: Numbers, progress: Progress | None, ledger: Ledger | None, *, family: DensityFamily
) -> tuple[TableRelease, None]:
    release = release_by_density(
        table,
        family,
        epsilon=numbers.epsilon,
        delta=numbers.delta,
        seed=numbers.seed,
        progress=progress,
        ledger=ledger,
    )
    return release, None


def _by_blocks(
    table: Table,
    numbers: Numbers,
    progress: Progress | None,
    ledger: Ledger | None,
    *,
    learner: Learner,
    schema: Schema,
) -> tuple[TableRelease, Synthesis]:
    try:
        synthesis = synthesise(
            table.records,
            learner=learner,
            epsilon=numbers.epsilon,
            delta=numbers.delta,
            units=table.units,
            blocks=numbers.blocks,
            draws=numbers.draws,
            records_per_vote=numbers.records,
            seed=numbers.seed,
            progress=progress,
            ledger=ledger,
            unit=schema.unit,
        )
    except FitFailed:  # a fit in a block is that block's affair, so this was the last one, on what was released
        raise Stop(NO_ANSWER, NO_MODEL) from None
    return of_synthesis(synthesis, schema=schema, model=law_document(synthesis.model, schema=schema)), synthesis


# --- writing ----------------------------------------------------------------------------------------------------------


def _write(
    outcome: Outcome,
    table: Table,
    *,
    files: Outputs,
    places: Mapping[str, Path | None],
    warnings: tuple[Verdict, ...],
) -> None:
    rows = outcome.release.rows(outcome.numbers.rows, seed=outcome.numbers.seed)
    parquet = outcome.request.out.suffix.lower() == ".parquet"
    contents: dict[str, Callable[[], bytes]] = {
        "--out": lambda: columns_as_bytes(rows, schema=outcome.schema, parquet=parquet),
        "--model": lambda: model_file(outcome),
        "--report": lambda: report_page(report_of(outcome, rows, warnings=warnings)).encode(),
        "--release": lambda: release_json(report_of(outcome, rows, warnings=warnings)).encode("ascii"),
        "--curator-report": lambda: curator_account(outcome, table, rows, warnings=warnings).encode(),
    }
    try:
        for option, place in places.items():
            if place is not None:
                files.write(place, contents[option](), secret=option == "--curator-report")
        files.commit()
    except Exception as error:
        reason = (isinstance(error, OSError) and error.strerror) or type(error).__name__
        message = (
            f"the release was made but {shown(outcome.request.out.name)} could not be written ({reason}): "
            f"nothing is left of it, and its budget is spent all the same."
        )
        raise Stop(UNEXPECTED, message) from error
