"""The command ``accord``."""

import logging
import os
import sys
import warnings
from typing import Annotated

import typer

from accord import __version__
from accord.cli.audit import audit
from accord.cli.check import check
from accord.cli.compose import compose
from accord.cli.demo import demo
from accord.cli.guard import say
from accord.cli.ledger import ledger
from accord.cli.model import report, sample
from accord.cli.plan import plan
from accord.cli.schema import schema
from accord.cli.synth import synth
from accord.core.errors import NotPrivateWarning
from accord.core.verdict import VerdictWarning

__all__ = ["app", "main"]

app = typer.Typer(
    name="accord",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("synth")(synth)
app.command("sample")(sample)
app.command("report")(report)
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


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Show a warning that accord itself gave, as a line; numerical warnings may depend on the data."""
    if category in {NotPrivateWarning, VerdictWarning}:
        say(f"warning: {message}")


def main() -> None:
    """Run the command line and end the program with its exit code.

    Warnings of numerical libraries are not shown, because whether there are any may depend on the data; those of accord
    are a line on stderr. ``ACCORD_DEBUG=1`` shows them all.

    A character that the terminal's encoding lacks is escaped, never an error. The program ends without tearing down the
    interpreter, where pyarrow's threads now and then abort (exit code 134 in one refusal of a hundred).
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    if os.environ.get("ACCORD_DEBUG") != "1":
        warnings.showwarning = _show_warning
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
