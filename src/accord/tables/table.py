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
    """The declared columns of a file, one row for each of its records, in the file's order.

    Formal guarantees
    -----------------
    - Alignment: row i depends on record i and on the schema alone, and n is the number of records whatever they hold;
      so replacing one record of the file replaces one row.
    - Not promised: that reading succeeds for both of two neighbouring files. With ``unreadable = "refuse"`` a refusal
      depends on the records, and is meant for the eyes of their curator.

    Parameters
    ----------
    records
        Shape (n, d): float64 with NaN for a missing cell if all columns are numbers; else objects, with a category's
        text, a float, or None for a missing cell.
    units
        For each record the number of its unit, counted in order of first appearance, shape (n,); None without a unit.
    schema
        What was declared.

    """

    records: NDArray[Any]
    units: NDArray[np.int64] | None
    schema: Schema
