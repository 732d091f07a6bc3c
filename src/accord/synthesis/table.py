"""The front door: a table in, a synthetic table out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accord.core import check as _check
from accord.core.blocks import Progress
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.ledger import Ledger
from accord.synthesis.outlook import Outlook
from accord.synthesis.synthetic import SyntheticTable
from accord.synthesis.task import TableTask, schema_of, task_of
from accord.synthesis.terms import terms_of
from accord.tables import Schema
from accord.tables.dtypes import kind_of
from accord.workers import DaskWorkers, is_dask_frame

__all__ = ["MOST_UNITS", "plan_table", "synthesise_table"]

MOST_UNITS = 10**12


def synthesise_table(
    data: Path | str | Mapping[str, Any] | Any,  # noqa: ANN401 - other libraries' frames
    schema: Schema | Path | str,
    *,
    epsilon: Number,
    delta: Number,
    unit: str | None = None,
    learner: str | None = None,
    blocks: int | None = None,
    draws: int | None = None,
    records_per_vote: int | None = None,
    ledger: Ledger | None = None,
    progress: Progress | None = None,
    workers: DaskWorkers | None = None,
    seed: int | None = None,
    target: str | None = None,
) -> SyntheticTable:
    """Learn a declared table privately; the result draws synthetic rows free of charge.

    Formal guarantees
    -----------------
    - Privacy: ``(epsilon, delta)`` under replacing one record, or all records of one unit where a unit is named; the
      number of records, or of units, is public. See `TableLearner`, `accord.learning.PrivateLearner` and
      `accord.PrivateDensity` for why.
    - Order: everything that can be refused by public facts is refused before a record is read; the ledger is asked
      before, and charged after all checks and before anything is released.
    - Silence: what is returned is a function of public facts and of what was released; it holds no record.
    - Equality: ``accord synth`` releases the same with the same terms.
    - Not promised: that reading succeeds for both of two neighbouring tables, see `accord.tables.Table`; an answer by
      blocks that must agree; an accuracy, which `plan_table` and the verdicts tell.

    Parameters
    ----------
    data
        A frame of pandas, polars or pyarrow, a mapping of names to arrays or lists, or the path of a CSV or Parquet
        file, of a folder of such files, or a pattern of their names. A frame of pyarrow or polars is read as a Parquet
        file of it would be; in arrays, NaN and None are missing.
    schema
        What you know about the table: a `Schema`, the path of a schema's file, or its text.
    epsilon
        From 1e-9 to 1000.
    delta
        Above 0, well below 1 / number of units.
    unit
        The column that says whose record it is, if the schema does not name it: protects all of a unit.
    learner
        "auto" or "tables": noisy tables of a few columns each; "blocks", "gaussian" or "empirical": one law that blocks
        of records agree on; "gaussian-mixture:K" or "scipy:FAMILY": a density of numbers.
    blocks, draws, records_per_vote
        k, R and l for a learner of blocks; by default planned.
    ledger
        The budget of this table.
    progress
        Told how far the steps are: (done, all, what).
    workers
        Where the files, or the partitions of a data frame of dask, are read and counted; by default here. They are
        trusted, see SECURITY.md.
    seed
        Fixes everything but the noise and the cut into blocks, for tests.
    target
        The column that models of the synthetic rows will predict, in place of the schema's: its relations with the
        others weigh more in what tables are measured. Other learners than the tables do not look at it.

    Returns
    -------
    SyntheticTable
        With ``answered`` False if the blocks did not agree.

    Warns
    -----
    VerdictWarning
        Of what a reader must know; `SyntheticTable.verdicts` keeps them.

    Raises
    ------
    InvalidParameter, SchemaMismatch, DataError, NotEnoughRecords, BudgetExceeded
        If the request cannot be met; nothing was spent.
    NothingReleased
        If nothing could be learnt from what was released; the budget is spent all the same.

    Source
    ------
    docs/proofs/table-learner.md, docs/proofs/sampler.md, docs/proofs/private-density.md.

    Examples
    --------
    >>> import numpy as np
    >>> schema = '''
    ... version = 3
    ... [[columns]]
    ... name = "age"
    ... kind = "integer"
    ... bounds = [0, 99]
    ... [[columns]]
    ... name = "member"
    ... kind = "boolean"
    ... '''
    >>> data = {"age": np.arange(5000) % 70, "member": np.arange(5000) % 3 == 0}
    >>> synthetic = synthesise_table(data, schema, epsilon=1, delta="1e-6")
    >>> rows = synthetic.sample(1000)
    >>> sorted(rows), len(rows["age"]), synthetic.guarantee.epsilon
    (['age', 'member'], 1000, Fraction(1, 1))

    """
    task = _task(
        schema_of(schema).with_target(target),
        unit=unit,
        epsilon=epsilon,
        delta=delta,
        learner=learner,
        blocks=blocks,
        draws=draws,
        records_per_vote=records_per_vote,
        seed=seed,
    )
    if ledger is not None:
        if not isinstance(ledger, Ledger):
            raise InvalidParameter("ledger must be a Ledger: open it by accord.ledger.Ledger(path).")
        ledger.check(task.promised)
    if workers is not None or is_dask_frame(data):
        if workers is None:
            raise InvalidParameter("a data frame of dask needs workers=, such as accord.workers.DaskWorkers.")
        with task.read_on(workers, data) as table:
            return task.run(
                table, frame="pandas" if is_dask_frame(data) else "pyarrow", progress=progress, ledger=ledger
            )
    frame = kind_of(data)
    return task.run(task.read(data), frame=frame, progress=progress, ledger=ledger)


def plan_table(
    schema: Schema | Path | str,
    size: int,
    *,
    epsilon: Number,
    delta: Number,
    unit: str | None = None,
    learner: str | None = None,
    blocks: int | None = None,
    draws: int | None = None,
    records_per_vote: int | None = None,
) -> Outlook:
    """Return what `synthesise_table` would do: steps, budgets, errors to expect, verdicts. No record is read.

    Parameters
    ----------
    schema
        As in `synthesise_table`.
    size
        How many records the table has, or units where one is named: public.
    epsilon, delta, unit, learner, blocks, draws, records_per_vote
        As in `synthesise_table`.

    Raises
    ------
    InvalidParameter, SchemaMismatch, NotEnoughRecords
        As in `synthesise_table`.

    Examples
    --------
    >>> schema = '''
    ... version = 3
    ... [[columns]]
    ... name = "member"
    ... kind = "boolean"
    ... '''
    >>> outlook = plan_table(schema, 100_000, epsilon=1, delta="1e-6")
    >>> outlook.enough.startswith("yes"), outlook.errors["member"] < 0.001
    (True, True)
    >>> plan_table(schema, 10, epsilon=1, delta="1e-6").enough.startswith("no")
    True

    """
    task = _task(
        schema,
        unit=unit,
        epsilon=epsilon,
        delta=delta,
        learner=learner,
        blocks=blocks,
        draws=draws,
        records_per_vote=records_per_vote,
    )
    return task.outlook(_check.integer("size", size, least=1, most=MOST_UNITS))


def _task(schema: Schema | Path | str, *, unit: str | None, **given: Any) -> TableTask:  # noqa: ANN401 - terms
    terms = terms_of(**given)
    return task_of(schema_of(schema).with_unit(unit), terms)
