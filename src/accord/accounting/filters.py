"""A budget for rounds whose parameters are chosen on the way."""

import math
import os
import threading
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn, final

from accord.accounting.composition import UP, NoGuarantee, Relation, log_above, lower, refuse_other_relation
from accord.core import check as _check
from accord.core.errors import BudgetExceeded, InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP

__all__ = [
    "Clock",
    "PrivacyFilter",
    "Spending",
]


_GRID = 1 << 256
_CLEAR_GAIN = 2


def _up(value: Fraction) -> Fraction:
    """Round up to a fine grid, so that denominators stay small."""
    return Fraction(-(-value.numerator * _GRID // value.denominator), _GRID)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A line that the summed loss stays below at all times, with a chance of at least ``1 - reserve``.

    Parameters
    ----------
    before
        Sum of the epsilons before the clock started.
    reserve
        The delta' that was set aside, above 0.
    order
        The slope lambda of the line, fixed at the start. Every positive one is valid.
    offset
        ``log(1 / reserve) / order``, rounded up.
    run
        Sum of `cost` since the start.

    """

    before: Fraction
    reserve: Fraction
    order: Fraction
    offset: Fraction
    run: Fraction = Fraction(0)

    @classmethod
    def start(cls, *, before: Fraction, budget: Fraction, reserve: Fraction) -> "Clock":
        """Start with the slope that admits the largest sum of squares within ``budget``.

        With y that sum, ``sqrt(2 y log(1 / reserve)) + y / 2 = budget`` (Whitehouse et al. 2023), and the slope is
        ``sqrt(2 log(1 / reserve) / y)``.
        """
        log = log_above(UP.divide(Decimal(1), lower(reserve)))
        twice = 2 * float(log)
        root = 2 * float(budget) / (math.sqrt(twice + 2 * float(budget)) + math.sqrt(twice))  # sqrt(y)
        order = Fraction(math.sqrt(twice) / root) if root > 0 else Fraction(1)
        offset = _up(Fraction(UP.divide(log, lower(order))))
        return cls(before=before, reserve=reserve, order=order, offset=offset)

    def cost(self, epsilon: Fraction) -> Fraction:
        """Return a bound of the scaled log moment of a round: ``min(epsilon, (1 + order) epsilon^2 / 2)``."""
        return min(epsilon, (1 + self.order) * epsilon**2 / 2)

    def after(self, epsilon: Fraction) -> "Clock":
        """Return the clock one round later."""
        return replace(self, run=_up(self.run + self.cost(epsilon)))

    @property
    def loss(self) -> Fraction:
        """Where the line stands."""
        return self.before + self.offset + self.run

    def largest(self, room: Fraction) -> Fraction:
        """Return an epsilon whose cost fits into ``room``, the largest one up to rounding."""
        if room <= 0:
            return Fraction(0)
        square = 2 * room / (1 + self.order)
        root = Fraction(math.isqrt(square.numerator * _GRID**2 // square.denominator), _GRID)
        slack = Fraction(1, _GRID)  # what `after` may round up by
        fits = [x for x in (room - slack, root) if x > 0 and self.cost(x) + slack <= room]
        return max(fits, default=Fraction(0))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What has been spent under a cap.

    Parameters
    ----------
    cap
        The most that may be spent.
    epsilons, deltas
        Sums over the rounds so far.
    clock
        None as long as it has not started.
    undecided
        True while a clock may still be started.

    """

    cap: PureDP | ApproxDP
    epsilons: Fraction = Fraction(0)
    deltas: Fraction = Fraction(0)
    clock: Clock | None = None
    undecided: bool = True

    def starting_clock(self, reserve: Fraction) -> "Spending":
        """Return the same spending with a clock that starts now."""
        budget = self.cap.epsilon - self.epsilons
        clock = Clock.start(before=self.epsilons, budget=budget, reserve=reserve)
        return replace(self, clock=clock, undecided=False)

    def after(self, round_: PureDP | ApproxDP) -> "Spending | None":
        """Return the spending one round later, or None if that would not stay within the cap."""
        if self.undecided and self._gains_by_clock(round_):
            later = self.starting_clock((self.cap.delta - self.deltas) / 2).added(round_)
            if later.fits:
                return later
        later = self.added(round_)
        return later if later.fits else None

    def added(self, round_: PureDP | ApproxDP) -> "Spending":
        """Return the spending with one round added, within the cap or not."""
        clock = None if self.clock is None else self.clock.after(round_.epsilon)
        return replace(self, epsilons=self.epsilons + round_.epsilon, deltas=self.deltas + round_.delta, clock=clock)

    @property
    def _reserve(self) -> Fraction:
        return Fraction(0) if self.clock is None else self.clock.reserve

    @property
    def fits(self) -> bool:
        """Say whether this is within the cap."""
        losses = [self.epsilons, *([] if self.clock is None else [self.clock.loss])]
        return self.deltas + self._reserve <= self.cap.delta and min(losses) <= self.cap.epsilon

    def _gains_by_clock(self, round_: PureDP | ApproxDP) -> bool:
        """Say whether many more copies of this round would fit with a clock than by the sum.

        A rule on public numbers only. Whatever it says, the promise holds.
        """
        room, slack = self.cap.epsilon - self.epsilons, self.cap.delta - self.deltas
        if not (0 < round_.epsilon <= room and round_.delta <= slack / 2 and slack > 0):
            return False
        clock = self.starting_clock(slack / 2).clock
        if clock is None or clock.cost(round_.epsilon) == 0:
            return False
        timed = (room - clock.offset) / clock.cost(round_.epsilon)
        summed = room / round_.epsilon
        if round_.delta > 0:
            timed, summed = min(timed, slack / (2 * round_.delta)), min(summed, slack / round_.delta)
        return timed >= _CLEAR_GAIN * summed

    @property
    def spent(self) -> PureDP | ApproxDP:
        """The smaller of sum and line; see `PrivacyFilter.spent`."""
        relation = Relation(self.cap.neighbouring, self.cap.unit)
        if self.clock is None or self.epsilons <= self.clock.loss:
            return relation.guarantee(self.epsilons, self.deltas)
        return relation.guarantee(self.clock.loss, self.deltas + self.clock.reserve)

    @property
    def remaining(self) -> PureDP | ApproxDP:
        """The largest epsilon and the largest delta that one more round may have, both at once."""
        epsilon = max(Fraction(0), self.cap.epsilon - self.epsilons)
        if self.clock is not None:
            epsilon = max(epsilon, self.clock.largest(self.cap.epsilon - self.clock.loss))
        delta = max(Fraction(0), self.cap.delta - self.deltas - self._reserve)
        return Relation(self.cap.neighbouring, self.cap.unit).guarantee(epsilon, delta)

    @property
    def shown(self) -> str:
        """What a person reads in a refusal."""
        spent, left = self.spent, self.remaining
        return (
            f"epsilon {float(spent.epsilon):.6g} and delta {float(spent.delta):.6g} are spent of "
            f"{float(self.cap.epsilon):.6g} and {float(self.cap.delta):.6g}; one more round may have at most epsilon "
            f"{float(left.epsilon):.6g} and delta {float(left.delta):.6g}"
        )


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
