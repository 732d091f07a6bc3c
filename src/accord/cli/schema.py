"""``accord schema``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from accord.cli.guard import guarded
from accord.tables import CsvFormat, check_output, draft_schema, outputs, read_header

__all__ = ["schema"]


def schema(
    *,
    data: Annotated[
        Path, typer.Argument(help="CSV (UTF-8, commas, a header; also .gz) or Parquet.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="File for the draft; by default it is printed.")] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of a CSV file, such as latin-1 or utf-16.")] = "utf-8",
    separator: Annotated[str, typer.Option(help="What separates cells: , ; | or tab.")] = ",",
    quote: Annotated[str, typer.Option(help="The quotation mark of a CSV file, or an empty text.")] = '"',
    decimal: Annotated[str, typer.Option(help="The decimal mark of numbers: . or ,")] = ".",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is already there.")] = False,
) -> None:
    """Draft a schema from the names of the columns, for a person to complete. No row is read."""
    with guarded():
        target = None if out is None else check_output(out, option="--out", force=force, inputs=[data])
        mark = "\t" if separator in {"tab", "\\t"} else separator
        form = CsvFormat(encoding=encoding, separator=mark, quote=quote, decimal=decimal)
        text = draft_schema(read_header(data, csv=form), csv=form)
        if target is None:
            sys.stdout.write(text)
            return
        with outputs([target]) as files:
            files.write(target, text.encode("utf-8"))
            files.commit()
