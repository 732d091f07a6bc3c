"""A private model of a declared table: numbers are cut into cells, and all columns are learned together."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord import _check
from accord._exact import Number
from accord.errors import InvalidParameter, NotEnoughRecords
from accord.ledger import Ledger, spending
from accord.ledger.figures import short_text
from accord.marginals.binning import NumericBinning
from accord.marginals.domain import Column, Domain
from accord.marginals.learner import MarginalLearner
from accord.marginals.model import MarginalModel
from accord.marginals.plan import MarginalPlan
from accord.marginals.table_model import TableModel
from accord.privacy import ApproxDP, Neighbouring, Release
from accord.randomness import PrivateRandomness, require_private
from accord.tables import Column as Declared
from accord.tables import Schema, Table
from accord.tables.names import shown

__all__ = ["Cut", "TableLearner", "TablePlan"]

Progress = Callable[[int, int, str], None]
_CUTS_SHARE, _CUTS_SHARE_WITHOUT_BOUNDS = Fraction(1, 10), Fraction(1, 4)
_FEWEST_CELLS, _MOST_CELLS, _MOST_ALONE = 8, 32, 256
_RECORDS_PER_CELL = 100
_WHOLE_CELLS = 64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How the numbers of one column become codes.

    Parameters
    ----------
    name
        Of the column.
    how
        "declared edges", "whole numbers" between declared bounds, or "private quantiles".
    cells
        At most so many.
    epsilon
        What it spends: 0 but for private quantiles.

    """

    name: str
    how: str
    cells: int
    epsilon: Fraction


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """All steps of a release, before a record is read.

    Parameters
    ----------
    cuts
        One for each column of numbers.
    marginals
        Of the tables; of the largest domain that the cuts can give, so that the errors are the largest.
    promised
        The guarantee.

    """

    cuts: tuple[Cut, ...]
    marginals: MarginalPlan
    promised: ApproxDP

    def lines(self) -> list[str]:
        """Return the plan in words and numbers."""
        cuts = [
            f"column {cut.name}: {cut.how}, {cut.cells} cells at most"
            + (f", epsilon {short_text(cut.epsilon, up=True)}" if cut.epsilon else "")
            for cut in self.cuts
        ]
        return [*cuts, *self.marginals.lines()]

    @property
    def expected_errors(self) -> dict[int, float]:
        """Mean total variation by noise of tables of that many columns; the largest of each kind."""
        found: dict[int, float] = {}
        for error in self.marginals.errors:
            found[error.way] = max(found.get(error.way, 0.0), error.error)
        return found


@final
@dataclass(frozen=True, slots=True, init=False)
class TableLearner:
    """Learn numbers, labels and missing cells together: cut, count with noise, fit.

    Numbers are cut at declared edges; at every whole number where declared bounds leave few of them; else at private
    quantiles, between declared bounds or none. Missing cells are a code of their own.

    Formal guarantees
    -----------------
    - Privacy: ``(epsilon, delta)`` under replacing one unit: the cuts' epsilons and the tables' guarantee add up to it
      (theory C2), and the tables see the cuts' outputs only.
    - All sizes and budgets follow from the schema, the number of units, epsilon and delta: `plan`.
    - Not promised: an accuracy, see `MarginalLearner`.

    Parameters
    ----------
    schema
        What was declared.
    epsilon
        Above 0, at most 1000.
    delta
        Above 0, below 1; well below 1 / number of units.
    cells
        Cells of a column of numbers that is cut at private quantiles, a power of two; chosen from n by default.

    Source
    ------
    docs/proofs/marginals.md, docs/proofs/table-learner.md.

    Examples
    --------
    >>> from accord.tables import Column
    >>> declared = Schema(columns=(Column(name="sex", kind="category", categories=("f", "m")),
    ...                            Column(name="height", kind="number", decimals=1)))
    >>> sex = np.arange(2000, dtype=np.int32) % 2
    >>> table = Table(columns=(sex, 160.0 + 10 * sex + np.arange(2000) % 7), units=None, schema=declared)
    >>> learner = TableLearner(declared, epsilon=3, delta="1e-6")
    >>> print(learner.plan(2000).lines()[0])
    column height: private quantiles, 32 cells at most, epsilon 0.75
    >>> model = learner.release(table).value
    >>> from accord.randomness import SharedRandomness
    >>> rows = model.rows(1000, SharedRandomness(0).stream("rows"))
    >>> bool(abs(rows[1].mean() - table.columns[1].mean()) < 3)
    True

    """

    schema: Schema
    epsilon: Fraction
    delta: Fraction
    cells: int | None

    def __init__(self, schema: Schema, *, epsilon: Number, delta: Number, cells: int | None = None) -> None:
        if not isinstance(schema, Schema):
            raise InvalidParameter("schema must be a Schema.")
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "epsilon", _check.epsilon(epsilon))
        object.__setattr__(self, "delta", _check.delta(delta))
        if cells is not None:
            cells = _check.integer("cells", cells, least=2, most=1 << 12)
            if cells & (cells - 1):
                raise InvalidParameter("cells must be a power of two: cells are halved.")
        object.__setattr__(self, "cells", cells)

    @property
    def guarantee(self) -> ApproxDP:
        """What a release promises when each record is a unit of its own."""
        return ApproxDP(self.epsilon, self.delta, Neighbouring.REPLACE_ONE)

    def plan(self, units: int, *, several_records: bool = False) -> TablePlan:
        """Return all steps of a release, their noise and the errors to expect; reads no record.

        Parameters
        ----------
        units
            n, the number of units of privacy, public.
        several_records
            Whether a unit may have several records.

        Raises
        ------
        NotEnoughRecords
            As in `release`.

        """
        count = _check.integer("units", units, least=1)
        cuts = self._cuts(count)
        sizes = {cut.name: cut.cells for cut in cuts}
        domain = Domain(_widest_column(column, sizes.get(column.name, 0)) for column in self.schema.read)
        return TablePlan(
            cuts=cuts,
            marginals=self._learner(domain, cuts).plan(count, several_records=several_records),
            promised=self.guarantee,
        )

    def release(
        self,
        table: Table,
        *,
        randomness: PrivateRandomness | None = None,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
    ) -> Release[TableModel]:
        """Cut, measure, fit and return a model.

        Parameters
        ----------
        table
            Of this schema.
        randomness
            Source of all noise; leave it out.
        progress
            Told how far the steps are: (done, all, what).
        ledger
            Charged after all checks and before the first look at a record.

        Raises
        ------
        InvalidParameter
            If the table is of another schema.
        NotEnoughRecords
            If there are too few units to find columns of numbers without bounds; nothing has been spent.
        BudgetExceeded
            If the ledger's cap does not allow it; nothing has been spent.

        """
        source = require_private(randomness)
        if table.schema.read != self.schema.read:
            raise InvalidParameter("table must be of the learner's schema.")
        units = None if table.units is None else table.units
        count = len(table) if units is None else int(units.max()) + 1
        word = "record" if units is None else (table.schema.unit or "unit")
        promised = ApproxDP(self.epsilon, self.delta, Neighbouring.REPLACE_ONE, word)
        cuts = {cut.name: cut for cut in self._cuts(count)}
        with spending(ledger, promised, what=f"tables: {len(self.schema.read)} columns"):
            binnings = [
                None
                if column.is_label
                else _binning(column, cuts[column.name], values, units=units, word=word, source=source)
                for column, values in zip(self.schema.read, table.columns, strict=True)
            ]
            domain = Domain(
                _label_column(column) if binning is None else binning.column(column.name)
                for column, binning in zip(self.schema.read, binnings, strict=True)
            )
            codes = np.column_stack(
                [
                    np.where(values < 0, len(column.categories), values) if binning is None else binning.encode(values)
                    for column, binning, values in zip(self.schema.read, binnings, table.columns, strict=True)
                ]
            )
            released = self._learner(domain, tuple(cuts.values())).release(
                codes, units=units, unit=None if units is None else word, randomness=source, progress=progress
            )
        return Release(TableModel(schema=self.schema, binnings=tuple(binnings), law=_law(released)), promised)

    def _learner(self, domain: Domain, cuts: tuple[Cut, ...]) -> MarginalLearner:
        spent = sum((cut.epsilon for cut in cuts), Fraction(0))
        return MarginalLearner(domain, epsilon=self.epsilon - spent, delta=self.delta)

    def _cuts(self, units: int) -> tuple[Cut, ...]:
        numbers = [column for column in self.schema.read if column.is_number]
        fixed = {column.name: _fixed_cut(column) for column in numbers}
        private = [column for column in numbers if fixed[column.name] is None]
        bounded = all(column.bounds is not None for column in private)
        share = self.epsilon * (_CUTS_SHARE if bounded else _CUTS_SHARE_WITHOUT_BOUNDS) / max(1, len(private))
        self._refuse_few(private, share=share, units=units)
        cells = self.cells or self._cells(units)
        return tuple(
            fixed[column.name] or Cut(name=column.name, how="private quantiles", cells=cells, epsilon=share)
            for column in numbers
        )

    def _refuse_few(self, columns: list[Declared], *, share: Fraction, units: int) -> None:
        """Refuse to look for numbers without bounds among too few units: public numbers alone decide."""
        lost = [shown(column.name) for column in columns if column.bounds is None]
        needed = NumericBinning.units_needed(share) if lost else 0
        if units < needed:
            names = ", ".join(lost)
            message = (
                f"to find where the numbers of {names} are, {needed} records or units of privacy are needed at this "
                f"epsilon, and there are {units}: state bounds for them in the schema, or leave them out. Nothing was "
                f"spent."
            )
            raise NotEnoughRecords(message, needed=needed, present=units)

    def _cells(self, units: int) -> int:
        """Return a power of two of cells that noise leaves something of; more if the column is alone."""
        most = _MOST_ALONE if len(self.schema.read) == 1 else _MOST_CELLS
        wanted = max(1.0, float(self.epsilon) * units / _RECORDS_PER_CELL)
        return int(min(most, max(_FEWEST_CELLS, 2 ** math.floor(math.log2(wanted)))))


def _fixed_cut(column: Declared) -> Cut | None:
    """Return the cut of a column that needs no look at the data, None for the others."""
    if column.edges:
        return Cut(name=column.name, how="declared edges", cells=len(column.edges) - 1, epsilon=Fraction(0))
    if (column.bounds is not None and column.decimals == 0) or column.kind == "date":
        whole = _whole_numbers(column)
        if whole is not None and whole <= _WHOLE_CELLS:
            return Cut(name=column.name, how="whole numbers", cells=whole, epsilon=Fraction(0))
    return None


def _whole_numbers(column: Declared) -> int | None:
    if column.bounds is None:
        return None
    count = math.floor(column.bounds[1]) - math.ceil(column.bounds[0]) + 1
    return count if count >= 1 else None


def _decimals(column: Declared) -> int | None:
    return 0 if column.format is not None else column.decimals


def _binning(
    column: Declared,
    cut: Cut,
    values: NDArray[Any],
    *,
    units: NDArray[np.int64] | None,
    word: str,
    source: PrivateRandomness,
) -> NumericBinning:
    decimals = _decimals(column)
    if cut.how == "declared edges":
        return NumericBinning(column.edges, decimals=decimals, missing=True)
    if cut.how == "whole numbers" and column.bounds is not None:
        first = math.ceil(column.bounds[0])
        return NumericBinning(np.arange(cut.cells + 1) + first - 0.5, decimals=decimals, missing=True)
    released = NumericBinning.private(
        values,
        epsilon=cut.epsilon,
        cells=cut.cells,
        bounds=column.bounds,
        decimals=decimals,
        missing=True,
        units=units,
        unit=None if units is None else word,
        randomness=source,
    )
    if not isinstance(released.value, NumericBinning):  # pragma: no cover - quantiles always have an answer
        raise InvalidParameter("no cells were released.")
    return released.value


def _law(released: Release[MarginalModel]) -> MarginalModel:
    if not isinstance(released.value, MarginalModel):  # pragma: no cover - tables always have an answer
        raise InvalidParameter("no tables were released.")
    return released.value


def _label_column(column: Declared) -> Column:
    """Return codes of labels, the last one for missing cells."""
    kind = "ordered" if column.kind == "ordinal" else "category"
    return Column(column.name, len(column.categories) + 1, kind=kind, missing=True)


def _widest_column(column: Declared, cells: int) -> Column:
    return _label_column(column) if column.is_label else Column(column.name, cells + 1, kind="number", missing=True)
