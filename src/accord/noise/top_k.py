"""Choose several candidates by their scores, without replacement."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import PureDP, Sensitivity
from accord.core.release import Release, ran
from accord.core.secret import PrivateRandomness, require_private
from accord.noise.exponential import Exponential
from accord.noise.scores import (
    Cumulative,
    ScoreWeights,
    candidate_weights,
    read_scores,
    selection_sensitivity,
    weights_of,
    whole_weights,
)

__all__ = ["TopK"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopK:
    """Choose ``count`` distinct candidates: so many rounds of the exponential mechanism, each among those left.

    Formal guarantees
    -----------------
    - Privacy: epsilon-DP under ``sensitivity.neighbouring``, exactly: ``count`` rounds at ``epsilon / count`` each, and
      every one is charged (theory C2; each round may depend on the earlier choices). The order is released too.
    - Law: round by round that of `Exponential` among the candidates left; `law` is exact.
    - It ends: nothing is drawn again, however much one score dominates.
    - Not promised: that a smaller count chosen afterwards is cheaper.

    Parameters
    ----------
    count
        How many to choose, at least 1.
    sensitivity
        Above 0: a `Sensitivity`, or a number for "replace one" ("add or remove one" if monotone). For all neighbours,
        also those where the unit has another number of records or stands elsewhere.
    epsilon
        For all rounds together; at least 2^-30 a round. Kept as an exact fraction.
    monotone
        Declares that adding a unit lowers no score, or raises none. Only for "add or remove one".

    Raises
    ------
    InvalidParameter
        Outside these ranges.

    Source
    ------
    Theory M3, C2; docs/proofs/top-k.md.

    Examples
    --------
    >>> best = TopK(count=3, sensitivity=1, epsilon=4)
    >>> sorted(best.select([1000, 0, 0]).value)
    [0, 1, 2]
    >>> best.guarantee.epsilon, best.round.epsilon
    (Fraction(4, 1), Fraction(4, 3))

    """

    count: int
    sensitivity: Sensitivity
    epsilon: Fraction
    monotone: bool = False

    def __init__(
        self, *, count: int, sensitivity: Sensitivity | Number, epsilon: Number, monotone: bool = False
    ) -> None:
        _check.store(
            self,
            count=_check.integer("count", count, least=1),
            sensitivity=selection_sensitivity(sensitivity, monotone=monotone),
            epsilon=_check.epsilon(epsilon),
            monotone=monotone,
        )
        self._rule()  # refuses an epsilon that is too small for so many rounds

    def _rule(self) -> ScoreWeights:
        return weights_of(self.sensitivity, epsilon=self.epsilon / self.count, monotone=self.monotone)

    @property
    def round(self) -> Exponential:
        """The mechanism of each round."""
        return Exponential(sensitivity=self.sensitivity, epsilon=self.epsilon / self.count, monotone=self.monotone)

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of all rounds together."""
        return PureDP(self.round.guarantee.epsilon * self.count, self.sensitivity.neighbouring)

    def select(
        self, scores: ArrayLike | Sequence[Any], *, randomness: PrivateRandomness | None = None
    ) -> Release[tuple[int, ...]]:
        """Choose once.

        Parameters
        ----------
        scores
            Shape (n,) with n at least ``count``: floats, ints, or exact numbers (Fraction, Decimal, str).
        randomness
            The operating system's source unless given.

        Returns
        -------
        Release
            Of the positions of the chosen candidates, in the order in which they were chosen.

        Raises
        ------
        WrongRandomness
            If ``randomness`` is anything but secret.
        InvalidParameter
            If there are too few scores, or one is NaN or +inf. Nothing has been drawn then.

        """
        source = require_private(randomness)
        values = self._read(scores)
        left = np.ones(values.size, dtype=np.bool_)
        chosen = []
        for _ in range(self.count):
            chosen.append(Cumulative(self._weights(values, left)).choose(randomness=source))
            left[chosen[-1]] = False
        return Release(tuple(chosen), *ran(self, self.guarantee))

    def _read(self, scores: ArrayLike | Sequence[Any]) -> NDArray[Any]:
        values = read_scores(scores)
        if values.size < self.count:
            raise InvalidParameter(f"scores must have at least count = {self.count} entries, not {values.size}.")
        return values

    def _weights(self, values: NDArray[Any], left: NDArray[np.bool_]) -> NDArray[np.float64]:
        return candidate_weights(self._rule(), values, left=left)

    def law(self, scores: ArrayLike | Sequence[Any]) -> dict[tuple[int, ...], Fraction]:
        """Return the exact law of `select`, for audits only: it is not private. For few candidates.

        Returns
        -------
        dict
            Positions in order of choice to probability; impossible ones are left out.

        """
        values = self._read(scores)
        law: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
        for _ in range(self.count):
            longer: dict[tuple[int, ...], Fraction] = {}
            for chosen, chance in law.items():
                left = np.ones(values.size, dtype=np.bool_)
                left[list(chosen)] = False
                whole = whole_weights(self._weights(values, left))
                total = sum(whole)
                longer |= {(*chosen, i): chance * Fraction(weight, total) for i, weight in enumerate(whole) if weight}
            law = longer
        return law
