"""A private model of a declared table: numbers are cut into cells, and all columns are learned together."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from accord.accounting.figures import short_text
from accord.accounting.of_stages import settled
from accord.core import check as _check
from accord.core.budget import Budget
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.release import Release, composing
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared
from accord.core.spending import spending
from accord.core.unit_names import unit_word
from accord.core.verdict import judge, within_larger
from accord.ledger import Ledger
from accord.marginals import Column, Domain, MarginalLearner, MarginalModel, MarginalPlan, NumericBinning
from accord.marginals.verdicts import verdicts_of
from accord.synthesis.coded import CodedTable, coded_of
from accord.synthesis.cuts import Cut, CutPlan, check_cuts, cut_plan, make_cuts
from accord.synthesis.model import TableModel, table_errors
from accord.tables import Column as Declared
from accord.tables import Schema, Table

__all__ = ["Cut", "CutPlan", "TableLearner", "TablePlan"]

Progress = Callable[[int, int, str], None]
_FEWEST_CELLS, _MOST_CELLS, _MOST_ALONE = 8, 32, 256
_RECORDS_PER_CELL = 100
_TENTH = Fraction(1, 10)
_LOCATING = (Fraction(1, 20), _TENTH, Fraction(3, 20), Fraction(1, 5), Fraction(3, 10))
"""Parts of epsilon that locating columns without bounds may have: the least that suffices."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """All steps of a release, before a record is read.

    Parameters
    ----------
    cuts
        Of the columns of numbers.
    marginals
        Of the tables; of the largest domain that the cuts can give, so that the errors are the largest.
    promised
        The guarantee.

    """

    cuts: CutPlan
    marginals: MarginalPlan
    promised: ApproxDP

    def lines(self) -> list[str]:
        """Return the plan in words and numbers."""
        lines = []
        location = self.cuts.location
        if location is not None:
            spent = _spent(location.budget)
            lines.append(f"locate {', '.join(self.cuts.located)}: {location.blocks} blocks that must agree{spent}")
        lines += [
            f"column {cut.name}: {cut.how}, {cut.most_cells} cells at most{_spent(cut.budget)}"
            for cut in self.cuts.cuts
        ]
        return [*lines, *self.marginals.lines()]

    @property
    def expected_errors(self) -> dict[str, float]:
        """Mean total variation by noise at most, of each column by its own noise, as planned."""
        return {error.columns[0]: error.error for error in self.marginals.errors if error.way == 1}


def _spent(budget: Budget) -> str:
    """Return what a step spends, in words."""
    if not budget.epsilon:
        return ""
    return f", epsilon {short_text(budget.epsilon, up=True)}, delta {short_text(budget.delta, up=True)}"


@final
@dataclass(frozen=True, slots=True, init=False)
class TableLearner:
    """Learn numbers, labels and missing cells together: cut, count with noise, fit.

    Numbers are cut at declared edges; at every whole number where declared bounds leave few of them; else at private
    quantiles between declared bounds, or between ends that are found outward from where blocks of records agree that
    the numbers are. Values that many records share get cells of their own, and so do missing cells.

    Formal guarantees
    -----------------
    - Privacy: ``(epsilon, delta)`` under replacing one unit: what the cuts spend and the tables' guarantee add up to it
      (theory C2), and the tables see the cuts' outputs only.
    - All sizes and budgets follow from the schema, the number of units, epsilon and delta: `plan`.
    - Numbers without bounds count as at most 1e100 in size: each cell by itself.
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
    >>> sex = np.arange(6000, dtype=np.int32) % 2
    >>> table = Table(columns=(sex, 160.0 + 10 * sex + np.arange(6000) % 7), units=None, schema=declared)
    >>> learner = TableLearner(declared, epsilon=3, delta="1e-6")
    >>> print(learner.plan(6000).lines()[0])
    locate height: ...
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
        _check.store(self, schema=schema, epsilon=_check.epsilon(epsilon), delta=_check.delta(delta))
        if cells is not None:
            cells = _check.integer("cells", cells, least=2, most=1 << 12)
            if cells & (cells - 1):
                raise InvalidParameter("cells must be a power of two: cells are halved.")
        _check.store(self, cells=cells)

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
        cuts = self._cuts(count, several_records=several_records)
        return TablePlan(
            cuts=cuts,
            marginals=self._learner(self._widest(cuts), cuts).plan(count, several_records=several_records),
            promised=self.guarantee,
        )

    def release(
        self,
        table: Table | CodedTable,
        *,
        shared: SharedRandomness | None = None,
        randomness: PrivateRandomness | None = None,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
    ) -> Release[TableModel]:
        """Cut, measure, fit and return a model.

        Parameters
        ----------
        table
            Of this schema, in memory or in parts anywhere.
        shared
            Key of the blocks that locate columns without bounds; by default a fresh one.
        randomness
            Source of all noise; leave it out.
        progress
            Told how far the steps are: (done, all, what).
        ledger
            Charged after all checks and before the first look at a record.

        Warns
        -----
        VerdictWarning
            Of what a reader must know, see `accord.marginals.verdicts`.

        Raises
        ------
        InvalidParameter
            If the table is of another schema.
        NotEnoughRecords
            If there are too few units to find columns of numbers without bounds; nothing has been spent.
        BudgetExceeded
            If the ledger's cap does not allow it; nothing has been spent.
        NothingReleased
            If the blocks do not agree on where a column without bounds is. The budget is spent all the same.

        """
        source = require_private(randomness)
        if table.schema.read != self.schema.read:
            raise InvalidParameter("table must be of the learner's schema.")
        records = coded_of(table) if isinstance(table, Table) else table
        count, several = records.units, records.several_records
        word = unit_word(self.schema.unit, named=several)
        promised = ApproxDP(self.epsilon, self.delta, Neighbouring.REPLACE_ONE, word)
        cuts = self._cuts(count, several_records=several)
        self._check_tables(cuts, units=count, several_records=several)
        what = f"tables: {len(self.schema.read)} columns"
        with spending(ledger, promised, what=what), composing("basic") as run:
            found = make_cuts(records.numbers, cuts, promised=promised, shared=require_shared(shared), source=source)
            binnings = records.binnings(found)
            domain = Domain(
                _label_column(column) if binning is None else _number_column(column.name, binning)
                for column, binning in zip(self.schema.read, binnings, strict=True)
            )
            with within_larger():
                released = self._learner(domain, cuts).release_counted(
                    records.engine(binnings),
                    units=count,
                    several_records=several,
                    word=word,
                    randomness=source,
                    progress=progress,
                )
        model = TableModel(schema=self.schema, binnings=binnings, law=_law(released))
        known = [column.name for column in self.schema.read if column.mostly_missing]
        verdicts = verdicts_of(
            promised,
            units=count,
            weighted=several,
            errors=table_errors(model),
            mostly_missing=known,
        )
        judge(verdicts)
        return Release(model, promised, settled(run, promised))

    def _learner(self, domain: Domain, cuts: CutPlan) -> MarginalLearner:
        """Return the learner of the tables, which have all that the cuts leave."""
        rest = Budget(self.epsilon, self.delta) - cuts.budget
        return MarginalLearner(domain, epsilon=rest.epsilon, delta=rest.delta)

    def _cuts(self, units: int, *, several_records: bool) -> CutPlan:
        """Return the cuts, with their parts of the budget: the one place where it is split."""
        splits = [
            Budget(self.epsilon, self.delta).split(
                {"locate": (part, _TENTH), "quantiles": _TENTH, "tables": (1 - part - _TENTH, 1 - 2 * _TENTH)}
            )
            for part in _LOCATING
        ]
        plan = cut_plan(
            self.schema.read,
            units=units,
            cells=self.cells or self._cells(units),
            quantiles=splits[0]["quantiles"],
            locating=[parts["locate"] for parts in splits],
        )
        check_cuts(plan, self.schema.read, epsilon=self.epsilon, units=units, several_records=several_records)
        return plan

    def _widest(self, cuts: CutPlan) -> Domain:
        """Return the largest domain that the cuts can give."""
        sizes = {cut.name: cut.most_cells for cut in cuts.cuts}
        return Domain(_widest_column(column, sizes.get(column.name, 0)) for column in self.schema.read)

    def _check_tables(self, cuts: CutPlan, *, units: int, several_records: bool) -> None:
        """Plan the tables of the largest domain, so that what is refused there is refused before anything is spent."""
        self._learner(self._widest(cuts), cuts).plan(units, several_records=several_records)

    def _cells(self, units: int) -> int:
        """Return a power of two of cells that noise leaves something of; more if the column is alone."""
        most = _MOST_ALONE if len(self.schema.read) == 1 else _MOST_CELLS
        wanted = max(1.0, float(self.epsilon) * units / _RECORDS_PER_CELL)
        return int(min(most, max(_FEWEST_CELLS, 2 ** math.floor(math.log2(wanted)))))


def _law(released: Release[MarginalModel]) -> MarginalModel:
    if not isinstance(released.value, MarginalModel):  # pragma: no cover - tables always have an answer
        raise InvalidParameter("no tables were released.")
    return released.value


def _number_column(name: str, binning: NumericBinning) -> Column:
    """Return codes of cells, which stand for their middles, or for their lower ends where two middles are one float."""
    ends = np.array(binning.edges)
    middles = ends[:-1] + np.diff(ends) / 2
    apart = bool((middles[:-1] < middles[1:]).all())
    return Column(
        name, binning.cells + 1, kind="number", positions=middles if apart else ends[:-1], missing=binning.missing
    )


def _label_column(column: Declared) -> Column:
    """Return codes of labels, the last one for missing cells."""
    kind = "ordered" if column.kind == "ordinal" else "category"
    return Column(column.name, len(column.categories) + 1, kind=kind, missing=True)


def _widest_column(column: Declared, cells: int) -> Column:
    return _label_column(column) if column.is_label else Column(column.name, cells + 1, kind="number", missing=True)
