"""Tables of synthetic rows, with the error that noise is expected to have left in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.marginals.verdicts import ColumnAccuracy, TableErrors
from accord.tables import Column, Schema
from accord.tables.dates import texts_of_dates

__all__ = ["ColumnTable", "PairTable", "tables_of"]

_BINS, _PAIR_BINS = 30, 10
_MOST_LABELS, _MOST_PAIR_LABELS = 30, 12
_MOST_PAIRS = 12
_REACH = 1.959964
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTable:
    """Shares of the rows by label or bin of one column.

    Parameters
    ----------
    name, kind
        Of the column.
    labels
        In words: labels, bins, "other" for rare ones together, "missing".
    shares
        Of each, summing to 1.
    ordered
        Whether the labels are bins of numbers in their order.
    error
        Mean total variation between the column's shares and those of the records; None if it is not known.
    merged
        The part of it that putting rare labels, or neighbouring cells, together loses; None if it is not known.
    low, high
        Between these each true share lies, with a probability of 95 %; empty if that is not known.

    """

    name: str
    kind: str
    labels: tuple[str, ...]
    shares: tuple[float, ...]
    ordered: bool
    error: float | None
    merged: float | None = None
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """Shares of the rows by two columns, shape (labels of the first, labels of the second).

    Parameters
    ----------
    names, labels, shares
        As in words.
    error
        Mean total variation in the table of groups that was measured; None where the two were not measured together.
    merged
        The share of rows in groups of several labels or cells: inside these the table is a guess.

    """

    names: tuple[str, str]
    labels: tuple[tuple[str, ...], tuple[str, ...]]
    shares: tuple[tuple[float, ...], ...]
    error: float | None
    merged: float | None = None


@dataclass(frozen=True, slots=True)
class _Coded:
    """Codes of rows; ``cuts`` of bins, or ``kept``: the labels that have a code of their own, with "other" behind."""

    labels: tuple[str, ...]
    codes: NDArray[np.int64]
    cuts: _Floats | None = None
    kept: NDArray[np.int64] | None = None


def tables_of(
    columns: Sequence[NDArray[Any]], *, schema: Schema, errors: TableErrors | None = None
) -> tuple[tuple[ColumnTable, ...], tuple[PairTable, ...]]:
    """Return the tables of all columns, and of the pairs that depend on each other most.

    Formal guarantees
    -----------------
    - A function of the synthetic rows and of public facts alone: post-processing of what was released.

    Parameters
    ----------
    columns
        One array of synthetic cells for each of ``schema.read``, as in `Table.columns`, at least one row.
    schema
        What was declared.
    errors
        What is expected of each column and of each measured pair; None where that is not known.

    """
    accuracies = {} if errors is None else errors.columns
    known = {} if errors is None else errors.pairs
    read = schema.read
    both = list(zip(read, columns, strict=True))
    coded = [_coded(column, values, bins=_BINS, most=_MOST_LABELS) for column, values in both]
    singles = tuple(_single(column, one, accuracies.get(column.name)) for column, one in zip(read, coded, strict=True))
    coarse = [_coded(column, values, bins=_PAIR_BINS, most=_MOST_PAIR_LABELS) for column, values in both]
    found = [(i, j, _joint(coarse[i], coarse[j])) for i, j in combinations(range(len(read)), 2)]
    found.sort(key=lambda entry: -_dependence(entry[2]))
    pairs = tuple(
        PairTable(
            names=(read[i].name, read[j].name),
            labels=(coarse[i].labels, coarse[j].labels),
            shares=tuple(tuple(row) for row in joint.tolist()),
            error=None if pair is None else pair.error,
            merged=None if pair is None else pair.merged,
        )
        for i, j, joint in found[:_MOST_PAIRS]
        for pair in [known.get((read[i].name, read[j].name))]
    )
    return singles, pairs


def _single(column: Column, one: _Coded, accuracy: ColumnAccuracy | None) -> ColumnTable:
    shares = np.bincount(one.codes, minlength=len(one.labels)) / len(one.codes)
    low = high = np.zeros(0)
    if accuracy is not None:
        low, high = _intervals(one, shares, accuracy, rows=len(one.codes))
    return ColumnTable(
        name=column.name,
        kind=column.kind,
        labels=one.labels,
        shares=tuple(shares.tolist()),
        ordered=column.is_number,
        error=None if accuracy is None else accuracy.error,
        merged=None if accuracy is None else accuracy.merged,
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
    )


def _intervals(one: _Coded, shares: _Floats, accuracy: ColumnAccuracy, *, rows: int) -> tuple[_Floats, _Floats]:
    """Return the interval of each true share.

    Of labels the model's share is known, so an interval is the model's, made to hold the share of the rows; labels put
    together have the quadratic mean of theirs, or of those of all the others, whichever is narrower. Of bins it is that
    of the cells in them, with what drawing places inside cells adds.
    """
    below, above = accuracy.shares - accuracy.low, accuracy.high - accuracy.shares
    if one.cuts is not None:
        parts = _parts(np.array(accuracy.edges), one.cuts)
        if len(shares) > parts.shape[1]:
            parts = np.pad(parts, ((0, 1), (0, 1)))
            parts[-1, -1] = 1.0
        else:
            parts = np.pad(parts, ((0, 1), (0, 0)))
        drawn = _REACH**2 * shares * (1 - shares) / rows
        low, high = (shares + sign * np.sqrt(parts.T**2 @ side**2 + drawn) for sign, side in ((-1, below), (1, above)))
        return np.clip(low, 0, 1), np.clip(high, 0, 1)
    chosen = np.arange(len(accuracy.shares) - 1) if one.kept is None else one.kept
    places = [np.array([place]) for place in chosen]
    if one.kept is not None:
        places.append(np.setdiff1d(np.arange(len(accuracy.shares) - 1), one.kept))
    if len(places) < len(shares):
        places.append(np.array([len(accuracy.shares) - 1]))
    low, high = np.zeros(len(shares)), np.zeros(len(shares))
    for label, inside in enumerate(places):
        rest = np.setdiff1d(np.arange(len(accuracy.shares)), inside)
        middle = accuracy.shares[inside].sum()
        low[label] = middle - min(_size(below[inside]), _size(above[rest]))
        high[label] = middle + min(_size(above[inside]), _size(below[rest]))
    return np.clip(np.minimum(low, shares), 0, 1), np.clip(np.maximum(high, shares), 0, 1)


def _size(sides: _Floats) -> float:
    return float(np.sqrt((sides**2).sum()))


def _parts(edges: _Floats, cuts: _Floats) -> _Floats:
    """Return which part of each cell lies in each bin, shape (cells, bins); what is outside is in the outer bins."""
    widths = np.maximum(np.diff(edges), 1e-300)
    before = np.clip((cuts[None, :] - edges[:-1, None]) / widths[:, None], 0.0, 1.0)
    before[:, 0], before[:, -1] = 0.0, 1.0
    return np.diff(before, axis=1)


def _coded(column: Column, values: NDArray[Any], *, bins: int, most: int) -> _Coded:
    if column.is_label:
        return _labels(column, values, most=most)
    present = values[~np.isnan(values)]
    cuts = _cuts(column, present, bins=bins)
    names = _bin_names(column, cuts)
    codes = np.clip(np.searchsorted(cuts, values, side="right") - 1, 0, len(names) - 1)
    if len(present) < len(values):
        names, codes = [*names, "missing"], np.where(np.isnan(values), len(names), codes)
    return _Coded(tuple(names), codes.astype(np.int64), cuts=cuts)


def _labels(column: Column, values: NDArray[Any], *, most: int) -> _Coded:
    """Return codes of labels: all in their order if they are few, else the frequent ones first and "other"."""
    counts = np.bincount(values[values >= 0], minlength=len(column.categories))
    if len(counts) <= most:
        names, places, kept = list(column.categories), np.arange(len(counts)), None
    else:
        kept = np.argsort(-counts, kind="stable")[: most - 1]
        names = [*(column.categories[place] for place in kept), "(other)"]
        places = np.full(len(counts), most - 1)
        places[kept] = np.arange(most - 1)
    missing = values < 0
    codes = places[np.where(missing, 0, values)]
    if missing.any():
        codes = np.where(missing, len(names), codes)
        names.append("missing")
    return _Coded(tuple(names), codes.astype(np.int64), kept=kept)


_WHOLE = 2.0**52
"""Beyond, whole numbers have no half between them in floats."""


def _cuts(column: Column, present: _Floats, *, bins: int) -> _Floats:
    """Return the borders of the bins, equally wide over the bulk of the synthetic values."""
    if len(present) == 0:
        return np.array([0.0, 1.0])
    low, high = (float(end) for end in np.quantile(present, [0.002, 0.998]))
    size = max(abs(low), abs(high))
    whole = (column.kind in {"integer", "date"} or column.decimals == 0) and size < _WHOLE
    if whole and high - low < bins:
        return np.arange(np.floor(low), np.floor(high) + 2) - 0.5
    if not high > low:
        around = max(0.5, size * 1e-9)  # half of nothing is left of it among large numbers
        low, high = low - around, high + around
    if whole:
        step = float(np.ceil((high - low + 1) / bins))
        return np.arange(np.floor(low), high + step + 1, step) - 0.5
    return np.linspace(low, high, bins + 1)


def _bin_names(column: Column, cuts: _Floats) -> list[str]:
    whole = column.kind in {"integer", "date"} or column.decimals == 0
    if column.format is not None:
        ends = np.ceil(cuts) if column.kind == "date" else cuts
        texts = texts_of_dates(ends, pattern=column.format, kind=column.kind).to_pylist()
        return [f"from {text}" for text in texts[:-1]]
    if whole:
        firsts, lasts = np.ceil(cuts[:-1]), np.floor(cuts[1:])
        return [f"{a:z.0f}" if a == b else f"{a:z.0f} to {b:z.0f}" for a, b in zip(firsts, lasts, strict=True)]
    return [f"{a:z.4g} to {b:z.4g}" for a, b in pairwise(cuts)]


def _joint(one: _Coded, other: _Coded) -> _Floats:
    shape = len(one.labels), len(other.labels)
    counts = np.bincount(one.codes * shape[1] + other.codes, minlength=shape[0] * shape[1])
    return counts.reshape(shape) / len(one.codes)


def _dependence(joint: _Floats) -> float:
    """Return the total variation between a table and the product of its margins."""
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return float(0.5 * np.abs(joint - product).sum())
