"""Continuous families of scipy.stats by maximum likelihood."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.alone import ambient_seed
from accord.core.cells import Cells
from accord.core.errors import InvalidParameter
from accord.distributions import ScipyLaw
from accord.learners.estimators import quiet
from accord.learners.tables import fail, finite_rows
from accord.learners.traits import Traits

__all__ = ["ScipyLearner"]

_LAW = "law of this family"
_RANGE = 1e150
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False)
class ScipyLearner:
    """Fit a continuous family of scipy.stats by its own maximum likelihood.

    Where nothing is said about ``fixed``, the place is fixed for families that have a natural one: ``loc = 0`` where
    the standard law begins or ends at a finite point (lognorm, gamma, weibull_min, pareto ...), besides ``scale = 1``
    for laws with shapes on [0, 1] (beta ...). With a free place their likelihood is unbounded or nearly so (the place
    runs to the least record), and two blocks rarely agree on a fit. ``fixed={}`` frees all parameters.

    Formal guarantees
    -----------------
    - Purity: the law is a function of ``records`` alone, whatever the seed; nothing is kept.
    - Parameters: finite, with a positive scale and shapes inside the family's range; the density is positive and finite
      at every record that was used.
    - Units: fitted about the middle of the records and in a unit that is a power of two near their spread, so that
      neither a large mean nor a small unit stops scipy's search.
    - Failure: `FitFailed`, with a text that holds no data.
    - Not promised: that scipy's search finds the greatest likelihood; speed (some families integrate numerically).

    Parameters
    ----------
    family
        Name of a continuous family of scipy.stats, such as "lognorm", or the family itself.
    fixed
        Public values of some parameters: ``"loc"``, ``"scale"``, or a shape by its name in scipy. At least one must be
        left free.

    Raises
    ------
    InvalidParameter
        If there is no such family, or ``fixed`` names no parameter of it or gives what it cannot be.

    Source: theory 6.

    Examples
    --------
    >>> import numpy as np
    >>> ScipyLearner("expon").fit(np.array([1.0, 2.0, 6.0]), seed=0)
    ScipyLaw(family='expon', shapes=(), loc=0.0, scale=3.0)
    >>> ScipyLearner("lognorm").fixed
    (('loc', 0.0),)

    """

    cells: ClassVar[Cells] = "numbers"
    family: str
    fixed: tuple[tuple[str, float], ...]

    def __init__(self, family: Any, *, fixed: Mapping[str, float] | None = None) -> None:  # noqa: ANN401 - scipy's own type
        found = _family(family)
        values = _usual(found) if fixed is None else _given(fixed, found)
        _check.store(self, family=found.name, fixed=tuple(sorted(values.items())))

    @property
    def traits(self) -> Traits:
        """What is public of its laws."""
        return _OfScipy(words=self.family, fixed=self.fixed, seeded=False, quick=True)

    def least_records(self, dimension: int) -> int:
        """Return the number of records below which there is no fit: one more than there are free parameters.

        Parameters
        ----------
        dimension
            1, the number of columns.

        """
        _check.integer("dimension", dimension, least=1, most=1)
        return len(_names(_family(self.family))) - len(self.fixed) + 1

    def fit(self, records: NDArray[Any], *, seed: int) -> ScipyLaw:  # noqa: ARG002 - nothing here is random
        """Return the law fitted to the records that are finite.

        Parameters
        ----------
        records
            Numbers, shape (n, 1) or (n,). A NaN or an infinity is left out.
        seed
            Not read.

        Raises
        ------
        FitFailed
            If fewer than `least_records` are usable, all are equal, or they are not one column of numbers; if scipy's
            search fails or ends outside the range of the parameters; if a record is where the law has no density.

        """
        rows = finite_rows(records, law=_LAW)
        if rows.shape[1] != 1:
            fail("the records are not one column", law=_LAW)
        column = rows[:, 0]
        if len(column) < self.least_records(1):
            fail("too few usable records for this number of parameters", law=_LAW)
        low, high = float(column.min()), float(column.max())
        if low == high:
            fail("all records are equal", law=_LAW)
        if max(abs(low), abs(high)) > _RANGE or high / 2 - low / 2 < 1 / _RANGE:
            fail("the records are beyond the range of floats", law=_LAW)
        law = self._law(column)
        if law is None:
            fail("scipy's fit fails, or ends at parameters that no law has", law=_LAW)
        if not np.isfinite(law.log_density(column)).all():
            fail("a record is where the law has no density", law=_LAW)
        return law

    def _law(self, column: _Floats) -> ScipyLaw | None:
        fixed = dict(self.fixed)
        centre, unit = _frame(column, fixed)
        search = {f"f{name}": value for name, value in fixed.items()}
        if "loc" in fixed:
            search["floc"] = (fixed["loc"] - centre) / unit
        if "scale" in fixed:
            search["fscale"] = fixed["scale"] / unit
        family = _family(self.family)
        try:
            with quiet(), ambient_seed(0):
                *shapes, loc, scale = map(float, family.fit((column - centre) / unit, **search))
                law = ScipyLaw(self.family, *shapes, loc=loc * unit + centre, scale=scale * unit)
                return _covering(law, column) if self.family == "uniform" and not fixed else law
        except Exception:  # noqa: BLE001 - whatever it is, its text may quote data
            return None


def _covering(law: ScipyLaw, column: _Floats) -> ScipyLaw:
    """Return the interval from the least to the greatest record; widened by roundings until it holds both."""
    low, high = float(column.min()), float(column.max())
    for step in range(8):
        wide = (high - low) * (1 + 2.0 ** (step - 52)) if step else high - low
        law = ScipyLaw(law.family, loc=low, scale=wide)
        if np.isfinite(law.log_density([low, high])).all():
            break
    return law


def _frame(column: _Floats, fixed: dict[str, float]) -> tuple[float, float]:
    """Return a centre and a unit in which scipy's search is at ease; fixed parameters stay simple numbers."""
    if "scale" in fixed:
        return fixed.get("loc", float(np.median(column))), fixed["scale"]
    centre = fixed.get("loc", float(np.median(column)))
    size = float(np.abs(column - centre).mean())
    return centre, math.ldexp(1.0, math.frexp(size)[1])


def _family(family: Any) -> Any:  # noqa: ANN401 - scipy's own type
    """Return the family of this name, or refuse it by what it is."""
    from scipy import stats  # noqa: PLC0415 - takes half a second, for those who use it only

    name = family if isinstance(family, str) else getattr(family, "name", None)
    found = getattr(stats, name, None) if isinstance(name, str) else None
    if name == "vonmises" and isinstance(found, stats.rv_continuous):
        raise InvalidParameter(
            "family vonmises is a law on a circle, which has no density on the line: vonmises_line is."
        )
    if isinstance(found, stats.rv_continuous) and (isinstance(family, str) or type(family) is type(found)):
        return found
    if isinstance(getattr(family, "dist", None), stats.rv_continuous):
        raise InvalidParameter(
            f"family has its parameters already: give the family, such as ScipyLearner('{family.dist.name}'), and what "
            "is known of them as fixed={...}."
        )
    if isinstance(found, stats.rv_discrete) or isinstance(family, stats.rv_discrete):
        raise InvalidParameter("family is discrete; for labels and whole numbers use EmpiricalLearner.")
    raise InvalidParameter("family must be a continuous family of scipy.stats, such as 'lognorm'.")


def _usual(family: Any) -> dict[str, float]:  # noqa: ANN401 - scipy's own type
    """Return what is fixed where nobody has said so."""
    low, high = float(family.a), float(family.b)
    if math.isfinite(low) != math.isfinite(high):
        return {"loc": 0.0}
    return {"loc": 0.0, "scale": 1.0} if (low, high) == (0, 1) and family.numargs > 0 else {}


def _names(family: Any) -> list[str]:  # noqa: ANN401 - scipy's own type
    shapes = family.shapes.split(",") if family.shapes else []
    return [*(shape.strip() for shape in shapes), "loc", "scale"]


def _given(fixed: Mapping[str, float], family: Any) -> dict[str, float]:  # noqa: ANN401 - scipy's own type
    names = _names(family)
    if not isinstance(fixed, Mapping):
        _refuse(f"fixed must be a mapping such as {{'loc': 0}}; {family.name} has {', '.join(names)}.")
    if not set(fixed) < set(names):
        _refuse(f"fixed must name some, not all, of the parameters of {family.name}: {', '.join(names)}.")
    values = {name: _number(value) for name, value in fixed.items()}
    if any(not math.isfinite(value) for value in values.values()):
        _refuse("fixed must give finite numbers.")
    if not values.get("scale", 1.0) > 0:
        _refuse("fixed must give a positive scale.")
    return values


def _number(value: object) -> float:
    try:
        return float(value) + 0.0 if not isinstance(value, (str, bytes, bool)) else math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _refuse(message: str) -> NoReturn:
    raise InvalidParameter(message)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _OfScipy(Traits):
    """Laws of one family of scipy, some of whose parameters are fixed."""

    fixed: tuple[tuple[str, float], ...]

    def reached(self, points: _Floats) -> NDArray[np.bool_]:
        """Return the points in the support of a law of the family, whatever its free parameters."""
        fixed = dict(self.fixed)
        if "loc" not in fixed:
            return np.ones(len(points), dtype=bool)
        family = _family(self.words)
        unit = fixed.get("scale")
        low, high = float(family.a), float(family.b)
        if unit is None:  # an end at 0 stays, others move with the scale
            low, high = (0.0 if low >= 0 else -np.inf), (0.0 if high <= 0 else np.inf)
        else:
            low, high = low * unit, high * unit
        offset = points[:, 0] - fixed["loc"]
        found: NDArray[np.bool_] = (offset > low) & (offset < high)
        return found
