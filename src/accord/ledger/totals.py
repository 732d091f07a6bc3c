"""The total of all charges, by every rule."""

from dataclasses import dataclass
from typing import Final, final

from accord.core.guarantee import ApproxDP, PureDP
from accord.ledger.account import Account
from accord.privacy import NoGuarantee, composition_table

__all__ = ["Total", "totals"]

BASIC: Final = "basic"
_FIXED: Final = "if the amounts of all charges were fixed in advance, not chosen from earlier outputs"


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
    guarantee: PureDP | ApproxDP
    condition: str
    enforced: bool


def totals(account: Account) -> tuple[Total, ...]:
    """Return the totals of an account: the enforced one, then the least of all rules within the cap's delta.

    Only sums are enforced. The better rules need amounts that were fixed in advance, and who asks for the next release
    has seen the last; and a cap that is raised later would void what they promised under the old one.
    """
    basic = Total(
        rule=BASIC,
        guarantee=account.statement().spent,
        condition="always, also when each release was chosen from earlier outputs",
        enforced=True,
    )
    guarantees = [account.guarantee(pair) for pair in account.spendings.elements()]
    if not guarantees:
        return (basic,)
    best = composition_table(guarantees, delta=account.cap[1]).best
    if isinstance(best.total, NoGuarantee) or best.total.epsilon >= basic.guarantee.epsilon:
        return (basic,)
    return basic, Total(rule=best.rule, guarantee=best.total, condition=_FIXED, enforced=False)
