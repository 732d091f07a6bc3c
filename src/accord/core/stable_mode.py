"""Release the value on which most voters agree, or no answer."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal, TypeAlias, final

from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.curve import CHANCE_BITS, exclusive_curve, yes_no_test
from accord.core.errors import InvalidParameter
from accord.core.exact import Number, exp_upper
from accord.core.guarantee import ApproxDP
from accord.core.proportional import proportional_curve
from accord.core.release import NoAnswer, Release, ran
from accord.core.secret import PrivateRandomness, require_private, two_sided_geometric
from accord.core.votes import Tally, law_of, tally

__all__ = [
    "Rule",
    "StableMode",
    "half_gap",
    "least",
    "noise_ratio",
    "safe_threshold",
    "tail",
]


Rule: TypeAlias = Literal["exclusive", "distance", "proportional"]

_SMALLEST_DISTANCE_EPSILON = Fraction(1, 1000)
_MOST_VOTES = 20_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StableMode:
    """Release the value of most votes if the votes agree well enough, otherwise `NoAnswer`.

    Formal guarantees
    -----------------
    - Privacy: (epsilon, delta)-DP when one of k voters changes its vote to anything, an abstention included; exactly.
    - Law, ``rule="exclusive"``: a value with n votes is released with probability exactly ``curve[n] / 2^128``, at
      most one value, see `exclusive_curve`. Meets the lower bound on votes that holds for every rule.
    - Law, ``rule="proportional"``: a value with n votes is released with probability exactly ``curve[n] / 2^128``, see
      `proportional_curve`: nearly n / k, and at least ``s / (k + s)`` is left for no answer. No majority is needed.
    - Law, ``rule="distance"``: the most frequent value (ties: the least canonical bytes) is released if
      ``ceil((n1 - n2) / 2) + noise`` reaches a threshold; the noise is two-sided geometric with a rational ratio.
    - Agreement: `acceptance` and `votes_needed` are exact probabilities.
    - Not promised: an answer where votes are split. The exclusive rule needs a majority of all k voters, those who
      abstain included: at epsilon 1 and delta 1e-6, of 1000 votes 480 are never enough, 500 are once in four times and
      508 nearly always. The most frequent of several values has no chance below one half.
    - Not promised: that the number of voters stays secret; running time independent of votes and noise.

    Parameters
    ----------
    epsilon
        Above 0, at most 1000; at least 1/1000 for the distance rule. Kept as an exact fraction.
    delta
        Below 1, at least 2^-100. Kept as an exact fraction.
    rule
        "exclusive" (the default) releases a value that has a majority of all k voters, by few votes more than half.
        "distance" (the form found in the literature) releases the most frequent value if it leads the next by enough,
        majority or not: take it where the votes go to many values. Where all agree it needs about twice as many votes.
        "proportional" releases a value nearly as often as voters vote for it: take it where a draw from the voters'
        common law is wanted, not its mode.

    Source
    ------
    Theory S8 ("exclusive"), L6 ("distance"), S13 ("proportional"); docs/proofs/stable-mode.md, and
    docs/proofs/proportional.md.

    Examples
    --------
    >>> mode = StableMode(epsilon=1, delta="1e-6")
    >>> mode.release(["a"] * 40).value
    'a'
    >>> mode.release(["a"] * 4 + ["b"]).guarantee.epsilon
    Fraction(1, 1)
    >>> mode.votes_needed(failure="0.05"), mode.votes_needed(failure="0.05", agreement="0.9")
    (16, 18)
    >>> float(mode.acceptance(480, votes=1000)), round(float(mode.acceptance(500, votes=1000)), 2)
    (0.0, 0.26)
    >>> StableMode(epsilon=1, delta="1e-6", rule="distance").release(["a"] * 480 + ["b"] * 260 + ["c"] * 260).value
    'a'

    """

    epsilon: Fraction
    delta: Fraction
    rule: Rule = "exclusive"

    def __init__(self, *, epsilon: Number, delta: Number, rule: Rule = "exclusive") -> None:
        if rule not in {"exclusive", "distance", "proportional"}:
            raise InvalidParameter("rule must be 'exclusive', 'distance' or 'proportional'.")
        loss = _check.epsilon(epsilon)
        if rule == "distance" and loss < _SMALLEST_DISTANCE_EPSILON:
            raise InvalidParameter("epsilon must be at least 1/1000 for the distance rule: use rule='exclusive'.")
        _check.store(self, epsilon=loss, delta=_check.delta(delta), rule=rule)

    @property
    def guarantee(self) -> ApproxDP:
        """The guarantee of one release, when one voter is replaced."""
        return ApproxDP(self.epsilon, self.delta, unit="voter")

    def release(
        self, votes: Collection[Any] | NDArray[Any], *, randomness: PrivateRandomness | None = None
    ) -> Release[Any]:
        """Run the mechanism once.

        Parameters
        ----------
        votes
            A sequence of k votes, or an array of shape (k,) or (k, m); see `accord.core.votes`. `ABSTAIN` never
            wins.
        randomness
            The operating system's source unless given.

        Returns
        -------
        Release
            Of the winner in canonical form, or of `NoAnswer`: under the exclusive rule whenever no value has a
            majority of the voters, however many there are. The budget is spent either way.

        Raises
        ------
        WrongRandomness
            If ``randomness`` is anything but secret.
        InvalidParameter
            If there are no votes or one of them has no canonical form. Nothing has been drawn then.

        """
        source = require_private(randomness)
        counted = tally(votes)
        winner = self._by_distance(counted, source) if self.rule == "distance" else self._by_curve(counted, source)
        return Release(
            NoAnswer if winner is None else counted.values[winner],
            *ran(self, self.guarantee),
        )

    def _curve(self, votes: int) -> tuple[int, ...]:
        make = exclusive_curve if self.rule == "exclusive" else proportional_curve
        return make(self.epsilon, self.delta, votes=votes)

    def _by_curve(self, counted: Tally, randomness: PrivateRandomness) -> bytes | None:
        curve = self._curve(counted.voters)
        draw = randomness.bits(CHANCE_BITS)
        ends = accumulate(curve[count] for count in counted.counts.values())
        return next((key for key, end in zip(counted.counts, ends, strict=True) if draw < end), None)

    def _by_distance(self, counted: Tally, randomness: PrivateRandomness) -> bytes | None:
        threshold = safe_threshold(self.epsilon, self.delta)
        noise = two_sided_geometric(noise_ratio(self.epsilon), randomness=randomness)
        winner, gap = _mode(counted)
        return winner if gap + noise >= threshold else None

    def law(self, votes: Collection[Any] | NDArray[Any]) -> dict[Any, Fraction]:
        """Return the exact law of `release`, for audits only: it is not private.

        Returns
        -------
        dict
            Value to probability, `NoAnswer` included, other impossible outcomes left out. A value that cannot be a key
            of a dict (a numpy row) stands as its canonical bytes; values that Python calls equal (``1`` and ``True``)
            share an entry.

        """
        counted = tally(votes)
        if self.rule != "distance":
            curve = self._curve(counted.voters)
            return law_of(
                (counted.values[key], key, Fraction(curve[count], 2**CHANCE_BITS))
                for key, count in counted.counts.items()
            )
        winner, gap = _mode(counted)
        if winner is None:
            return law_of(())
        return law_of([(counted.values[winner], winner, self._passes(gap))])

    def _passes(self, gap: int) -> Fraction:
        threshold = safe_threshold(self.epsilon, self.delta)
        return tail(noise_ratio(self.epsilon), threshold - gap)

    def acceptance(self, count: int, *, votes: int) -> Fraction:
        """Return the exact probability that ``count`` of ``votes`` votes are enough, the rest all different.

        Under "exclusive" and "proportional" the rest does not matter. Under "distance" a value with one vote of several
        is taken to win the tie.

        Raises
        ------
        InvalidParameter
            If not ``0 <= count <= votes`` or ``votes < 1``.

        """
        votes = _check.integer("votes", votes, least=1)
        count = _check.integer("count", count, least=0, most=votes)
        if self.rule != "distance":
            return Fraction(self._curve(votes)[count], 2**CHANCE_BITS)
        if count == 0:
            return Fraction(0)
        return self._passes(half_gap(count, 1 if count < votes else 0))

    def votes_needed(self, *, failure: Number, agreement: Number = 1) -> int:
        """Return the least number of votes at which agreement is released with probability at least ``1 - failure``.

        Parameters
        ----------
        failure
            Strictly between 0 and 1.
        agreement
            Share of the k votes that agree, rounded down to ``floor(agreement * k)`` votes; the others are all
            different. Above 0, at most 1; above 1/2 for the exclusive rule, above
            ``1 - failure`` for the proportional one. Give "0.7" rather than the float 0.7, which
            is a little less.

        Raises
        ------
        InvalidParameter
            Outside these ranges, or if an absurd number of votes were needed.

        """
        target = 1 - _check.probability("failure", failure)
        share = _check.exact("agreement", agreement)
        if not 0 < share <= 1:
            raise InvalidParameter("agreement must be above 0 and at most 1.")
        if self.rule == "exclusive" and share <= Fraction(1, 2):
            raise InvalidParameter("agreement must be above 1/2 for the exclusive rule: below it, use BestOfDraws.")
        if self.rule == "proportional" and share <= target:
            raise InvalidParameter(
                "agreement must be above 1 - failure: a value is released about as often as voted for."
            )

        def enough(winners: int) -> bool:
            return self.acceptance(winners, votes=math.ceil(winners / share)) >= target

        if self.rule == "distance":
            return math.ceil(least(enough, start=1, most=_MOST_VOTES) / share)
        bounds = zip(range(_MOST_VOTES), yes_no_test(self.epsilon, self.delta), strict=False)
        start = next((count for count, bound in bounds if bound >= target), _MOST_VOTES + 1)
        return math.ceil(least(enough, start=start, most=_MOST_VOTES) / share)


def _mode(counted: Tally) -> tuple[bytes | None, int]:
    """Return the most frequent key, the least one among equals, and its half gap to the next."""
    ranked = sorted(counted.counts.items(), key=lambda item: (-item[1], item[0]))
    if not ranked:
        return None, 0
    second = ranked[1][1] if len(ranked) > 1 else 0
    return ranked[0][0], half_gap(ranked[0][1], second)


def least(enough: Callable[[int], bool], *, start: int, most: int) -> int:
    """Return the least n >= ``start`` with ``enough(n)``, which must stay true once it is true.

    Raises
    ------
    InvalidParameter
        If it is above ``most``.

    """
    short, step, good = start - 1, 1, start
    while good <= most and not enough(good):
        short, step = good, 2 * step
        good = short + step if short == most else min(short + step, most)
    if good > most:
        message = f"failure cannot be reached with {most} votes: allow a larger epsilon, delta or failure."
        raise InvalidParameter(message)
    while good - short > 1:
        middle = (good + short) // 2
        short, good = (short, middle) if enough(middle) else (middle, good)
    return good


_RATIO_BITS = 64


@lru_cache(maxsize=64)
def noise_ratio(epsilon: Fraction) -> Fraction:
    """Return a ratio q of at most 64 binary places with exp(-epsilon) <= q: the noise is z with chance ~ q^|z|."""
    return Fraction(-int(-exp_upper(-epsilon) * 2**_RATIO_BITS // 1), 2**_RATIO_BITS)


def tail(ratio: Fraction, least: int) -> Fraction:
    """Return P[noise >= least], exactly."""
    if least <= 0:
        return 1 - tail(ratio, 1 - least)
    return ratio**least / (1 + ratio)


@lru_cache(maxsize=64)
def safe_threshold(epsilon: Fraction, delta: Fraction) -> int:
    """Return the least t for which a half gap of 1 passes with probability at most delta."""
    ratio = noise_ratio(epsilon)
    unsafe, safe = 0, 1
    while tail(ratio, safe) > delta:
        unsafe, safe = safe, 2 * safe
    while safe - unsafe > 1:
        middle = (safe + unsafe) // 2
        unsafe, safe = (unsafe, middle) if tail(ratio, middle) <= delta else (middle, safe)
    return 1 + safe


def half_gap(first: int, second: int) -> int:
    """Return how many votes must move before the second value can draw level: ``ceil((first - second) / 2)``."""
    return (first - second + 1) // 2
