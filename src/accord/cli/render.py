"""An outcome for people: a table on a terminal, plain lines elsewhere."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from accord.accounting.account import stage_lines
from accord.tables.names import escaped

__all__ = ["print_document", "progress_bar"]

_MOST_CATEGORIES = 40

Line = tuple[str, str]


def print_document(content: dict[str, Any], *, commands: tuple[str, ...] = ()) -> None:
    """Print a document on stdout, behind the command lines that lead to it."""
    sections = [
        *([("Command", [("", command) for command in commands])] if commands else []),
        ("Released model", list(_model(content["model"]))),
        ("Guarantee", list(_guarantee(content))),
        ("Plan", list(_plan(content["plan"]))),
        ("Files", list(_files(content))),
    ]
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        _print_tables(console, sections)
    else:
        _print_lines(sections)


@contextmanager
def progress_bar(*, wanted: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """Give a function that moves a bar on stderr, or None if there is no terminal or it is not wanted."""
    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("releasing", total=None)

        def report(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total or None, description=what)

        yield report


def _model(model: dict[str, Any] | None) -> Iterator[Line]:
    if model is None:
        yield "", "none: the blocks did not agree"
    elif model["family"] == "tables":
        yield "columns", ", ".join(escaped(name) for name in model["columns"])
        yield "tables", f"{len(model['measured'])} measured, {model['cells']} cells fitted"
    elif "law" in model:
        yield "density", escaped(model["family"])
        yield "columns", ", ".join(escaped(name) for name in model["columns"])
    elif model["family"] == "normal":
        for name, mean, deviation in zip(model["columns"], model["mean"], model["standard_deviation"], strict=True):
            yield escaped(name), f"mean {_number(mean, unit=deviation)}, standard deviation {deviation:.6g}"
        if model["correlation"] is not None:
            yield "correlation", f"{model['correlation']:.4f}"
    else:
        yield "column", escaped(model["columns"][0])
        pairs = list(zip(model["categories"], model["probabilities"], strict=True))
        for category, probability in pairs[:_MOST_CATEGORIES]:
            yield escaped(category), f"{probability:.4f}"
        if len(pairs) > _MOST_CATEGORIES:
            yield "...", f"{len(pairs) - _MOST_CATEGORIES} more: see --json or --release"


def _number(value: float, *, unit: float) -> str:
    """Write a number to a ten-thousandth of ``unit``, however large it is beside it."""
    digits = 6 if value == 0 or not 0 < unit < abs(value) else min(17, 6 + round(math.log10(abs(value) / unit)))
    return f"{value:.{digits}g}"


def _guarantee(content: dict[str, Any]) -> Iterator[Line]:
    guarantee = content["guarantee"]
    yield "", guarantee["statement"]
    if guarantee["unit_column"] is not None:
        yield "unit", f"the records that share a value of {escaped(guarantee['unit_column'])}"
    yield "rows stand for", content["rows_stand_for"]
    yield "budget", guarantee["budget"]
    yield "seeded", "yes (partition, learners, coupling, sampling; never the noise)" if content["seeded"] else "no"
    yield "accord", content["accord"]


def _plan(plan: dict[str, Any]) -> Iterator[Line]:
    if "blocks" not in plan:
        yield "units", str(plan["units"])
        for stage in stage_lines(plan["stages"]):
            yield f"{stage['times']} x {escaped(stage['what'])}", f"{stage['mechanism']}, {stage['detail']}"
        yield "composition", plan["composition"]
        for name, error in plan["expected_errors"].items():
            yield f"expected error, {escaped(name)}", f"{error:.2g} in total variation"
        return
    yield "units", f"{plan['units']} in {plan['blocks']} blocks of {plan['block_size']}"
    yield "records per vote", str(plan["records_per_vote"])
    yield "draws", str(plan["draws"])
    yield "typical error", f"{plan['typical_error']:.2g} in total variation, if the columns are of the learnt family"


def _files(content: dict[str, Any]) -> Iterator[Line]:
    if not content["answer"]:
        yield "", "none: nothing was written"
        return
    yield "rows", f"{escaped(content['files']['rows'])} ({content['rows']} rows)"
    if content["files"]["model"] is not None:
        yield "model", escaped(content["files"]["model"])
    for name in ("report", "release"):
        if name in content["files"]:
            yield name, escaped(content["files"][name])
    if "curator_report" in content["files"]:
        yield "NOT for release", escaped(content["files"]["curator_report"])


def _print_tables(console: Console, sections: list[tuple[str, list[Line]]]) -> None:
    for title, lines in sections:
        console.print(Text(title, style="bold"))
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        alone = [value for label, value in lines if not label]
        for value in alone:
            console.print(Text(f"  {value}"), soft_wrap=True)
        for label, value in lines:
            if label:
                grid.add_row(Text(f"  {label}"), Text(value))
        console.print(grid)


def _print_lines(sections: list[tuple[str, list[Line]]]) -> None:
    for title, lines in sections:
        print(title)
        for label, value in lines:
            print(f"  {label}: {value}" if label else f"  {value}")
