"""``accord synth``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from accord.cli.document import as_json, document
from accord.cli.guard import NO_ANSWER, Stop, guarded, say
from accord.cli.job import run
from accord.cli.render import print_document, progress_bar
from accord.cli.request import Request

__all__ = ["perform", "synth"]


def synth(
    *,
    data: Annotated[
        Path, typer.Argument(help="CSV (UTF-8, commas, a header; also .gz) or Parquet.", show_default=False)
    ],
    epsilon: Annotated[str, typer.Option(help="Privacy loss, above 0: smaller is more private.", show_default=False)],
    delta: Annotated[str, typer.Option(help="Slack, well below 1 / number of records.", show_default=False)],
    rows: Annotated[
        str, typer.Option(help="Number of synthetic rows to write; as many as you like.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="File for the rows: CSV, or Parquet if it ends so.", show_default=False)],
    schema: Annotated[
        Path | None, typer.Option(help="What you know about the table (needed; see accord schema).")
    ] = None,
    learner: Annotated[
        str | None, typer.Option(help="gaussian or empirical; by default what fits the columns.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Column that says whose record it is; protects all of a unit.")
    ] = None,
    blocks: Annotated[str | None, typer.Option(help="Number of blocks; by default planned.")] = None,
    draws: Annotated[str | None, typer.Option(help="Draws of the coupling; by default planned.")] = None,
    records: Annotated[str | None, typer.Option(help="Records per vote; by default planned.")] = None,
    model: Annotated[Path | None, typer.Option(help="File for the released model, as JSON.")] = None,
    seed_for_tests: Annotated[
        str | None,
        typer.Option(help="Seed partition, learners, coupling and sampling, for tests. The noise is never seeded."),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Ledger of this table, charged before the release; see accord ledger.")
    ] = None,
    who: Annotated[str | None, typer.Option(help="Who asks, for the ledger; by default the login name.")] = None,
    why: Annotated[str | None, typer.Option(help="What for, for the ledger.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are already there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Learn the declared columns privately and write synthetic rows.

    Exit codes: 0 done; 2 bad input or arguments, nothing spent or written; 3 no answer, nothing written, but the budget
    is spent.
    """
    request = Request(
        data=data,
        schema=schema,
        epsilon=epsilon,
        delta=delta,
        rows=rows,
        out=out,
        learner=learner,
        unit=unit,
        blocks=blocks,
        draws=draws,
        records=records,
        model=model,
        seed=seed_for_tests,
        ledger=ledger,
        who=who,
        why=why,
        force=force,
    )
    with guarded():
        perform(request, json=json)


def perform(request: Request, *, json: bool, commands: tuple[str, ...] = ()) -> None:
    """Run a request and print its outcome."""
    warnings: list[str] = []

    def warn(message: str) -> None:
        warnings.append(message)
        say(message)

    outcome = run(request, warn=warn, progress=lambda: progress_bar(wanted=not json))
    content = document(outcome, warnings=tuple(warnings))
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
            "law.",
        )
