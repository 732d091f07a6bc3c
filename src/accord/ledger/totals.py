"""The total of all charges, by every rule."""

from dataclasses import dataclass
from typing import Final, final

from accord.ledger.account import Account
from accord.privacy import ApproxDP

__all__ = ["Total", "totals"]

BASIC: Final = "basic"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A certified upper bound on what all charges cost together.

    Parameters
    ----------
    rule
        The composition rule.
    guarantee
        The total.
    condition
        When it holds.
    enforced
        Whether the cap is about this total.

    """

    rule: str
    guarantee: ApproxDP
    condition: str
    enforced: bool


def totals(account: Account) -> tuple[Total, ...]:
    """Return the totals of an account, the enforced one first."""
    basic = Total(
        rule=BASIC,
        guarantee=account.statement().spent,
        condition="always, also when each release was chosen from earlier outputs",
        enforced=True,
    )
    return (basic,)
