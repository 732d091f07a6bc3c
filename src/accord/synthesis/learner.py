"""A private model of a declared table: numbers are counted on public grids, and all columns are learned together."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.release import Release
from accord.core.secret import PrivateRandomness
from accord.core.unit_names import unit_word
from accord.core.verdict import judge, within_larger
from accord.ledger import Ledger
from accord.marginals import MarginalLearner, MarginalModel, MarginalPlan, NumericBinning
from accord.marginals.verdicts import verdicts_of
from accord.synthesis.coded import CodedTable, coded_of, decimals_of, declared_edges, domain_of
from accord.synthesis.model import TableModel, table_errors
from accord.tables import Schema, Table

__all__ = ["TableLearner"]

Progress = Callable[[int, int, str], None]


@final
@dataclass(frozen=True, slots=True, init=False)
class TableLearner:
    """Learn numbers, labels and missing cells together: count with noise, fit.

    Numbers are counted in cells of a public grid that bounds and decimals give, or all numbers where there are no
    bounds; cells that hold much are cut and counted again. Declared edges are taken as they are. Missing cells have a
    cell of their own.

    Formal guarantees
    -----------------
    - Privacy: ``(epsilon, delta)`` under replacing one unit, that of `MarginalLearner`: all counts are in one account.
    - All steps and their noise follow from the schema, the number of units, epsilon and delta: `plan`.
    - Not promised: an accuracy, see `MarginalLearner`.

    Parameters
    ----------
    schema
        What was declared.
    epsilon
        Above 0, at most 1000.
    delta
        Above 0, below 1; well below 1 / number of units.

    Source
    ------
    docs/proofs/marginals.md, docs/proofs/cells.md, docs/proofs/table-learner.md.

    Examples
    --------
    >>> import numpy as np
    >>> from accord.tables import parse_schema
    >>> declared = parse_schema('''
    ... version = 2
    ... [[columns]]
    ... name = "sex"
    ... kind = "category"
    ... categories = ["f", "m"]
    ... [[columns]]
    ... name = "height"
    ... kind = "number"
    ... ''')
    >>> sex = np.arange(6000, dtype=np.int32) % 2
    >>> table = Table(columns=(sex, 160.0 + 10 * sex + np.arange(6000) % 7), units=None, schema=declared)
    >>> learner = TableLearner(declared, epsilon=3, delta="1e-6")
    >>> learner.plan(6000).lines()[2][:35]
    '4 x cells of height: discrete Gauss'
    >>> model = learner.release(table).value
    >>> from accord.randomness import SharedRandomness
    >>> rows = model.rows(1000, SharedRandomness(0).stream("rows"))
    >>> bool(abs(rows[1].mean() - table.columns[1].mean()) < 3)
    True

    """

    schema: Schema
    epsilon: Fraction
    delta: Fraction

    def __init__(self, schema: Schema, *, epsilon: Number, delta: Number) -> None:
        if not isinstance(schema, Schema):
            raise InvalidParameter("schema must be a Schema.")
        _check.store(self, schema=schema, epsilon=_check.epsilon(epsilon), delta=_check.delta(delta))

    @property
    def guarantee(self) -> ApproxDP:
        """What a release promises when each record is a unit of its own."""
        return ApproxDP(self.epsilon, self.delta, Neighbouring.REPLACE_ONE)

    def plan(self, units: int, *, several_records: bool = False) -> MarginalPlan:
        """Return all steps of a release, their noise and the errors to expect; reads no record.

        Parameters
        ----------
        units
            n, the number of units of privacy, public.
        several_records
            Whether a unit may have several records.

        """
        return self._learner().plan(units, several_records=several_records)

    def release(
        self,
        table: Table | CodedTable,
        *,
        randomness: PrivateRandomness | None = None,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
    ) -> Release[TableModel]:
        """Count, fit and return a model.

        Parameters
        ----------
        table
            Of this schema, in memory or in parts anywhere.
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
        BudgetExceeded
            If the ledger's cap does not allow it; nothing has been spent.

        """
        if table.schema.read != self.schema.read:
            raise InvalidParameter("table must be of the learner's schema.")
        records = coded_of(table) if isinstance(table, Table) else table
        units, several = records.units, records.several_records
        word = unit_word(self.schema.unit, named=several)
        learner = self._learner()
        with within_larger():
            released = learner.release_counted(
                records.engine(),
                units=units,
                several_records=several,
                word=word,
                what="tables",
                randomness=randomness,
                progress=progress,
                ledger=ledger,
            )
        law = released.value
        if not isinstance(law, MarginalModel):  # pragma: no cover - tables always have an answer
            raise InvalidParameter("no tables were released.")
        model = TableModel(schema=self.schema, binnings=self._binnings(law), law=law)
        promised = ApproxDP(self.epsilon, self.delta, Neighbouring.REPLACE_ONE, word)
        found = verdicts_of(
            promised,
            units=units,
            weighted=several,
            errors=table_errors(model),
            mostly_missing=[column.name for column in self.schema.read if column.mostly_missing],
        )
        judge(found)
        return Release(model, promised, released.stages)

    def _learner(self) -> MarginalLearner:
        return MarginalLearner(
            domain_of(self.schema), epsilon=self.epsilon, delta=self.delta, target=self.schema.target
        )

    def _binnings(self, law: MarginalModel) -> tuple[NumericBinning | None, ...]:
        """Return the cells of each column of numbers, None for labels."""
        found: list[NumericBinning | None] = []
        for place, column in enumerate(self.schema.read):
            if place in law.edges:
                found.append(
                    NumericBinning(law.edges[place], decimals=decimals_of(column), missing=not column.required)
                )
            else:
                found.append(None if column.is_label else declared_edges(column))
        return tuple(found)
