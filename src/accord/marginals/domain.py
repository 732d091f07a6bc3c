"""Which columns a table has, and which codes each may hold: public facts."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import DataError, InvalidParameter
from accord.core.records import table_of_numbers
from accord.marginals.grid import Grid

__all__ = ["Column", "ColumnKind", "Domain"]

_MOST_LEVELS = 1 << 16
_GRID_CELLS = 64


class ColumnKind(Enum):
    """What the order of a column's codes means."""

    CATEGORY = "category"
    """Nothing."""
    ORDERED = "ordered"
    """Neighbouring codes are alike; rare ones may be measured together with their neighbours."""
    NUMBER = "number"
    """As ordered, and a code stands for a number, so the column has a mean and correlations."""


@final
@dataclass(frozen=True, slots=True, init=False)
class Column:
    """One column of codes ``0 .. size - 1``.

    Parameters
    ----------
    name
        Not empty.
    size
        Number of codes, from 1 to 65536, public.
    kind
        A `ColumnKind` or its word.
    positions
        For numbers: the number that each code (but that of missing cells) stands for, increasing; 0, 1, .. by default.
    other
        The code that stands for a cell that holds no code of the column (missing, foreign, unreadable); the last one by
        default, or the uncounted one behind it. Choose an own level for that if such cells may be many.
    missing
        Whether the last code stands for no value: it has no place in the order and no number.
    uncounted
        Whether records may hold one code more, behind the last, for a missing cell that adds to no table of the column.
    grid
        Of a column made by `of_grid`: its codes are the grid's, and the cells that are released are found by counting.

    Raises
    ------
    InvalidParameter
        If they are not as above.

    Examples
    --------
    >>> Column("month", 12, kind="ordered").other
    11

    """

    name: str
    size: int
    kind: ColumnKind
    positions: tuple[float, ...]
    other: int
    missing: bool
    uncounted: bool
    grid: Grid | None

    def __init__(
        self,
        name: str,
        size: int,
        *,
        kind: ColumnKind | str = ColumnKind.CATEGORY,
        positions: Sequence[float] | ArrayLike | None = None,
        other: int | None = None,
        missing: bool = False,
        uncounted: bool = False,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidParameter("name must be a word that is not empty.")
        size = _check.integer("size", size, least=2 if missing else 1, most=_MOST_LEVELS)
        values = size - bool(missing)
        try:
            kind = ColumnKind(kind)
        except ValueError:
            raise InvalidParameter("kind must be 'category', 'ordered' or 'number'.") from None
        places = np.arange(values, dtype=np.float64) if positions is None else np.asarray(positions, dtype=np.float64)
        if places.shape != (values,) or not np.isfinite(places).all() or not (np.diff(places) > 0).all():
            raise InvalidParameter("positions must be one finite number a code of a value, increasing.")
        _check.store(self, name=name, size=size, kind=kind, positions=tuple(places.tolist()))
        if missing and uncounted:
            raise InvalidParameter("missing cells have a code or are uncounted, not both.")
        last = size - 1 + bool(uncounted)
        fallback = last if other is None else _check.integer("other", other, least=0, most=last)
        _check.store(self, other=fallback, missing=bool(missing), uncounted=bool(uncounted), grid=None)

    @staticmethod
    def of_grid(name: str, grid: Grid, *, uncounted: bool = False) -> "Column":
        """Return a column of numbers whose codes are those of a fine grid; ``size`` is what a plan reckons with.

        The grid's code for missing cells is a code of the column, or, with ``uncounted``, adds to no table.

        Examples
        --------
        >>> Column.of_grid("age", Grid(bounds=(0, 120), decimals=0)).size
        65

        """
        missing = grid.missing and not uncounted
        size = min(grid.size, _GRID_CELLS) + missing
        column = Column(name, size, kind=ColumnKind.NUMBER, missing=missing, uncounted=uncounted)
        _check.store(column, grid=grid, other=grid.size - 1 + (missing or uncounted))
        return column

    @property
    def codes(self) -> int:
        """Number of codes that are counted: those of the grid, if there is one."""
        return self.size if self.grid is None else self.grid.size + self.missing

    @property
    def rounds(self) -> int:
        """How often the column is counted to find its cells; 1 where each code is one."""
        return 1 if self.grid is None else self.grid.rounds

    @property
    def values(self) -> int:
        """Number of codes that stand for a value."""
        return len(self.positions)


@final
@dataclass(frozen=True, slots=True, init=False)
class Domain:
    """The columns of a table of codes.

    Formal guarantees
    -----------------
    - Value: immutable; equal columns are equal domains.
    - Reading codes: each cell alone decides what it becomes; no cell is an error.

    Parameters
    ----------
    columns
        At least one, with distinct names.

    Raises
    ------
    InvalidParameter
        If they are not as above.

    Examples
    --------
    >>> domain = Domain([Column("sex", 2), Column("age", 5, kind="ordered")])
    >>> domain.shape, domain.cells
    ((2, 5), 10)
    >>> domain.read([[1, 4], [0, 7], [-1, 2.5]]).tolist()
    [[1, 4], [0, 4], [1, 4]]

    """

    columns: tuple[Column, ...]

    def __init__(self, columns: Iterable[Column]) -> None:
        found = tuple(columns)
        _check.at_least_one("columns", found)
        if not all(isinstance(column, Column) for column in found):
            raise InvalidParameter("columns must be a list of Column.")
        if len({column.name for column in found}) < len(found):
            raise InvalidParameter("columns must have distinct names.")
        _check.store(self, columns=found)

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of codes of each column; of one with a grid, how many cells a plan reckons with."""
        return tuple(column.size for column in self.columns)

    @property
    def codes(self) -> tuple[int, ...]:
        """Number of codes of each column that are counted."""
        return tuple(column.codes for column in self.columns)

    @property
    def uncounted(self) -> frozenset[int]:
        """Columns whose missing cells add to no table."""
        return frozenset(place for place, column in enumerate(self.columns) if column.uncounted)

    @property
    def cells(self) -> int:
        """Number of different records."""
        return math.prod(self.shape)

    def places(self, columns: Iterable[str | int]) -> tuple[int, ...]:
        """Return the positions of columns given by name or position, in the order given.

        Raises
        ------
        InvalidParameter
            If there is no such column, or one is named twice.

        """
        names = {column.name: place for place, column in enumerate(self.columns)}
        found = []
        for column in columns:
            place = names.get(column) if isinstance(column, str) else column
            if not isinstance(place, (int, np.integer)) or not 0 <= place < self.dimension:
                raise InvalidParameter(f"columns must be among {', '.join(names)}, or positions of these.")
            found.append(int(place))
        if len(set(found)) < len(found) or not found:
            raise InvalidParameter("columns must be distinct, and at least one.")
        return tuple(found)

    def read(self, codes: ArrayLike) -> NDArray[np.int64]:
        """Return codes as whole numbers of the domain, shape (n, d).

        Parameters
        ----------
        codes
            Shape (n, d). A cell that is not a code of its column becomes the column's ``other``; a text that writes a
            number is that number, so that one text in an array, which makes texts of all, changes no other cell.

        Raises
        ------
        DataError
            If the shape does not fit, which is public.

        """
        table = table_of_numbers(codes, columns=self.dimension)
        if table.shape[1] != self.dimension:
            raise DataError(f"codes must have shape (n, {self.dimension}), a column for each of the domain's.")
        result = np.empty(table.shape, dtype=np.int64)
        for place, column in enumerate(self.columns):
            cells = table[:, place]
            with np.errstate(invalid="ignore"):
                valid = (cells >= 0) & (cells < column.codes) & (cells == np.floor(cells))
            result[:, place] = np.where(valid, cells, column.other)
        return result
