"""Put rare codes together before tables of several columns are measured. Works on released counts only."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from accord.marginals.cells import Cells
from accord.marginals.domain import Column, ColumnKind
from accord.marginals.fit import Noisy

__all__ = [
    "ColumnError",
    "Grouping",
    "ModelErrors",
    "PairError",
    "Tables",
    "grouped",
    "grouped_cells",
    "model_errors",
    "nearest_law",
    "nearest_law_of_some",
    "told_apart",
]


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_MOST_SLOTS = 2048
_LEAST_COUNT = 1e-3
_MEAN_SIZE = math.sqrt(2 / math.pi)
_RATES = np.linspace(0.0, 0.98, 50)
_FEWEST_HALVED, _MOST_HALVED = 4, 16
_NOISE = 2.0
"""Up to so many deviations a sum says nothing: noise alone is above it with a chance of 1 in 40."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The groups of one column's codes.

    Parameters
    ----------
    group_of
        Group of each code, shape (size,).
    within
        Probability of each code given its group, shape (size,).
    counts, deviations
        Noisy count of each group, and the standard deviation of its noise, shape (groups,).

    """

    group_of: Ints
    within: Floats
    counts: Floats
    deviations: Floats

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.counts)

    def middles(self, column: Column, *, power: int = 1) -> Floats:
        """Return the mean of a power of the numbers in each group of a column; 0 for missing cells."""
        places = np.zeros(column.size)
        places[: column.values] = np.array(column.positions) ** power
        return np.bincount(self.group_of, weights=self.within * places).astype(np.float64)

    def missing(self, column: Column) -> int:
        """Return 1 if the last group is that of missing cells alone, 0 if there is none."""
        return int(column.missing and int((self.group_of == self.group_of[-1]).sum()) == 1)


def told_apart(column: Column, counts: Floats, *, deviation: float, total: float) -> Bools:
    """Return which codes hold records for all that the noisy counts tell, shape (size,); all where nothing stands out.

    Codes that stand out of the noise each by itself are told apart. The others are judged together, because many codes
    may hold a few records each: their number is estimated from their own sum and from what the known total leaves for
    them. They are noise if that is within the noise of the estimate, and if there would be more noise in their rows
    than records left out without. Missing cells, no neighbour of any number, are judged alone.

    Parameters
    ----------
    column
        Whose codes they are.
    counts, deviation
        Noisy counts, shape (size,), and the standard deviation of their noise.
    total
        What the true counts add up to, public.

    """
    kept = np.ones(len(counts), dtype=np.bool_)
    if column.missing and counts[-1] <= _NOISE * deviation < total / 2:
        kept[-1] = False
    heavy = kept & (counts >= _clear(len(counts), deviation))
    if column.missing:
        heavy[-1] = kept[-1]
    light = kept & ~heavy
    few, many = int(light.sum()), int(kept.sum())
    if not 0 < few < many:
        return kept
    share = few / many  # a sum of more codes has more noise, and the smaller weight
    left = float(counts[light].sum()) * (1 - share) + (total - float(counts[heavy].sum())) * share
    noise = deviation * math.sqrt(few * (1 - share))
    return heavy if left <= min(_NOISE * noise, _MEAN_SIZE * deviation * few) else kept


def _clear(codes: int, deviation: float) -> float:
    """Return a count that noise alone hardly reaches anywhere: normal, or of a lighter centre and longer tails."""
    return deviation * (max(math.sqrt(2 * math.log(codes)), math.log(codes) / math.sqrt(2)) + 1)


def grouped(column: Column, counts: Floats, *, deviation: float, threshold: float, most: int, total: float) -> Grouping:
    """Return groups that hold at least ``threshold`` by the noisy counts, where they can, and the law inside each.

    Codes that cannot be told from noise (`told_apart`) go to a group of others, of which they have next to nothing:
    whatever records they hold are counted there.

    Parameters
    ----------
    column
        Ordered columns get runs of neighbouring codes; otherwise all rare codes make up one group.
    counts, deviation
        Noisy counts, shape (size,), and the standard deviation of their noise.
    threshold
        Least noisy count.
    most
        At most so many groups of an ordered column.
    total
        What the true counts add up to, public.

    """
    kept = told_apart(column, counts, deviation=deviation, total=total)
    counted = np.where(kept, counts, 0.0)
    if column.kind is ColumnKind.CATEGORY:
        group_of = _rare_together(counted, threshold)
    else:
        values, rest = counted[: column.values], counted[column.values :]
        falling = _with_falling_tails(values, deviation, threshold)
        runs = _halves if column.kind is ColumnKind.NUMBER else _runs
        ends = np.arange(len(falling) + 1.0)
        group_of = runs(falling, ends, threshold=threshold, most=most - len(rest))
        group_of = np.concatenate([group_of, np.full(len(rest), group_of[-1] + 1)])
        counted = np.concatenate([falling, rest])
    group_of = _with_noise_elsewhere(group_of, counted, kept)
    law = nearest_law_of_some(counted, kept)
    sums = np.bincount(group_of, weights=law)
    sizes = np.bincount(group_of).astype(np.float64)
    within = np.where(sums[group_of] > 0, law / np.maximum(sums[group_of], 1e-300), 1 / sizes[group_of])
    return Grouping(
        group_of, within, np.bincount(group_of, weights=counts).astype(np.float64), deviation * np.sqrt(sizes)
    )


def grouped_cells(cells: Cells, ends: Floats, *, missing: bool, threshold: float, most: int, total: float) -> Grouping:
    """Return runs of released cells that hold at least ``threshold`` deviations, and the law inside each.

    Parameters
    ----------
    cells
        Of a column of numbers; what is noise has been taken out of them.
    ends
        Where each begins and the last one ends, in numbers.
    missing
        Whether the last count is that of missing cells, a group of its own.
    threshold
        Least count, in deviations of its noise.
    most
        At most so many groups.
    total
        What the true counts add up to, public.

    """
    values = len(cells.starts)
    counts, deviations = cells.counts.copy(), cells.deviations
    if missing and counts[-1] <= _NOISE * deviations[-1] < total / 2:
        counts[-1] = 0.0
    least = threshold * float(np.median(deviations[:values]))
    group_of = _halves(counts[:values], ends, threshold=least, most=most - missing)
    group_of = np.concatenate([group_of, np.full(int(missing), group_of[-1] + 1)]).astype(np.int64)
    law = nearest_law_of_some(counts, counts > 0) if (counts > 0).any() else np.full(len(counts), 1 / len(counts))
    sums = np.bincount(group_of, weights=law)
    sizes = np.bincount(group_of)
    return Grouping(
        group_of,
        np.where(sums[group_of] > 0, law / np.maximum(sums[group_of], 1e-300), 1 / sizes[group_of]),
        np.bincount(group_of, weights=counts).astype(np.float64),
        np.sqrt(np.bincount(group_of, weights=deviations**2)),
    )


def _with_noise_elsewhere(group_of: Ints, counts: Floats, kept: Bools) -> Ints:
    """Return groups each of which has a code that is kept: what has none joins the heaviest."""
    alive = np.bincount(group_of, weights=kept) > 0
    heaviest = int(np.argmax(np.where(alive, np.bincount(group_of, weights=counts), -np.inf)))
    number = np.cumsum(alive) - 1
    return np.where(alive, number, number[heaviest])[group_of].astype(np.int64)


def nearest_law_of_some(counts: Floats, kept: Bools) -> Floats:
    """Return the law nearest to the noisy counts of the codes that are kept; the others have next to nothing."""
    weights = np.full(len(counts), _LEAST_COUNT / len(counts))
    weights[kept] = nearest_law(counts[kept]) * max(float(counts[kept].sum()), 1.0)
    return np.asarray(weights / weights.sum())


def nearest_law(counts: Floats) -> Floats:
    """Return the law nearest to noisy counts by least squares, no code impossible."""
    total = max(float(counts.sum()), 1.0)
    ordered = np.sort(counts)[::-1]
    levels = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    level = levels[np.flatnonzero(ordered > levels)[-1]]
    weights = np.maximum(counts - level, _LEAST_COUNT)
    return np.asarray(weights / weights.sum())


def _with_falling_tails(counts: Floats, deviation: float, threshold: float) -> Floats:
    """Return counts of which those outside the outermost heavy codes fall geometrically towards the ends.

    In the tails there is more noise than signal, and its positive part, far out, would be taken for records there. One
    rate for each tail hardly depends on what is far out: the fastest that fits as well as the best but for noise.
    """
    # So high that noise alone hardly reaches it anywhere.
    least = max(threshold, deviation * (math.sqrt(2 * math.log(len(counts))) + 1))
    heavy = np.flatnonzero(counts >= least)
    if len(heavy) == 0:
        return counts
    first, last = int(heavy[0]), int(heavy[-1]) + 1
    return np.concatenate(
        [_geometric(counts[:first][::-1], deviation)[::-1], counts[first:last], _geometric(counts[last:], deviation)]
    )


def _geometric(counts: Floats, deviation: float) -> Floats:
    """Return a sequence ``a r^i``, a at least 0: the r least of those within four deviations squared of the best."""
    powers = _RATES[:, None] ** np.arange(len(counts))
    squares = (powers**2).sum(axis=1)
    along = np.maximum(powers @ counts, 0.0)
    gains = along**2 / np.maximum(squares, 1e-300)
    best = int(np.argmax(gains >= gains.max(initial=0.0) - (2 * deviation) ** 2))
    return np.asarray(along[best] / max(squares[best], 1e-300) * powers[best])


def _rare_together(counts: Floats, threshold: float) -> Ints:
    rare = counts < threshold
    if rare.sum() < 2:
        return np.arange(len(counts))
    group_of = np.cumsum(~rare) - 1
    group_of[rare] = group_of.max() + 1
    return group_of.astype(np.int64)


def _halves(counts: Floats, ends: Floats, *, threshold: float, most: int) -> Ints:
    """Return runs none of which goes over the middle of the counts: there tables of coarse groups are cut."""
    if not _FEWEST_HALVED <= most <= _MOST_HALVED or len(counts) <= most:
        return _runs(counts, ends, threshold=threshold, most=most)
    steps = np.cumsum(np.maximum(counts, 0.0))
    cut = int(np.argmin(np.abs(steps - steps[-1] / 2))) + 1
    if not all(len(side) and side.sum() >= threshold for side in (counts[:cut], counts[cut:])):
        return _runs(counts, ends, threshold=threshold, most=most)
    low = _runs(counts[:cut], ends[: cut + 1], threshold=threshold, most=most - most // 2)
    high = _runs(counts[cut:], ends[cut:], threshold=threshold, most=most // 2)
    return np.concatenate([low, high + low[-1] + 1])


def _runs(counts: Floats, ends: Floats, *, threshold: float, most: int) -> Ints:
    """Merge neighbouring runs until all are heavy enough, and then until they are few enough.

    Those come first that have no gap between them, a stretch without counts that is wide beside a run on its sides, and
    of these the lightest together. So what lies apart stays apart as long as each of it is heavy enough.

    Parameters
    ----------
    counts
        Of the codes, in their order.
    ends
        Where each code begins and the last one ends, shape (codes + 1,).
    threshold, most
        Least count of a run, and how many there may be.

    """
    starts = _first_starts(counts)
    weights = np.add.reduceat(counts, starts)
    held = np.flatnonzero(weights > 0)
    if len(held) == 0:
        return np.zeros(len(counts), dtype=np.int64)
    stops = np.append(starts[1:], len(counts))
    runs = [
        _OfCodes(float(weights[place]), float(ends[starts[place]]), float(ends[stops[place]]), int(starts[place]))
        for place in held.tolist()
    ]
    while len(runs) > 1:
        light = min(range(len(runs)), key=lambda place: runs[place].weight)
        sides = range(len(runs) - 1)
        if runs[light].weight < threshold:
            sides = range(max(light - 1, 0), min(light + 1, len(runs) - 1))
        elif len(runs) <= most:
            break
        low = min(sides, key=lambda low: (_gap(runs[low], runs[low + 1]), runs[low].weight + runs[low + 1].weight))
        runs[low : low + 2] = [runs[low].with_next(runs[low + 1])]
    firsts = [0, *(run.first for run in runs[1:])]
    return np.repeat(np.arange(len(runs)), np.diff([*firsts, len(counts)])).astype(np.int64)


@final
@dataclass(frozen=True, slots=True)
class _OfCodes:
    """A run of codes: what was counted in it, where what was counted begins and ends, and its first code."""

    weight: float
    begin: float
    end: float
    first: int

    def with_next(self, other: "_OfCodes") -> "_OfCodes":
        return _OfCodes(self.weight + other.weight, self.begin, other.end, self.first)


def _gap(left: _OfCodes, right: _OfCodes) -> float:
    """Return the width of the gap between two runs; 0 if it is at most half as wide as the narrower one."""
    gap = right.begin - left.end
    return gap if 2 * gap > min(left.end - left.begin, right.end - right.begin) else 0.0


def _first_starts(counts: Floats) -> Ints:
    """Return where runs begin: at each code, or, with very many codes, at equal shares of the noisy counts."""
    if len(counts) <= _MOST_SLOTS:
        return np.arange(len(counts), dtype=np.int64)
    steps = np.cumsum(np.maximum(counts, 0) + 1e-9)
    marks = np.floor(steps / steps[-1] * _MOST_SLOTS * (1 - 1e-12))
    return np.flatnonzero(np.concatenate([[True], np.diff(marks) > 0])).astype(np.int64)


"""Of the interval of each code's share."""

_REACH = 1.959964
"""Deviations on either side that hold 95 % of a normal law."""
_FAR = 6.0
_GRID = np.linspace(0.0, 2 * _FAR, 97)
_BINS = np.arange(-_FAR, _FAR + 0.25, 0.25)
_FEW, _MANY = 10, 60
_ENOUGH = 30


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnError:
    """What is expected of one column's shares in the model.

    Parameters
    ----------
    error
        Mean total variation between the model's shares and those of the records (of units, where a unit weighs 1).
    merged
        The part of it inside groups of codes that were put together, 0 where each code stands for itself.
    low, high
        Between these the share of each code lies, with a probability of at least 95 % for each, shape (size,).

    """

    error: float
    merged: float
    low: Floats
    high: Floats


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairError:
    """What is expected of the table of two columns that were measured together.

    Parameters
    ----------
    error
        Mean total variation in the table of groups of codes, as measured.
    merged
        The model's share of cells in which codes were put together: inside these the table is a guess.

    """

    error: float
    merged: float


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelErrors:
    """Expected errors of a model: of each column, and of each pair in a table that was measured, by positions."""

    columns: tuple[ColumnError, ...]
    pairs: Mapping[tuple[int, int], PairError]


Tables = Mapping[tuple[int, ...], Floats]
"""The model's table of some columns' groups, flat."""


def model_errors(
    model: Tables,
    noisy: Sequence[Noisy],
    *,
    shape: Sequence[int],
    groupings: Sequence[Grouping],
    ones: Sequence[tuple[Floats, Floats | float]],
    total: float,
) -> ModelErrors:
    """Return the expected errors of a model.

    Every measured table that holds a column or a pair counts it, with more noise the more cells are added up; all these
    counts together, weighted by their precision and moved to their known sum, are one count ``y`` with noise of a
    known deviation. Where it stands
    far above the noise, the true count is taken to be normal around it. Elsewhere it is taken from the law of counts
    that explains all the small ``y`` of the table best (deconvolution by maximum likelihood, stopped early). The error
    is the mean distance of the model's count from that. So noise, the fit's shrinking of what is rare, and what is lost
    where rare codes share one law all count.

    Formal guarantees
    -----------------
    - Privacy: a function of released numbers and of the plan; free.
    - Intervals: ``low`` and ``high`` hold the true share with probability at least 0.95 each, before rounding
      of the noise's law to the normal one. They come from the code's own count and do not rest on the deconvolution.
    - Not promised: a bound on the error; that cells of a table are alike, as the deconvolution takes them.

    Parameters
    ----------
    model
        The model's tables of all single columns, and of the pairs in measured tables.
    noisy
        What was measured, in groups.
    shape
        Number of groups of each column.
    groupings
        The groups.
    ones
        Noisy count of each code, and the deviation of all or of each, for each column.
    total
        n, in the weights of the counts.

    """
    columns = []
    for place, (grouping, (one_by_one, deviation)) in enumerate(zip(groupings, ones, strict=True)):
        counts, deviations = _with_total(one_by_one, np.broadcast_to(deviation, len(one_by_one)), total)
        together, of_groups = _with_total(*_together((place,), noisy, shape), total)
        sizes = np.bincount(grouping.group_of)
        alone = sizes[grouping.group_of] == 1
        believed = total * model[(place,)][grouping.group_of] * grouping.within
        y = np.where(alone, together[grouping.group_of], counts)
        deviations = np.where(alone, of_groups[grouping.group_of], deviations)
        errors = np.zeros(len(counts))
        for part in (alone, ~alone):
            errors[part] = _errors(y[part], deviations[part], believed[part])
        shares = believed / total
        columns.append(
            ColumnError(
                error=min(1.0, float(errors.sum()) / (2 * total)),
                merged=min(1.0, float(errors[~alone].sum()) / (2 * total)),
                low=np.clip(np.minimum((y - _REACH * deviations) / total, shares), 0.0, 1.0),
                high=np.clip(np.maximum((np.maximum(y, 0) + _REACH * deviations) / total, shares), 0.0, 1.0),
            )
        )
    pairs = {}
    for pair in measured_pairs(noisy):
        y, deviations = _with_total(*_together(pair, noisy, shape), total)
        believed = total * model[pair]
        errors = _errors(y, deviations, believed)
        single = [np.bincount(groupings[place].group_of) == 1 for place in pair]
        clear = model[pair][np.logical_and.outer(*single).ravel()].sum()
        pairs[pair] = PairError(
            error=min(1.0, float(errors.sum()) / (2 * total)), merged=float(np.clip(1 - clear, 0, 1))
        )
    return ModelErrors(columns=tuple(columns), pairs=pairs)


def measured_pairs(noisy: Sequence[Noisy]) -> list[tuple[int, int]]:
    """Return the pairs of columns that some measured table holds, in order."""
    return sorted({pair for one in noisy if one.cell_of is None for pair in combinations(one.table, 2)})


def _together(table: tuple[int, ...], noisy: Sequence[Noisy], shape: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the counts of a table from all that was measured, weighted by precision, and their deviations."""
    cells = math.prod(shape[column] for column in table)
    precision, sums = np.zeros(cells), np.zeros(cells)
    for one in noisy:
        if one.cell_of is not None or not set(table) <= set(one.table):
            continue
        over = tuple(axis for axis, column in enumerate(one.table) if column not in table)
        whole = [shape[column] for column in one.table]
        counts = one.counts.reshape(whole).sum(axis=over).ravel()
        weight = 1 / (one.deviations.reshape(whole) ** 2).sum(axis=over).ravel()
        precision += weight
        sums += weight * counts
    return sums / precision, 1 / np.sqrt(precision)


def _with_total(y: Floats, deviations: Floats, total: float) -> tuple[Floats, Floats]:
    """Return the counts moved to their known sum, each in proportion to its variance, and what deviations are left."""
    shares = deviations**2 / (deviations**2).sum()
    return y + (total - y.sum()) * shares, deviations * np.sqrt(np.maximum(1 - shares, 1e-12))


def _errors(y: Floats, deviations: Floats, believed: Floats) -> Floats:
    """Return the mean distance of each believed count from the true one, given noisy counts."""
    found = np.zeros(len(y))
    standard, guess = y / deviations, believed / deviations
    near = standard <= _FAR
    apart = guess - standard
    density = np.exp(-(apart**2) / 2) / math.sqrt(2 * math.pi)
    found[~near] = (2 * density + apart * (2 * ndtr(apart) - 1))[~near]
    if near.any():
        found[near] = _near_errors(standard[near], guess[near])
    return found * deviations


def _near_errors(standard: Floats, guess: Floats) -> Floats:
    """Return the mean distances in deviations, with the law of true counts on a grid that explains ``standard``."""
    bins = np.clip(np.rint((standard + _FAR) * 4).astype(np.int64), 0, len(_BINS) - 1)
    likelihood = np.exp(-((_BINS[:, None] - _GRID) ** 2) / 2)
    weights = np.bincount(bins, minlength=len(_BINS)) / len(standard)
    law = np.full(len(_GRID), 1 / len(_GRID))
    for _ in range(_MANY if len(standard) >= _ENOUGH else _FEW):
        joint = likelihood * law
        law = weights @ (joint / joint.sum(axis=1, keepdims=True))
    joint = likelihood * law
    posterior = joint / joint.sum(axis=1, keepdims=True)
    distances = posterior @ np.abs(_GRID[:, None] - _GRID)
    inside = np.clip(guess, 0.0, _GRID[-1]) / _GRID[1]
    left = np.minimum(inside.astype(np.int64), len(_GRID) - 2)
    part = inside - left
    found = distances[bins, left] * (1 - part) + distances[bins, left + 1] * part
    return np.asarray(found + np.maximum(guess - _GRID[-1], 0.0))
