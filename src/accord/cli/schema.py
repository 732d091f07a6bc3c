"""``accord schema``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from accord.cli.discovery import Discovery, discovered_draft
from accord.cli.guard import UNEXPECTED, Stop, guarded
from accord.core.errors import InvalidParameter
from accord.tables import CsvFormat, Outputs, check_output, draft_schema, outputs, read_header
from accord.tables.files import files_of
from accord.tables.names import shown

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
    discover: Annotated[
        bool, typer.Option("--discover", help="Find kinds, labels and scales privately: spends --epsilon and --delta.")
    ] = False,
    epsilon: Annotated[str | None, typer.Option(help="What --discover may spend.")] = None,
    delta: Annotated[str | None, typer.Option(help="What --discover may spend.")] = None,
    unit: Annotated[str | None, typer.Option(help="With --discover: the column that says whose record it is.")] = None,
    ledger: Annotated[str | None, typer.Option(help="Ledger of this table, charged by --discover.")] = None,
    who: Annotated[str | None, typer.Option(help="Who asks, for the ledger; by default the login name.")] = None,
    why: Annotated[str | None, typer.Option(help="What for, for the ledger.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is already there.")] = False,
) -> None:
    """Draft a schema for a person to complete: from the names of the columns, or with --discover from private releases.

    Without --discover no row is read.
    """
    with guarded():
        target = None if out is None else check_output(out, option="--out", force=force, inputs=files_of(data))
        mark = "\t" if separator in {"tab", "\\t"} else separator
        form = CsvFormat(encoding=encoding, separator=mark, quote=quote, decimal=decimal)
        asked = Discovery(epsilon=epsilon, delta=delta, unit=unit, ledger=ledger, who=who, why=why)
        if not discover and any(option is not None for option in (epsilon, delta, unit, ledger, who, why)):
            raise InvalidParameter("--epsilon, --delta, --unit, --ledger, --who and --why belong to --discover.")
        with outputs([] if target is None else [target]) as files:  # before anything is spent
            text = (
                discovered_draft(data, csv=form, asked=asked)
                if discover
                else draft_schema(read_header(data, csv=form), csv=form)
            )
            if target is None:
                sys.stdout.write(text)
                return
            _write(files, target, text, spent=discover)


def _write(files: Outputs, target: Path, text: str, *, spent: bool) -> None:
    """Put a draft in place; one that was paid for is printed rather than lost."""
    try:
        files.write(target, text.encode("utf-8"))
        files.commit()
    except OSError as error:
        if not spent:
            raise
        sys.stdout.write(text)
        message = f"{shown(target.name)} could not be written ({error.strerror}): the draft is printed instead."
        raise Stop(UNEXPECTED, message) from error
