"""One synthesis of a declared table: what is refused, read, charged and released, in an order that is a promise."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from accord.core.blocks import Progress
from accord.core.coupling import Learner
from accord.core.errors import FitFailed, InvalidParameter, LedgerError, NothingReleased, SchemaMismatch
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.unit_names import unit_word
from accord.core.verdict import Verdict, collected, tell
from accord.density.family import DensityFamily
from accord.ledger import Ledger, Statement
from accord.marginals.verdicts import verdicts_of
from accord.synthesis.by_votes import synthesise
from accord.synthesis.choice import block_learner, density_family
from accord.synthesis.coded import CodedTable, coded_batches
from accord.synthesis.on_workers import coded_on_workers
from accord.synthesis.outlook import Outlook, outlook_of_blocks, outlook_of_density, outlook_of_tables
from accord.synthesis.release import TableRelease, of_synthesis, release_by_density, release_by_tables
from accord.synthesis.synthetic import SyntheticTable
from accord.synthesis.terms import Terms
from accord.tables import Schema, Table, parse_schema, read_batches, read_schema
from accord.tables.dtypes import FrameKind
from accord.tables.frames import read_data
from accord.tables.reader import Told, units_in, what_is_read
from accord.workers import DaskWorkers

__all__ = ["TableTask", "schema_of", "task_of"]

_NO_MODEL = "no answer: no model fits what was released; nothing was written, and the budget is spent all the same."


def schema_of(schema: Schema | Path | str) -> Schema:
    """Return a schema: itself, that of a file, or that of a text of several lines.

    Raises
    ------
    SchemaMismatch
        If it is none of these, or says what no schema says.

    """
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str) and "\n" in schema:
        return parse_schema(schema)
    if not isinstance(schema, (str, Path)):
        raise SchemaMismatch("schema must be a Schema, the path of a schema's file, or the text of one.")
    return read_schema(Path(schema))


def task_of(schema: Schema, terms: Terms) -> "TableTask":
    """Return the task of these terms; what no learner can do with the schema is refused here.

    Raises
    ------
    SchemaMismatch, InvalidParameter
        If the learner does not fit the declared columns, or needs what is not installed.

    """
    if terms.takes_blocks:
        blocks = block_learner(schema, name=terms.learner, option=terms.option)
        return TableTask(schema=schema, terms=terms, blocks=blocks)
    return TableTask(schema=schema, terms=terms, family=density_family(schema, name=terms.learner, option=terms.option))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableTask:
    """A schema, the terms, and the learner that fits both: public facts only.

    Parameters
    ----------
    schema, terms
        What is known of the table, and what is asked for.
    blocks
        The learner of blocks that must agree, for terms that name one.
    family
        The density of numbers, for terms that name one. With neither, it is the tables.

    """

    schema: Schema
    terms: Terms
    blocks: Learner | None = None
    family: DensityFamily | None = None

    @property
    def promised(self) -> ApproxDP:
        """The guarantee of the release."""
        word = unit_word(self.schema.unit, named=self.schema.unit is not None)
        return ApproxDP(self.terms.epsilon, self.terms.delta, Neighbouring.REPLACE_ONE, word)

    def outlook(self, units: int) -> Outlook:
        """Return what a release would do with so many units of privacy; reads no record.

        Raises
        ------
        NotEnoughRecords
            As in `run`.

        """
        if self.blocks is not None:
            return outlook_of_blocks(self.blocks, self.schema, self.terms, units=units, promised=self.promised)
        if self.family is not None:
            return outlook_of_density(self.schema, self.terms, units=units, promised=self.promised)
        return outlook_of_tables(self.schema, self.terms, units=units, promised=self.promised)

    def read(
        self,
        data: Any,  # noqa: ANN401 - any container
        *,
        whole: bool = False,
        told: Told | None = None,
    ) -> Table | CodedTable:
        """Read what the release needs of a table.

        Parameters
        ----------
        data
            As in `synthesise_table`. Files that tables are learnt from are read a batch at a time, and kept as codes.
        whole
            Whether all cells are wanted as they are, for a comparison with the real rows.
        told
            As in `accord.tables.read_table`.

        Raises
        ------
        InvalidParameter, DataError, SchemaMismatch
            As `accord.tables.frames.read_data`.

        """
        if whole or self.blocks is not None or self.family is not None or not isinstance(data, (str, Path)):
            return read_data(data, schema=self.schema, told=told)
        path = Path(data)
        batches = read_batches(path, schema=self.schema, told=told)
        return coded_batches(batches, schema=self.schema, what=what_is_read(path))

    @contextmanager
    def read_on(
        self,
        workers: DaskWorkers,
        data: Any,  # noqa: ANN401 - any container
        *,
        told: Told | None = None,
    ) -> Iterator[CodedTable]:
        """Give the table as codes that stay on workers until the end of the block: see `coded_on_workers`.

        Raises
        ------
        InvalidParameter
            If the learner is another than the tables.
        AccordError
            As `coded_on_workers`.

        """
        if self.blocks is not None or self.family is not None:
            raise InvalidParameter("workers count tables: leave the learner out, or read the table on one machine.")
        with coded_on_workers(data, schema=self.schema, workers=workers, told=told) as table:
            yield table

    def run(
        self,
        table: Table | CodedTable,
        *,
        frame: FrameKind = "pyarrow",
        progress: Progress | None = None,
        ledger: Ledger | None = None,
    ) -> SyntheticTable:
        """Charge, release, and keep what a reader must know; what public facts say is told whatever the release is.

        Parameters
        ----------
        table
            Of this schema, from `read`.
        frame
            As what synthetic rows are given.
        progress
            Told how far the steps are: (done, all, what).
        ledger
            Charged after all checks and before the first look at a record.

        Raises
        ------
        AccordError
            If the release cannot be made; nothing was spent.
        NothingReleased
            If there is no model; the budget is spent all the same.

        """
        with _told_again() as verdicts:
            self._tell_of_request(table)
            release = self._released(table, progress, ledger)
            statement = _statement(ledger)
        return SyntheticTable(
            release=release,
            schema=self.schema,
            terms=self.terms,
            verdicts=tuple(verdicts),
            ledger=statement,
            frame=frame,
        )

    def _tell_of_request(self, table: Table | CodedTable) -> None:
        if isinstance(table, CodedTable):
            units, several = table.units, table.several_records
        else:
            units, several = units_in(table), table.units is not None
        weighted = several and self.blocks is None
        for verdict in verdicts_of(self.promised, units=units, weighted=weighted):
            tell(verdict)

    def _released(self, table: Table | CodedTable, progress: Progress | None, ledger: Ledger | None) -> TableRelease:
        epsilon, delta, seed = self.terms.epsilon, self.terms.delta, self.terms.seed
        if self.blocks is not None and isinstance(table, Table):
            return self._by_blocks(self.blocks, table, progress, ledger)
        if self.family is not None and isinstance(table, Table):
            return release_by_density(
                table, self.family, epsilon=epsilon, delta=delta, seed=seed, progress=progress, ledger=ledger
            )
        return release_by_tables(table, epsilon=epsilon, delta=delta, progress=progress, ledger=ledger)

    def _by_blocks(
        self, learner: Learner, table: Table, progress: Progress | None, ledger: Ledger | None
    ) -> TableRelease:
        try:
            synthesis = synthesise(
                table.records,
                learner=learner,
                epsilon=self.terms.epsilon,
                delta=self.terms.delta,
                units=table.units,
                blocks=self.terms.blocks,
                draws=self.terms.draws,
                records_per_vote=self.terms.records_per_vote,
                seed=self.terms.seed,
                progress=progress,
                ledger=ledger,
                unit=self.schema.unit,
            )
        except FitFailed:  # a fit in a block is that block's affair, so this was the last one, on what was released
            raise NothingReleased(_NO_MODEL, guarantee=self.promised) from None
        return of_synthesis(synthesis, schema=self.schema)


@contextmanager
def _told_again() -> Iterator[list[Verdict]]:
    """Collect the verdicts that are told inside, and tell them outside too, whatever happens."""
    found: list[Verdict] = []
    try:
        with collected() as verdicts:
            found = verdicts
            yield verdicts
    finally:
        for verdict in found:
            tell(verdict, stacklevel=5)


def _statement(ledger: Ledger | None) -> Statement | None:
    try:
        return None if ledger is None else ledger.statement()
    except LedgerError as error:  # the release is charged and made: it is not lost for want of a total
        tell(Verdict("total-not-shown", f"the total of the ledger cannot be shown: {error}"))
        return None
