"""Between the columns as they are and columns of about unit scale."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.distributions import Distribution, PointMass
from accord.learning.density.column_location import as_float_table
from accord.learning.density.constant_columns import ConstantColumns
from accord.learning.density.locate import Located
from accord.learning.density.normal_family import NormalParameters

__all__ = ["ColumnFrame"]

_Floats = NDArray[np.float64]
_CHUNK = 1 << 18


@final
@dataclass(frozen=True, slots=True)
class ColumnFrame:
    """What was located, as a change of units: columns that move are shifted and scaled, constant ones are put aside.

    Formal guarantees
    -----------------
    - Row by row: what becomes of a record is a function of that record and of what was released.
    - Laws are moved exactly, up to rounding: `to_law` is what the records of a law of the standard columns become.
    - Not promised: that records meet the constants; `to_standard` does not look at them.

    Parameters
    ----------
    located
        With an answer in each column.

    Examples
    --------
    >>> from accord.core import CuratorOnly
    >>> from accord.privacy import ApproxDP
    >>> nan = float("nan")
    >>> columns = [np.array(column) for column in ([5.0, nan], [2.0, nan], [nan, 7.0])]
    >>> located = Located(
    ...     centre=columns[0],
    ...     scale=columns[1],
    ...     constant=columns[2],
    ...     guarantee=ApproxDP(1, "1e-6"),
    ...     agreement=CuratorOnly((None,)),
    ... )
    >>> frame = ColumnFrame(located)
    >>> frame.to_standard(np.array([[9.0, 7.0]])).tolist()
    [[2.0]]

    """

    located: Located

    @property
    def columns(self) -> list[int]:
        """Numbers of the columns that move."""
        return list(self.located.moving)

    def to_standard(self, records: NDArray[Any]) -> _Floats:
        """Return the moving columns of records (n, d) in units of about 1, shape (n, m); what is no number is NaN."""
        chosen = self.columns
        centre, scale = self.located.centre[chosen], self.located.scale[chosen]
        table = np.empty((len(records), len(chosen)))
        with np.errstate(all="ignore"):
            for start in range(0, len(records), _CHUNK):
                rows = slice(start, start + _CHUNK)
                table[rows] = (as_float_table(records[rows][:, chosen]) - centre) / scale
        return table

    def to_own_units(self, standard: _Floats) -> _Floats:
        """Return standard columns (n, m) in their own units."""
        chosen = self.columns
        return self.located.centre[chosen] + self.located.scale[chosen] * standard

    def normals(self, standard: NormalParameters) -> NormalParameters:
        """Return a mixture of normal laws of the standard columns in the columns' own units."""
        chosen = self.columns
        return standard.moved(centre=self.located.centre[chosen], scale=self.located.scale[chosen])

    def with_constants(self, law: Distribution | None) -> Distribution:
        """Return the law of whole records, from that of the moving columns, None if there are none."""
        chosen = self.columns
        if law is None:
            return PointMass(self.located.constant)
        if len(chosen) == len(self.located.constant):
            return law
        return ConstantColumns(law, columns=chosen, constants=self.located.constant)
