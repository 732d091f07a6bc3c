"""``accord compose``."""

import math
import sys
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accord import __version__
from accord.accounting.accountant import PrivacyAccountant
from accord.accounting.best import Bound, CompositionTable
from accord.accounting.composition import NoGuarantee
from accord.cli.document import as_json
from accord.cli.guard import guarded
from accord.cli.rounds import Plan, Rounds, from_file, from_flag, relation_named
from accord.core.errors import InvalidParameter

__all__ = ["compose"]

_FLAG = "EPSILONxCOUNT"


def compose(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(help="TOML, or JSON if it ends in .json, with a list of rounds.", show_default=False),
    ] = None,
    pure: Annotated[list[str] | None, typer.Option(metavar=_FLAG, help="Such as 0.1x1000.")] = None,
    approx: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EPSILON,DELTAxCOUNT", help="0.1,1e-10x1000; stable mode, and all that has only a guarantee."
        ),
    ] = None,
    laplace: Annotated[
        list[str] | None, typer.Option(metavar=_FLAG, help="Laplace noise, sensitivity / scale.")
    ] = None,
    exponential: Annotated[list[str] | None, typer.Option(metavar=_FLAG, help="Exponential mechanism.")] = None,
    gaussian: Annotated[
        list[str] | None, typer.Option(metavar="SIGMAxCOUNT", help="Gaussian noise, sigma / sensitivity: 50x1000.")
    ] = None,
    discrete_laplace: Annotated[
        list[str] | None,
        typer.Option(metavar=_FLAG, help="Discrete Laplace noise on one integer that moves by at most 1: 1 / scale."),
    ] = None,
    discrete_gaussian: Annotated[
        list[str] | None,
        typer.Option(metavar="SIGMAxCOUNT", help="Discrete Gaussian noise on one integer that moves by at most 1."),
    ] = None,
    delta: Annotated[str | None, typer.Option(help="The delta of the total.", show_default=False)] = None,
    neighbouring: Annotated[
        str | None,
        typer.Option(
            help="'replace one', 'replace one in place' or 'add or remove one' [default: replace one].",
            show_default=False,
        ),
    ] = None,
    unit: Annotated[str | None, typer.Option(help="Unit of privacy [default: record].", show_default=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Put the guarantees of many releases together: every rule side by side, the best one marked.

    For rounds that are fixed in advance; each may depend on what came out before. All totals are upper bounds. Exit
    codes: 0 done, also if the total is infinite (it says why); 2 bad input.
    """
    with guarded():
        plan = from_file(file) if file is not None else Plan(rounds=())
        given = {
            "pure": pure,
            "approx": approx,
            "laplace": laplace,
            "exponential": exponential,
            "gaussian": gaussian,
            "discrete-laplace": discrete_laplace,
            "discrete-gaussian": discrete_gaussian,
        }
        flags = [from_flag(kind, text) for kind, texts in given.items() for text in texts or ()]
        rounds = [*plan.rounds, *flags]
        allowed = delta if delta is not None else plan.delta
        if not rounds:
            raise InvalidParameter("no rounds: give a file, or flags such as --pure 0.1x1000.")
        if allowed is None:
            raise InvalidParameter("--delta is missing: what the total may spend of it, such as 1e-6, or 0.")
        relation = relation_named(neighbouring or plan.neighbouring or "replace one")
        accountant = PrivacyAccountant()
        for equal in rounds:
            accountant.charge(equal.loss(relation, unit or plan.unit or "record"), times=equal.count)
        table = accountant.table(delta=allowed)
        content = _document(rounds, table, delta=allowed)
        if json:
            sys.stdout.write(as_json(content))
        else:
            _print(content, table)


def _document(rounds: list[Rounds], table: CompositionTable, *, delta: str) -> dict[str, Any]:
    best = table.best
    return {
        "accord": __version__,
        "delta": delta,
        "neighbouring": best.total.neighbouring.value,
        "unit": best.total.unit,
        "rounds": [{"kind": r.kind, "numbers": list(r.numbers), "count": r.count} for r in rounds],
        "bounds": [_bound(bound) for bound in table.bounds],
        "best": _bound(best),
    }


def _bound(bound: Bound) -> dict[str, Any]:
    total = bound.total
    if isinstance(total, NoGuarantee):
        numbers: dict[str, Any] = dict.fromkeys(("epsilon", "epsilon_float", "delta", "delta_float"))
        return {"rule": bound.rule, "source": bound.source, **numbers, "reason": total.reason}
    return {
        "rule": bound.rule,
        "source": bound.source,
        "epsilon": _digits(total.epsilon, 17),
        "epsilon_float": _float_above(total.epsilon),
        "delta": _digits(total.delta, 17),
        "delta_float": _float_above(total.delta),
        "reason": None,
    }


def _float_above(value: Fraction) -> float:
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def _digits(value: Fraction, digits: int) -> str:
    """Return so many significant digits, rounded up: what is printed is an upper bound too."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    plain = rounded == 0 or -5 <= rounded.adjusted() <= digits
    return f"{rounded:f}" if plain else str(rounded).replace("E", "e")


def _print(content: dict[str, Any], table: CompositionTable) -> None:
    count = sum(entry["count"] for entry in content["rounds"])
    title = (
        f"Total of {count} round{'' if count == 1 else 's'} at delta {content['delta']} "
        f"({content['neighbouring']} {content['unit']})"
    )
    rows = [
        (
            "*" if bound is table.best and not isinstance(bound.total, NoGuarantee) else "",
            bound.rule,
            *_cells(bound),
            bound.source,
        )
        for bound in table.bounds
    ]
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        print(title)
        for mark, rule, epsilon, delta, source in rows:
            print(f"{mark or ' '} {rule}: {epsilon}{f', delta {delta}' if delta else ''} [{source}]")
        return
    grid = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
    for name in ("", "rule", "epsilon", "delta", "source"):
        grid.add_column(name, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row), style="bold" if row[0] else None)
    console.print(grid)


def _cells(bound: Bound) -> tuple[str, str]:
    if isinstance(bound.total, NoGuarantee):
        return f"infinite: {bound.total.reason}", ""
    return _digits(bound.total.epsilon, 8), _digits(bound.total.delta, 8)
