"""Which of several released models has the most neighbours: post-processing, data are not read here."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.errors import InvalidParameter
from accord.core.shared import SharedRandomness
from accord.distributions import Categorical, Distribution
from accord.distributions.categorical import label_keys
from accord.laws import estimate_total_variation, total_variation

__all__ = ["Nearness", "most_neighbours"]

_FIRST_SAMPLES = 1000
_GROWTH = 4
_UNSURE = 1e-9  # float distances that are so near to the bound are worked out exactly


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Nearness:
    """When two models are neighbours (proof page ``docs/proofs/private-learners.md``).

    Where a formula is known: if their total variation is at most ``far``. Elsewhere by draws, so that models within
    ``near`` of each other are neighbours and models more than ``far`` apart are not, but for a probability of
    ``failure`` a pair; with ``near = far`` there are no draws, and such pairs are no neighbours.

    Parameters
    ----------
    near, far
        ``near <= far``.
    failure
        Of one pair.

    """

    near: Fraction
    far: Fraction
    failure: float

    def holds(self, p: Distribution, q: Distribution, *, shared: SharedRandomness) -> bool:
        """Return whether two models are neighbours; a model that cannot be compared has none."""
        known = alone(lambda: self._by_formula(p, q), failed=False)
        if known is None:
            return alone(lambda: self.near < self.far and self._by_draws(p, q, shared=shared), failed=False)
        return known

    def _by_formula(self, p: Distribution, q: Distribution) -> bool | None:
        """Return whether the distance is at most ``far``, None where no formula is known."""
        try:
            return bool(total_variation(p, q) <= self.far)
        except InvalidParameter:
            return None

    def _by_draws(self, p: Distribution, q: Distribution, *, shared: SharedRandomness) -> bool:
        """Draw until the interval leaves out what is above ``far``, or what is within ``near``.

        Stage s may fail with probability ``failure / 2^(s + 1)``. Once the interval is no longer than ``far - near``,
        one of the two holds.
        """
        stage = 0
        while True:
            risk = self.failure / 2 ** (stage + 1)
            found = estimate_total_variation(
                p,
                q,
                samples=min(_FIRST_SAMPLES * _GROWTH**stage, self._enough(risk)),
                generator=shared.stream(stage),
                failure=risk,
            )
            if found.high <= self.far:
                return True
            if found.low > self.near:
                return False
            stage += 1

    def _enough(self, risk: float) -> int:
        """Return the draws at which Hoeffding's interval is shorter than ``far - near``: a little more than twice."""
        return math.ceil(2.01 * math.log(4 / risk) / float(self.far - self.near) ** 2) + 1


def most_neighbours(
    models: Sequence[Distribution | None], *, nearness: Nearness, shared: SharedRandomness
) -> int | None:
    """Return the first index t with the largest ``N_t = #{i: models i and t are neighbours}``; None without models.

    Parameters
    ----------
    models
        One a part; None for a part without an answer, which has no neighbours and is nobody's.
    nearness
        Equal models are always neighbours.
    shared
        Gives the pair (i, j) of distinct models its draws.

    """
    number, distinct = _distinct(models)
    if not distinct:
        return None
    near = np.eye(len(distinct), dtype=np.bool_)
    tables = _tables(distinct)
    for i, p in enumerate(distinct):
        known = None if tables is None else 0.5 * np.abs(tables[i + 1 :] - tables[i]).sum(axis=1) - float(nearness.far)
        for j in range(i + 1, len(distinct)):
            gap = 0.0 if known is None else float(known[j - i - 1])
            if abs(gap) > _UNSURE:
                near[i, j] = near[j, i] = gap < 0
            else:
                near[i, j] = near[j, i] = nearness.holds(p, distinct[j], shared=shared.child(i, j))
    members = np.bincount([index for index in number if index is not None], minlength=len(distinct))
    counts = near @ members
    best = [counts[index] if index is not None else -1 for index in number]
    return int(np.argmax(best))


def _distinct(models: Sequence[Distribution | None]) -> tuple[list[int | None], list[Distribution]]:
    """Return which distinct model each part has, and the distinct models in order of appearance."""
    seen: dict[object, int] = {}
    distinct: list[Distribution] = []
    number: list[int | None] = []
    for model in models:
        if model is None:
            number.append(None)
            continue
        place = alone(partial(seen.setdefault, model, len(distinct)), failed=len(distinct))  # without a hash: its own
        if place == len(distinct):
            distinct.append(model)
        number.append(place)
    return number, distinct


def _tables(models: Sequence[Distribution]) -> NDArray[np.float64] | None:
    """Return the probabilities of laws on one list of labels, shape (models, labels); None for other laws."""
    laws = [law for law in models if type(law) is Categorical]
    if len(laws) < len(models):
        return None
    labels = label_keys(laws[0].categories)
    if any(label_keys(law.categories) != labels for law in laws[1:]):
        return None
    return np.array([law.probabilities for law in laws])
