"""The command ``accord``."""

import sys
from typing import Annotated

import typer

from accord import __version__
from accord.cli.demo import demo
from accord.cli.ledger import ledger
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
    """Run the command line. A character that the terminal's encoding lacks is escaped, never an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    app(prog_name="accord")
