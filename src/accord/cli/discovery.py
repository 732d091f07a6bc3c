"""``accord schema --discover``: a draft from private releases."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import final

import pyarrow as pa
import pyarrow.parquet as pq

from accord.cli.ledger import login_name
from accord.cli.render import progress_bar
from accord.core import check as _check
from accord.core.errors import InvalidParameter, SchemaMismatch
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.unit_names import unit_word
from accord.ledger import Ledger
from accord.synthesis.discovery import Discovered, discover
from accord.tables import CsvFormat, Draft, draft_schema, read_header, read_texts, units_from_cells
from accord.tables.files import files_of
from accord.tables.names import normal_form, shown

__all__ = ["Discovery", "discovered_draft"]

_MOST_SHOWN = 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The options of ``--discover`` as they were written; None where one was not given."""

    epsilon: str | None
    delta: str | None
    unit: str | None
    ledger: str | None
    who: str | None
    why: str | None


def discovered_draft(data: Path, *, csv: CsvFormat, asked: Discovery) -> str:
    """Return a draft with what was found privately; the budget is spent, and the draft says how much.

    Raises
    ------
    AccordError
        If the request cannot be met; nothing was spent.

    """
    if asked.epsilon is None or asked.delta is None:
        raise InvalidParameter("--discover needs --epsilon and --delta: what it may spend.")
    _check.epsilon(asked.epsilon, name="--epsilon")
    _check.delta(asked.delta, name="--delta")
    header = read_header(data, csv=csv)
    draft_schema(header, csv=csv)  # refuses twins before anything is read or spent
    unit = None if asked.unit is None else _position(header, asked.unit)
    names, cells = read_texts(data, csv=csv, unit=unit)
    learnt = [place for place, name in enumerate(names) if name and place != unit]
    if not learnt:
        raise SchemaMismatch("there is no column to look at.")
    units = None if unit is None else units_from_cells([cells[unit]], name=names[unit])
    with ExitStack() as stack:
        ledger = None
        if asked.ledger is not None:
            who = login_name() if asked.who is None else asked.who
            ledger = stack.enter_context(Ledger(asked.ledger, who=who, why=asked.why))
            word = unit_word(asked.unit, named=asked.unit is not None)
            ledger.check(ApproxDP(asked.epsilon, asked.delta, Neighbouring.REPLACE_ONE, word))
        report = stack.enter_context(progress_bar(wanted=True))
        release = discover(
            [cells[place] for place in learnt],
            names=[names[place] for place in learnt],
            epsilon=asked.epsilon,
            delta=asked.delta,
            units=units,
            unit=asked.unit,
            progress=report,
            ledger=ledger,
        )
    found = release.value if isinstance(release.value, tuple) else ()
    stored = _stored(data)
    note = (
        f"Found privately: epsilon {asked.epsilon.strip()} and delta {asked.delta.strip()} are spent, add them to what "
        f"you spend later. Look at each column: a kind or a list of labels may be wrong."
    )
    text = draft_schema(
        [name for place, name in enumerate(names) if place != unit],
        csv=csv,
        found={column.name: _draft(column, stored=stored.get(column.name)) for column in found},
        note=note,
    )
    return text if asked.unit is None else text.replace('# unit = "..."', f"unit = {shown(names[unit or 0])}")


def _position(header: tuple[str, ...], name: str) -> int:
    forms = [normal_form(other) for other in header]
    if forms.count(normal_form(name)) != 1:
        raise SchemaMismatch(f"the data file has no column {shown(name)}, or two: --unit must name one.")
    return forms.index(normal_form(name))


def _stored(data: Path) -> dict[str, str]:
    """Return for columns of a Parquet file the kind that their stored type allows, if it is one; nothing for CSV."""
    try:
        fields = list(pq.read_schema(files_of(data)[0]))
    except (pa.ArrowException, OSError, ValueError):
        return {}
    kinds = {}
    for field in fields:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            kinds[field.name] = "number"
        elif pa.types.is_date(kind):
            kinds[field.name] = "date"
        elif pa.types.is_timestamp(kind):
            kinds[field.name] = "datetime"
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            kinds[field.name] = "text"
    return kinds


def _draft(column: Discovered, *, stored: str | None) -> Draft:
    """Return the lines for one column, of a kind as which it can be read; labels in their order, not by frequency."""
    comments = []
    if stored == "text" and column.kind in {"integer", "number"}:
        return Draft(kind="drop", comments=("numbers that are stored as texts: store them as numbers first",))
    if column.kind == "category" and stored in {"number", "date", "datetime"}:
        values = ", ".join(label for label, _ in column.levels[:_MOST_SHOWN])
        return Draft(kind=stored, comments=(f"few different values: {values}",), lenient=True)
    if column.missing > 0.001:
        comments.append(f"about {100 * column.missing:.1f} % of the cells are missing")
    if column.kind == "text":
        comments.append("texts without a short list of frequent labels: declare its labels, or leave it out")
        return Draft(kind="drop", comments=tuple(comments))
    if column.kind == "boolean":
        return Draft(kind="category", categories=("true", "false"), comments=tuple(comments), lenient=True)
    if column.centre is not None and column.scale is not None:
        comments.append(f"median about {column.centre:.6g}, standard deviation about {column.scale:.3g}")
    if column.kind in {"integer", "number", "date", "datetime"}:
        comments.append("bounds = [.., ..] from what is publicly known would make learning better")
    labels = tuple(sorted((label for label, _ in column.levels), key=_order))
    return Draft(kind=column.kind, categories=labels, comments=tuple(comments), lenient=True)


def _order(label: str) -> tuple[int, float, str]:
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label
