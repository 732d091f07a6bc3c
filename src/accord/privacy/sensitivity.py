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
