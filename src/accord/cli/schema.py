"""``accord schema``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from accord.cli.guard import guarded
from accord.tables import check_output, draft_schema, outputs, read_header

__all__ = ["schema"]


def schema(
    *,
    data: Annotated[
        Path, typer.Argument(help="CSV (UTF-8, commas, a header; also .gz) or Parquet.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="File for the draft; by default it is printed.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is already there.")] = False,
) -> None:
    """Draft a schema from the names of the columns, for a person to complete. No row is read."""
    with guarded():
        target = None if out is None else check_output(out, option="--out", force=force, inputs=[data])
        text = draft_schema(read_header(data))
        if target is None:
            sys.stdout.write(text)
            return
        with outputs([target]) as files:
            files.write(target, text.encode("utf-8"))
            files.commit()
