"""How far a table's synthetic columns are from its records: a model's expected errors by the names of columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.learning.declared.model import TableModel
from accord.marginals import PairError

__all__ = ["ColumnAccuracy", "TableErrors", "table_errors"]

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnAccuracy:
    """What was released of one column, and how far it is expected to be from the records.

    Parameters
    ----------
    error
        Mean total variation; of records, or of units where all records of a unit weigh 1 together.
    merged
        The part of it that putting rare labels, or neighbouring cells, together loses.
    shares
        Of each label or cell of numbers, the last one of missing cells, in the model.
    low, high
        Between these each true share lies, with a probability of at least 95 % for each.
    edges
        Of the cells of numbers; empty for labels.

    """

    error: float
    merged: float
    shares: Floats
    low: Floats
    high: Floats
    edges: tuple[float, ...] = ()

    @property
    def missing(self) -> float:
        """The released share of missing cells."""
        return float(self.shares[-1])


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableErrors:
    """Expected errors by names of columns; a pair that no measured table holds is not there: it is not known."""

    columns: Mapping[str, ColumnAccuracy]
    pairs: Mapping[tuple[str, str], PairError]


def table_errors(model: TableModel) -> TableErrors:
    """Return the expected errors of a model: of released numbers, free.

    A column that is declared as required has no missing cell in the rows: what the model has of them is shared out.
    """
    read, law = model.schema.read, model.law
    columns = {}
    for place, (column, binning, error) in enumerate(zip(read, model.binnings, law.errors.columns, strict=True)):
        shares, low, high = law.marginal([place]), error.low.copy(), error.high.copy()
        if column.required:
            for one in (shares, low, high):
                one[-1] = 0.0
            left = float(shares.sum())
            if left > 0:
                shares, low = shares / left, np.minimum(low / left, 1.0)
                high = np.minimum(high / left, 1.0)
            low, high = np.minimum(low, shares), np.maximum(high, shares)
        columns[column.name] = ColumnAccuracy(
            error=error.error,
            merged=error.merged,
            shares=shares,
            low=low,
            high=high,
            edges=() if binning is None else binning.edges,
        )
    names = [column.name for column in read]
    pairs = {(names[left], names[right]): pair for (left, right), pair in law.errors.pairs.items()}
    return TableErrors(columns=columns, pairs=pairs)
