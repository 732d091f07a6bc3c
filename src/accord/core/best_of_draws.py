"""Several draws on the same voters: release one value of one draw, or no answer."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number, exp_lower
from accord.core.guarantee import ApproxDP
from accord.core.release import NoAnswer, Release, ran
from accord.core.secret import PrivateRandomness, require_private, uniform_below
from accord.core.votes import Tally, law_of, tally

__all__ = ["BestOfDraws"]

_WEIGHT_BITS = 256
_REST = 1 << _WEIGHT_BITS
_GROWTH_BITS = 128
_UNIT = 1 << _GROWTH_BITS
_MOST_DRAWS = 1_000_000
_MOST_VOTES = 1_000_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BestOfDraws:
    """Choose one (draw, value) by votes among R draws on the same voters, or `NoAnswer`.

    Value z of draw r weighs ``(delta / R) exp((epsilon / 2)(N - 1))`` if it has N >= 1 votes in that draw; no answer
    weighs 1.

    Formal guarantees
    -----------------
    - Privacy: (epsilon, delta)-DP when one of k voters changes its votes in all R draws at once, abstentions
      included; exactly.
    - Law: proportional to integer weights, see `law`. No floats occur.
    - Agreement: a value with at least `votes_needed` votes in some draw brings the probability of no answer down
      to ``failure``.
    - Not promised: that the value has the law of one draw, since the draw is selected by agreement; that R or k
      stay secret.

    Parameters
    ----------
    epsilon
        Above 0, at most 1000. Kept as an exact fraction.
    delta
        At least 2^-100, at most ``exp(epsilon / 2) - 1``, below 1. Kept as an exact fraction.
    draws
        The number R of draws, from 1 to 1,000,000.

    Source
    ------
    Theory S9, docs/proofs/best-of-draws.md.

    Examples
    --------
    >>> best = BestOfDraws(epsilon=1, delta="1e-6", draws=2)
    >>> draw, value = best.release([["a", "b", "c", "d"] * 25, ["z"] * 100]).value
    >>> draw, value
    (1, 'z')
    >>> best.votes_needed(failure="0.05")
    36

    """

    epsilon: Fraction
    delta: Fraction
    draws: int

    def __init__(self, *, epsilon: Number, delta: Number, draws: int) -> None:
        _check.store(
            self,
            epsilon=_check.epsilon(epsilon),
            delta=_check.delta(delta),
            draws=_check.integer("draws", draws, least=1, most=_MOST_DRAWS),
        )
        if self.delta > Fraction(self._growth(), _UNIT) - 1:
            message = (
                "delta must be at most exp(epsilon / 2) - 1: the proof needs that a value that loses its only vote "
                "changes the sum of weights by no more than a factor exp(epsilon / 2). Choose a smaller one."
            )
            raise InvalidParameter(message)

    def _growth(self) -> int:
        """Return exp(epsilon / 2) over 2^128, at least 1, rounded down."""
        return max(_UNIT, int(exp_lower(self.epsilon / 2) * _UNIT))

    def _weights(self) -> Iterator[int]:
        """Yield the weights of 0, 1, 2, .. votes; no answer weighs 2^256."""
        yield 0
        growth = self._growth()
        weight = int(self.delta / self.draws * _REST)
        while True:
            yield weight
            weight = weight * growth >> _GROWTH_BITS

    @property
    def guarantee(self) -> ApproxDP:
        """The guarantee of one release, when one voter is replaced in all draws."""
        return ApproxDP(self.epsilon, self.delta, unit="voter")

    def release(
        self, votes: Collection[Any] | NDArray[Any], *, randomness: PrivateRandomness | None = None
    ) -> Release[tuple[int, Any]]:
        """Run the mechanism once.

        Parameters
        ----------
        votes
            Shape (R, k) or (R, k, m): one row a draw, one entry a voter, the voters in the same order in every row; see
            `accord.core.votes`. `ABSTAIN` never wins.
        randomness
            The operating system's source unless given.

        Returns
        -------
        Release
            Of (draw, value), the draw counted from 0 and the value in canonical form, or of `NoAnswer`. The budget is
            spent either way.

        Raises
        ------
        WrongRandomness
            If ``randomness`` is anything but secret.
        InvalidParameter
            If the shape is wrong or a vote has no canonical form. Nothing has been drawn then.

        """
        source = require_private(randomness)
        counted = self._count(votes)
        cells = list(self._cells(counted))
        ticket = uniform_below(_REST + sum(weight for _, _, weight in cells), randomness=source)
        for draw, key, weight in cells:
            if ticket < weight:
                return Release((draw, counted[draw].values[key]), *ran(self, self.guarantee))
            ticket -= weight
        return Release(NoAnswer, *ran(self, self.guarantee))

    def _count(self, votes: Collection[Any] | NDArray[Any]) -> list[Tally]:
        if not isinstance(votes, (list, tuple, np.ndarray)) or len(votes) != self.draws:
            message = f"votes must be a list of {self.draws} draws, each with one vote of every voter."
            raise InvalidParameter(message)
        counted = [tally(row) for row in votes]
        if len({row.voters for row in counted}) != 1:
            raise InvalidParameter(
                "votes must have the same number of voters in every draw: let absent ones vote ABSTAIN."
            )
        return counted

    def _cells(self, counted: list[Tally]) -> Iterator[tuple[int, bytes, int]]:
        """Yield draw, key and weight of every value that has votes, by draw and then by the key's bytes."""
        most = max((count for row in counted for count in row.counts.values()), default=0)
        weights = [weight for _, weight in zip(range(most + 1), self._weights(), strict=False)]
        for draw, row in enumerate(counted):
            for key, count in row.counts.items():
                yield draw, key, weights[count]

    def law(self, votes: Collection[Any] | NDArray[Any]) -> dict[Any, Fraction]:
        """Return the exact law of `release`, for audits only: it is not private.

        Returns
        -------
        dict
            (draw, value) to probability, and `NoAnswer`. A value that cannot be a key of a dict (a numpy row) stands as
            its canonical bytes.

        """
        counted = self._count(votes)
        cells = list(self._cells(counted))
        total = _REST + sum(weight for _, _, weight in cells)
        return law_of(
            ((draw, counted[draw].values[key]), (draw, key), Fraction(weight, total)) for draw, key, weight in cells
        )

    def votes_needed(self, *, failure: Number) -> int:
        """Return the least number of votes with which one value, alone, brings no answer down to ``failure``.

        Other values with votes make no answer rarer still, but may be chosen themselves.

        Raises
        ------
        InvalidParameter
            If ``failure`` is not strictly between 0 and 1, or an absurd number of votes were needed.

        """
        largest = _check.probability("failure", failure)
        for count, weight in zip(range(_MOST_VOTES), self._weights(), strict=False):
            if largest * (weight + _REST) >= _REST:
                return count
        message = f"failure cannot be reached with {_MOST_VOTES} votes: allow a larger epsilon, delta or failure."
        raise InvalidParameter(message)
