"""The curator's page of a release: it compares with the real rows, outside the guarantee."""

import numpy as np

from accord.core.alone import alone
from accord.core.errors import DataError, InvalidParameter
from accord.evaluation import Evaluation, Utility, evaluate, train_synthetic_test_real
from accord.reports import curator_page
from accord.synthesis.release import Columns
from accord.synthesis.synthetic import SyntheticTable
from accord.tables import Schema, Table

__all__ = ["curator_account"]

_MOST_TARGETS = 3
_FEW_LABELS = 20


def curator_account(synthetic: SyntheticTable, table: Table, cells: Columns) -> str:
    """Return the curator's page on these synthetic rows: it depends on the real ones, and is not for release.

    Formal guarantees
    -----------------
    - Silence: whether the tables can be compared depends on the real records, and is not public either. A comparison
      that fails leaves a page that says so; nothing is raised, printed or warned of.
    """
    comparison = alone(lambda: _comparison(synthetic.schema, table, cells), failed=None)
    evaluation, utilities = comparison or (None, [])
    return curator_page(synthetic.report_of(cells), evaluation=evaluation, utilities=utilities)


def _comparison(schema: Schema, table: Table, cells: Columns) -> tuple[Evaluation, list[Utility]]:
    return evaluate(table.columns, cells, schema=schema), _utilities(schema, table, cells)


def _utilities(schema: Schema, table: Table, cells: Columns) -> list[Utility]:
    """Return scores for a few columns of labels that can be predicted; none without scikit-learn."""
    targets = [column.name for column in schema.read if column.is_label and 2 <= len(column.categories) <= _FEW_LABELS]
    if len(schema.read) < 2:
        return []
    found = []
    for target in targets[:_MOST_TARGETS]:
        try:
            found.append(
                train_synthetic_test_real(table.columns, [*map(np.asarray, cells)], schema=schema, target=target)
            )
        except (DataError, InvalidParameter):  # too few rows, or no scikit-learn: there is nothing to compare
            continue
    return found
