"""How far a fitted model is from the counts that it was fitted to: estimated from released numbers alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from accord.marginals._coarse import Grouping
from accord.marginals._fit import Noisy

__all__ = ["COVERAGE", "ColumnError", "ModelErrors", "PairError", "Tables", "model_errors"]

Floats = NDArray[np.float64]
COVERAGE = 0.95
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
    ones: Sequence[tuple[Floats, float]],
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
    - Intervals: ``low`` and ``high`` hold the true share with probability at least ``COVERAGE`` each, before rounding
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
        Noisy count of each code and its deviation, for each column.
    total
        n, in the weights of the counts.

    """
    columns = []
    for place, (grouping, (one_by_one, deviation)) in enumerate(zip(groupings, ones, strict=True)):
        counts, deviations = _with_total(one_by_one, np.full(len(one_by_one), deviation), total)
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
    return sorted({pair for one in noisy for pair in combinations(one.table, 2)})


def _together(table: tuple[int, ...], noisy: Sequence[Noisy], shape: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the counts of a table from all that was measured, weighted by precision, and their deviations."""
    cells = math.prod(shape[column] for column in table)
    precision, sums = np.zeros(cells), np.zeros(cells)
    for one in noisy:
        if not set(table) <= set(one.table):
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
