"""``accord sample`` and ``accord report``: what a kept release gives, free of charge."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from accord import __version__
from accord.cli.document import as_json
from accord.cli.guard import guarded, say
from accord.core import check as _check
from accord.core.verdict import collected
from accord.synthesis import SyntheticTable
from accord.synthesis.probability import Probability
from accord.synthesis.terms import MOST_ROWS
from accord.tables import check_csv, check_output, columns_as_bytes, write_file
from accord.tables.names import shown

__all__ = ["report", "sample"]

_FREE = "nothing: rows and reports of a kept release are free of charge"
Model = Annotated[Path, typer.Argument(help="A file that accord synth --model wrote.", show_default=False)]
Out = Annotated[Path, typer.Option(help="File to write.", show_default=False)]
Seed = Annotated[str | None, typer.Option(help="For the same rows again.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is already there.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def sample(
    *,
    model: Model,
    rows: Annotated[str, typer.Option(help="Number of synthetic rows; as many as you like.", show_default=False)],
    out: Out,
    where: Annotated[
        str | None, typer.Option(help="Condition that all rows fulfil, such as \"state = 'CA' and age >= 65\".")
    ] = None,
    seed: Seed = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write synthetic rows of a release that was kept. No record is read and nothing is spent, however often.

    Exit codes: 0 done; 2 bad input or arguments, nothing written.
    """
    with guarded():
        count = _check.integer("--rows", rows, least=1, most=MOST_ROWS)
        target = check_output(out, option="--out", force=force, inputs=[model])
        parquet = out.suffix.lower() == ".parquet"
        table = SyntheticTable.load(model)
        if not parquet:
            check_csv(table.schema)
        with collected() as verdicts:
            cells = table.cells(count, where=where, seed=_seed(seed))
            asked = {} if where is None else _share(table.probability(where))
        for verdict in verdicts:
            say(f"warning: {verdict}")
        write_file(target, columns_as_bytes(cells, schema=table.schema, parquet=parquet))
        _tell({"rows": count, **_about(table), **asked, "files": {"rows": str(out)}}, json=json)


def report(
    *,
    model: Model,
    out: Annotated[
        Path,
        typer.Option(help="File for the report: a page if it ends in .html, data if in .json.", show_default=False),
    ],
    seed: Seed = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the report of a release that was kept. No record is read and nothing is spent.

    Exit codes: 0 done; 2 bad input or arguments, nothing written.
    """
    with guarded():
        check_output(out, option="--out", force=force, inputs=[model])
        table = SyntheticTable.load(model)
        table.report(out, seed=_seed(seed))
        _tell({**_about(table), "files": {"report": str(out)}}, json=json)


def _seed(text: str | None) -> int | None:
    return None if text is None else _check.integer("--seed", text, least=0, most=2**63 - 1)


def _about(table: SyntheticTable) -> dict[str, Any]:
    account = table.account()
    return {"guarantee": account["guarantee"], "rows_stand_for": account["rows_stand_for"], "spent": _FREE}


def _share(probability: Probability) -> dict[str, Any]:
    return {"where": {"probability": probability.value, "expected_error": probability.error}}


def _tell(content: dict[str, Any], *, json: bool) -> None:
    if json:
        sys.stdout.write(as_json({"accord": __version__, **content}))
    else:
        if "rows" in content:
            print(f"rows         {content['rows']}, each for {content['rows_stand_for']}")
        print(f"guarantee    {content['guarantee']['statement']}")
        print(f"spent        {content['spent']}")
        if "where" in content:
            found = content["where"]
            print(f"condition    {Probability(value=found['probability'], error=found['expected_error'])} of the rows")
        for what, path in content["files"].items():
            print(f"{what:<12} {shown(path)}")
    sys.stdout.flush()
