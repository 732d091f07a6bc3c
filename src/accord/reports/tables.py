"""Tables of synthetic rows, with the error that noise is expected to have left in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.tables import Column, Schema
from accord.tables.dates import texts_of_dates

__all__ = ["ColumnTable", "PairTable", "tables_of"]

_BINS, _PAIR_BINS = 30, 10
_MOST_LABELS, _MOST_PAIR_LABELS = 30, 12
_MOST_PAIRS = 12
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
        Mean total variation that noise is expected to leave in this table; None if it is not known.

    """

    name: str
    kind: str
    labels: tuple[str, ...]
    shares: tuple[float, ...]
    ordered: bool
    error: float | None

    @property
    def cell_error(self) -> float | None:
        """The mean error of one share."""
        return None if self.error is None else 2 * self.error / len(self.shares)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """Shares of the rows by two columns, shape (labels of the first, labels of the second)."""

    names: tuple[str, str]
    labels: tuple[tuple[str, ...], tuple[str, ...]]
    shares: tuple[tuple[float, ...], ...]
    error: float | None


@dataclass(frozen=True, slots=True)
class _Coded:
    labels: tuple[str, ...]
    codes: NDArray[np.int64]


def tables_of(
    columns: Sequence[NDArray[Any]], *, schema: Schema, errors: Mapping[int, float] | None = None
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
        Expected total variation of tables of one and of two columns, by that number.

    """
    known = errors or {}
    read = schema.read
    both = list(zip(read, columns, strict=True))
    coded = [_coded(column, values, bins=_BINS, most=_MOST_LABELS) for column, values in both]
    singles = tuple(
        ColumnTable(
            name=column.name,
            kind=column.kind,
            labels=one.labels,
            shares=tuple((np.bincount(one.codes, minlength=len(one.labels)) / len(one.codes)).tolist()),
            ordered=column.is_number,
            error=known.get(1),
        )
        for column, one in zip(read, coded, strict=True)
    )
    coarse = [_coded(column, values, bins=_PAIR_BINS, most=_MOST_PAIR_LABELS) for column, values in both]
    found = [(i, j, _joint(coarse[i], coarse[j])) for i, j in combinations(range(len(read)), 2)]
    found.sort(key=lambda entry: -_dependence(entry[2]))
    pairs = tuple(
        PairTable(
            names=(read[i].name, read[j].name),
            labels=(coarse[i].labels, coarse[j].labels),
            shares=tuple(tuple(row) for row in joint.tolist()),
            error=known.get(2),
        )
        for i, j, joint in found[:_MOST_PAIRS]
    )
    return singles, pairs


def _coded(column: Column, values: NDArray[Any], *, bins: int, most: int) -> _Coded:
    if column.is_label:
        return _labels(column, values, most=most)
    present = values[~np.isnan(values)]
    cuts = _cuts(column, present, bins=bins)
    names = _bin_names(column, cuts)
    codes = np.clip(np.searchsorted(cuts, values, side="right") - 1, 0, len(names) - 1)
    if len(present) < len(values):
        names, codes = [*names, "missing"], np.where(np.isnan(values), len(names), codes)
    return _Coded(tuple(names), codes.astype(np.int64))


def _labels(column: Column, values: NDArray[Any], *, most: int) -> _Coded:
    """Return codes of labels: all in their order if they are few, else the frequent ones first and "other"."""
    counts = np.bincount(values[values >= 0], minlength=len(column.categories))
    if len(counts) <= most:
        names, places = list(column.categories), np.arange(len(counts))
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
    return _Coded(tuple(names), codes.astype(np.int64))


def _cuts(column: Column, present: _Floats, *, bins: int) -> _Floats:
    """Return the borders of the bins, equally wide over the bulk of the synthetic values."""
    if len(present) == 0:
        return np.array([0.0, 1.0])
    low, high = (float(end) for end in np.quantile(present, [0.002, 0.998]))
    whole = column.kind in {"integer", "date"} or column.decimals == 0
    if whole and high - low < bins:
        return np.arange(np.floor(low), np.floor(high) + 2) - 0.5
    if not high > low:
        low, high = low - 0.5, high + 0.5
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
        return [f"{a:.0f}" if a == b else f"{a:.0f} to {b:.0f}" for a, b in zip(firsts, lasts, strict=True)]
    return [f"{a:.4g} to {b:.4g}" for a, b in pairwise(cuts)]


def _joint(one: _Coded, other: _Coded) -> _Floats:
    shape = len(one.labels), len(other.labels)
    counts = np.bincount(one.codes * shape[1] + other.codes, minlength=shape[0] * shape[1])
    return counts.reshape(shape) / len(one.codes)


def _dependence(joint: _Floats) -> float:
    """Return the total variation between a table and the product of its margins."""
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return float(0.5 * np.abs(joint - product).sum())
