"""The command ``accord``."""

import logging
import os
import sys
from typing import Annotated

import typer

from accord import __version__
from accord.cli.audit import audit
from accord.cli.check import check
from accord.cli.compose import compose
from accord.cli.demo import demo
from accord.cli.ledger import ledger
from accord.cli.plan import plan
from accord.cli.schema import schema
from accord.cli.synth import synth

__all__ = ["app", "main"]

app = typer.Typer(
    name="accord",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("synth")(synth)
app.command("schema")(schema)
app.command("demo")(demo)
app.command("compose")(compose)
app.command("plan")(plan)
app.command("check")(check)
app.command("audit")(audit)
app.add_typer(ledger, name="ledger")


def _version(value: bool) -> None:
    if value:
        print(f"accord {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """From a table of sensitive records to synthetic ones, with differential privacy."""


def main() -> None:
    """Run the command line and end the program with its exit code.

    A character that the terminal's encoding lacks is escaped, never an error. The program ends without tearing down the
    interpreter, where pyarrow's threads now and then abort (exit code 134 in one refusal of a hundred).
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    code: str | int | None = 0
    try:
        app(prog_name="accord")
    except SystemExit as end:
        code = end.code
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # a closed pipe: whoever read it has gone
            code = code or 1
    os._exit(code if isinstance(code, int) else int(code is not None))
