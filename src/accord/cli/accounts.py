"""The accounts of a release: report, release.json, and the curator's page."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord import __version__
from accord.cli.document import account_of, composition
from accord.cli.outcome import Outcome
from accord.core.errors import DataError, InvalidParameter
from accord.core.verdict import Verdict
from accord.evaluation import Utility, evaluate, train_synthetic_test_real
from accord.reports import Claim, Report, curator_page, tables_of
from accord.tables import Schema, Table

__all__ = ["curator_account", "report_of"]

_MOST_TARGETS = 3
_FEW_LABELS = 20


def report_of(outcome: Outcome, rows: Sequence[NDArray[Any]], *, warnings: tuple[Verdict, ...]) -> Report:
    """Return the report of an outcome with these synthetic rows."""
    release = outcome.release
    columns, pairs = tables_of(rows, schema=outcome.schema, errors=release.errors)
    return Report(
        version=__version__,
        account=account_of(outcome, warnings=warnings),
        claims=tuple(_claims(outcome.schema)),
        seeded=outcome.numbers.seed is not None,
        rows=outcome.numbers.rows,
        columns=columns,
        pairs=pairs,
        budget={} if outcome.ledger is None else {"words": composition(outcome.ledger)},
    )


def _claims(schema: Schema) -> list[Claim]:
    """Return what the schema states, which is taken as public knowledge."""
    by = "the schema: whoever wrote it says that it was not read off the rows"
    claims = []
    for column in schema.read:
        stated = []
        if column.categories:
            stated.append(f"{len(column.categories)} labels")
        if column.bounds is not None:
            stated.append("bounds")
        if column.edges:
            stated.append("edges of bins")
        if stated:
            claims.append(Claim(what=f"{column.name}: {' and '.join(stated)} are public knowledge", by=by))
    if schema.unit is not None:
        claims.append(Claim(what=f"all records of one unit of privacy have the same {schema.unit}", by=by))
    return claims


def curator_account(
    outcome: Outcome, table: Table, rows: Sequence[NDArray[Any]], *, warnings: tuple[Verdict, ...]
) -> str:
    """Return the curator's page: it depends on the real rows, outside the guarantee."""
    found = evaluate(table.columns, rows, schema=outcome.schema)
    return curator_page(
        report_of(outcome, rows, warnings=warnings), evaluation=found, utilities=_utilities(outcome.schema, table, rows)
    )


def _utilities(schema: Schema, table: Table, rows: Sequence[NDArray[Any]]) -> list[Utility]:
    """Return scores for a few columns of labels that can be predicted; none without scikit-learn."""
    targets = [column.name for column in schema.read if column.is_label and 2 <= len(column.categories) <= _FEW_LABELS]
    if len(schema.read) < 2:
        return []
    found = []
    for target in targets[:_MOST_TARGETS]:
        try:
            found.append(
                train_synthetic_test_real(table.columns, [*map(np.asarray, rows)], schema=schema, target=target)
            )
        except (DataError, InvalidParameter):  # too few rows, or no scikit-learn: there is nothing to compare
            continue
    return found
