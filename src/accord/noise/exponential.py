"""Choose a candidate by its score: the exponential mechanism."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from numpy.typing import ArrayLike

from accord.core import check as _check
from accord.core.exact import Number
from accord.core.guarantee import PureDP, Sensitivity
from accord.core.release import Release, ran
from accord.core.secret import PrivateRandomness, require_private
from accord.noise.scores import (
    Cumulative,
    ScoreWeights,
    candidate_weights,
    read_scores,
    selection_sensitivity,
    shortfall,
    weights_of,
    whole_weights,
)

__all__ = ["Exponential"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """Choose one of finitely many public candidates, a better score being exponentially more likely.

    Formal guarantees
    -----------------
    - Privacy: epsilon-DP under ``sensitivity.neighbouring``, exactly: every rounding is charged. The sensitivity, and
      whether scores are monotone, are the caller's claims.
    - Law: candidate r is chosen with probability proportional to ``base(r) exp(epsilon u(r) / (2 S))``, without the 2
      if monotone. Scores are rounded down to a grid of a power of 2 (whole and dyadic ones are kept as they are if S
      is), and a candidate with less than ``exp(-88)`` of the best one's weight gets that much. `law` is the exact law.
    - A score of -inf is never chosen unless all are; it must be so for all neighbours, which a finite S says.
    - Floats and integers in arrays take a time that does not depend on the scores, and 256 random bits (more with a
      chance below ``candidates * 2^-256``).
    - Not promised: the last point for Fractions and other exact numbers; a smaller price for a better score.

    Parameters
    ----------
    sensitivity
        Above 0: a `Sensitivity`, or a number for "replace one" ("add or remove one" if monotone). For all neighbours
        and all candidates, the score moves by at most this: also where the unit has another number of records or stands
        elsewhere.
    epsilon
        At least 2^-30 and at most 1000. Kept as an exact fraction.
    monotone
        Declares that adding a unit lowers no score, or raises none. Only for "add or remove one".

    Raises
    ------
    InvalidParameter
        Outside these ranges.

    Source
    ------
    Theory M3, M4; McSherry and Talwar (2007); docs/proofs/exponential.md.

    Examples
    --------
    >>> mechanism = Exponential(sensitivity=1, epsilon=1)
    >>> round(float(mechanism.law([0, 1])[1]), 5)
    0.62246
    >>> Exponential(sensitivity=1, epsilon=1000).select([0.0, 100.0, 99.0]).value
    1
    >>> round(mechanism.utility_bound(3, candidates=100), 4)
    15.2103

    """

    sensitivity: Sensitivity
    epsilon: Fraction
    monotone: bool = False

    def __init__(self, *, sensitivity: Sensitivity | Number, epsilon: Number, monotone: bool = False) -> None:
        _check.store(
            self,
            sensitivity=selection_sensitivity(sensitivity, monotone=monotone),
            epsilon=_check.epsilon(epsilon),
            monotone=monotone,
        )
        self._rule()  # refuses what has no weights

    def _rule(self) -> ScoreWeights:
        return weights_of(self.sensitivity, epsilon=self.epsilon, monotone=self.monotone)

    @property
    def step(self) -> Fraction:
        """The power of two to whole multiples of which scores are rounded down: far below a small epsilon's noise.

        Scores that are multiples of it are not rounded: whole numbers are not where it is at most 1.
        """
        return Fraction(2) ** self._rule().exponent

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of one selection."""
        return PureDP(self.epsilon, self.sensitivity.neighbouring)

    def select(
        self,
        scores: ArrayLike | Sequence[Any],
        *,
        base: ArrayLike | None = None,
        randomness: PrivateRandomness | None = None,
    ) -> Release[int]:
        """Choose once.

        Parameters
        ----------
        scores
            Shape (n,), one a candidate: floats, ints, or exact numbers (Fraction, Decimal, str).
        base
            Public weights of at least 0, shape (n,), equal unless given; reproduced to one part in 10^11.
        randomness
            The operating system's source unless given.

        Returns
        -------
        Release
            Of the position of the chosen candidate, from 0.

        Raises
        ------
        WrongRandomness
            If ``randomness`` is anything but secret.
        InvalidParameter
            If there are no scores, one is NaN or +inf, or ``base`` does not fit. Nothing has been drawn then.

        """
        source = require_private(randomness)
        weights = candidate_weights(self._rule(), read_scores(scores), base=base)
        return Release(Cumulative(weights).choose(randomness=source), *ran(self, self.guarantee))

    def law(self, scores: ArrayLike | Sequence[Any], *, base: ArrayLike | None = None) -> dict[int, Fraction]:
        """Return the exact law of `select`, for audits only: it is not private.

        Returns
        -------
        dict
            Position to probability; impossible ones are left out.

        """
        whole = whole_weights(candidate_weights(self._rule(), read_scores(scores), base=base))
        total = sum(whole)
        return {index: Fraction(weight, total) for index, weight in enumerate(whole) if weight}

    def utility_bound(self, t: Number, *, candidates: int, maximisers: int = 1) -> float:
        """Return G such that the chosen score is G or more below the best with a chance of at most ``exp(-t)``.

        Theory M4, for equal base weights, with all rounding included: ``(2 S / epsilon) (log(candidates / maximisers)
        + t)``, without the 2 if monotone, and more by a part in 10^9 if epsilon is at least 0.01.

        Parameters
        ----------
        t
            At least 0.
        candidates
            How many there are.
        maximisers
            How many of them have the best score, at least 1.

        Returns
        -------
        float
            Infinite if ``log(candidates / maximisers) + t`` is above 88: the floor of the weights forbids a claim.

        """
        candidates = _check.integer("candidates", candidates, least=1)
        maximisers = _check.integer("maximisers", maximisers, least=1, most=candidates)
        return shortfall(self._rule(), t, odds=Fraction(candidates, maximisers))
