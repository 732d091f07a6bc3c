"""What a session asks of a mechanism and of a ledger, and what it keeps of a round."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, final

from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP
from accord.core.release import Release
from accord.privacy._relation import Relation

__all__ = ["BudgetLedger", "Round", "checked", "runner", "stated_guarantee"]


class BudgetLedger(Protocol):
    """What a session needs of a ledger: a charge before each release, a note after it, and no refunds."""

    def charge(self, guarantee: PureDP | ApproxDP, *, what: str) -> Any:  # noqa: ANN401
        """Spend durably, or raise; return a name for the charge."""
        ...

    def confirm(self, charge: Any, /) -> None:  # noqa: ANN401
        """Note that the release of a charge was computed."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One admitted request of a session.

    Parameters
    ----------
    number
        From 1.
    what
        What it was called, by default the mechanism's class.
    guarantee
        What it was admitted with.
    release
        What came out; None if the query or the mechanism raised. Its budget is spent all the same.

    """

    number: int
    what: str
    guarantee: PureDP | ApproxDP
    release: Release[Any] | None


def stated_guarantee(
    mechanism: Any,  # noqa: ANN401
    *,
    delta: Number | None,
    claimed_unit: str | None,
    unit: str,
    dimension: int | None = None,
) -> PureDP | ApproxDP:
    """Return the guarantee of one release, for the session's unit, without running anything."""
    if dimension is not None and delta is None:
        raise InvalidParameter("dimension is for mechanisms whose guarantee is a curve: leave it out.")
    source = "guarantee" if delta is None else "guarantee_at"
    stated = getattr(mechanism, source, None)
    if delta is not None and stated is not None:
        stated = stated(delta) if dimension is None else stated(delta, dimension=dimension)
    if not isinstance(stated, PureDP | ApproxDP):
        hint = "give delta=, if its guarantee is a curve" if delta is None else "leave delta out"
        raise InvalidParameter(f"mechanism has no {source} that is a guarantee: {hint}.")
    if claimed_unit is None:
        return stated
    if stated.unit != claimed_unit:
        raise InvalidParameter(f"the mechanism's unit is {stated.unit!r}, not {claimed_unit!r}.")
    return Relation(stated.neighbouring, unit).guarantee(stated.epsilon, stated.delta)


def runner(mechanism: Any, *, delta: Number | None) -> Callable[[Any], Any]:  # noqa: ANN401
    """Return how to run a mechanism on a value."""
    run = getattr(mechanism, "release", None) or getattr(mechanism, "select", None)
    if not callable(run):
        raise InvalidParameter("mechanism has neither release nor select.")
    return run if delta is None else lambda value: run(value, delta=delta)


def checked(released: Any, stated: PureDP | ApproxDP, *, unit: str | None) -> Release[Any]:  # noqa: ANN401
    """Return the release if it keeps to what was admitted; wrap a bare value."""
    if not isinstance(released, Release):
        return Release(released, stated)
    given = released.guarantee
    same = given.neighbouring.implies(stated.neighbouring) and given.unit == (unit or stated.unit)
    if not same or given.epsilon > stated.epsilon or given.delta > stated.delta:
        raise InvalidParameter(
            "the mechanism released under a weaker guarantee than it had stated before (several integers under a curve "
            "for one?): its output is withheld, its charge is kept."
        )
    return Release(released.value, stated, released.stages)
