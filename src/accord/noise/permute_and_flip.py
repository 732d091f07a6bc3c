"""Choose a candidate by its score: permute and flip, never worse than the exponential mechanism."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.exact import Number
from accord.core.guarantee import PureDP, Sensitivity
from accord.core.release import Release, ran
from accord.core.secret import PrivateRandomness, bernoulli, require_private
from accord.noise.scores import (
    LOWEST_BIT,
    ScoreWeights,
    candidate_weights,
    read_scores,
    selection_sensitivity,
    shortfall,
    uniform_index,
    weights_of,
    whole_weights,
)

__all__ = ["PermuteAndFlip"]

_COIN_BITS = 63


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip:
    """Choose one of finitely many public candidates: each flips a coin, and one of those with heads is taken at random.

    The coin of a candidate with score u shows heads with probability ``w = exp(-epsilon (best - u) / (2 S))``, without
    the 2 if monotone; the best one's always does. Taking candidates in a random order and stopping at the first heads,
    which gave the mechanism its name, is the same law.

    Formal guarantees
    -----------------
    - Privacy: epsilon-DP under ``sensitivity.neighbouring``, exactly, the price of `Exponential`. The sensitivity, and
      whether scores are monotone, are the caller's claims.
    - Law: that of noisy maximum with exponential noise, not that of the exponential mechanism; `law` is exact. Weights
      w are rounded, and floored at ``exp(-88)``, as in `Exponential`, and charged in the same way.
    - Utility: the shortfall is never larger, in distribution, than that of `Exponential`.
    - A score of -inf is never chosen unless all are.
    - Not promised: a base measure; running time independent of scores and coins.

    Parameters
    ----------
    sensitivity
        Above 0: a `Sensitivity`, or a number for "replace one" ("add or remove one" if monotone). For all neighbours,
        also those where the unit has another number of records or stands elsewhere.
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
    McKenna and Sheldon (2020); Ding et al. (2021) for the noisy maximum; docs/proofs/permute-and-flip.md.

    Examples
    --------
    >>> mechanism = PermuteAndFlip(sensitivity=1, epsilon=1)
    >>> round(float(mechanism.law([0, 1])[1]), 5)
    0.69673
    >>> mechanism.select([3, 1, 2]).guarantee.epsilon
    Fraction(1, 1)

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
    def guarantee(self) -> PureDP:
        """The guarantee of one selection."""
        return PureDP(self.epsilon, self.sensitivity.neighbouring)

    def select(self, scores: ArrayLike | Sequence[Any], *, randomness: PrivateRandomness | None = None) -> Release[int]:
        """Choose once.

        Parameters
        ----------
        scores
            Shape (n,), one a candidate: floats, ints, or exact numbers (Fraction, Decimal, str).
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
            If there are no scores, or one is NaN or +inf. Nothing has been drawn then.

        """
        source = require_private(randomness)
        weights = candidate_weights(self._rule(), read_scores(scores))
        heads = np.flatnonzero(_flip(weights, randomness=source))
        return Release(
            int(heads[uniform_index(heads.size, randomness=source)]),
            *ran(self, self.guarantee),
        )

    def law(self, scores: ArrayLike | Sequence[Any]) -> dict[int, Fraction]:
        """Return the exact law of `select`, for audits only: it is not private.

        The probability of r is ``w_r`` times the integral of the product of ``1 - t w_j`` over the others, t from 0 to
        1. Takes a time that grows with the cube of the number of candidates: for tens of them.

        Returns
        -------
        dict
            Position to probability; impossible ones are left out.

        """
        whole = whole_weights(candidate_weights(self._rule(), read_scores(scores)))
        chances = {weight: _chance_of_one(weight, whole) for weight in set(whole) if weight}
        return {index: chances[weight] for index, weight in enumerate(whole) if weight}

    def utility_bound(self, t: Number, *, candidates: int, maximisers: int = 1) -> float:
        """Return G such that the chosen score is G or more below the best with a chance of at most ``exp(-t)``.

        ``(2 S / epsilon) (log((candidates - maximisers) / (maximisers + 1)) + t)``, without the 2 if monotone, with all
        rounding included: less than the bound of `Exponential`.

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
            Infinite if the logarithm plus t is above 88: the floor of the weights forbids a claim.

        """
        candidates = _check.integer("candidates", candidates, least=1)
        maximisers = _check.integer("maximisers", maximisers, least=1, most=candidates)
        return shortfall(self._rule(), t, odds=Fraction(candidates - maximisers, maximisers + 1))


def _flip(weights: NDArray[np.float64], *, randomness: PrivateRandomness) -> NDArray[np.bool_]:
    """Return one exact coin for each weight, a multiple of 2^-180 from 0 to 1."""
    words = randomness.words(weights.size) >> np.uint64(64 - _COIN_BITS)
    scaled = weights * 2.0**_COIN_BITS
    cuts = np.floor(scaled).astype(np.uint64)
    heads = np.asarray(words < cuts, dtype=np.bool_)
    for tie in np.flatnonzero(words == cuts):  # a chance of 2^-63 each: the digits of the weight that are left decide
        heads[tie] = bernoulli(Fraction(float(scaled[tie])) - int(cuts[tie]), randomness=randomness)
    return heads


def _chance_of_one(weight: int, whole: list[int]) -> Fraction:
    """Return the chance of one candidate of this weight, where ``whole`` are all weights over 2^180."""
    # Coefficients of the product of (1 - t w_j / 2^180) over the others, times 2^(180 (n - 1)).
    others = list(whole)
    others.remove(weight)
    product = [1]
    for other in others:
        kept = [coefficient << LOWEST_BIT for coefficient in product] + [0]
        moved = [0] + [coefficient * other for coefficient in product]
        product = [high - low for high, low in zip(kept, moved, strict=True)]
    integral = sum((Fraction(coefficient, power + 1) for power, coefficient in enumerate(product)), Fraction(0))
    return integral * Fraction(weight, 1 << LOWEST_BIT * len(whole))
