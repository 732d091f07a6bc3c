"""The released law of a declared table, and rows drawn from it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import Distribution
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator, SharedRandomness
from accord.distributions import Categorical
from accord.marginals import MarginalModel, NumericBinning
from accord.marginals.verdicts import ColumnAccuracy, TableErrors
from accord.synthesis.conditions import Clause, holds
from accord.tables import Schema

__all__ = ["Accepted", "Columns", "ColumnsLaw", "Given", "Shares", "TableModel", "table_errors"]

_TRIES = 20
_DRAWS, _RAREST = 1_000_000, 100_000
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
    clause
        What rows must fulfil, if the law is one given a condition.
    masses
        With a clause: how cells of numbers lean without it.

    """

    schema: Schema
    binnings: tuple[NumericBinning | None, ...]
    law: MarginalModel
    clause: Clause = field(default_factory=dict)
    masses: tuple[NDArray[np.float64] | None, ...] = ()

    def weights(self, clause: Clause) -> dict[int, NDArray[np.float64]]:
        """Return for each column of a clause what share of each code's cells fulfils it."""
        weights = {}
        for place, allowed in clause.items():
            binning, size = self.binnings[place], self.law.domain.columns[place].size
            weight = np.zeros(size)
            if binning is None:
                values = size - (not self.schema.read[place].required)
                weight[:values] = allowed.holds(np.arange(values, dtype=np.float64))
            else:
                masses = self.law.marginal([place])
                for low, high in allowed.ranges:
                    levels = binning.levels_between(low, high, masses=masses)
                    weight[: binning.cells] += levels[1] - levels[0]
            if not self.schema.read[place].required:
                weight[-1] = allowed.missing and not self._is_whole_constant(place)  # rows have none there
            weights[place] = np.clip(weight, 0.0, 1.0)
        return weights

    def given(self, clause: Clause) -> "tuple[float, TableModel | None]":
        """Return the probability of a clause, and the model given it; None where it is impossible."""
        probability, law = self.law.given(self.weights(clause))
        if law is None:
            return 0.0, None
        return probability, replace(self, law=law, clause=clause, masses=self._masses())

    def _masses(self) -> tuple[NDArray[np.float64] | None, ...]:
        """Return the probabilities of each column's cells of numbers, by which these lean inside their cells."""
        return self.masses or tuple(
            None if binning is None else self.law.marginal([place]) for place, binning in enumerate(self.binnings)
        )

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
        masses = self._masses()
        found: list[NDArray[Any]] = []
        for place, (column, binning) in enumerate(zip(self.schema.read, self.binnings, strict=True)):
            if binning is None:
                labels = codes[:, place]
                found.append(np.where(labels >= len(column.categories), -1, labels).astype(np.int32))
                continue
            with np.errstate(divide="ignore", invalid="ignore"):  # cells of a single float have no slope and need none
                ranges = self.clause[place].ranges if place in self.clause else ()
                values = binning.decode(codes[:, place], generator, masses=masses[place], ranges=ranges)
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

    def given_any(self, clauses: Sequence[Clause]) -> "Given":
        """Return what is known of a condition of clauses that exclude each other."""
        found = [self.given(clause) for clause in clauses]
        return Given(
            probability=min(sum(one for one, _ in found), 1.0),
            parts=tuple((one, model) for one, model in found if model is not None),
        )

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
class Given:
    """A law given a condition: the probability of the condition, and a model of each of its clauses."""

    probability: float
    parts: tuple[tuple[float, TableModel], ...]

    def rows(self, count: int, generator: Generator) -> Columns:
        """Return rows that fulfil the condition, shared among its clauses by their probabilities, in random order."""
        steps = np.cumsum([share for share, _ in self.parts])
        level = (np.arange(count) + generator.random()) / count * steps[-1]
        sizes = np.bincount(np.searchsorted(steps, level, side="right").clip(max=len(steps) - 1), minlength=len(steps))
        drawn = [model.rows(int(size), generator) for (_, model), size in zip(self.parts, sizes, strict=True) if size]
        order = generator.permutation(count)
        return tuple(np.concatenate(cells)[order] for cells in zip(*drawn, strict=True))


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

    def given_any(self, clauses: Sequence[Clause]) -> "Accepted":
        """Return what is known of a condition, from draws."""
        return Accepted(law=self, clauses=tuple(clauses))

    def shares(self, names: Sequence[str]) -> Shares:
        """Return the shares of the one column of labels, the last of missing cells, of which this law has none."""
        del names
        return np.array([*(self.law.probabilities if isinstance(self.law, Categorical) else ()), 0.0])


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Accepted:
    """A law given a condition, by drawing until enough rows fulfil it."""

    law: ColumnsLaw
    clauses: tuple[Clause, ...]

    @property
    def probability(self) -> float:
        """The share of a million draws that fulfil the condition."""
        cells = self.law.rows(_DRAWS, SharedRandomness(1).stream("probability"))
        return float(holds(self.clauses, as_numbers(cells)).mean())

    def rows(self, count: int, generator: Generator) -> Columns:
        """Return rows that fulfil the condition.

        Raises
        ------
        InvalidParameter
            If fewer than one draw in a hundred thousand does.

        """
        kept: list[Columns] = []
        have = drawn = 0
        while have < count:
            cells = self.law.rows(_DRAWS, generator)
            there = holds(self.clauses, as_numbers(cells))
            kept.append(tuple(column[there] for column in cells))
            have, drawn = have + int(there.sum()), drawn + _DRAWS
            if have * _RAREST < drawn:
                raise InvalidParameter("where holds in fewer than one row of a hundred thousand of this release.")
        return tuple(np.concatenate(cells)[:count] for cells in zip(*kept, strict=True))


def as_numbers(cells: Columns) -> list[NDArray[np.float64]]:
    """Return cells as numbers or positions of labels, NaN where missing."""
    return [np.where(column < 0, np.nan, column) if column.dtype.kind == "i" else column for column in cells]


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
