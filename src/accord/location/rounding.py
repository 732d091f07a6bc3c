"""Vote for a column's place and scale by rounding both to cells whose shift all blocks share."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from accord.core import check as _check
from accord.core.coupling import ABSTAIN, Abstain
from accord.core.errors import FitFailed, InvalidParameter
from accord.core.points import PointsCoupling
from accord.core.records import table_of_numbers
from accord.core.shared import SharedRandomness, mix, uniform_open
from accord.distributions import PointMass

__all__ = [
    "CELL",
    "CONSTANT",
    "FALLBACK_QUANTILES",
    "UNUSABLE",
    "ColumnLocation",
    "LocationRounding",
    "as_float_table",
]


_Floats = NDArray[np.float64]

CELL, CONSTANT, UNUSABLE = 0.0, 1.0, 2.0
"""What a block says of a column: a location with a scale; a single value; nothing of use."""

FALLBACK_QUANTILES = ((0.25, 0.75), (0.1, 0.9), (0.025, 0.975), (0.0, 1.0))
"""Pairs of quantiles, tried in this order until they differ: the spread of a column with many ties."""

_LARGEST = 1e140
"""Columns larger, narrower or wider than this have no variance in floats: they are unusable."""


@final
@dataclass(frozen=True, slots=True)
class ColumnLocation:
    """Describe each column by its median and the log of its scale, or as constant, or as unusable.

    The scale is a distance of two quantiles over what it is for a standard normal law; the first pair of
    `FALLBACK_QUANTILES` that differs is taken.

    Formal guarantees
    -----------------
    - Purity: a function of ``records`` alone; the seed is not read.
    - A cell that is missing, infinite or no number is left out of its column and changes nothing in other columns.
    - Not promised: a good scale for laws that nothing normal resembles; it is a start for what comes later.

    Source
    ------
    theory 7 (locate), S5; proof page ``docs/proofs/locate.md``.

    Examples
    --------
    >>> table = np.array([[1.0, 7.0, np.nan], [2.0, 7.0, np.nan], [3.0, 7.0, np.nan]])
    >>> np.array(ColumnLocation().fit(table, seed=0).vector).reshape(3, 3).round(3).tolist()
    [[0.0, -0.299, 2.0], [1.0, 0.0, 7.0], [2.0, 0.0, 0.0]]

    """

    def fit(self, records: NDArray[Any], *, seed: int) -> PointMass:  # noqa: ARG002 - nothing here is random
        """Return three numbers a column, one after the other: the kind, the log scale, the median or the constant.

        Parameters
        ----------
        records
            Shape (n, d).
        seed
            Not read.

        Raises
        ------
        FitFailed
            If there are no columns.

        """
        table = as_float_table(records)
        if table.shape[1] == 0:
            raise FitFailed("there are no columns to locate.")
        return PointMass(np.concatenate([_describe(column) for column in table.T]))


def as_float_table(records: NDArray[Any]) -> _Floats:
    """Return records as floats, shape (n, d); a cell that is no number is NaN, and no other cell notices.

    Examples
    --------
    >>> as_float_table(np.array([[1, "two"], [None, 4.0]], dtype=object)).tolist()
    [[1.0, nan], [nan, 4.0]]

    """
    return table_of_numbers(records)


def _describe(column: _Floats) -> _Floats:
    finite = column[np.isfinite(column)]
    if len(finite) == 0:
        return np.array([UNUSABLE, 0.0, 0.0])
    if finite.min() == finite.max():
        return np.array([CONSTANT, 0.0, finite[0] + 0.0])
    with np.errstate(all="ignore"):
        middle = float(np.quantile(finite, 0.5))
        scale = next((spread for pair in FALLBACK_QUANTILES if (spread := _spread(finite, *pair)) > 0), math.nan)
    if not (abs(middle) <= _LARGEST and 1 / _LARGEST <= scale <= _LARGEST):
        return np.array([UNUSABLE, 0.0, 0.0])
    return np.array([CELL, math.log(scale), middle])


def _spread(finite: _Floats, low: float, high: float) -> float:
    """Return the distance of two quantiles in units of the same distance for a standard normal law."""
    most = 1 - 0.5 / len(finite)  # about where the largest of n normal numbers lies
    return float(np.quantile(finite, high) - np.quantile(finite, low)) / (2 * float(ndtri(min(high, most))))


_Ints = NDArray[np.int64]
_Words = NDArray[np.uint64]

_LARGEST_INDEX = 2.0**50  # beyond, a shift would have no digits left
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocationRounding(PointsCoupling):
    """Couple descriptions of columns (`ColumnLocation`) so that similar ones become equal.

    The log scale is cut into cells of ``scale_width``; the location into cells of ``location_width`` times the scale of
    the cell just chosen. Shifts are uniform, shared by all blocks, and drawn anew for each draw, column and cell of the
    scale. All columns together are one vote. A constant column is voted for by its value, an unusable one as such.

    Formal guarantees
    -----------------
    - Agreement: given the cells before, two blocks part in the next number with probability exactly
      ``min(1, |difference| / width)`` (theory S5).
    - Isolation: by its form (`accord.core.PointsCoupling`).
    - Not promised: any privacy.

    Parameters
    ----------
    columns
        d, at least 1.
    scale_width, location_width
        Above 0.

    Source
    ------
    theory S5; proof page ``docs/proofs/locate.md``.

    Examples
    --------
    >>> laws = [PointMass([CELL, 0.0, place]) for place in (5.0, 5.01, 90.0)]
    >>> rounding = LocationRounding(columns=1, scale_width=1.0, location_width=1.0)
    >>> coupled = rounding.couple(laws, records=1, draws=2, shared=SharedRandomness(1))
    >>> bool(coupled.keys[0, 0] == coupled.keys[0, 1]), bool(coupled.keys[0, 0] == coupled.keys[0, 2])
    (True, False)

    """

    columns: int
    scale_width: float
    location_width: float

    def __post_init__(self) -> None:
        _check.store(self, columns=_check.integer("columns", self.columns, least=1))
        for name in ("scale_width", "location_width"):
            width = float(_check.exact(name, getattr(self, name)))
            if not width > 0:
                raise InvalidParameter(f"{name} must be above 0.")
            _check.store(self, **{name: width})

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> "_Shifts":
        """Return the shifts of all draws; laws are `PointMass` of three numbers a column, tuples of one description."""
        _check.integer("records", records, least=1, most=1)
        return _Shifts(self, draws, shared)


@final
@dataclass(frozen=True, slots=True)
class _Shifts:
    widths: LocationRounding
    draws: int
    shared: SharedRandomness

    def prepare(self, law: object) -> _Floats | Abstain:
        """Return a description, shape (columns, 3)."""
        if type(law) is not PointMass or law.vector is None:
            return ABSTAIN
        return np.array(law.vector, dtype=np.float64).reshape(self.widths.columns, 3)

    def votes_of(self, prepared: Sequence[_Floats | Abstain]) -> list[list[bytes]]:
        """Return the cells of all descriptions; an abstention stands in its row as unusable."""
        unusable = np.full((self.widths.columns, 3), UNUSABLE)
        table = np.array([unusable if own is ABSTAIN else own for own in prepared])
        draws = [self._cells(table, self._states(draw)) for draw in range(self.draws)]
        return [list(own) for own in zip(*draws, strict=True)]

    def decode(self, draw: int, key: bytes) -> _Floats:
        """Return the description that a vote stands for, shape (1, 3 columns)."""
        return self._centres(np.frombuffer(key, dtype="<i8").astype(np.int64), self._states(draw))

    def _states(self, draw: int) -> _Words:
        """Return one random word a column."""
        rows = np.stack([np.full(self.widths.columns, draw), np.arange(self.widths.columns)], axis=1)
        return self.shared.hash_rows(rows.astype(np.int64), "location rounding")

    def _cells(self, table: _Floats, states: _Words) -> list[bytes]:
        """Return the cells of all descriptions in one draw, row by row, as bytes: three integers a column."""
        kind, log_scale, place = table[:, :, 0], table[:, :, 1], table[:, :, 2]
        first = _shift(states)
        with np.errstate(all="ignore"):
            scale_cell = np.floor(log_scale / self.widths.scale_width + first)
            inside = np.abs(scale_cell) < _LARGEST_INDEX
            scale_index = np.where(inside, scale_cell, 0).astype(np.int64)
            width = self.widths.location_width * np.exp((scale_index + 0.5 - first) * self.widths.scale_width)
            cell = np.floor(place / width + _shift(_below(states, scale_index)))
            inside &= np.abs(cell) < _LARGEST_INDEX
        is_cell, is_constant = (kind == CELL) & inside, kind == CONSTANT
        votes = np.zeros((len(table), self.widths.columns, 3), dtype="<i8")
        votes[:, :, 0] = np.where(is_cell, CELL, np.where(is_constant, CONSTANT, UNUSABLE))
        votes[:, :, 1] = np.where(is_cell, scale_index, 0)
        places = np.where(is_cell, cell, 0.0).astype(np.int64)
        bits = np.ascontiguousarray(place + 0.0).view(np.int64)
        votes[:, :, 2] = np.where(is_cell, places, np.where(is_constant, bits, 0))
        rows = votes.reshape(len(table), 3 * self.widths.columns)
        found: list[bytes] = rows.view(f"V{24 * self.widths.columns}").ravel().tolist()
        return found

    def _centres(self, cells: _Ints, states: _Words) -> _Floats:
        kind, scale_index, cell = cells.reshape(self.widths.columns, 3).T
        first = _shift(states)
        log_scale = (scale_index + 0.5 - first) * self.widths.scale_width
        place = (cell + 0.5 - _shift(_below(states, scale_index))) * self.widths.location_width * np.exp(log_scale)
        constants = np.ascontiguousarray(cell).view(np.float64)
        rows = [
            (CELL, log_scale[column], place[column])
            if kind[column] == CELL
            else (float(kind[column]), 0.0, constants[column] if kind[column] == CONSTANT else 0.0)
            for column in range(self.widths.columns)
        ]
        return np.array(rows, dtype=np.float64).reshape(1, -1)


def _shift(states: _Words) -> _Floats:
    return uniform_open(mix(states ^ _GOLDEN))


def _below(states: _Words, index: _Ints) -> _Words:
    """Return the words of the cells' own shifts."""
    return mix((states + _GOLDEN) ^ mix(np.ascontiguousarray(index).view(np.uint64)))
