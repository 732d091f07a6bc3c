"""The state of a filter as a value: what has been spent under a cap, and whether one round more fits.

Two ways to bound the loss run side by side. The sum of the epsilons holds always. The clock (`Clock`) grows with their
squares, but needs a share of delta that is set aside when it starts; docs/proofs/filters.md says why it must be.
"""

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import final

from accord.core.guarantee import ApproxDP, PureDP
from accord.privacy._relation import Relation
from accord.privacy._upper import UP, log_above, lower

__all__ = ["Clock", "Spending"]

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
