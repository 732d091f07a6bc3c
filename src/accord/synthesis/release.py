"""Releases of declared tables by several learners, each as the same plain facts and a way to draw rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accord.core.blocks import Progress
from accord.core.budget import Budget
from accord.core.coupling import Distribution
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.release import Composed, Stage
from accord.core.shared import SharedRandomness
from accord.core.spending import spending
from accord.core.unit_names import unit_word
from accord.core.verdict import tell
from accord.density.family import DensityFamily
from accord.density.plan import density_plan
from accord.density.release import release_density
from accord.distributions import Categorical, Normal
from accord.ledger import Ledger
from accord.marginals.verdicts import TableErrors, verdicts_of
from accord.synthesis.by_votes import SamplePlan, Synthesis
from accord.synthesis.coded import CodedTable, coded_of
from accord.synthesis.learner import TableLearner
from accord.synthesis.model import Columns, ColumnsLaw, Shares, TableModel, table_errors
from accord.tables import Schema, Table
from accord.tables.reader import units_in

__all__ = ["Columns", "Shares", "TableRelease", "of_synthesis", "release_by_density", "release_by_tables"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableRelease:
    """What was released of a table. Nothing here depends on the data but through private releases.

    Parameters
    ----------
    learner
        What was learnt, in words.
    guarantee
        The promise.
    units
        Number of units of privacy, public.
    stages
        The mechanisms that ran, as in `Release`.
    model
        Released numbers of the model, for machines; None without an answer.
    sizes
        Of blocks that had to agree; None for other learners.
    errors
        How far its columns and pairs are expected to be from the records; None where that is not known.
    law
        Of the columns that are read; None without an answer.

    """

    learner: str
    guarantee: ApproxDP
    units: int
    stages: tuple[Stage | Composed, ...]
    model: Mapping[str, Any] | None
    sizes: SamplePlan | None = None
    errors: TableErrors | None = None
    law: TableModel | ColumnsLaw | None = None

    @property
    def answered(self) -> bool:
        """Whether there is a model to draw from."""
        return self.law is not None

    def rows(self, count: int, *, seed: int | None = None) -> Columns:
        """Return synthetic cells: free of charge, by post-processing.

        Raises
        ------
        InvalidParameter
            If there was no answer.

        """
        if self.law is None:
            raise InvalidParameter("there was no answer, so there is no model to draw rows from.")
        shared = SharedRandomness.fresh() if seed is None else SharedRandomness(seed)
        return self.law.rows(count, shared.stream("synthetic rows"))


def release_by_tables(
    table: Table | CodedTable,
    *,
    epsilon: Number,
    delta: Number,
    progress: Progress | None = None,
    ledger: Ledger | None = None,
) -> TableRelease:
    """Release a model of all columns together from noisy tables of a few (`TableLearner`)."""
    learner = TableLearner(table.schema, epsilon=epsilon, delta=delta)
    table = coded_of(table) if isinstance(table, Table) else table
    units = table.units
    release = learner.release(table, progress=progress, ledger=ledger)
    model = release.value
    if not isinstance(model, TableModel) or not isinstance(release.guarantee, ApproxDP):
        raise AssertionError("tables always have an answer")  # noqa: TRY004 - a fault of ours
    names = [column.name for column in table.schema.read]
    document = {
        "family": "tables",
        "columns": names,
        "measured": [[names[place] for place in one] for one in model.law.measured],
        "cells": model.law.cells,
        "edges": {
            name: list(binning.edges)
            for name, binning in zip(names, model.binnings, strict=True)
            if binning is not None
        },
    }
    return TableRelease(
        learner=f"noisy tables of a few of {len(names)} columns, and the law of greatest entropy with them",
        guarantee=release.guarantee,
        units=units,
        stages=release.stages,
        model=document,
        errors=table_errors(model),
        law=model,
    )


def release_by_density(
    table: Table,
    family: DensityFamily,
    *,
    epsilon: Number,
    delta: Number,
    seed: int | None = None,
    progress: Progress | None = None,
    ledger: Ledger | None = None,
) -> TableRelease:
    """Release a density of columns of numbers without bounds: locate, open, refine (as `PrivateDensity`).

    Raises
    ------
    NotEnoughRecords
        If there are too few units to locate the columns; nothing was spent.
    InvalidParameter
        If a column is not one of numbers.

    """
    if not all(column.is_number for column in table.schema.read):
        raise InvalidParameter("a density is learnt from columns of numbers alone: use the learner of tables.")
    numbers = len(table) if table.units is None else table.units
    units = units_in(table)
    word = unit_word(table.schema.unit, named=table.units is not None)
    plan = density_plan(units=units, columns=len(table.columns), budget=Budget.asked(epsilon, delta))
    guarantee = ApproxDP(plan.budget.epsilon, plan.budget.delta, Neighbouring.REPLACE_ONE, word)
    shared = SharedRandomness.fresh() if seed is None else SharedRandomness(seed)
    with spending(ledger, guarantee, what=f"private density: {family.words}, {len(table.columns)} columns"):
        found = release_density(
            table.records, plan, family, numbers=numbers, word=word, shared=shared.child("release"), progress=progress
        )
    for verdict in verdicts_of(guarantee, units=units, weighted=table.units is not None):
        tell(verdict)
    names = [column.name for column in table.schema.read]
    wanting = [names[place] for place in found.located.without_answer]
    law = found.law
    document = {"family": family.words, "columns": names, "law": repr(law)}
    return TableRelease(
        learner=f"a density: {family.words}",
        guarantee=guarantee,
        units=units,
        stages=found.stages,
        model=None if law is None or wanting else document,
        law=None if law is None else ColumnsLaw(schema=table.schema, law=law),
    )


def of_synthesis(synthesis: Synthesis, *, schema: Schema) -> TableRelease:
    """Return the facts of a release by blocks that agree."""
    plan, law, guarantee = synthesis.plan, synthesis.model, synthesis.guarantee
    if not isinstance(guarantee, ApproxDP):
        raise AssertionError("blocks promise an epsilon and a delta")  # noqa: TRY004 - a fault of ours
    return TableRelease(
        learner="one law of all columns, learnt again from records on which blocks agree",
        guarantee=guarantee,
        units=plan.units,
        stages=synthesis.stages,
        model=_law_document(law, schema=schema),
        sizes=plan,
        law=None if law is None else ColumnsLaw(schema=schema, law=law),
    )


def _law_document(law: Distribution | None, *, schema: Schema) -> dict[str, Any] | None:
    """Return the numbers of a law of blocks, None without one."""
    names = [column.name for column in schema.read]
    match law:
        case Normal(mean=mean, covariance=covariance):
            variances = np.diag(np.array(covariance))
            deviations = np.sqrt(variances)
            correlation = covariance[0][1] / (deviations[0] * deviations[1]) if len(names) > 1 else None
            return {
                "family": "normal",
                "columns": names,
                "mean": list(mean),
                "standard_deviation": deviations.tolist(),
                "correlation": None if correlation is None else float(correlation),
                "covariance": [list(row) for row in covariance],
            }
        case Categorical(categories=categories, probabilities=probabilities):
            return {
                "family": "categorical",
                "columns": names,
                "categories": list(categories),
                "probabilities": list(probabilities),
            }
        case _:
            return None
