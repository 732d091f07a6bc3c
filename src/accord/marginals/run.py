"""One release: the planned steps, in order. All that touches records is a method of `Look`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.marginals.binning import NumericBinning
from accord.marginals.cells import Cells, held, learn_cells
from accord.marginals.coarse import Coarse, cell_of, coarse_tables
from accord.marginals.dense import DenseEngine, Tables
from accord.marginals.domain import Column, ColumnKind, Domain
from accord.marginals.engine import MOST_CELLS, CountingEngine, coded, in_batches
from accord.marginals.errors import (
    Grouping,
    ModelErrors,
    grouped,
    grouped_cells,
    measured_pairs,
    model_errors,
    nearest_law_of_some,
    told_apart,
)
from accord.marginals.fit import STRENGTH, Feature, Fitted, Noisy, fit
from accord.marginals.grid import Grid
from accord.marginals.looks import Look
from accord.marginals.model import MarginalModel
from accord.marginals.placing import even_levels
from accord.marginals.planning import (
    CHOICE,
    CHOSEN,
    EDGE,
    FULL,
    HEAVIEST,
    LARGEST_SCORE,
    PRODUCTS,
    RARE,
    SCORE,
    SQUARES,
    TREE,
    MarginalPlan,
    Step,
    column_name,
    expected_error,
    pair_name,
    sizes_of,
)
from accord.marginals.tree import GrowingTree, TreeEngine

__all__ = ["Run"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Progress = Callable[[int, int, str], None]
Candidate = tuple[int, tuple[int, ...]]
"""A table, and the level of its groups: 0 where nothing is put together."""
_MOST_EXPECTED = 0.25
_ITERATIONS, _LEAST_ITERATIONS, _LAST_ITERATIONS = 60, 200, 1000
_REFITS = 12
_OFTEN = 40
_BESIDE, _BESIDE_WEIGHT = 4, 1
"""At every so manieth refit tables of many columns at coarse groups may be chosen too; their scores weigh less."""
_RARELY = 20
_WIDEST = 3
_AGAIN: Candidate = (0, ())
"""Stands for the pair that is measured again where no table is worth more."""
_FEWEST_DRAWN, _MOST_DRAWN = 20_000, 200_000
_MOST_OF_TRIPLES = 20
_AT_ONCE = MOST_CELLS // 4
"""Cells that are scored at once: counts, beliefs and their differences are held together."""
_WORK = 1 << 30
_MEAN_SIZE = math.sqrt(2 / math.pi)
_MOST_STRENGTH = 10.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """The score of a table that may be chosen, and its counts by the model."""

    score: int
    belief: Ints


_NOTHING = _Scored(0, np.zeros(0, dtype=np.int64))


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
        target: int | None,
        randomness: PrivateRandomness,
        progress: Progress | None,
    ) -> None:
        self._domain, self._plan = domain, plan
        self._max_cells, self._tree_cells = max_cells, tree_cells
        self._target = target
        self._randomness = randomness
        self._progress = progress
        self._done = 0
        self._noisy: list[Noisy] = []
        self._features: list[Feature] = []
        self._groupings: tuple[Grouping, ...] = ()
        self._ones_noisy: list[tuple[Floats, Floats | float]] = []
        self._edges: dict[int, tuple[float, ...]] = {}
        self._scales: dict[int, float] = {}
        self._total = 0
        self._engine: DenseEngine | TreeEngine | None = None
        self._fitted: Fitted | None = None

    def model(self, counting: CountingEngine) -> MarginalModel:
        """Take all steps and return the model."""
        self._total = counting.total
        look = Look(counting, self._plan, self._randomness)
        if self._plan.mode == "full":
            self._full(look)
        else:
            look = self._ones(look)
            if self._plan.mode == "pairs":
                self._pairs(look)
            self._tree(look)
            self._numbers(look)
            self._rounds(look)
            self._refit(_LAST_ITERATIONS)
        assert self._engine is not None and self._fitted is not None  # noqa: S101, PT018 - set by the refit
        return MarginalModel(
            domain=self._domain,
            measured=tuple(dict.fromkeys(one.table for one in self._noisy if one.cell_of is None)),
            total=self._plan.units,
            _engine=self._engine,
            _potentials=self._fitted.potentials,
            _groupings=self._groupings,
            edges=self._edges,
            errors=self._errors(),
        )

    def _errors(self) -> ModelErrors:
        assert self._engine is not None and self._fitted is not None  # noqa: S101, PT018 - set by the refit
        shape = self._shape
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

    def _full(self, look: Look) -> None:
        step = self._step(FULL)
        columns = list(self._domain.columns)
        for place, column in enumerate(columns):
            if column.grid is not None:  # each of its codes is a cell
                ends = column.grid.ends(np.arange(column.grid.size + 1))
                self._edges[place] = tuple(ends.tolist())
                columns[place] = NumericBinning(ends, missing=column.missing).column(column.name)
        self._domain = Domain(columns)
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

    def _ones(self, look: Look) -> Look:
        """Count each column, find its cells, and put rare ones together; return a look at the records in groups."""
        columns, groupings = list(self._domain.columns), []
        runs: dict[int, Ints] = {}
        for place, column in enumerate(columns):
            if column.grid is None:
                groupings.append(self._of_codes(look, place, column))
                continue
            cells = self._cells(look, place, column, column.grid)
            ends = cells.edges(column.grid)
            self._edges[place] = tuple(ends.tolist())
            runs[place] = np.append(cells.starts, [column.grid.size] * column.missing)
            columns[place] = NumericBinning(ends, missing=column.missing).column(column.name)
            self._ones_noisy.append((cells.counts, cells.deviations))
            groupings.append(
                grouped_cells(
                    cells,
                    ends,
                    missing=column.missing,
                    threshold=RARE,
                    most=self._plan.number_groups,
                    total=self._total,
                )
            )
        self._domain, self._groupings = Domain(columns), tuple(groupings)
        for place, grouping in enumerate(groupings):
            self._noisy.append(Noisy((place,), grouping.counts, grouping.deviations))
        counting = look.counting.in_runs(runs).grouped([grouping.group_of for grouping in groupings], self._shape)
        return Look(counting.recoded(), look.plan, look.randomness)

    def _of_codes(self, look: Look, place: int, column: Column) -> Grouping:
        step, plan = self._step(column_name(column)), self._plan
        deviation = float(step.number)
        counts = look.gaussian(step, (place,))
        scale = self._scale(counts, deviation)
        counts, deviation, self._scales[place] = counts * scale, deviation * scale, scale
        self._ones_noisy.append((counts, deviation))
        self._tell(step.what)
        return grouped(
            column,
            counts,
            deviation=deviation,
            threshold=RARE * deviation,
            most=plan.number_groups if column.kind is ColumnKind.NUMBER else plan.most_groups,
            total=self._total,
        )

    def _scale(self, counts: Floats, deviation: float) -> float:
        """Return by what to multiply the counts of a table to which some records add nothing."""
        return self._total / held(counts, deviation, total=self._total)

    def _cells(self, look: Look, place: int, column: Column, grid: Grid) -> Cells:
        """Count the cells of a grid as often as the plan says, each time finer where records are."""
        step = self._step(column_name(column))

        def measure(starts: Ints) -> Floats:
            here = Look(
                look.counting.in_runs({place: np.append(starts, [grid.size] * column.missing)}),
                look.plan,
                look.randomness,
            )
            counts = here.gaussian(step, (place,))
            self._tell(step.what)
            return counts

        deviations = [float(step.number)] * step.times
        cells = learn_cells(grid, measure, deviations=deviations, total=self._total, missing=column.missing)
        scale = self._scale(cells.counts, float(np.sqrt(np.mean(cells.deviations**2))))
        self._scales[place] = scale
        return replace(cells, counts=cells.counts * scale, deviations=cells.deviations * scale)

    def _pairs(self, look: Look) -> None:
        for table in combinations(range(self._domain.dimension), 2):
            step = self._step(pair_name(self._domain, table))
            self._take(look, step, table)

    def _take(self, look: Look, step: Step, table: tuple[int, ...], level: Coarse | None = None) -> None:
        counts, deviation = look.gaussian(step, table), float(step.number)
        scale = self._scale(counts, deviation)
        deviations = np.full(len(counts), deviation * scale)
        cells = None if level is None else cell_of(table, level.maps, level.shape)
        self._noisy.append(Noisy(table, counts * scale, deviations, STRENGTH, cells, self._all_numbers(table)))
        self._tell(step.what)

    def _all_numbers(self, table: tuple[int, ...]) -> bool:
        return all(self._domain.columns[column].kind is ColumnKind.NUMBER for column in table)

    def _numbers(self, look: Look) -> None:
        """Measure how numbers spread and go together: products of standard scores, a function of the groups."""
        squares, products = self._plan.step(SQUARES), self._plan.step(PRODUCTS)
        if squares is None or products is None:
            return
        scores = self._scores()
        by_column = [scores.get(column, np.zeros(1, dtype=np.int64)) for column in range(self._domain.dimension)]
        for left, right in combinations_with_replacement(sorted(scores), 2):
            step = squares if left == right else products
            total = look.product(step, left, right, by_column) * max(self._scales[left], self._scales[right])
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

    def _tree(self, look: Look) -> None:
        """Choose and measure pairs that join all columns, those first that depend most."""
        choice, chosen = self._plan.step(EDGE), self._plan.step(TREE)
        if choice is None or chosen is None:
            return
        shape = self._shape
        laws = [np.maximum(grouping.counts, 0.0) for grouping in self._groupings]
        laws = [law / max(float(law.sum()), 1.0) for law in laws]
        pairs = list(combinations(range(len(shape)), 2))
        deviation = float(chosen.number)
        scores: list[int] = []
        for some in in_batches(pairs, shape, most=_AT_ONCE):
            beliefs = [np.rint(self._total * np.outer(laws[a], laws[b]).ravel()).astype(np.int64) for a, b in some]
            handicaps = [round(deviation * _MEAN_SIZE * len(belief)) for belief in beliefs]
            scores += look.scores(some, beliefs, handicaps, weights=[HEAVIEST] * len(some))
        part = list(range(len(shape)))
        for _ in range(chosen.times):
            open_ = [place for place, (a, b) in enumerate(pairs) if part[a] != part[b]]
            left, right = pairs[open_[look.choice(choice, [scores[place] for place in open_])]]
            self._tell(EDGE)
            self._take(look, chosen, (left, right))
            part = [part[left] if one == part[right] else one for one in part]

    def _rounds(self, look: Look) -> None:
        choice, chosen = self._plan.step(CHOICE), self._plan.step(CHOSEN)
        if choice is None or chosen is None:
            return
        levels = Coarse.levels(self._domain.columns, self._groupings)
        looks = [look, *(look.at(level) for level in levels)]
        refits = min(chosen.times, _REFITS)
        ends = [round(chosen.times * done / refits) for done in range(1, refits + 1)]
        for done, (begin, end) in enumerate(pairwise([0, *ends])):
            self._refit(_ITERATIONS, done / refits)
            self._round(looks, levels, choice, chosen, times=end - begin, done=done)

    def _round(
        self, looks: Sequence[Look], levels: Sequence[Coarse], choice: Step, chosen: Step, *, times: int, done: int
    ) -> None:
        """Choose tables that the model as it is fits worst, and measure each, or a measured pair again."""
        deviation, progress = float(chosen.number), done / min(chosen.times, _REFITS)
        growing = GrowingTree(self._shape, [one.table for one in self._noisy])
        plain = self._candidates(deviation, growing, progress)
        beside = self._beside(levels, deviation, growing, progress) if done % _BESIDE == 0 or not plain else ()
        scored = self._scored(looks, levels, (plain, beside), choice=choice, deviation=deviation)
        for taken in range(times):
            if taken and taken % max(1, len(self._shape) // _OFTEN) == 0:
                fit_in = {*self._candidates(deviation, growing, progress), *beside, _AGAIN}
                scored = {one: found for one, found in scored.items() if one in fit_in}
            scored = scored or {_AGAIN: _NOTHING}
            names = list(scored)
            level, table = names[looks[0].choice(choice, [scored[one].score for one in names])]
            self._tell(CHOICE)
            if (level, table) == _AGAIN:
                self._take(looks[0], chosen, self._noisiest())
                continue
            belief = scored.pop((level, table)).belief
            grown = growing.with_table(table)
            if len(table) <= _WIDEST or self._fits(grown):
                growing = grown
                self._take(looks[level], chosen, table, levels[level - 1] if level else None)
                self._weaken(belief)

    def _noisiest(self) -> tuple[int, ...]:
        """Return the measured pair that gains most from being measured again: by its cells and the noise left in it."""
        precision: dict[tuple[int, ...], float] = {}
        for one in self._noisy:
            if len(one.table) == 2:
                precision[one.table] = precision.get(one.table, 0.0) + float(np.mean(one.deviations)) ** -2
        sizes = sizes_of(self._shape, list(precision))
        gains = [size * each**-1.5 for size, each in zip(sizes, precision.values(), strict=True)]
        return list(precision)[int(np.argmax(gains))]

    def _weights(self, tables: Sequence[tuple[int, ...]], most: int) -> list[int]:
        """Return the weight of each score: half for tables without the target, where there is one."""
        return [most if self._target in {None, *table} else max(1, most // 2) for table in tables]

    def _fits(self, growing: GrowingTree) -> bool:
        return math.prod(self._shape) <= self._max_cells or growing.cells <= 2 * self._tree_cells

    def _weaken(self, belief: Ints) -> None:
        """Give the last table, if it is one of three columns or more, the weight of the entropy that its noise asks."""
        last = self._noisy[-1]
        if len(last.table) > 2:
            strength = _strength(last.counts, belief, float(last.deviations[0]))
            self._noisy[-1] = replace(last, strength=strength)

    def _scored(
        self,
        looks: Sequence[Look],
        levels: Sequence[Coarse],
        tables: tuple[Sequence[Candidate], Sequence[Candidate]],
        *,
        choice: Step,
        deviation: float,
    ) -> dict[Candidate, _Scored]:
        """Return the weighted score of each table, and what the model believes of it.

        Those of many columns, the second of ``tables``, have a handicap by which all of them together, if none shows
        more than noise, are chosen a twentieth as often as one table of score 0. Where they are alone, or not all
        pairs are measured, that is a pair that is measured again.
        """
        plain, beside = tables
        found = {} if plain and self._plan.mode == "pairs" else {_AGAIN: _NOTHING}
        many = round(2 * choice.moved / float(choice.number) * math.log(_RARELY * max(1, len(beside))))
        least = _BESIDE_WEIGHT if plain else HEAVIEST
        for some, most, weight, gate in ((plain, _MOST_DRAWN, HEAVIEST, 0), (beside, _FEWEST_DRAWN, least, many)):
            sample = self._sample(most) if some else None
            for level in sorted({level for level, _ in some}):
                assert sample is not None  # noqa: S101 - there are tables
                coarse = levels[level - 1] if level else None
                shape = coarse.shape if coarse else self._shape
                counting = sample.grouped(coarse.maps, shape).recoded() if coarse else sample
                asked = [table for one, table in some if one == level]
                for batch in in_batches(asked, shape, most=_AT_ONCE):
                    drawn = counting.count(batch)
                    scale = self._total / sample.total
                    handicaps = [round(_noise(one, deviation, scale)) for one in drawn]
                    beliefs = [one * self._total // sample.total for one in drawn]
                    scores = looks[level].scores(batch, beliefs, handicaps, weights=self._weights(batch, weight))
                    found.update(
                        ((level, table), _Scored(score - gate, belief))
                        for table, score, belief in zip(batch, scores, beliefs, strict=True)
                    )
        return found

    def _sample(self, most: int) -> CountingEngine:
        """Return records of the model as it is, of a public number, drawn by public randomness."""
        assert self._engine is not None and self._fitted is not None  # noqa: S101, PT018 - set by the refit
        generator = SharedRandomness(len(self._noisy)).stream("scores")
        size = min(max(self._plan.units, _FEWEST_DRAWN), most)
        groups = self._engine.sample(self._fitted.potentials, size, even_levels, generator)
        return CountingEngine.of(coded(groups, self._shape), self._shape, total=size)

    @property
    def _shape(self) -> tuple[int, ...]:
        return tuple(grouping.groups for grouping in self._groupings)

    def _candidates(self, deviation: float, growing: GrowingTree, progress: float) -> tuple[Candidate, ...]:
        """Return tables that may be chosen: small enough for n, and for the model; by released numbers only."""
        shape = self._shape
        known = {one.table for one in self._noisy if one.cell_of is None}
        pairs = {table for table in known if len(table) == 2}
        room = self._room(progress, [one.table for one in self._noisy])
        costs = self._costs(growing)
        ways = (3,) if self._plan.mode == "pairs" else (2, 3) if len(shape) <= _MOST_OF_TRIPLES else (2,)
        found = []
        for way in ways:
            for table in combinations(range(len(shape)), way):
                cells = math.prod(shape[column] for column in table)
                if table in known or 1 in {shape[column] for column in table}:
                    continue  # a column of one group tells nothing
                if expected_error(cells, deviation, units=self._total) > _MOST_EXPECTED:
                    continue
                near = way == 2 or sum(pair in pairs for pair in combinations(table, 2)) > 1
                added = max(costs[pair] for pair in combinations(table, 2))
                if near and growing.cells + added <= max(room, cells):
                    found.append((0, table))
        return tuple(found)

    def _costs(self, growing: GrowingTree) -> Floats:
        few = math.prod(self._shape) <= self._max_cells
        return np.zeros((len(self._shape), len(self._shape))) if few else growing.costs()

    def _beside(
        self, levels: Sequence[Coarse], deviation: float, growing: GrowingTree, progress: float
    ) -> tuple[Candidate, ...]:
        """Return tables of many columns, at coarse groups, that may be chosen: as small as others must be."""
        shape = self._shape
        shapes = [shape, *(level.shape for level in levels)]
        known = {one.table for one in self._noisy if len(one.table) > 2}
        room = self._room(progress, [one.table for one in self._noisy])
        costs = self._costs(growing)
        found = []
        for level, table in coarse_tables(levels, shape):
            cells = math.prod(shapes[level][column] for column in table)
            fine = math.prod(shape[column] for column in table)
            added = sum(costs[pair] for pair in combinations(table, 2)) + fine
            small = expected_error(cells, deviation, units=self._total) <= _MOST_EXPECTED
            if small and table not in known and growing.cells + added <= room:
                found.append((level, table))
        return tuple(found)

    def _room(self, progress: float, tables: Sequence[tuple[int, ...]]) -> float:
        shape = self._shape
        if math.prod(shape) <= self._max_cells:
            return math.inf
        largest = max(math.prod(shape[column] for column in table) for table in tables)
        return max(self._tree_cells * (0.25 + 0.75 * progress), largest)

    def _refit(self, iterations: int, progress: float = 1.0) -> None:
        shape = self._shape
        tables = self._held(progress)
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

    def _held(self, progress: float) -> Tables:
        """Return the measured tables, and pairs of which a product was measured, as far as the model has room for them.

        Those with the largest products for their noise come first; that of a pair inside a clique costs nothing.
        """
        found = dict.fromkeys(one.table for one in self._noisy)
        waiting = [one for one in self._features if one.table not in found]
        waiting.sort(key=lambda one: -abs(one.total) / one.deviation)
        if math.prod(self._shape) <= self._max_cells:
            return tuple(dict.fromkeys([*found, *(one.table for one in waiting)]))
        room = self._room(progress, list(found))
        growing = GrowingTree(self._shape, found)
        costs = growing.costs() if waiting else None
        for feature in waiting:
            assert costs is not None  # noqa: S101 - something waits
            cost = float(costs[feature.table])
            if cost == 0 or growing.cells + cost <= room:
                found[feature.table] = None
                if cost > 0:
                    growing = growing.with_table(feature.table)
                    costs = growing.costs()
        return tuple(found)


def _noise(belief: Ints, deviation: float, scale: float) -> float:
    """Return the mean L1 size of what a measured table would be off by, and of what a sample's counts are off by."""
    return _MEAN_SIZE * (deviation * len(belief) + scale * float(np.sqrt(belief).sum()))


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
