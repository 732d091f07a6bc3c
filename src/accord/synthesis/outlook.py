"""What a release would do, before a record is read: steps, budgets, expected errors, and whether n is enough."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, final

from accord.accounting.account import rows_stand_for
from accord.accounting.figures import short_text
from accord.accounting.verdicts import FAIR
from accord.core.budget import Budget
from accord.core.coupling import Learner
from accord.core.guarantee import ApproxDP
from accord.core.verdict import Verdict
from accord.density.plan import density_plan
from accord.marginals.verdicts import verdicts_of
from accord.synthesis.by_votes import sample_plan
from accord.synthesis.effort import Effort, effort_of
from accord.synthesis.learner import TableLearner
from accord.synthesis.terms import Terms
from accord.tables import Schema

__all__ = ["Outlook", "outlook_of_blocks", "outlook_of_density", "outlook_of_tables"]

_GOOD = 0.02


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a release would do. A function of public facts: the schema, n, epsilon and delta.

    Parameters
    ----------
    units
        n, the number of units of privacy.
    guarantee
        What would be promised.
    lines
        Steps and their budgets, in words.
    errors
        Mean total variation by noise at most, of each column that is learnt from tables.
    enough
        Whether n is enough, in words.
    verdicts
        What a reader of the release would be told.
    effort
        Expected time and memory; None where that is not known.

    """

    units: int
    guarantee: ApproxDP
    lines: tuple[str, ...]
    errors: Mapping[str, float] = field(default_factory=dict)
    enough: str
    verdicts: tuple[Verdict, ...]
    effort: Effort | None = None

    @property
    def rows_stand_for(self) -> str:
        """What one synthetic row would stand for."""
        return rows_stand_for(self.guarantee.unit)

    def __str__(self) -> str:
        """Return the plan for people."""
        steps = "".join(f"  {line}\n" for line in self.lines)
        steps += "" if self.effort is None else f"It takes {self.effort}.\n"
        return f"{steps}Rows stand for {self.rows_stand_for}.\nIs n = {self.units} enough? {self.enough}."

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "units": self.units,
            "plan": list(self.lines),
            "expected_errors": dict(self.errors),
            "enough": self.enough,
            "effort": None if self.effort is None else self.effort.document(),
            "warnings": [verdict.document() for verdict in self.verdicts],
            "rows_stand_for": self.rows_stand_for,
        }


def outlook_of_blocks(learner: Learner, schema: Schema, terms: Terms, *, units: int, promised: ApproxDP) -> Outlook:
    """Return the sizes of blocks that must agree."""
    noun = "records" if schema.unit is None else "units"
    plan = sample_plan(
        learner,
        units=units,
        dimension=len(schema.read),
        epsilon=terms.epsilon,
        delta=terms.delta,
        blocks=terms.blocks,
        draws=terms.draws,
        records=terms.records_per_vote,
        noun=noun,
    )
    epsilon, delta = (text.strip() for text in terms.written)
    return Outlook(
        units=units,
        guarantee=promised,
        lines=(
            f"{plan.blocks} blocks of {plan.block_size} {noun}, {plan.records} records per vote, {plan.draws} draws",
            f"one selection: epsilon {epsilon}, delta {delta}",
            f"typical error {plan.typical_error:.2g} in total variation, if the columns are of the learnt family",
        ),
        enough=_word(plan.typical_error, "the typical error is {:.2g}"),
        verdicts=verdicts_of(promised, units=units, typical_error=plan.typical_error),
    )


def outlook_of_density(schema: Schema, terms: Terms, *, units: int, promised: ApproxDP) -> Outlook:
    """Return the two steps of a density of numbers."""
    budget = Budget.asked(terms.epsilon, terms.delta)
    stages = density_plan(units=units, columns=len(schema.read), budget=budget)
    located, rest = stages.location, stages.rest
    first = f"{located.blocks} blocks, {located.draws} draws, {_spends(located.budget)}"
    return Outlook(
        units=units,
        guarantee=promised,
        lines=(f"locate {len(schema.read)} columns: {first}", f"open and refine: {_spends(rest)}"),
        enough="enough to locate the columns",
        verdicts=verdicts_of(promised, units=units, weighted=schema.unit is not None),
    )


def outlook_of_tables(schema: Schema, terms: Terms, *, units: int, promised: ApproxDP) -> Outlook:
    """Return the cuts and the tables, with the errors to expect."""
    several = schema.unit is not None
    plan = TableLearner(schema, epsilon=terms.epsilon, delta=terms.delta).plan(units, several_records=several)
    errors = plan.expected_errors
    return Outlook(
        units=units,
        guarantee=promised,
        lines=tuple(plan.lines()),
        errors=errors,
        enough=_word(median_low(errors.values()), "half of the columns have an expected error of {:.2g} at most"),
        verdicts=verdicts_of(promised, units=units, weighted=several, errors=errors),
        effort=effort_of(plan, schema, records=units),
    )


def _spends(budget: Budget) -> str:
    return f"epsilon {short_text(budget.epsilon, up=True)}, delta {short_text(budget.delta, up=True)}"


def _word(error: float, said: str) -> str:
    """Return whether n is enough, by the error of one law or of the better half of the columns."""
    text = said.format(error)
    if error <= _GOOD:
        return f"yes: {text}"
    if error <= FAIR:
        return f"for rough shares only: {text}"
    return f"no: {text}; more records or a larger epsilon are needed"
