"""What a release takes in: records, whose each is, and the guarantee's word for that. Part of the trusted core."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core.unit_word import unit_word
from accord.errors import InvalidParameter
from accord.learning.blocks import count_units, unit_numbers
from accord.learning.records import as_records

__all__ = ["Intake", "take_in"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Records with their units of privacy.

    Parameters
    ----------
    records
        Shape (n, d).
    numbers
        n where each record is its own unit, otherwise the number of each record's unit, shape (n,).
    units
        How many units there are; public under 'replace one'.
    word
        What the guarantee calls a unit.

    """

    records: NDArray[Any]
    numbers: int | NDArray[np.int64]
    units: int
    word: str


def take_in(data: ArrayLike, *, units: ArrayLike | None, unit: str | None) -> Intake:
    """Read what was passed to a release; nothing is spent before it.

    Parameters
    ----------
    data, units, unit
        As in `PrivateSampler.release`.

    Raises
    ------
    InvalidParameter
        If a word for the unit comes without units, or there is not one unit a record.

    """
    records = as_records(data)
    if units is None and unit not in {None, "record"}:
        raise InvalidParameter(f"unit={unit!r} needs units=, which say whose each record is: else it is 'record'.")
    numbers = unit_numbers(len(records) if units is None else units)
    if not isinstance(numbers, int) and len(numbers) != len(records):
        raise InvalidParameter("units must name one unit a record.")
    word = unit_word(unit, named=units is not None)
    return Intake(records=records, numbers=numbers, units=count_units(numbers), word=word)
