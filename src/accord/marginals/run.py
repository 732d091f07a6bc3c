"""One release: the planned steps, in order. All that touches records is a method of `_Private`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core.release import named
from accord.core.secret import PrivateRandomness
from accord.marginals.dense import DenseEngine, Tables
from accord.marginals.domain import ColumnKind, Domain
from accord.marginals.engine import CountingEngine
from accord.marginals.errors import (
    Grouping,
    ModelErrors,
    grouped,
    measured_pairs,
    model_errors,
    nearest_law_of_some,
    told_apart,
)
from accord.marginals.fit import STRENGTH, Feature, Fitted, Noisy, fit
from accord.marginals.model import MarginalModel
from accord.marginals.planning import (
    CHOICE,
    CHOSEN,
    FULL,
    LARGEST_SCORE,
    ONES,
    PRODUCTS,
    RARE,
    ROOT_2,
    SCORE,
    SQUARES,
    MarginalPlan,
    Step,
    expected_error,
    pair_name,
)
from accord.marginals.tree import TreeEngine, junction_tree
from accord.noise.discrete_gaussian import DiscreteGaussian
from accord.noise.discrete_laplace import DiscreteLaplace
from accord.noise.exponential import Exponential

__all__ = ["Run"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Progress = Callable[[int, int, str], None]
_MOST_EXPECTED = 0.25
_ITERATIONS, _LEAST_ITERATIONS, _LAST_ITERATIONS = 60, 200, 1000
_WORK = 1 << 30
_MEAN_SIZE = math.sqrt(2 / math.pi)
_MOST_STRENGTH = 10.0


@final
@dataclass(frozen=True, slots=True)
class _Private:
    """Every look at the records, each by a mechanism. The steps are the plan's."""

    counting: CountingEngine
    plan: MarginalPlan
    randomness: PrivateRandomness

    def laplace(self, step: Step, table: tuple[int, ...]) -> Floats:
        mechanism = DiscreteLaplace(sensitivity=2 * self.plan.whole, scale=step.number)
        with named(step.what):
            released = mechanism.release(self.counting.table(table), randomness=self.randomness)
        return np.asarray(released.value, dtype=np.float64)

    def gaussian(self, step: Step, table: tuple[int, ...]) -> Floats:
        mechanism = DiscreteGaussian(sensitivity=ROOT_2 * self.plan.whole, sigma=step.number)
        counts, delta = self.counting.table(table), self.plan.promised.delta
        with named(step.what):
            released = mechanism.release(counts, delta=delta, randomness=self.randomness)
        return np.asarray(released.value, dtype=np.float64)

    def product(self, step: Step, left: int, right: int, scores: Sequence[Ints]) -> float:
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

    def choice(self, step: Step, tables: Tables, believed: Sequence[Ints], handicaps: Sequence[int]) -> int:
        """Return the position of a table: the L1 distance from what is believed, less a public handicap, decides."""
        scores = [
            int(np.abs(counts - belief).sum()) - handicap
            for counts, belief, handicap in zip(self.counting.count(tables), believed, handicaps, strict=True)
        ]
        mechanism = Exponential(sensitivity=step.moved, epsilon=step.number)
        with named(step.what):
            chosen = mechanism.select(scores, randomness=self.randomness).value
        assert isinstance(chosen, int)  # noqa: S101 - a choice always answers
        return chosen


@final
class Run:
    """The state of one release; all of it released."""

    def __init__(
        self,
        domain: Domain,
        *,
        plan: MarginalPlan,
        max_cells: int,
        tree_cells: int,
        randomness: PrivateRandomness,
        progress: Progress | None,
    ) -> None:
        self._domain, self._plan = domain, plan
        self._max_cells, self._tree_cells = max_cells, tree_cells
        self._randomness = randomness
        self._progress = progress
        self._done = 0
        self._noisy: list[Noisy] = []
        self._features: list[Feature] = []
        self._groupings: tuple[Grouping, ...] = ()
        self._ones_noisy: list[tuple[Floats, float]] = []
        self._total = 0
        self._engine: DenseEngine | TreeEngine | None = None
        self._fitted: Fitted | None = None

    def model(self, counting: CountingEngine) -> MarginalModel:
        """Take all steps and return the model."""
        self._total = counting.total
        look = _Private(counting, self._plan, self._randomness)
        if self._plan.mode == "full":
            self._full(look)
        else:
            look = self._ones(look)
            if self._plan.mode == "pairs":
                self._pairs(look)
            self._numbers(look)
            self._rounds(look)
            self._refit(_LAST_ITERATIONS)
        assert self._engine is not None and self._fitted is not None  # noqa: S101, PT018 - set by the refit
        return MarginalModel(
            domain=self._domain,
            measured=tuple(one.table for one in self._noisy),
            total=self._plan.units,
            _engine=self._engine,
            _potentials=self._fitted.potentials,
            _groupings=self._groupings,
            errors=self._errors(),
        )

    def _errors(self) -> ModelErrors:
        assert self._engine is not None and self._fitted is not None  # noqa: S101, PT018 - set by the refit
        shape = tuple(grouping.groups for grouping in self._groupings)
        tables: list[tuple[int, ...]] = [(place,) for place in range(len(shape))]
        tables += measured_pairs(self._noisy)
        laws = self._engine.several(self._fitted.potentials, tables)
        return model_errors(
            dict(zip(tables, laws, strict=True)),
            self._noisy,
            shape=shape,
            groupings=self._groupings,
            ones=self._ones_noisy,
            total=self._total,
        )

    def _step(self, what: str) -> Step:
        step = self._plan.step(what)
        assert step is not None  # noqa: S101 - the plan's own mode says that it is there
        return step

    def _tell(self, what: str) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, sum(step.times for step in self._plan.steps), what)

    def _full(self, look: _Private) -> None:
        step = self._step(FULL)
        everything = tuple(range(self._domain.dimension))
        counts = look.laplace(step, everything)
        self._noisy.append(Noisy(everything, counts, np.full(len(counts), math.sqrt(2) * float(step.number))))
        self._engine = DenseEngine(self._domain.shape, (everything,))
        self._groupings = tuple(
            Grouping(np.arange(size), np.ones(size), np.zeros(size), np.zeros(size)) for size in self._domain.shape
        )
        deviations = math.sqrt(2) * float(step.number)
        kept = np.ones(self._domain.shape, dtype=np.bool_)
        for place, (column, size) in enumerate(zip(self._domain.columns, self._domain.shape, strict=True)):
            over = tuple(axis for axis in everything if axis != place)
            sums, deviation = (
                counts.reshape(self._domain.shape).sum(axis=over),
                deviations * math.sqrt(len(counts) / size),
            )
            self._ones_noisy.append((sums, deviation))
            told = told_apart(column, sums, deviation=deviation, total=self._total)
            kept &= told.reshape([-1 if axis == place else 1 for axis in everything])
        law = nearest_law_of_some(counts, kept.ravel())
        self._fitted = Fitted(potentials=(np.log(law),), multipliers=())
        self._tell(FULL)

    def _ones(self, look: _Private) -> _Private:
        """Measure each column and put rare codes together; return a look at the records in groups."""
        step, plan = self._step(ONES), self._plan
        deviation = float(step.number)
        groupings = []
        for place, column in enumerate(self._domain.columns):
            counts = look.gaussian(step, (place,))
            self._ones_noisy.append((counts, deviation))
            groupings.append(
                grouped(
                    column,
                    counts,
                    deviation=deviation,
                    threshold=RARE * deviation,
                    most=plan.number_groups if column.kind is ColumnKind.NUMBER else plan.most_groups,
                    total=self._total,
                )
            )
            self._tell(ONES)
        self._groupings = tuple(groupings)
        for place, grouping in enumerate(groupings):
            self._noisy.append(Noisy((place,), grouping.counts, grouping.deviations))
        shape = tuple(grouping.groups for grouping in groupings)
        counting = look.counting.grouped([grouping.group_of for grouping in groupings], shape)
        return _Private(counting, look.plan, look.randomness)

    def _pairs(self, look: _Private) -> None:
        for table in combinations(range(self._domain.dimension), 2):
            step = self._step(pair_name(self._domain, table))
            self._take(look, step, table, STRENGTH)

    def _take(self, look: _Private, step: Step, table: tuple[int, ...], strength: float) -> None:
        counts = look.gaussian(step, table)
        self._noisy.append(Noisy(table, counts, np.full(len(counts), float(step.number)), strength))
        self._tell(step.what)

    def _numbers(self, look: _Private) -> None:
        """Measure how numbers spread and go together: products of standard scores, a function of the groups."""
        squares, products = self._plan.step(SQUARES), self._plan.step(PRODUCTS)
        if squares is None or products is None:
            return
        scores = self._scores()
        by_column = [scores.get(column, np.zeros(1, dtype=np.int64)) for column in range(self._domain.dimension)]
        for left, right in combinations_with_replacement(sorted(scores), 2):
            step = squares if left == right else products
            total = look.product(step, left, right, by_column)
            table = (left,) if left == right else (left, right)
            values = scores[left] ** 2 if left == right else np.outer(scores[left], scores[right]).ravel()
            self._features.append(Feature(table, values.astype(np.float64), total, float(step.number)))
            self._tell(step.what)

    def _scores(self) -> dict[int, Ints]:
        found = {}
        for place, (column, grouping) in enumerate(zip(self._domain.columns, self._groupings, strict=True)):
            if column.kind is not ColumnKind.NUMBER or column.size < 2:
                continue
            if grouping.groups == 1:
                found[place] = np.zeros(1, dtype=np.int64)
                continue
            middles = grouping.middles(column)
            weights = np.maximum(grouping.counts, 0) + 1e-9
            if grouping.missing(column):
                weights[-1] = 0.0
            mean = np.average(middles, weights=weights)
            spread = math.sqrt(float(np.average((middles - mean) ** 2, weights=weights))) or 1.0
            steps = np.rint((middles - mean) / spread * SCORE)
            found[place] = np.clip(steps, -LARGEST_SCORE, LARGEST_SCORE).astype(np.int64)
            if grouping.missing(column):
                found[place][-1] = 0
        return found

    def _rounds(self, look: _Private) -> None:
        choice, chosen = self._plan.step(CHOICE), self._plan.step(CHOSEN)
        if choice is None or chosen is None:
            return
        deviation = float(chosen.number)
        for done in range(chosen.times):
            self._refit(_ITERATIONS)
            tables = self._candidates(deviation, done / chosen.times)
            if not tables:
                return
            assert self._engine is not None and self._fitted is not None  # noqa: S101, PT018 - set by the refit
            laws = self._engine.several(self._fitted.potentials, tables)
            beliefs = [np.rint(self._total * law).astype(np.int64) for law in laws]
            handicaps = [round(deviation * _MEAN_SIZE * len(belief)) for belief in beliefs]
            place = look.choice(choice, tables, beliefs, handicaps)
            self._tell(CHOICE)
            self._take(look, chosen, tables[place], STRENGTH)
            if len(tables[place]) > 2:
                last = self._noisy[-1]
                strength = _strength(last.counts, beliefs[place], deviation)
                self._noisy[-1] = Noisy(last.table, last.counts, last.deviations, strength)

    def _candidates(self, deviation: float, progress: float) -> Tables:
        """Return tables that may be chosen: small enough for n, and for the model; by released numbers only."""
        shape = tuple(grouping.groups for grouping in self._groupings)
        known = {one.table for one in self._noisy}
        pairs = [table for table in known if len(table) == 2]
        ways = (3,) if self._plan.mode == "pairs" else (2, 3)
        found = []
        for way in ways:
            for table in combinations(range(len(shape)), way):
                cells = math.prod(shape[column] for column in table)
                small = expected_error(cells, deviation, units=self._total) <= _MOST_EXPECTED
                near = way == 2 or sum(set(pair) <= set(table) for pair in pairs) > 1
                if table not in known and small and near and self._fits(shape, [*known, table], progress):
                    found.append(table)
        return tuple(found)

    def _fits(self, shape: tuple[int, ...], tables: Sequence[tuple[int, ...]], progress: float) -> bool:
        if math.prod(shape) <= self._max_cells:
            return True
        largest = max(math.prod(shape[column] for column in table) for table in tables)
        room = max(self._tree_cells * (0.25 + 0.75 * progress), largest)
        return junction_tree(shape, tables).cells(shape) <= room

    def _refit(self, iterations: int) -> None:
        shape = tuple(grouping.groups for grouping in self._groupings)
        tables = tuple(dict.fromkeys(one.table for one in self._noisy))
        tree = TreeEngine(shape, tables)
        dense = math.prod(shape) <= self._max_cells and tree.slower_than_dense
        engine = DenseEngine(shape, tables) if dense else tree
        if iterations == _LAST_ITERATIONS:
            iterations = max(_LEAST_ITERATIONS, min(iterations, _WORK // engine.cells))
        features = [feature for feature in self._features if feature.table in tables]
        start = self._fitted.multipliers if self._fitted is not None else ()
        self._fitted = fit(
            engine, self._noisy, total=self._total, features=features, start=start, iterations=iterations
        )
        self._engine = engine


def _strength(counts: Floats, belief: Ints, deviation: float) -> float:
    """Return the weight of the entropy for a table whose noise may outweigh what it adds to the model.

    A ridge s on the multipliers shrinks a cell's deviation from a count c by ``c / (c + s deviation^2)``; with the best
    factor, signal over signal and noise, ``s = c cells / signal``, where c is the count at which the signal sits.
    """
    squares = float((belief.astype(np.float64) ** 2).sum())
    signal = float(((counts - belief) ** 2).sum()) - len(counts) * deviation**2
    if squares == 0 or signal <= 0:
        return _MOST_STRENGTH * deviation
    typical = float((belief.astype(np.float64) ** 3).sum()) / squares
    return float(np.clip(0.2 * typical * len(counts) / signal * deviation, STRENGTH, _MOST_STRENGTH * deviation))
