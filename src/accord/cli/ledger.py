"""``accord ledger``."""

import getpass
import sys
from fractions import Fraction
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accord.accounting.figures import short_text
from accord.cli.document import as_json, ledger_amounts, ledger_document
from accord.cli.guard import BAD_INPUT, Stop, guarded
from accord.core.errors import InvalidParameter
from accord.core.guarantee import Neighbouring
from accord.ledger import Entry, Ledger, verify_ledger
from accord.tables.names import escaped

__all__ = ["ledger", "login_name"]

ledger = typer.Typer(no_args_is_help=True, help="The budget of one table: what was spent, by whom, and what is left.")

Where = Annotated[str, typer.Argument(metavar="FILE", help="The ledger: a file, or postgresql://...")]
Who = Annotated[str | None, typer.Option(help="Who does this; by default the login name.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]

_RELATIONS = {
    "replace-one": Neighbouring.REPLACE_ONE,
    "replace-one-in-place": Neighbouring.REPLACE_ONE_IN_PLACE,
    "add-or-remove-one": Neighbouring.ADD_OR_REMOVE_ONE,
}


def login_name() -> str | None:
    """Return the name of the person at the computer, if it is known."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        return None
    return name if name.isprintable() else None


@ledger.command("create")
def create(
    *,
    where: Where,
    epsilon: Annotated[str, typer.Option(help="Cap on the total epsilon.", show_default=False)],
    delta: Annotated[str, typer.Option(help="Cap on the total delta.", show_default=False)],
    unit: Annotated[
        str,
        typer.Option(
            help='What is protected: record, or the name of the unit column (unit "record" if that is its name).'
        ),
    ] = "record",
    neighbouring: Annotated[
        str, typer.Option(help="replace-one, replace-one-in-place or add-or-remove-one.")
    ] = "replace-one",
    who: Who = None,
    why: Annotated[str | None, typer.Option(help="Why the cap is what it is.")] = None,
    json: Json = False,
) -> None:
    """Make the ledger of one table. Its relation and unit stay; its cap can be changed with a reason."""
    with guarded():
        if neighbouring not in _RELATIONS:
            raise InvalidParameter(f"--neighbouring must be one of {' or '.join(_RELATIONS)}.")
        relation = _RELATIONS[neighbouring]
        with Ledger.create(
            where, epsilon=epsilon, delta=delta, neighbouring=relation, unit=unit, who=_name(who), why=why
        ) as made:
            _print_totals(made, json=json)


@ledger.command("show")
def show(*, where: Where, json: Json = False) -> None:
    """Print every entry, the totals and what is left."""
    with guarded(), Ledger(where) as opened:
        entries = opened.entries()
        if json:
            content = _totals(opened)
            content["entries"] = [_plain(entry) for entry in entries]
            sys.stdout.write(as_json(content))
            return
        _print_entries(entries)
        _print_totals(opened, json=False)


@ledger.command("verify")
def verify(
    *,
    where: Where,
    head: Annotated[str | None, typer.Option(help="A head that you noted: the ledger must contain it.")] = None,
    json: Json = False,
) -> None:
    """Check every entry and the chain. Exit code 2 if anything is not as accord wrote it."""
    with guarded():
        found = verify_ledger(where, head=head)
        if json:
            names = ("holds", "entries", "head", "problem")
            sys.stdout.write(as_json({name: getattr(found, name) for name in names}))
        elif found.holds:
            print(f"The ledger holds: {found.entries} entries in one chain.\n  head: {found.head}")
        sys.stdout.flush()
        if not found.holds:
            raise Stop(BAD_INPUT, f"the ledger does not hold: {found.problem} Entries in order: {found.entries}.")


@ledger.command("cap")
def cap(
    *,
    where: Where,
    epsilon: Annotated[str, typer.Option(help="New cap on the total epsilon.", show_default=False)],
    delta: Annotated[str, typer.Option(help="New cap on the total delta.", show_default=False)],
    why: Annotated[str, typer.Option(help="The reason, kept in the ledger.", show_default=False)],
    who: Who = None,
    json: Json = False,
) -> None:
    """Raise or lower the cap, by an entry that says who and why. What is spent stays spent."""
    with guarded(), Ledger(where) as opened:
        opened.set_cap(epsilon=epsilon, delta=delta, who=_name(who) or "", why=why)
        _print_totals(opened, json=json)


def _name(who: str | None) -> str | None:
    return login_name() if who is None else who


def _totals(opened: Ledger) -> dict[str, Any]:
    totals = [
        {
            "rule": total.rule,
            **ledger_amounts(total.guarantee, up=True),
            "condition": total.condition,
            "enforced": total.enforced,
        }
        for total in opened.totals()
    ]
    return {**ledger_document(opened.statement()), "totals": totals}


def _print_totals(opened: Ledger, *, json: bool) -> None:
    if json:
        sys.stdout.write(as_json(_totals(opened)))
        return
    statement = opened.statement()
    line = statement.words
    print(f"{line[0].upper()}{line[1:]}.")
    for total in opened.totals():
        amounts = f"({_short(total.guarantee.epsilon, up=True)}, {_short(total.guarantee.delta, up=True)})"
        print(f"  {total.rule}: {amounts}{' (the cap is about this one)' if total.enforced else ''}; {total.condition}")
    print(f"  relation: {statement.cap.neighbouring.value}; unit: {escaped(statement.cap.unit)}")
    if statement.unconfirmed:
        print(f"  unconfirmed: {statement.unconfirmed} (still running, or ended hard; spent all the same)")
    print(f"  head: {statement.head}")


def _print_entries(entries: tuple[Entry, ...]) -> None:
    headings = ("entry", "time (UTC)", "kind", "epsilon", "delta", "who", "what and why")
    rows = [_cells(entry) for entry in entries]
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        for row in (headings, *rows):
            print("\t".join(row))
        return
    table = Table(*headings)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _cells(entry: Entry) -> tuple[str, ...]:
    said = [entry.what, entry.why, entry.note]
    of = [] if entry.charge is None else [f"of entry {entry.charge}"]
    return (
        str(entry.sequence),
        entry.time[:19].replace("T", " "),
        entry.kind,
        _short(entry.epsilon, up=entry.kind == "charge"),
        _short(entry.delta, up=entry.kind == "charge"),
        escaped(entry.who or ""),
        "; ".join([*of, *(escaped(text) for text in said if text)]),
    )


def _plain(entry: Entry) -> dict[str, Any]:
    return dict(zip(Entry.__dataclass_fields__, entry.row(), strict=True))


def _short(number: Fraction | None, *, up: bool) -> str:
    return "" if number is None else short_text(number, up=up)
