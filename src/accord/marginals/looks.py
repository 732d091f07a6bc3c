"""All that touches the records of a release: counts, sums and choices, each by a mechanism."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core.release import named
from accord.core.secret import PrivateRandomness
from accord.marginals.coarse import Coarse
from accord.marginals.engine import CountingEngine
from accord.marginals.planning import HEAVIEST, ROOT_2, MarginalPlan, Step
from accord.noise.discrete_gaussian import DiscreteGaussian
from accord.noise.discrete_laplace import DiscreteLaplace
from accord.noise.exponential import Exponential

__all__ = ["Look"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST_KEPT = 1 << 22


@final
@dataclass(frozen=True, slots=True)
class Look:
    """Every look at the records, each by a mechanism. The steps are the plan's."""

    counting: CountingEngine
    plan: MarginalPlan
    randomness: PrivateRandomness
    kept: dict[tuple[int, ...], Ints] = field(default_factory=dict)
    """Counts that scores ask for again."""

    def at(self, level: Coarse) -> "Look":
        """Return a look at the same records in coarser groups."""
        counting = self.counting.grouped(level.maps, level.shape)
        return Look(counting.recoded(), self.plan, self.randomness)

    def laplace(self, step: Step, table: tuple[int, ...]) -> Floats:
        """Return noisy counts of a table, flat."""
        mechanism = DiscreteLaplace(sensitivity=2 * self.plan.whole, scale=step.number)
        with named(step.what):
            released = mechanism.release(self.counting.table(table), randomness=self.randomness)
        return np.asarray(released.value, dtype=np.float64)

    def gaussian(self, step: Step, table: tuple[int, ...]) -> Floats:
        """Return noisy counts of a table, flat."""
        mechanism = DiscreteGaussian(sensitivity=ROOT_2 * self.plan.whole, sigma=step.number)
        counts, delta = self.counting.table(table), self.plan.promised.delta
        with named(step.what):
            released = mechanism.release(counts, delta=delta, randomness=self.randomness)
        return np.asarray(released.value, dtype=np.float64)

    def product(self, step: Step, left: int, right: int, scores: Sequence[Ints]) -> float:
        """Return the noisy sum of the products of two columns' scores."""
        mechanism = DiscreteGaussian(sensitivity=step.moved, sigma=step.number)
        value = self._product(left, right, scores)
        with named(step.what):
            released = mechanism.release(value, delta=self.plan.promised.delta, randomness=self.randomness)
        return float(np.asarray(released.value))

    def _product(self, left: int, right: int, scores: Sequence[Ints]) -> int:
        """Return the weighted sum of the products of two columns' scores."""
        if left == right:
            return int((self.counting.table((left,)) * scores[left] ** 2).sum())
        table = self.counting.table((left, right)).reshape(len(scores[left]), len(scores[right]))
        return int(scores[left] @ table @ scores[right])

    def scores(
        self,
        tables: Sequence[tuple[int, ...]],
        believed: Sequence[Ints],
        handicaps: Sequence[int],
        *,
        weights: Sequence[int],
    ) -> list[int]:
        """Return the score of each table: the L1 distance from what is believed, less a public handicap, weighted."""
        assert all(0 < weight <= HEAVIEST for weight in weights)  # noqa: S101 - every choice is charged for the heaviest
        new = [table for table in tables if table not in self.kept]
        counted = dict(zip(new, self.counting.count(new), strict=True)) if new else {}
        if sum(map(len, self.kept.values())) + sum(map(len, counted.values())) <= _MOST_KEPT:
            self.kept.update(counted)
        found = {**self.kept, **counted}
        return [
            weight * (int(np.abs(found[table] - belief).sum()) - handicap)
            for table, belief, handicap, weight in zip(tables, believed, handicaps, weights, strict=True)
        ]

    def choice(self, step: Step, scores: Sequence[int]) -> int:
        """Return a position; a high score is likelier. Every call is charged."""
        mechanism = Exponential(sensitivity=step.moved, epsilon=step.number)
        with named(step.what):
            chosen = mechanism.select(scores, randomness=self.randomness).value
        assert isinstance(chosen, int)  # noqa: S101 - a choice always answers
        return chosen
