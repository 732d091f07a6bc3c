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
        codes = self._without_noise(codes, generator)
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

        It is 0 in a column that is declared as required.
        """
        declared = {column.name: column for column in self.schema.read}
        absent = [(0, int(declared[name].required)) for name in names]
        return np.pad(self.law.marginal(names), absent)

    def _without_noise(self, codes: Ints, generator: Generator) -> Ints:
        """Draw again rows with a missing cell in a column of one number, where these do not stand out of the noise.

        What is left then is the number.
        """
        constant = [place for place in range(len(self.binnings)) if self._is_whole_constant(place)]
        for _ in range(_TRIES if constant else 0):
            wrong = (codes[:, constant] > 0).any(axis=1)
            if not wrong.any():
                break
            codes[wrong] = self.law.sample(int(wrong.sum()), generator)
        codes[:, constant] = 0
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


def table_errors(model: TableModel) -> TableErrors:
    """Return the expected errors of a model: of released numbers, free.

    A column that is declared as required has no missing cell: its last share is 0.
    """
    read, law = model.schema.read, model.law
    columns = {}
    for place, (column, binning, error) in enumerate(zip(read, model.binnings, law.errors.columns, strict=True)):
        absent = (0, int(column.required))
        shares, low, high = (np.pad(one, absent) for one in (law.marginal([place]), error.low, error.high))
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
