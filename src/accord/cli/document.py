"""An outcome as plain data with stable keys; the model file and ``--json`` are this, and the text is made from it."""

import json
from typing import Any

import numpy as np

from accord import __version__
from accord.accounting.account import account, rows_stand_for
from accord.accounting.figures import as_float, exact_text, short_text
from accord.cli.outcome import Outcome
from accord.core.coupling import Distribution
from accord.core.guarantee import ApproxDP, PureDP
from accord.core.verdict import Verdict
from accord.distributions import Categorical, Normal
from accord.ledger import Statement
from accord.marginals.verdicts import TableErrors
from accord.tables import Schema

__all__ = [
    "account_of",
    "as_json",
    "composition",
    "document",
    "law_document",
    "ledger_amounts",
    "ledger_document",
    "model_file",
]

COMPOSITION = "this run only; the budgets of several runs on the same data add up"


def document(outcome: Outcome, *, warnings: tuple[Verdict, ...] = ()) -> dict[str, Any]:
    """Return everything that may be shown: it is the same for all data that lead to the same release."""
    answered = outcome.release.answered
    request = outcome.request
    more = {"report": request.report, "release": request.release, "curator_report": request.curator_report}
    return {
        **_released(outcome),
        "rows": outcome.numbers.rows if answered else 0,
        "files": {
            "rows": str(request.out) if answered else None,
            "model": str(request.model) if answered and request.model is not None else None,
            **{name: str(path) for name, path in more.items() if answered and path is not None},
        },
        **({} if outcome.ledger is None else {"ledger": ledger_document(outcome.ledger)}),
        "warnings": [verdict.document() for verdict in warnings],
    }


def ledger_document(statement: Statement) -> dict[str, Any]:
    """Return a ledger's totals: exact as p/q, and as floats, of which those of what is spent are bounds."""
    return {
        "cap": ledger_amounts(statement.cap, up=False),
        "spent": ledger_amounts(statement.spent, up=True),
        "remaining": ledger_amounts(statement.remaining, up=False),
        "neighbouring": statement.cap.neighbouring.value,
        "unit": statement.cap.unit,
        "charges": statement.charges,
        "unconfirmed": statement.unconfirmed,
        "rule": "basic",
        "head": statement.head,
    }


def ledger_amounts(guarantee: PureDP | ApproxDP, *, up: bool) -> dict[str, Any]:
    """Return an epsilon and a delta, with ``up`` nothing in it is below."""
    return {
        "epsilon": exact_text(guarantee.epsilon, up=up),
        "epsilon_float": as_float(guarantee.epsilon, up=up),
        "delta": exact_text(guarantee.delta, up=up),
        "delta_float": as_float(guarantee.delta, up=up),
    }


def model_file(outcome: Outcome) -> bytes:
    """Return the content of the model file: JSON, without the name or a checksum of any file."""
    return as_json({"format": "accord model", "format_version": 1, **_released(outcome)}).encode("ascii")


def as_json(content: dict[str, Any]) -> str:
    """Return strict JSON in ASCII."""
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _released(outcome: Outcome) -> dict[str, Any]:
    return {
        "accord": __version__,
        "answer": outcome.release.answered,
        "model": None if outcome.release.model is None else dict(outcome.release.model),
        "guarantee": _guarantee(outcome),
        "rows_stand_for": rows_stand_for(outcome.release.guarantee.unit),
        "plan": _plan(outcome),
        "seeded": outcome.numbers.seed is not None,
        "noise_seeded": False,
    }


def _plan(outcome: Outcome) -> dict[str, Any]:
    """Return the public sizes: of blocks, or the stages of other learners."""
    if outcome.synthesis is not None:
        plan = outcome.synthesis.plan
        return {
            "units": plan.units,
            "blocks": plan.blocks,
            "block_size": plan.block_size,
            "records_per_vote": plan.records,
            "draws": plan.draws,
            "typical_error": plan.typical_error,
        }
    release, found = outcome.release, account_of(outcome)
    return {
        "units": release.units,
        "learner": release.learner,
        "composition": found["guarantee"]["composition"],
        "stages": found["stages"],
        **_expected(release.errors),
    }


def _expected(errors: TableErrors | None) -> dict[str, Any]:
    """Return the expected error of each column and measured pair; nothing is said of others."""
    if errors is None:
        return {"expected_errors": {}, "expected_pair_errors": []}
    return {
        "expected_errors": {name: column.error for name, column in errors.columns.items()},
        "expected_pair_errors": [
            {"names": list(names), "expected_error": pair.error, "merged_share": pair.merged}
            for names, pair in errors.pairs.items()
        ],
    }


def law_document(law: Distribution | None, *, schema: Schema) -> dict[str, Any] | None:
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


def account_of(outcome: Outcome, *, warnings: tuple[Verdict, ...] = ()) -> dict[str, Any]:
    """Return the account of an outcome: the page, release.json, the model file and ``--json`` hold this one."""
    release, request = outcome.release, outcome.request
    return account(
        release,
        units=release.units,
        unit_column=outcome.schema.unit,
        written=(request.epsilon, request.delta),
        learner=release.learner,
        warnings=warnings,
        **_expected(release.errors),
    )


def _guarantee(outcome: Outcome) -> dict[str, Any]:
    """Return that of the account, with what the ledger says of the rest."""
    return {
        **account_of(outcome)["guarantee"],
        "releases": 1,
        "composition": COMPOSITION if outcome.ledger is None else composition(outcome.ledger),
    }


def composition(statement: Statement) -> str:
    """Return one line on what is spent and left."""
    spent, cap, left = (
        f"({short_text(part.epsilon, up=up)}, {short_text(part.delta, up=up)})"
        for part, up in ((statement.spent, True), (statement.cap, False), (statement.remaining, False))
    )
    return (
        f"in the ledger {spent} of {cap} is spent by {statement.charges} charges and {left} is left, as (epsilon, "
        f"delta), by basic composition"
    )
