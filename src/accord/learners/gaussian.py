"""Normal laws by mean and covariance."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.cells import Cells
from accord.core.coupling import Coupling, Distribution
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.couplings.lattice.hashed import HashedLattice
from accord.couplings.lattice.normal import NormalLattice
from accord.couplings.normal_reference import NormalReference
from accord.couplings.shift_rounding import ShiftRounding
from accord.distributions import Normal
from accord.learners.normal_sizes import expected_kl, least_records
from accord.learners.tables import fail, finite_rows
from accord.learners.traits import Family, Traits

__all__ = ["GaussianLearner"]

_LAW = "normal law"
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class GaussianLearner:
    """Fit a normal law by the mean and the unbiased covariance.

    Formal guarantees
    -----------------
    - Purity: the law is a function of ``records`` alone; the seed is not read.
    - Accuracy: centred twice and scaled column by column by powers of two, so that neither a large mean nor a large or
      small unit costs digits; single precision is widened first.
    - Failure: `FitFailed`, with a text that holds no data.
    - With ``dimension``: `sample_complexity` and `tuple_total_variation` hold for every normal law on R^d.
    - Not promised: a fit of constant or collinear columns (their law has no density), nor robustness against outliers.

    Parameters
    ----------
    dimension
        d, the number of columns, where accuracy is to be stated; otherwise whatever the records have.

    Source: theory 6, 9, S6; proof page ``docs/proofs/learners.md``.

    Examples
    --------
    >>> import numpy as np
    >>> GaussianLearner(dimension=1).sample_complexity(0.1, 0.1)
    62
    >>> GaussianLearner().fit(np.array([[1.0], [2.0], [3.0]]), seed=0)
    Normal(mean=(2.0,), covariance=((1.0,),))

    """

    dimension: int | None = None
    cells: ClassVar[Cells] = "numbers"

    def __post_init__(self) -> None:
        if self.dimension is not None:
            _check.store(self, dimension=_check.integer("dimension", self.dimension, least=1, most=1000))

    @property
    def traits(self) -> Traits:
        """What is public of its laws."""
        return _OfNormals(
            columns=self.dimension, components=1, formulas=True, pivotal=True, seeded=False, own_reference=True
        )

    def fit(self, records: NDArray[Any], *, seed: int) -> Normal:  # noqa: ARG002 - nothing here is random
        """Return the normal law fitted to the records that are finite.

        Parameters
        ----------
        records
            Numbers, shape (n, d), or (n,) for d = 1. A row with a NaN or an infinity is left out.
        seed
            Not read.

        Raises
        ------
        FitFailed
            If fewer than d + 1 rows are usable, a column is constant, columns are collinear up to rounding, or a
            variance is beyond the range of floats.

        """
        rows = finite_rows(records, law=_LAW)
        if self.dimension is not None and rows.shape[1] != self.dimension:
            fail("the records have another number of columns than the learner", law=_LAW)
        if len(rows) <= rows.shape[1] or rows.shape[1] == 0:
            fail("fewer usable rows than columns + 1", law=_LAW)
        if (rows.max(axis=0) == rows.min(axis=0)).any():
            fail("a column is constant", law=_LAW)
        with np.errstate(all="ignore"):
            mean, covariance = _moments(rows)
        tiny = np.finfo(np.float64).tiny
        if not (np.isfinite(covariance).all() and (np.diag(covariance) >= tiny).all()):
            fail("a variance is beyond the range of floats", law=_LAW)
        try:
            law = Normal(mean, covariance)
        except InvalidParameter:
            law = None
        if law is None:
            fail("the covariance is singular", law=_LAW)
        return law

    def least_records(self, dimension: int) -> int:
        """Return the number of records below which there is no fit: one more than there are columns.

        Parameters
        ----------
        dimension
            d, the number of columns.

        """
        return _check.integer("dimension", dimension, least=1) + 1

    def sample_complexity(self, alpha: Number, beta: Number) -> int:
        """Return a number b of records from which on the fit is within total variation ``alpha`` of any normal law.

        It fails with probability at most ``beta``. The law of the total variation does not depend on the truth. On
        the line it is computed; for two to five columns its quantiles were simulated once and bounded, with confidence
        99.9 % for all of them together (``benchmarks/learner_pivots.py``). Beyond that, and where beta is below 1e-6,
        the bound is Chernoff's on the Kullback-Leibler divergence with Pinsker's inequality: two to four times as many.

        Parameters
        ----------
        alpha, beta
            Strictly between 0 and 1.

        Raises
        ------
        InvalidParameter
            Without a ``dimension``, or if no number of records can be certified at double precision.

        """
        accuracy, failure = _check.probability("alpha", alpha), _check.probability("beta", beta)
        try:
            return least_records(float(accuracy), float(failure), dimension=self._stated_dimension())
        except OverflowError as error:
            raise InvalidParameter(str(error)) from None

    def tuple_total_variation(self, records: int, block_size: int) -> float:
        """Return an upper bound on the mean total variation of tuples: E TV(q^l, p^l), q fitted to b records of p.

        ``min(sqrt(l K / 2), sqrt(1 - exp(-l K)))`` with K = E KL(q || p), which is known exactly (theory L5, S6).

        Parameters
        ----------
        records, block_size
            l and b, at least 1.

        """
        size = _check.integer("records", records, least=1)
        loss = size * expected_kl(_check.integer("block_size", block_size, least=1), dimension=self._stated_dimension())
        return min(math.sqrt(loss / 2), math.sqrt(-math.expm1(-loss)))

    def _stated_dimension(self) -> int:
        if self.dimension is None:
            raise InvalidParameter(
                "the accuracy of GaussianLearner depends on dimension: give GaussianLearner(dimension=d)."
            )
        return self.dimension


def _moments(rows: _Floats) -> tuple[_Floats, _Floats]:
    """Return the mean and the unbiased covariance; refuse columns that are collinear up to rounding."""
    units = np.frexp(np.abs(rows).max(axis=0))[1]
    scaled = np.ldexp(rows, -units)
    mean = scaled.mean(axis=0)
    centred = scaled - mean
    rest = centred.mean(axis=0)
    centred -= rest
    spreads = np.frexp(np.abs(centred).max(axis=0))[1]
    centred = np.ldexp(centred, -spreads)
    product = centred.T @ centred / (len(rows) - 1)
    product = 0.5 * (product + product.T)
    _refuse_collinear(product)
    exponents = units + spreads
    return np.ldexp(mean + rest, units), np.ldexp(product, exponents[:, None] + exponents[None, :])


def _refuse_collinear(covariance: _Floats) -> None:
    """Refuse a covariance in which a column is a combination of earlier ones up to rounding.

    The squared diagonal of the correlation's Cholesky factor is the share of each column's variance that the earlier
    columns do not explain: it has no unit.
    """
    deviations = np.sqrt(np.diag(covariance))
    shares = None
    if (deviations > 0).all():
        try:
            shares = np.diag(np.linalg.cholesky(covariance / np.outer(deviations, deviations))) ** 2
        except np.linalg.LinAlgError:
            shares = None
    least = 64 * len(covariance) * np.finfo(np.float64).eps
    if shares is None or not (shares > least).all():
        fail("columns are constant or collinear up to rounding", law=_LAW)


_RATIO = {1: 0.6, 2: 0.3, 3: 0.35, 4: 0.22, 5: 0.11, 6: 0.06, 7: 0.035, 8: 0.025}
_BLOCK = {6: 140, 7: 260, 8: 400}
_ERROR = {1: 0.45, 2: 0.76, 3: 0.5, 4: 0.85, 5: 1.1, 6: 1.45, 7: 1.75, 8: 2.0}
"""By number of columns, found by simulation (``benchmarks/sizes.py``)."""
_MOST_OF_FAMILY, _MOST_JOINTLY, _MOST_SINGLY = 2, 3, 12
_FEW_DRAWS, _MANY_DRAWS = 32, 1000  # a draw of rounding costs next to nothing


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _OfNormals(Traits):
    """Normal laws: a lattice in few columns, rounded parameters in more, and wide normal laws about a released one."""

    def family(self, columns: int) -> Family:
        if self.columns not in {None, columns}:
            raise InvalidParameter(f"data must have {self.columns} columns, as many as the learner.")
        if columns not in _RATIO:
            message = f"GaussianLearner is coupled for one to {max(_RATIO)} columns by default, not for {columns}."
            raise InvalidParameter(message)
        few = columns <= _MOST_OF_FAMILY
        coupling = NormalLattice(dimension=columns) if few else ShiftRounding(dimension=columns)
        return Family(
            coupling=coupling,
            least_block=columns + 2,
            usual_block=_BLOCK.get(columns, 20 * columns),
            usual_draws=_FEW_DRAWS if few else _MANY_DRAWS,
            least_tuple=coupling.least_records,
            agreeing_ratio=_RATIO[columns],
            typical_error=_ERROR[columns],
        )

    def joint_coupling(self, records: int) -> Coupling | None:
        if self.columns is None or self.columns > _MOST_JOINTLY:
            return None
        lattice = NormalLattice(dimension=self.columns)
        return lattice if records >= lattice.least_records else None

    def single_coupling(self, *, record_by_record: bool) -> Coupling | None:
        if self.columns is None or self.columns > _MOST_SINGLY:
            return None
        return HashedLattice(dimension=self.columns, record_by_record=record_by_record)

    def reference(self, coarse: Distribution, *, strength: Fraction) -> NormalReference | None:
        return NormalReference(coarse, strength=strength) if type(coarse) is Normal else None

    def check_reference(self, columns: int, *, records: int, strength: Fraction) -> None:
        if records <= columns:
            raise InvalidParameter(f"records must be at least {columns + 1} for normal laws of {columns} columns.")
        if strength <= columns:
            message = f"strength must be above {columns}: larger blocks, or more records in the first stage."
            raise InvalidParameter(message)
