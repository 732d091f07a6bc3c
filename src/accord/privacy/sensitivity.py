"""How far a query moves between neighbours."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accord import _check
from accord._exact import Number
from accord.errors import InvalidParameter
from accord.privacy.neighbouring import Neighbouring

__all__ = ["Sensitivity"]


@final
@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest distance between a query's values on two neighbours.

    It is to hold for every pair of neighbours, and those are of whole units: under "replace one" the new unit may have
    another number of records than the old one, and they may stand elsewhere in the file; under "add or remove one" all
    of a unit's records come or go. A unit of m records is not m records that are replaced one by one: ten numbers of
    101 may become a single 100, which moves their sum by 910, not by 10 (`accord.mechanisms.ClampedSum`). Where every
    record is a unit of its own, "replace one" keeps their number.

    Parameters
    ----------
    bound
        At least 0; kept as an exact fraction. 0 says that the query does not depend on the data.
    neighbouring
        The relation that the bound holds for.

    Examples
    --------
    >>> Sensitivity("0.1").bound
    Fraction(1, 10)

    """

    bound: Fraction
    neighbouring: Neighbouring = Neighbouring.REPLACE_ONE

    def __init__(self, bound: Number, neighbouring: Neighbouring = Neighbouring.REPLACE_ONE) -> None:
        value = _check.exact("sensitivity bound", bound)
        if value < 0:
            message = "sensitivity bound must be at least 0."
            raise InvalidParameter(message)
        if not isinstance(neighbouring, Neighbouring):
            message = "neighbouring must be a Neighbouring, such as Neighbouring.REPLACE_ONE."
            raise InvalidParameter(message)
        object.__setattr__(self, "bound", value)
        object.__setattr__(self, "neighbouring", neighbouring)
