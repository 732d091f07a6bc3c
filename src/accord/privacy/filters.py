"""A budget for rounds whose parameters are chosen on the way."""

import os
import threading
from typing import NoReturn, final

from accord.core import check as _check
from accord.core.errors import BudgetExceeded, InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP
from accord.privacy._relation import refuse_other_relation
from accord.privacy._spending import Spending
from accord.privacy.no_guarantee import NoGuarantee

__all__ = ["PrivacyFilter"]


@final
class PrivacyFilter:
    """Admit rounds one after the other, each chosen after seeing what came before, and never more than a cap.

    A round is admitted if the sum of all epsilons stays within the cap, or if a line that grows with their squares
    does (`spent` is the smaller). The line needs a share of the cap's delta. Unless ``slack`` says otherwise it is set
    aside, half of what is left, at the first round of which at least twice as many copies would fit that way; until
    then all of delta can be spent by the rounds.

    Formal guarantees
    -----------------
    - Privacy: mechanisms that are run only after `admit` has returned for their guarantee, all of them, their queries,
      their guarantees and when to stop being chosen from earlier outputs, are together ``cap``-DP.
    - Odometer: with `spent` after n rounds written (e_n, d_n), the privacy loss of the first n outputs is at most e_n
      for all n at once, but for a chance of ``cap.delta`` (the reserve of the line included). So one may stop at any
      time, for any reason, and state `spent`.
    - A refused request changes nothing, and the filter goes on.
    - Not promised: that rounds fixed in advance could not be had for less, see `best_composition`. Anything about
      releases that bypass the filter. A copy in another process would be a second budget: filters do not pickle, and
      refuse to work in a forked process.

    Parameters
    ----------
    cap
        The most that may be spent.
    slack
        The share of ``cap.delta`` for the line, from 0 (only the sum) to all of it (only pure rounds). It is set aside
        from the start then.

    Raises
    ------
    InvalidParameter
        If ``cap`` is no guarantee or ``slack`` is outside its range.

    Source
    ------
    Theory C4; Whitehouse, Ramdas, Rogers and Wu (2023), Theorem 1; Rogers, Roth, Ullman and Vadhan (2016);
    docs/proofs/filters.md.

    Examples
    --------
    >>> budget = PrivacyFilter(PureDP(1))
    >>> budget.admit(PureDP("0.75"))
    >>> budget.admit(PureDP("0.5"))
    Traceback (most recent call last):
    accord.errors.BudgetExceeded: the request (epsilon 0.5, delta 0) does not fit: epsilon 0.75 ...
    >>> budget.admit(PureDP("0.25"))
    >>> budget.spent.epsilon, budget.remaining.epsilon
    (Fraction(1, 1), Fraction(0, 1))

    """

    __slots__ = ("_lock", "_process", "_state")

    def __init__(self, cap: PureDP | ApproxDP, *, slack: Number | None = None) -> None:
        if not isinstance(cap, PureDP | ApproxDP):
            raise InvalidParameter("cap must be a guarantee, such as ApproxDP(1, '1e-6').")
        state = Spending(cap=cap)
        if slack is not None:
            reserve = _check.exact("slack", slack)
            if not 0 <= reserve <= cap.delta:
                raise InvalidParameter("slack must be from 0 to the cap's delta.")
            state = Spending(cap=cap, undecided=False) if reserve == 0 else state.starting_clock(reserve)
        self._state = state
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def cap(self) -> PureDP | ApproxDP:
        """The most that may be spent."""
        return self._state.cap

    @property
    def spent(self) -> PureDP | ApproxDP:
        """What the rounds so far have spent: valid now, and at all times together (an odometer)."""
        return self._state.spent

    @property
    def remaining(self) -> PureDP | ApproxDP:
        """The largest guarantee that would be admitted as the next round, rounded down."""
        return self._state.remaining

    def admit(self, guarantee: PureDP | ApproxDP | NoGuarantee) -> None:
        """Spend a guarantee, before its mechanism looks at the data.

        Raises
        ------
        BudgetExceeded
            If it does not fit. Nothing has been spent and the filter stays usable.
        InvalidParameter
            If it is no guarantee, or for another relation or unit than the cap, or if the filter was made in another
            process.

        """
        self._same_process()
        with self._lock:
            self._state = self._after(_finite(guarantee, self._state))

    def check(self, guarantee: PureDP | ApproxDP | NoGuarantee) -> PureDP | ApproxDP:
        """Raise what `admit` would raise now, or return the guarantee; spend nothing."""
        self._same_process()
        with self._lock:
            finite = _finite(guarantee, self._state)
            self._after(finite)
            return finite

    def _same_process(self) -> None:
        # Before the lock is taken: a lock that was held during the fork is never released in the child.
        if os.getpid() != self._process:
            raise InvalidParameter(
                "this filter was made in another process: here it would be a second budget. Make one here with a cap "
                "of its own, or let both charge one ledger."
            )

    def _after(self, guarantee: PureDP | ApproxDP) -> Spending:
        state = self._state
        refuse_other_relation(state.cap, guarantee)
        later = state.after(guarantee)
        if later is None:
            raise BudgetExceeded(
                f"the request (epsilon {float(guarantee.epsilon):.6g}, delta {float(guarantee.delta):.6g}) does not "
                f"fit: {state.shown}.",
                requested=guarantee,
                spent=state.spent,
                cap=state.cap,
            )
        return later

    def __repr__(self) -> str:
        return f"PrivacyFilter(cap={self.cap!r}, spent={self.spent!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivacyFilter cannot be copied or pickled: its copy would be a second budget; use a ledger.")


def _finite(guarantee: PureDP | ApproxDP | NoGuarantee, state: Spending) -> PureDP | ApproxDP:
    if isinstance(guarantee, NoGuarantee):
        raise BudgetExceeded(
            f"the request has no finite epsilon: {guarantee.reason}.",
            requested=guarantee,
            spent=state.spent,
            cap=state.cap,
        )
    if not isinstance(guarantee, PureDP | ApproxDP):
        raise InvalidParameter("guarantee must be a PureDP or an ApproxDP, such as PureDP('0.1').")
    return guarantee
