"""A dialogue with one dataset, in which every round may depend on what came out before."""

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, Protocol, TypeVar, final

from accord.accounting.best import best_composition
from accord.accounting.composition import (
    NoGuarantee,
    Relation,
    basic_composition,
    read_guarantees,
    refuse_other_relation,
)
from accord.accounting.filters import PrivacyFilter
from accord.core.errors import AccordError, InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP
from accord.core.release import Release
from accord.core.verdict import Verdict, tell

__all__ = [
    "AdaptiveSession",
    "BudgetLedger",
    "Round",
    "checked",
    "runner",
    "stated_guarantee",
]


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


Data = TypeVar("Data")


@final
class AdaptiveSession(Generic[Data]):
    """Hold data and a budget; release only what the budget admits.

    Formal guarantees
    -----------------
    - Privacy: `transcript`, with when and why it ended, is ``cap``-DP, if each mechanism has the guarantee that it
      states and each query is a function of the data and of earlier outputs. Which mechanism, which query, which
      parameters come next may be chosen from all earlier outputs (a `PrivacyFilter` counts). ``planned`` rounds are
      fixed in advance and cost their total, all at once, when the session begins: their sum if it fits into the cap,
      otherwise what `best_composition` says at the cap's delta.
    - Order: the guarantee is read and admitted, the ledger charged, then the query looks at the data. A refused request
      changes nothing and the session goes on.
    - A query or mechanism that raises keeps its charge: that it failed may tell of the data.
    - The data appear in no repr and in no pickle: a session does not pickle, and refuses to work in a forked process,
      where its budget would be a second one.
    - Not promised: that a query does what its author says, or that a caller shows nobody else the error of a failed
      round: its text may hold data.

    Parameters
    ----------
    data
        Anything; it is handed to the queries as it is.
    cap
        The most that may be spent.
    slack
        As for `PrivacyFilter`.
    planned
        Guarantees of the first rounds, in order. Each of these rounds may have a smaller one.
    ledger
        A `BudgetLedger`, such as `accord.ledger.Ledger`: it is charged before each release is computed.

    Raises
    ------
    BudgetExceeded
        If the planned rounds do not fit.

    Source
    ------
    Theory C3, C4; docs/proofs/adaptive-session.md.

    Examples
    --------
    >>> from accord.mechanisms import DiscreteLaplace
    >>> session = AdaptiveSession([3, 1, 4, 1, 5], cap=PureDP(1))
    >>> count = DiscreteLaplace(sensitivity=1, scale=2)
    >>> ones = session.release(count, lambda data: sum(record == 1 for record in data))
    >>> isinstance(ones.value, int), session.spent.epsilon
    (True, Fraction(1, 2))
    >>> session
    AdaptiveSession(1 round, spent epsilon 0.5 and delta 0, of epsilon 1 and delta 0)

    """

    __slots__ = ("_data", "_filter", "_ledger", "_lock", "_pending", "_planned", "_process", "_rounds")

    def __init__(
        self,
        data: Data,
        *,
        cap: PureDP | ApproxDP,
        slack: Number | None = None,
        planned: Iterable[PureDP | ApproxDP] = (),
        ledger: BudgetLedger | None = None,
    ) -> None:
        self._filter = PrivacyFilter(cap, slack=slack)
        self._ledger = ledger
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._rounds: tuple[Round, ...] = ()
        self._data = data
        self._planned = tuple(planned)
        self._pending: Any = None
        if self._planned:
            for guarantee in read_guarantees(self._planned):
                refuse_other_relation(cap, guarantee)
            self._pending = self._spend(_plan(self._planned, cap=cap), what=f"a plan of {len(self._planned)} rounds")

    @property
    def cap(self) -> PureDP | ApproxDP:
        """The most that may be spent."""
        return self._filter.cap

    @property
    def spent(self) -> PureDP | ApproxDP:
        """What has been spent, valid at any time (an odometer, see `PrivacyFilter`); a plan counts from its start."""
        return self._filter.spent

    @property
    def remaining(self) -> PureDP | ApproxDP:
        """The largest guarantee that would be admitted as the next round outside the plan."""
        return self._filter.remaining

    @property
    def transcript(self) -> tuple[Round, ...]:
        """All admitted rounds in order. No data, only what came out."""
        return self._rounds

    def release(
        self,
        mechanism: Any,  # noqa: ANN401
        query: Callable[[Data], Any],
        *,
        delta: Number | None = None,
        dimension: int | None = None,
        claimed_unit: str | None = None,
        what: str | None = None,
    ) -> Release[Any]:
        """Run a mechanism on a query of the data, if its guarantee is admitted.

        Parameters
        ----------
        mechanism
            Has ``guarantee`` and ``release(value)`` (or ``select(scores)``, for a choice among candidates). With
            ``delta``: has ``guarantee_at(delta)`` and ``release(value, delta=)``, such as `DiscreteGaussian`.
        query
            A function of the data. What came out before may be used in it freely.
        delta
            For mechanisms whose guarantee is a curve.
        dimension
            With ``delta``: how many integers the query returns, if that is certain; None is right for any number. With
            1, a `DiscreteGaussian` is charged by the exact curve of a single integer.
        claimed_unit
            For mechanisms with a unit of their own, such as "voter": the caller's claim that one unit of the session
            changes at most one such unit in what the query returns.
        what
            One line for the transcript and the ledger. Write nothing into it that came out of the data.

        Raises
        ------
        BudgetExceeded
            If it does not fit; nothing changed.
        InvalidParameter
            If it cannot be run, or is for another relation or unit; nothing changed. Also if it released under less
            than it had stated: its output is withheld then, its charge kept.

        """
        with self._lock:
            self._same_process()
            stated = stated_guarantee(
                mechanism, delta=delta, claimed_unit=claimed_unit, unit=self.cap.unit, dimension=dimension
            )
            run = runner(mechanism, delta=delta)
            if not callable(query):
                raise InvalidParameter("query must be a function of the data, such as lambda data: len(data).")
            label = type(mechanism).__name__ if what is None else what
            charge = self._admit(stated, label)
            number = len(self._rounds)
            self._rounds = (*self._rounds, Round(number=number + 1, what=label, guarantee=stated, release=None))
            released = checked(run(query(self._data)), stated, unit=claimed_unit)
            done = Round(number=number + 1, what=label, guarantee=stated, release=released)
            self._rounds = (*self._rounds[:number], done, *self._rounds[number + 1 :])
            self._confirm(charge)
            return released

    def _admit(self, stated: PureDP | ApproxDP, label: str) -> Any:  # noqa: ANN401
        """Take the next planned round, or spend; return the ledger's charge to confirm."""
        refuse_other_relation(self.cap, stated)
        done = len(self._rounds)
        if done >= len(self._planned):
            return self._spend(stated, what=label)
        slot = self._planned[done]
        refuse_other_relation(slot, stated)
        if stated.epsilon > slot.epsilon or stated.delta > slot.delta:
            raise InvalidParameter(
                f"round {done + 1} was planned with epsilon {float(slot.epsilon):.6g} and delta "
                f"{float(slot.delta):.6g}: it may have less, not more."
            )
        charge, self._pending = self._pending, None
        return charge

    def _spend(self, guarantee: PureDP | ApproxDP | NoGuarantee, *, what: str) -> Any:  # noqa: ANN401
        admitted = self._filter.check(guarantee)
        charge = None if self._ledger is None else self._ledger.charge(admitted, what=what)
        self._filter.admit(admitted)
        return charge

    def _confirm(self, charge: Any) -> None:  # noqa: ANN401
        if self._ledger is None or charge is None:
            return
        try:
            self._ledger.confirm(charge)
        except AccordError as error:
            text = f"charge {charge} is spent but could not be confirmed: {error}"
            tell(Verdict("charge-unconfirmed", text), stacklevel=3)

    def _same_process(self) -> None:
        if os.getpid() != self._process:
            raise InvalidParameter(
                "this session was opened in another process: its budget would be spent twice. Open one here, with a "
                "ledger that both share."
            )

    def __repr__(self) -> str:
        count, spent, cap = len(self._rounds), self.spent, self.cap
        return (
            f"AdaptiveSession({count} round{'' if count == 1 else 's'}, spent epsilon {float(spent.epsilon):.6g} and "
            f"delta {float(spent.delta):.6g}, of epsilon {float(cap.epsilon):.6g} and delta {float(cap.delta):.6g})"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("an AdaptiveSession cannot be copied or pickled: it holds the data, and a budget of its own.")

    def __getstate__(self) -> NoReturn:
        self.__reduce__()


def _plan(planned: tuple[PureDP | ApproxDP, ...], *, cap: PureDP | ApproxDP) -> PureDP | ApproxDP | NoGuarantee:
    """Return the price of rounds that are fixed in advance: the sum if it fits, since it spends least of delta."""
    total = basic_composition(planned)
    fits = total.epsilon <= cap.epsilon and total.delta <= cap.delta
    return total if fits else best_composition(planned, delta=cap.delta)
