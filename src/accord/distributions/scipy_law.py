"""Any continuous law of scipy.stats as a law on the line."""

import math
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions.measured import Continuous, Flags, Points, outside_atoms
from accord.distributions.protocol import Rows

__all__ = ["ScipyLaw"]

_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False)
class ScipyLaw(Continuous):
    """A continuous law of scipy.stats with its parameters, as a value.

    Formal guarantees
    -----------------
    - Value: immutable, can be pickled; equal names and parameters are equal laws with equal hashes.
    - Density: -inf where scipy gives no number, and at a pole (a single point); never NaN.
    - Intervals: from scipy's distribution function below the median and its survival function above.
    - Not promised: more accuracy than scipy's functions have; speed (some families integrate numerically).

    Parameters
    ----------
    family
        Name of a continuous family of scipy.stats, such as "lognorm", or the family itself.
    shapes
        Its shape parameters, in scipy's order.
    loc, scale
        Shift, and a positive scale.

    Raises
    ------
    InvalidParameter
        If there is no such family, or the parameters are outside its range.

    Source
    ------
    theory 1 (laws and densities).

    Examples
    --------
    >>> law = ScipyLaw("lognorm", 0.5, scale=2)
    >>> law.cdf([2.0]).round(6).tolist()
    [0.5]
    >>> law == ScipyLaw("lognorm", 0.5, loc=0, scale=2.0)
    True

    """

    family: str
    shapes: tuple[float, ...]
    loc: float
    scale: float

    def __init__(self, family: Any, /, *shapes: float, loc: float = 0.0, scale: float = 1.0) -> None:  # noqa: ANN401
        name = family if isinstance(family, str) else getattr(family, "name", None)
        found = _family(name)
        if found is None or (not isinstance(family, str) and type(family) is not type(found)):
            raise InvalidParameter("family must be a continuous family of scipy.stats, such as 'lognorm'.")
        numbers = tuple(_number("shapes", shape) for shape in shapes)
        shift, spread = _number("loc", loc), _number("scale", scale)
        if len(numbers) != found.numargs:
            raise InvalidParameter(f"the family takes {found.numargs} shape parameters.")
        if not spread > 0:
            raise InvalidParameter("scale must be positive.")
        if not _is_valid(found, numbers):
            raise InvalidParameter("shapes are outside the range of the family.")
        _check.store(self, family=name, shapes=numbers, loc=shift, scale=spread)

    @classmethod
    def of(cls, frozen: Any) -> Self:  # noqa: ANN401 - scipy's frozen laws have no public type
        """Return the law of a frozen scipy law, such as ``scipy.stats.lognorm(0.5, scale=2)``."""
        try:
            shapes, loc, scale = frozen.dist._parse_args(*frozen.args, **frozen.kwds)  # noqa: SLF001
        except (AttributeError, TypeError):
            shapes, loc, scale = None, 0.0, 1.0
        if shapes is None:
            raise InvalidParameter("frozen must be a frozen continuous law of scipy.stats.")
        return cls(frozen.dist, *shapes, loc=loc, scale=scale)

    @property
    def dimension(self) -> int:
        """Number of columns of a record: 1."""
        return 1

    @property
    def support(self) -> tuple[float, float]:
        """Ends of the support."""
        low, high = _family(self.family).support(*self.shapes, loc=self.loc, scale=self.scale)
        return float(low), float(high)

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` independent numbers, shape (size, 1).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read as the family's own sampler does.

        """
        count = _check.integer("size", size, least=0)
        law = _family(self.family)
        drawn = law.rvs(*self.shapes, loc=self.loc, scale=self.scale, size=count, random_state=generator)
        records: Rows = np.asarray(drawn, dtype=np.float64).reshape(count, 1)
        return records

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        column = points.floats[0]
        with np.errstate(all="ignore"):
            logs = _family(self.family).logpdf(column, *self.shapes, loc=self.loc, scale=self.scale)
        return outside_atoms(np.where(np.isfinite(logs) & np.isfinite(column), logs, -np.inf), atoms)

    def cdf(self, x: ArrayLike) -> _Floats:
        """Return P(X <= x), shape (n,)."""
        return self._from_scipy("cdf", x)

    def interval(self, low: ArrayLike, high: ArrayLike) -> _Floats:
        """Return P(low < X <= high), shape (n,)."""
        first = np.asarray(low, dtype=np.float64)
        last = np.maximum(np.asarray(high, dtype=np.float64), first)
        lower = self.cdf(last) - (before := self.cdf(first))
        upper = self._from_scipy("sf", first) - self._from_scipy("sf", last)
        return np.asarray(np.clip(np.where(before < 0.5, lower, upper), 0.0, 1.0))

    def _from_scipy(self, name: str, x: ArrayLike) -> _Floats:
        column = np.asarray(x, dtype=np.float64)
        with np.errstate(all="ignore"):
            found = getattr(_family(self.family), name)(column, *self.shapes, loc=self.loc, scale=self.scale)
        return np.asarray(found, dtype=np.float64)


def _family(name: object) -> Any:  # noqa: ANN401 - scipy's own type
    """Return the continuous family of this name, or None."""
    from scipy import stats  # noqa: PLC0415 - takes half a second, for those who use it only

    found = getattr(stats, name, None) if isinstance(name, str) else None
    return found if isinstance(found, stats.rv_continuous) else None


def _number(name: str, value: object) -> float:
    """Return one finite number, or refuse it by name."""
    try:
        number = float(value) if not isinstance(value, (str, bytes, bool)) else math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidParameter(f"{name} must be finite numbers.")
    return number + 0.0


def _is_valid(family: Any, shapes: tuple[float, ...]) -> bool:  # noqa: ANN401 - scipy's own type
    with np.errstate(all="ignore"):
        ends = family.support(*shapes)
        return not any(math.isnan(float(end)) for end in ends)
