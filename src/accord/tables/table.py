"""A table as the learning layer takes it."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.tables.schema import Schema

__all__ = ["Table"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The columns of a file that are read, one entry for each of its records, in the file's order.

    Formal guarantees
    -----------------
    - Alignment: entry i depends on record i and on the schema alone, and n is the number of records whatever they hold;
      so replacing one record of the file replaces one row.
    - Not promised: that reading succeeds for both of two neighbouring files. With ``unreadable = "refuse"`` a refusal
      depends on the records, and is meant for the eyes of their curator.

    Parameters
    ----------
    columns
        One array of shape (n,) for each of ``schema.read``: float64 with NaN for a missing cell, or int32 positions in
        ``categories`` with -1 for a missing cell.
    units
        For each record the number of its unit, counted in order of first appearance, shape (n,); None without a unit.
    schema
        What was declared.

    """

    columns: tuple[NDArray[Any], ...]
    units: NDArray[np.int64] | None
    schema: Schema

    def __len__(self) -> int:
        """Return n, the number of records."""
        return len(self.columns[0])

    @property
    def records(self) -> NDArray[Any]:
        """The records as one array, shape (n, d), made anew at each call.

        float64 with NaN for a missing cell if all columns are numbers; else objects, with a label's text, a float, or
        None for a missing cell.
        """
        declared = self.schema.read
        if all(column.is_number for column in declared):
            return np.column_stack(self.columns)
        records = np.empty((len(self), len(declared)), dtype=object)
        for place, (column, values) in enumerate(zip(declared, self.columns, strict=True)):
            if column.is_label:
                records[:, place] = np.array([*column.categories, None], dtype=object)[values]
            else:
                records[:, place] = values
                records[np.isnan(values), place] = None
        return records
