"""``accord synth``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from accord import __version__
from accord.cli.document import as_json, document
from accord.cli.dry_run import dry_run as dry_run_of
from accord.cli.guard import NO_ANSWER, Stop, guarded, say
from accord.cli.job import run
from accord.cli.render import print_document, progress_bar
from accord.cli.request import Request
from accord.core.errors import InvalidParameter
from accord.core.verdict import collected
from accord.synthesis.outlook import Outlook

__all__ = ["perform", "synth"]


def synth(
    *,
    data: Annotated[
        Path,
        typer.Argument(
            help="CSV (UTF-8, commas, a header; also .gz) or Parquet; or a folder or a pattern of such files.",
            show_default=False,
        ),
    ],
    epsilon: Annotated[str, typer.Option(help="Privacy loss, above 0: smaller is more private.", show_default=False)],
    delta: Annotated[str, typer.Option(help="Slack, well below 1 / number of records.", show_default=False)],
    rows: Annotated[
        str | None, typer.Option(help="Number of synthetic rows to write; as many as you like.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the rows: CSV, or Parquet if it ends so.", show_default=False)
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="What you know about the table (needed; see accord schema).")
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            help="auto (tables of a few columns each), tables, blocks (one law that blocks agree on), "
            "gaussian-mixture:K or scipy:FAMILY (densities of numbers)."
        ),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Column that says whose record it is; protects all of a unit.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Column that models of the rows will predict: what depends on it is measured first."),
    ] = None,
    blocks: Annotated[str | None, typer.Option(help="With blocks: how many; by default planned.")] = None,
    draws: Annotated[str | None, typer.Option(help="With blocks: draws of the coupling; by default planned.")] = None,
    records: Annotated[str | None, typer.Option(help="With blocks: records per vote; by default planned.")] = None,
    model: Annotated[Path | None, typer.Option(help="File for the released model: see accord sample.")] = None,
    report: Annotated[Path | None, typer.Option(help="File for the report, one HTML page.")] = None,
    release: Annotated[Path | None, typer.Option(help="File for release.json: the report for machines.")] = None,
    curator_report: Annotated[
        Path | None, typer.Option(help="File that compares with the real rows. NOT for release.")
    ] = None,
    seed_for_tests: Annotated[
        str | None,
        typer.Option(help="Seed partition, learners, coupling and sampling, for tests. The noise is never seeded."),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Ledger of this table, charged before the release; see accord ledger.")
    ] = None,
    who: Annotated[str | None, typer.Option(help="Who asks, for the ledger; by default the login name.")] = None,
    why: Annotated[str | None, typer.Option(help="What for, for the ledger.")] = None,
    workers: Annotated[
        str | None, typer.Option(help="Read and count on so many processes of this machine (needs accord[dask]).")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Read and count on the workers of this scheduler of dask, tls://host:8786 say.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan, its budgets and expected errors; read no row.")
    ] = False,
    size: Annotated[str | None, typer.Option(help="With --dry-run: how many records, or units, there are.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are already there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Learn the declared columns privately and write synthetic rows.

    Exit codes: 0 done; 2 bad input or arguments, nothing spent or written; 3 no answer, nothing written, but the budget
    is spent.
    """
    if not dry_run and (rows is None or out is None):
        raise typer.BadParameter("--rows and --out are needed, unless with --dry-run.")
    request = Request(
        data=data,
        schema=schema,
        epsilon=epsilon,
        delta=delta,
        rows="1" if rows is None else rows,
        out=out or Path("synthetic.csv"),
        learner=learner,
        unit=unit,
        target=target,
        blocks=blocks,
        draws=draws,
        records=records,
        model=model,
        report=report,
        release=release,
        curator_report=curator_report,
        seed=seed_for_tests,
        ledger=ledger,
        who=who,
        why=why,
        force=force,
        workers=workers,
        scheduler=scheduler,
    )
    with guarded():
        if dry_run:
            _print_plan(dry_run_of(request, size=size), json=json)
        elif size is not None:
            raise InvalidParameter("--size belongs to --dry-run: otherwise the records are counted.")
        else:
            perform(request, json=json)


def _print_plan(found: Outlook, *, json: bool) -> None:
    if json:
        sys.stdout.write(as_json({"accord": __version__, "dry_run": True, **found.document()}))
        return
    print("Plan; no row was read and nothing is spent")
    print(found)
    sys.stdout.flush()
    for verdict in found.verdicts:
        say(f"warning: {verdict}")


def perform(request: Request, *, json: bool, commands: tuple[str, ...] = ()) -> None:
    """Run a request and print what came of it."""
    with collected() as verdicts:
        try:
            synthetic = run(request, progress=lambda: progress_bar(wanted=not json))
        finally:
            for verdict in verdicts:
                say(f"warning: {verdict}")
    content = document(request, synthetic, warnings=tuple(verdicts))
    if json:
        sys.stdout.write(as_json({**content, "commands": list(commands)}))
    else:
        print_document(content, commands=commands)
    sys.stdout.flush()
    if not content["answer"]:
        raise Stop(
            NO_ANSWER,
            "no answer: the blocks did not agree; nothing was written, and the budget is spent all the same. More "
            "records or a larger epsilon help, unless columns do not vary, repeat each other or are far from a normal "
            "law; --learner tables always has one where the schema states bounds.",
        )
