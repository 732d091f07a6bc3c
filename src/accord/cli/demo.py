"""``accord demo``."""

import importlib.resources
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

import accord
from accord.cli.guard import guarded
from accord.cli.request import Request
from accord.cli.synth import perform
from accord.core.errors import DataError, InvalidParameter

__all__ = ["demo", "example"]

_DATA, _SCHEMA = "flights.parquet", "flights.toml"
_ROWS, _REPORT = "flights-synthetic.csv", "flights-report.html"


def demo(
    *,
    out: Annotated[Path, typer.Option(help="Folder for the synthetic flights.")] = Path(),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Make synthetic flights from 336,776 real ones, with epsilon 1 and delta 1e-8, and a report.

    An earlier demo's output is replaced. Exit codes as for ``accord synth``.
    """
    with guarded(), ExitStack() as stack:
        if not out.is_dir():
            raise InvalidParameter("--out must be a folder that exists.")
        request = Request(
            data=example(_DATA, stack=stack),
            schema=example(_SCHEMA, stack=stack),
            epsilon="1",
            delta="1e-8",
            rows="10000",
            out=out / _ROWS,
            report=out / _REPORT,
            force=True,
        )
        perform(request, json=json, commands=(_command(request),))


def example(name: str, *, stack: ExitStack) -> Path:
    """Return an example file: of the installed package, or of the repository it runs from.

    Raises
    ------
    DataError
        If there is neither.

    """
    packaged = importlib.resources.files("accord") / "_examples" / name
    if packaged.is_file():
        return stack.enter_context(importlib.resources.as_file(packaged))
    source = Path(accord.__file__).resolve().parents[2] / "examples" / name
    if not source.is_file():
        raise DataError(f"the example file {name} is not part of this installation.")
    return source


def _command(request: Request) -> str:
    options = [
        ("--schema", str(request.schema)),
        ("--epsilon", request.epsilon),
        ("--delta", request.delta),
        ("--rows", request.rows),
        ("--out", str(request.out)),
        ("--report", str(request.report)),
    ]
    words = ["accord", "synth", str(request.data)]
    for option in options:
        words.extend(option)
    return shlex.join([*words, "--force"])
