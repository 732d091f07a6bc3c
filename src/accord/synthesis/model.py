"""The released law of a declared table, and rows drawn from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import Distribution
from accord.core.shared import Generator
from accord.distributions import Categorical
from accord.marginals import MarginalModel, NumericBinning
from accord.marginals.verdicts import ColumnAccuracy, TableErrors
from accord.tables import Schema

__all__ = ["Columns", "ColumnsLaw", "Shares", "TableModel", "table_errors"]

_TRIES = 20
_LARGEST_WHOLE = 2.0**53 - 1
Ints = NDArray[np.int64]
Columns = tuple[NDArray[Any], ...]
Shares = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableModel:
    """A private model of numbers, labels and missing cells.

    Formal guarantees
    -----------------
    - Everything here follows from what was released and from the schema; drawing rows is free.
    - A column that is declared as required never has a missing cell; other columns have as many as the law says.
    - Not promised: that rows drawn with ``rounded=True`` are independent; see `MarginalModel.rounded`.

    Parameters
    ----------
    schema
        What was declared.
    binnings
        Of each column that is read; None for labels.
    law
        Of codes.

    """

    schema: Schema
    binnings: tuple[NumericBinning | None, ...]
    law: MarginalModel

    def rows(self, count: int, generator: Generator, *, rounded: bool = True) -> Columns:
        """Return synthetic cells, one array of shape (count,) for each of ``schema.read``.

        Parameters
        ----------
        count
            At least 1.
        generator
            Where the choices come from.
        rounded
            Whether tables of one and two columns are the law's, rounded, rather than drawn.

        Returns
        -------
        tuple
            float64 with NaN, or int32 positions of labels with -1, for a missing cell, as in `Table.columns`.

        """
        count = _check.integer("count", count, least=1)
        codes = self.law.rounded(count, generator) if rounded else self.law.sample(count, generator)
        codes = self._without_missing(codes, generator)
        found: list[NDArray[Any]] = []
        for place, (column, binning) in enumerate(zip(self.schema.read, self.binnings, strict=True)):
            if binning is None:
                labels = codes[:, place]
                found.append(np.where(labels >= len(column.categories), -1, labels).astype(np.int32))
                continue
            with np.errstate(divide="ignore", invalid="ignore"):  # cells of a single float have no slope and need none
                values = binning.decode(codes[:, place], generator, masses=self.law.marginal([place]))
            low, high = column.bounds or (
                (-_LARGEST_WHOLE, _LARGEST_WHOLE) if column.kind == "integer" else (-np.inf, np.inf)
            )
            found.append(np.clip(values, low, high))
        return tuple(found)

    @property
    def has_shares(self) -> bool:
        """Whether there are cells that have shares."""
        return True

    def shares(self, names: Sequence[str]) -> Shares:
        """Return the shares of labels and cells of these columns, one axis a column, the last entry for missing cells.

        Those of a missing cell in a column that is declared as required are shared out.
        """
        table = self.law.marginal(names)
        declared = {column.name: column for column in self.schema.read}
        for axis, name in enumerate(names):
            if declared[name].required:
                np.moveaxis(table, axis, -1)[..., -1] = 0.0
        total = float(table.sum())
        return table / total if total > 0 else table

    def _without_missing(self, codes: Ints, generator: Generator) -> Ints:
        """Draw again the rows that have a missing cell where none may be; what is left then, from single columns."""
        required = [
            place for place, column in enumerate(self.schema.read) if column.required or self._is_whole_constant(place)
        ]
        missing = [self.law.domain.columns[place].size - 1 for place in required]
        if not required:
            return codes
        for _ in range(_TRIES):
            wrong = (codes[:, required] == missing).any(axis=1)
            if not wrong.any():
                return codes
            codes[wrong] = self.law.sample(int(wrong.sum()), generator)
        for place, last in zip(required, missing, strict=True):
            wrong = codes[:, place] == last
            codes[wrong, place] = _draw(self.law.marginal([place])[:last], int(wrong.sum()), generator)
        return codes

    def _is_whole_constant(self, place: int) -> bool:
        """Whether a column is one number, and no missing cells of it were released above the noise."""
        binning, errors = self.binnings[place], self.law.errors
        if binning is None or binning.cells > 1 or not binning.missing or errors is None:
            return False
        return float(errors.columns[place].low[-1]) <= 0


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnsLaw:
    """A law of a learner's own family, as the law of a declared table.

    Formal guarantees
    -----------------
    - As for `TableModel`. Numbers beyond declared bounds become the nearest bound.

    Parameters
    ----------
    schema
        What was declared.
    law
        Of vectors with a number for each column that is read, or of the labels of the only one.

    """

    schema: Schema
    law: Distribution

    @property
    def has_shares(self) -> bool:
        """Whether there are cells that have shares: those of labels."""
        return isinstance(self.law, Categorical)

    def rows(self, count: int, generator: Generator) -> Columns:
        """Return synthetic cells, as `TableModel.rows`."""
        sample = np.asarray(self.law.sample(count, generator)).reshape(count, -1)
        found: list[NDArray[Any]] = []
        for column, values in zip(self.schema.read, sample.T, strict=True):
            if column.is_label:
                codes = {label: code for code, label in enumerate(column.categories)}
                found.append(np.array([codes.get(value, -1) for value in values.tolist()], dtype=np.int32))
            else:
                numbers = values.astype(np.float64)
                found.append(numbers if column.bounds is None else np.clip(numbers, *column.bounds))
        return tuple(found)

    def shares(self, names: Sequence[str]) -> Shares:
        """Return the shares of the one column of labels, the last of missing cells, of which this law has none."""
        del names
        return np.array([*(self.law.probabilities if isinstance(self.law, Categorical) else ()), 0.0])


def _draw(masses: NDArray[np.float64], count: int, generator: Generator) -> Ints:
    """Return codes by their masses, all equally likely if none has any."""
    total = float(masses.sum())
    law = masses / total if total > 0 else np.full(len(masses), 1 / len(masses))
    return generator.choice(len(masses), size=count, p=law).astype(np.int64)


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
