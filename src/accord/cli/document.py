"""An outcome as plain data with stable keys; the model file and ``--json`` are this, and the text is made from it."""

import json
from typing import Any

from accord import __version__
from accord.accounting.figures import as_float, exact_text
from accord.cli.request import Request
from accord.core.guarantee import ApproxDP, PureDP
from accord.core.verdict import Verdict
from accord.ledger import Statement
from accord.synthesis.by_votes import SamplePlan
from accord.synthesis.synthetic import SyntheticTable

__all__ = ["as_json", "document", "ledger_amounts", "ledger_document"]

BUDGET = "this run only; the budgets of several runs on the same data add up"


def document(request: Request, synthetic: SyntheticTable, *, warnings: tuple[Verdict, ...] = ()) -> dict[str, Any]:
    """Return everything that may be shown: it is the same for all data that lead to the same release."""
    answered = synthetic.answered
    more = {"report": request.report, "release": request.release, "curator_report": request.curator_report}
    return {
        **_released(synthetic),
        "rows": request.count() if answered else 0,
        "files": {
            "rows": str(request.out) if answered else None,
            "model": str(request.model) if answered and request.model is not None else None,
            **{name: str(path) for name, path in more.items() if answered and path is not None},
        },
        **({} if synthetic.ledger is None else {"ledger": ledger_document(synthetic.ledger)}),
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


def as_json(content: dict[str, Any]) -> str:
    """Return strict JSON in ASCII."""
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _released(synthetic: SyntheticTable) -> dict[str, Any]:
    release, account = synthetic.release, synthetic.account()
    words = BUDGET if synthetic.ledger is None else synthetic.ledger.words
    return {
        "accord": __version__,
        "answer": release.answered,
        "model": None if release.model is None else dict(release.model),
        "guarantee": {**account["guarantee"], "releases": 1, "budget": words},
        "rows_stand_for": account["rows_stand_for"],
        "plan": _plan(release.sizes, account),
        "seeded": synthetic.terms.seed is not None,
        "noise_seeded": False,
    }


def _plan(sizes: SamplePlan | None, account: dict[str, Any]) -> dict[str, Any]:
    """Return the public sizes: of blocks, or the stages of other learners."""
    if sizes is not None:
        return {
            "units": sizes.units,
            "blocks": sizes.blocks,
            "block_size": sizes.block_size,
            "records_per_vote": sizes.records,
            "draws": sizes.draws,
            "typical_error": sizes.typical_error,
        }
    stated = ("units", "learner", "stages", "expected_errors", "expected_pair_errors")
    return {"composition": account["guarantee"]["composition"], **{name: account[name] for name in stated}}
