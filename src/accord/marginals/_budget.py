"""The steps of a release, and the noise at which all of them together spend exactly the budget."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import final

from accord.accounting import (
    ConcentratedLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    ExponentialLoss,
    PrivacyLoss,
)
from accord.accounting.of_stages import LARGEST_EXACT, Losses, composed_epsilon
from accord.core.errors import InvalidParameter

__all__ = ["ROOT_2", "Noise", "Step", "calibrated", "planned_losses", "total_epsilon"]

ROOT_2 = Fraction(14143, 10000)
"""Just above the square root of 2."""

_GRAIN = 256
_FINEST = 1 << 30
_TIGHT = Fraction(998, 1000)
_MOST_TRIES = 40


class Noise(Enum):
    """The mechanism of a step."""

    GAUSSIAN = "discrete Gaussian"
    LAPLACE = "discrete Laplace"
    NUMBER = "discrete Gaussian on one number"
    CHOICE = "exponential mechanism"


@final
@dataclass(frozen=True, slots=True)
class Step:
    """Releases of one kind, planned before a record is read.

    Parameters
    ----------
    what
        For people: what is released.
    noise
        The mechanism.
    times
        How many releases, each with a fresh draw.
    number
        Standard deviation of Gaussian noise, scale of Laplace noise, or epsilon of a choice. Counts are in units of
        1 / ``whole`` of a unit of privacy.
    moved
        How far one unit of privacy moves the query: whole / 1 for a table (the weight that leaves one cell and enters
        another), the largest change for a number or for a score. A unit's records share its weight, so it is the same
        whatever their number is in either of two neighbours and wherever they stand.

    """

    what: str
    noise: Noise
    times: int
    number: Fraction
    moved: int

    def words(self, whole: int) -> str:
        """Return its number with what it is, where a unit of privacy weighs ``whole``."""
        number = float(self.number) if self.noise is Noise.CHOICE else float(self.number) / whole
        label = {Noise.CHOICE: "epsilon", Noise.LAPLACE: "scale"}.get(self.noise, "standard deviation")
        return f"{label} {number:.4g}"

    def losses(self, *, exact: bool) -> list[tuple[PrivacyLoss, int]]:
        """Return the losses of all its releases and how often each occurs.

        ``exact`` says that a unit of privacy is one record: then a table's neighbours differ by 1 in two cells, and
        each of the two noises is discrete Gaussian on one integer. Otherwise any number of cells moves, by up to
        a unit's weight together, and a loss is returned that is known by its moments alone.
        """
        if self.noise is Noise.CHOICE:
            return [(ExponentialLoss(self.number), self.times)]
        if self.noise is Noise.LAPLACE:
            return [(DiscreteLaplaceLoss(2 * self.moved / self.number, 2 * self.moved), self.times)]
        if exact:
            cells = 1 if self.noise is Noise.NUMBER else 2
            return [(DiscreteGaussianLoss(sigma=self.number, shift=self.moved), cells * self.times)]
        distance = self.moved if self.noise is Noise.NUMBER else self.moved * ROOT_2
        return [(ConcentratedLoss((distance / self.number) ** 2 / 2), self.times)]

    def quieter(self, factor: float) -> "Step":
        """Return it with this much more noise, rounded to the safe side."""
        if self.noise is Noise.CHOICE:
            number = Fraction(math.floor(float(self.number) / factor * _FINEST), _FINEST)
        else:
            number = Fraction(math.ceil(float(self.number) * factor * _GRAIN), _GRAIN)
        return Step(self.what, self.noise, self.times, number, self.moved)


def total_epsilon(steps: Sequence[Step], *, delta: Fraction, one_record: bool) -> Fraction | None:
    """Return an epsilon that all steps together have at this delta, adaptively; None where none is known."""
    try:
        losses, exact = planned_losses(steps, one_record=one_record)
    except InvalidParameter:
        return None
    return composed_epsilon(losses, delta=delta, exact=exact)


def planned_losses(steps: Sequence[Step], *, one_record: bool) -> tuple[Losses, bool]:
    """Return the losses of all steps with how often each occurs, and whether each is the mechanism's own."""
    exact = one_record and all(step.number <= LARGEST_EXACT for step in steps if step.noise is not Noise.CHOICE)
    found: Counter[PrivacyLoss] = Counter()
    for step in steps:
        for loss, times in step.losses(exact=exact):
            found[loss] += times
    return frozenset(found.items()), exact


def calibrated(steps: Sequence[Step], *, epsilon: Fraction, delta: Fraction, one_record: bool) -> tuple[Step, ...]:
    """Return the steps with the least common factor on their noise, to two parts in a thousand, that keeps the budget.

    Raises
    ------
    InvalidParameter
        If no amount of noise in reach does.

    """

    def spent(factor: float) -> Fraction | None:
        return total_epsilon([step.quieter(factor) for step in steps], delta=delta, one_record=one_record)

    factor = _search(spent, epsilon)
    if factor is None:
        raise InvalidParameter(
            "epsilon and delta must leave room for the planned steps: ask for fewer or a larger epsilon."
        )
    return tuple(step.quieter(factor) for step in steps)


def _search(spent: Callable[[float], Fraction | None], epsilon: Fraction) -> float | None:
    """Return a factor that spends at most epsilon: first by proportion, then by halving between too much and enough."""
    factor, too_little, enough = 1.0, 0.0, math.inf
    for _ in range(_MOST_TRIES):
        found = spent(factor)
        if found is not None and found <= epsilon:
            enough = min(enough, factor)
            if found >= _TIGHT * epsilon or enough <= too_little * (1 + 1e-3):
                return enough
        else:
            too_little = max(too_little, factor)
        guess = (
            factor * 2
            if found is None
            else factor * float(found / epsilon) * (1 - 1e-4 if found < epsilon else 1 + 1e-4)
        )
        inside = too_little * (1 + 1e-6) < guess < enough * (1 - 1e-6)
        factor = guess if inside else ((too_little + enough) / 2 if math.isfinite(enough) else 2 * too_little)
    return enough if math.isfinite(enough) else None
