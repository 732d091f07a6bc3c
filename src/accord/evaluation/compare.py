"""Distances between real and synthetic tables, one column and two at a time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.errors import DataError, InvalidParameter
from accord.core.shared import SharedRandomness
from accord.tables import Column, Schema

__all__ = [
    "Coding",
    "ColumnDistance",
    "Evaluation",
    "PairDistance",
    "coding_of",
    "evaluate",
    "shares",
]


_Floats = NDArray[np.float64]
_Codes = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """How the cells of one column become codes ``0 .. size - 1``; the last one is missing.

    ``cuts`` are the inner borders of bins of a column of numbers, empty for labels.
    """

    column: Column
    cuts: _Floats
    size: int

    def codes(self, values: NDArray[Any]) -> _Codes:
        """Return the codes of float64 values or of positions of labels."""
        last = self.size - 1
        if self.column.is_label:
            return np.where(values < 0, last, values).astype(np.int64)
        found = np.searchsorted(self.cuts, values, side="right")
        return np.where(np.isnan(values), last, found).astype(np.int64)


def coding_of(column: Column, values: NDArray[Any], *, bins: int) -> Coding:
    """Return the coding of a column: its labels, its declared edges, or bins of about equal shares of ``values``."""
    if column.is_label:
        return Coding(column, np.empty(0), len(column.categories) + 1)
    if column.edges:
        cuts = np.array(column.edges[1:-1])
    else:
        present = values[~np.isnan(values)]
        wanted = np.linspace(0, 1, bins + 1)[1:-1]
        cuts = np.unique(np.quantile(present, wanted)) if len(present) else np.empty(0)
    return Coding(column, cuts, len(cuts) + 2)


def shares(codings: Sequence[Coding], codes: Sequence[_Codes]) -> _Floats:
    """Return the share of records in each cell of the table of these columns."""
    shape = tuple(coding.size for coding in codings)
    flat = np.ravel_multi_index(tuple(codes), shape)
    counts = np.bincount(flat, minlength=int(np.prod(shape)))
    return counts / max(1, len(flat))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDistance:
    """Total variation between the real and the synthetic law of one column; ``floor`` is that of a resample."""

    name: str
    distance: float
    floor: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairDistance:
    """Total variation between the real and the synthetic law of two columns; ``floor`` is that of a resample."""

    names: tuple[str, str]
    distance: float
    floor: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What `evaluate` found. It depends on the real records: it must not leave their holder.

    Parameters
    ----------
    columns, pairs
        Distances, in the order of the schema.
    correlation_error
        Mean absolute difference of the correlations of pairs of number columns; None with fewer than two of them, or
        where none has a correlation.
    real, synthetic
        Numbers of rows.

    """

    columns: tuple[ColumnDistance, ...]
    pairs: tuple[PairDistance, ...]
    correlation_error: float | None
    real: int
    synthetic: int

    @property
    def one_way(self) -> float:
        """Mean distance of single columns."""
        return math.fsum(column.distance for column in self.columns) / len(self.columns)

    @property
    def two_way(self) -> float | None:
        """Mean distance of pairs, None with one column."""
        return math.fsum(pair.distance for pair in self.pairs) / len(self.pairs) if self.pairs else None


def evaluate(
    real: Sequence[NDArray[Any]],
    synthetic: Sequence[NDArray[Any]],
    *,
    schema: Schema,
    bins: int = 20,
    shared: SharedRandomness | None = None,
) -> Evaluation:
    """Compare synthetic rows with the real ones.

    Formal guarantees
    -----------------
    - Distances are total variations of tables of shares: labels, declared edges, or ``bins`` bins that hold about equal
      shares of the real values; a missing cell is a level of its own.
    - ``floor`` is the distance that as many rows drawn from the real ones with replacement would have: no synthetic
      table of that many rows, drawn at random, is expected to do better.
    - Not promised: any privacy. The result is a function of the real records.

    Parameters
    ----------
    real, synthetic
        One array for each of ``schema.read``, as in `Table.columns`.
    schema
        What was declared.
    bins
        Bins of a column of numbers without declared edges, from 2 to 1000.
    shared
        Key of the resample; by default a fixed one, so that the same tables give the same numbers.

    Raises
    ------
    DataError
        If a table has no rows, or not one array for each column that is read.
    InvalidParameter
        If ``bins`` is out of range.

    Examples
    --------
    >>> from accord.tables import Column
    >>> schema = Schema(columns=(Column(name="x", kind="category", categories=("a", "b")),))
    >>> found = evaluate([np.array([0, 0, 1, 1])], [np.array([0, 1, 1, 1])], schema=schema)
    >>> found.one_way
    0.25

    """
    bins = _check.integer("bins", bins, least=2, most=1000)
    read = schema.read
    for table in (real, synthetic):
        if len(table) != len(read) or len({len(values) for values in table}) != 1 or len(table[0]) == 0:
            raise DataError(f"a table to compare needs rows, and {len(read)} columns of one length.")
    if not all(isinstance(values, np.ndarray) for values in (*real, *synthetic)):
        raise InvalidParameter("columns must be numpy arrays.")
    codings = [coding_of(column, values, bins=bins) for column, values in zip(read, real, strict=True)]
    codes = [coding.codes(values) for coding, values in zip(codings, real, strict=True)]
    made = [coding.codes(values) for coding, values in zip(codings, synthetic, strict=True)]
    draws = (shared or SharedRandomness(0)).stream("evaluation").integers(0, len(codes[0]), size=len(made[0]))
    drawn = [one[draws] for one in codes]

    def distances(places: tuple[int, ...]) -> tuple[float, float]:
        laws = [shares([codings[i] for i in places], [one[i] for i in places]) for one in (codes, made, drawn)]
        return _total_variation(laws[0], laws[1]), _total_variation(laws[0], laws[2])

    columns = []
    for place, column in enumerate(read):
        distance, floor = distances((place,))
        columns.append(ColumnDistance(name=column.name, distance=distance, floor=floor))
    pairs = []
    for one, other in combinations(range(len(read)), 2):
        distance, floor = distances((one, other))
        pairs.append(PairDistance(names=(read[one].name, read[other].name), distance=distance, floor=floor))
    numbers = [place for place, column in enumerate(read) if column.is_number]
    return Evaluation(
        columns=tuple(columns),
        pairs=tuple(pairs),
        correlation_error=_correlation_error([real[i] for i in numbers], [synthetic[i] for i in numbers]),
        real=len(real[0]),
        synthetic=len(synthetic[0]),
    )


def _total_variation(p: _Floats, q: _Floats) -> float:
    return float(0.5 * np.abs(p - q).sum())


def _correlation_error(real: Sequence[_Floats], synthetic: Sequence[_Floats]) -> float | None:
    """Return the mean difference of correlations over pairs where both tables have one."""
    errors = [
        abs(_correlation(real[i], real[j]) - _correlation(synthetic[i], synthetic[j]))
        for i, j in combinations(range(len(real)), 2)
    ]
    known = [error for error in errors if not math.isnan(error)]
    return math.fsum(known) / len(known) if known else None


def _correlation(one: _Floats, other: _Floats) -> float:
    """Return the correlation of the records that have both cells; NaN if one of them is constant."""
    both = ~(np.isnan(one) | np.isnan(other))
    if np.count_nonzero(both) < 2:
        return math.nan
    with np.errstate(all="ignore"):
        x, y = (values[both] / (float(np.abs(values[both]).max()) or 1.0) for values in (one, other))
        x, y = x - x.mean(), y - y.mean()
        size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size > 0 else math.nan
