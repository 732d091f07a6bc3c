"""One synthesis from a request to files: nothing is spent before all of the files are checked."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path

from accord.cli.guard import UNEXPECTED, Stop
from accord.cli.ledger import login_name
from accord.cli.request import Request
from accord.core.errors import SchemaMismatch
from accord.core.guarantee import ApproxDP
from accord.ledger import Ledger
from accord.reports import release_json, report_page
from accord.synthesis.coded import CodedTable
from accord.synthesis.curator import curator_account
from accord.synthesis.release import Columns
from accord.synthesis.synthetic import SyntheticTable
from accord.synthesis.task import TableTask, task_of
from accord.tables import (
    Outputs,
    Schema,
    Table,
    check_csv,
    check_output,
    columns_as_bytes,
    outputs,
    read_schema,
)
from accord.tables.files import files_of
from accord.tables.names import shown

__all__ = ["Progress", "run"]

Progress = Callable[[int, int, str], None]
_CURATORS = "--curator-report"
_MEGABYTE = 1_000_000
_ALL_LOST = "nothing is left of it, and its budget is spent all the same."


def run(request: Request, *, progress: Callable[[], AbstractContextManager[Progress | None]]) -> SyntheticTable:
    """Check, read, charge, release, write, in this order.

    Nothing is opened before the numbers are checked, nothing is spent before all of the files are, and nothing is
    written unless there is an answer, but for the charge in the ledger.

    Parameters
    ----------
    request
        What is asked for.
    progress
        Gives a function that is told how far the steps are.

    Raises
    ------
    AccordError
        If the request cannot be met; nothing was spent or written.
    Stop
        If the release was made but could not be written.

    """
    rows, terms = request.count(), request.terms()
    schema = _schema(request)
    task = task_of(schema, terms)
    places = _places(request, schema=schema)
    if not _as_parquet(request):
        check_csv(schema)
    with _ledger(request, promised=task.promised) as ledger, ExitStack() as stack:
        table = stack.enter_context(_table(request, task, progress=progress))
        page = places.pop(_CURATORS, None)
        with outputs(list(places.values())) as files, outputs([] if page is None else [page]) as kept:
            with progress() as report:
                synthetic = task.run(table, progress=report, ledger=ledger)
            if synthetic.answered:
                with _during(progress, "writing"):
                    cells = synthetic.cells(rows, seed=terms.seed)
                    _write(request, synthetic, cells, files=files, places=places)
                    if page is not None and isinstance(table, Table):
                        _write_curators(synthetic, table, cells, files=kept, page=page)
    return synthetic


@contextmanager
def _table(
    request: Request, task: TableTask, *, progress: Callable[[], AbstractContextManager[Progress | None]]
) -> Iterator[Table | CodedTable]:
    """Read the table, here or on the workers that were asked for."""
    with request.on_workers() as workers:
        if workers is None:
            with progress() as report:
                table = task.read(request.data, whole=request.curator_report is not None, told=_reading(report))
            yield table
            return
        with ExitStack() as stack:
            with progress() as report:
                told = None if report is None else partial(_of_parts, report)
                held = stack.enter_context(task.read_on(workers, request.data, told=told))
            yield held


def _reading(report: Progress | None) -> Callable[[int, int], None] | None:
    """Return what is told how far the reading is, in megabytes of the files."""
    if report is None:
        return None
    return lambda done, total: report(done // _MEGABYTE, max(1, total // _MEGABYTE), "reading the table")


def _of_parts(report: Progress, done: int, total: int) -> None:
    report(done, total, "reading the table on workers")


@contextmanager
def _during(progress: Callable[[], AbstractContextManager[Progress | None]], what: str) -> Iterator[None]:
    """Show that a step takes its time."""
    with progress() as report:
        if report is not None:
            report(0, 0, what)
        yield


def _ledger(request: Request, *, promised: ApproxDP) -> AbstractContextManager[Ledger | None]:
    """Open the ledger, and refuse a request that it would refuse before any row is read."""
    if request.ledger is None:
        return nullcontext()
    ledger = Ledger(request.ledger, who=login_name() if request.who is None else request.who, why=request.why)
    try:
        ledger.check(promised)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _schema(request: Request) -> Schema:
    if request.schema is None:
        raise SchemaMismatch(
            "a schema is needed, because nothing may be guessed from the rows: run `accord schema DATA --out "
            "schema.toml`, complete that file, and pass --schema schema.toml."
        )
    return read_schema(request.schema).with_unit(request.unit).with_target(request.target)


def _places(request: Request, *, schema: Schema) -> dict[str, Path]:
    """Return where to write, by option, what is asked for; no two of them, and none that is read."""
    stated = [*([request.schema] if request.schema is not None else []), *schema.label_files]
    inputs = [*files_of(request.data), *stated, *_ledger_files(request.ledger)]
    places: dict[str, Path] = {}
    wanted = {
        "--out": request.out,
        "--model": request.model,
        "--report": request.report,
        "--release": request.release,
        _CURATORS: request.curator_report,
    }
    for option, path in wanted.items():
        if path is not None:
            places[option] = check_output(path, option=option, force=request.force, inputs=inputs)
            inputs.append(path)
    return places


def _as_parquet(request: Request) -> bool:
    return request.out.suffix.lower() == ".parquet"


def _ledger_files(where: str | None) -> list[Path]:
    """Return the ledger's file and those that SQLite keeps beside it: charges may stand in the log alone."""
    if where is None:
        return []
    resolved = os.path.realpath(where)
    return [Path(where), *(Path(f"{resolved}-{kind}") for kind in ("wal", "shm", "journal"))]


def _write(
    request: Request, synthetic: SyntheticTable, cells: Columns, *, files: Outputs, places: Mapping[str, Path]
) -> None:
    """Write what is for the world, all of it or nothing."""
    content = cache(lambda: synthetic.report_of(cells))
    contents: dict[str, Callable[[], bytes]] = {
        "--out": lambda: columns_as_bytes(cells, schema=synthetic.schema, parquet=_as_parquet(request)),
        "--model": synthetic.kept,
        "--report": lambda: report_page(content()).encode(),
        "--release": lambda: release_json(content()).encode("ascii"),
    }
    with _written(f"the release was made but {shown(request.out.name)} could not be written", _ALL_LOST):
        for option, place in places.items():
            files.write(place, contents[option]())
        files.commit()


def _write_curators(synthetic: SyntheticTable, table: Table, cells: Columns, *, files: Outputs, page: Path) -> None:
    """Write the curator's page last: what the real rows do to it, the world's files and their exit code do not show."""
    content = curator_account(synthetic, table, cells).encode()
    with _written(f"the curator's page {shown(page.name)} could not be written", "all else was."):
        files.write(page, content, secret=True)
        files.commit()


@contextmanager
def _written(what: str, left: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        reason = (isinstance(error, OSError) and error.strerror) or type(error).__name__
        raise Stop(UNEXPECTED, f"{what} ({reason}): {left}") from error
