"""Records, whose each is, and the guarantee's word for that: the one reader of what a person passes. Trusted core."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.cells import Cells, labels_in, numbers_in
from accord.core.check import integer
from accord.core.containers import Held, held_in, holds_columns
from accord.core.errors import InvalidParameter, NotEnoughRecords, SchemaMismatch
from accord.core.unit_names import RECORD, check_word, owners_named, unit_word

__all__ = ["NO_NUMBERS", "Cells", "Records", "cells_read_by", "holds_columns", "table_of_numbers"]

NO_NUMBERS = (
    "complex",
    "string",
    "str",
    "large_string",
    "utf8",
    "category",
    "categorical",
    "enum",
    "date",
    "time",  # timedelta too
    "duration",
    "period",
    "interval",
    "list",
    "large_list",
    "dictionary",
    "map",
    "array",
    "struct",
    "binary",
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Records:
    """Records and their units of privacy, read once.

    Formal guarantees
    -----------------
    - Each cell is read by itself. The type of ``rows`` follows from ``cells`` alone, so that no cell decides how
      another one is read, by whatever container it came in.
    - Each name of a unit is read by itself. Two are one unit if they are equal numbers (1 and 1.0, 0.0 and -0.0), equal
      texts, or tuples of such parts; 1, True, "1" and (1,) are four units. A missing name, or part of one, is refused.
    - The number of columns is declared, by ``columns`` or by a container that has a shape. A list has none: there it is
      what its caller claims by passing it, and one entry never changes it for the others (`held_in` has the proof).
    - Public: the number of records and of units, the shape, the kind of container and the types that it declares. What
      refuses here refuses before anything is spent.

    Parameters
    ----------
    rows
        Shape (n, d): float64 with NaN for missing cells and what is no number, or plain Python values with None.
    owners
        The number of each record's unit by first appearance, shape (n,); None where each record is its own unit.
    units
        How many units there are; public under 'replace one'.
    word
        What the guarantee calls a unit.
    cells
        "numbers" or "labels": how the cells were read.

    Examples
    --------
    >>> records = Records.of([[1, "x"], [2.5, None], ["3", True]], units=["ann", "bob", "ann"], unit="person")
    >>> records.rows.tolist()
    [[1.0, nan], [2.5, nan], [3.0, 1.0]]
    >>> records.owners.tolist(), records.units, records.word
    ([0, 1, 0], 2, 'person')

    """

    rows: NDArray[Any] = field(repr=False)
    owners: NDArray[np.int64] | None = field(repr=False)
    units: int
    word: str
    cells: Cells = "numbers"

    @classmethod
    def of(
        cls,
        data: Any,  # noqa: ANN401 - any container
        *,
        units: Any = None,  # noqa: ANN401 - any container
        unit: str | None = None,
        cells: Cells = "numbers",
        columns: int | None = None,
    ) -> "Records":
        """Read a table and the names of its units.

        Parameters
        ----------
        data
            Shape (n, d) or (n,): an array, masked or not, a list of values or rows, a frame of pandas or polars, a
            table of pyarrow; or `Records`, which pass as they are.
        units
            The name of each record's unit, shape (n,), in a list, an array or a column; by default each record is one.
        unit
            The guarantee's word for what ``units`` names; by default "unit", and always "record" without ``units``.
            A name that is itself "record" is put in quotes: that word is for records.
        cells
            "numbers": every cell becomes a float; "labels": a plain Python value.
        columns
            How many columns there are, at least 1: a public declaration. A list's entry that is no row of so many cells
            is then missing cells, and none stops a run. By default a container says it, and for a list the caller does:
            at least three quarters of its entries must be rows of one length, or it is refused.

        Raises
        ------
        InvalidParameter
            If the shape is no table's, or there is not one name a record, or a word for units comes without units or
            cannot be seen; or if there are other than the declared columns.
        SchemaMismatch
            If numbers are asked for and the container declares a column to hold none. An array of objects declares
            nothing.
        NotEnoughRecords
            If there are no records.
        DataError
            If a unit's name is missing.

        """
        if columns is not None:
            columns = integer("columns", columns, least=1)
        if isinstance(data, cls):
            return _again(data, units=units, unit=unit, cells=cells, columns=columns)
        word = unit_word(unit, named=units is not None)
        if units is None and not (unit is None or unit == RECORD):
            check_word(unit)
            raise InvalidParameter(f"unit={unit!r} needs units=, which say whose each record is: else it is 'record'.")
        held = held_in(data, columns=columns)
        if cells == "numbers":
            _refuse_declared(held)
        rows = _read(held, cells)
        if len(rows) == 0:
            raise NotEnoughRecords("there are no records.", needed=1, present=0)
        if units is None:
            return cls(rows=rows, owners=None, units=len(rows), word=word, cells=cells)
        owners = owners_named(units, records=len(rows))
        return cls(rows=rows, owners=owners, units=int(owners.max()) + 1, word=word, cells=cells)

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.rows)

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[1])

    @property
    def several_records(self) -> bool:
        """Whether units were named, so that one may have several records."""
        return self.owners is not None

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """The row of each unit's first record, shape (units,)."""
        return np.arange(self.size) if self.owners is None else np.unique(self.owners, return_index=True)[1]

    def of_rows(self, rows: NDArray[np.int64]) -> "Records":
        """Return some records with their units, which are numbered anew; ``rows`` in the order of the file."""
        if self.owners is None:
            owners, units = None, len(rows)
        else:
            kept = np.unique(self.owners[rows])
            owners, units = np.searchsorted(kept, self.owners[rows]).astype(np.int64), len(kept)
        return Records(rows=self.rows[rows], owners=owners, units=units, word=self.word, cells=self.cells)

    def of_units(self, kept: NDArray[np.bool_]) -> "Records":
        """Return the records of the units marked, shape (units,), whole units only, in the order of the file."""
        return self.of_rows(np.flatnonzero(kept if self.owners is None else kept[self.owners]))


def cells_read_by(learner: object) -> Cells:
    """Return how a learner wants its cells: its attribute ``cells``, "numbers" where it has none.

    Raises
    ------
    InvalidParameter
        If the attribute is anything but "numbers" or "labels".

    """
    cells = getattr(learner, "cells", "numbers")
    if cells == "numbers":
        return "numbers"
    if cells == "labels":
        return "labels"
    raise InvalidParameter("a learner's cells must be 'numbers' or 'labels': how it wants to read a table.")


def table_of_numbers(data: Any, *, columns: int | None = None) -> NDArray[np.float64]:  # noqa: ANN401 - any container
    """Return a table as floats, shape (n, d), whatever types its container declares: a text that writes a number is it.

    For tables of codes and columns that a schema declares: what is no number is NaN, and stays the cell's own affair.

    Parameters
    ----------
    data
        An array, a list or a data frame.
    columns
        How many cells a row of a list has: another row is missing. None if that is not known.

    Examples
    --------
    >>> table_of_numbers(np.array([[1, 1], [0, "x"]])).tolist()
    [[1.0, 1.0], [0.0, nan]]

    """
    rows = isinstance(data, Sequence)
    return np.asarray(_read(held_in(data, columns=columns if rows else None), "numbers"))


def _again(given: Records, *, units: object, unit: str | None, cells: Cells, columns: int | None) -> Records:
    if columns not in {None, given.dimension}:
        raise InvalidParameter(f"data must have {columns} columns, as declared: it has {given.dimension}.")
    if units is not None or not (unit is None or unit == given.word):
        raise InvalidParameter("these records have their units already: give units= to Records.of.")
    if cells == given.cells:
        return given
    rows = numbers_in(given.rows) if cells == "numbers" else labels_in(given.rows)
    return Records(rows=rows, owners=given.owners, units=given.units, word=given.word, cells=cells)


def _read(held: Held, cells: Cells) -> NDArray[Any]:
    read = numbers_in if cells == "numbers" else labels_in
    if held.table is not None:
        return read(held.table)
    return np.stack([read(column) for column in held.columns], axis=1)


def _refuse_declared(held: Held) -> None:
    """Refuse columns that are declared to hold no numbers."""
    wrong = [place for place, kind in enumerate(held.kinds) if kind.lower().startswith(NO_NUMBERS)]
    if not wrong:
        return
    advice = (
        "Leave them out, or turn them into numbers by a rule that does not look at other records, or use a learner of "
        "labels such as EmpiricalLearner. Nothing was spent."
    )
    if held.names is None:
        raise SchemaMismatch(f"the records must be numbers, and this holds {_word(held.kinds[wrong[0]])}. {advice}")
    named = ", ".join(repr(held.names[place]) for place in wrong)
    raise SchemaMismatch(f"columns without numbers: {named}. {advice}")


def _word(kind: str) -> str:
    """Return the name of a type without what it lists, such as categories."""
    return kind.partition("(")[0].partition("<")[0]
