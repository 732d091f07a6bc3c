"""Mixtures of normal laws by expectation maximisation."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.cells import Cells
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.shared import SharedRandomness
from accord.distributions import Mixture
from accord.learners.estimators import as_law, one_thread, parameters, quiet, scikit_module
from accord.learners.tables import fail, finite_rows
from accord.learners.traits import Traits

__all__ = ["MixtureLearner"]

_LAW = "mixture"
_KINDS = ("full", "tied", "diag", "spherical")
_MOST_STEPS = 500
_TOLERANCE = 1e-4
_RANGE = 1e150
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class MixtureLearner:
    """Fit a mixture of normal laws on R^d by expectation maximisation (scikit-learn's).

    Each block brings its own columns to mean 0 and deviation 1 before the fit and takes this back after it, so that
    units do not matter. The best of ``restarts`` starts is kept; components come in the order of their means, so that
    equal mixtures are equal laws.

    Formal guarantees
    -----------------
    - Purity: the law is a function of ``records`` and ``seed``, computed with one thread; nothing is kept.
    - Units: a column in other units gives the law in other units, but for rounding.
    - Failure: `FitFailed`, with a text that holds no data.
    - Not promised: the maximum of the likelihood (it has none for unlike covariances; expectation maximisation finds a
      local one), nor that two blocks find the same one. Fewer components and ``"tied"`` or ``"diag"`` agree sooner.

    Parameters
    ----------
    components
        Number of normal laws, at least 1.
    covariance_type
        ``"full"``: a covariance for each component; ``"tied"``: one for all; ``"diag"``: one for each, without
        correlations; ``"spherical"``: one variance for each, after the columns have been brought to deviation 1.
    restarts
        Starts, at least 1.
    regularisation
        Added to each component's variances, as a share of the column's variance; positive and at most 1. It keeps a
        component from shrinking onto a few records.

    Raises
    ------
    InvalidParameter
        If a parameter is out of range, or scikit-learn is not installed.

    Source: theory 6, 9.

    Examples
    --------
    >>> import numpy as np
    >>> records = np.concatenate((np.linspace(-6, -4, 50), np.linspace(4, 6, 50)))
    >>> law = MixtureLearner(2).fit(records, seed=0)
    >>> [round(part.mean[0], 3) for part in law.components], [round(weight, 3) for weight in law.weights]
    ([-5.0, 5.0], [0.5, 0.5])

    """

    cells: ClassVar[Cells] = "numbers"
    components: int
    covariance_type: Literal["full", "tied", "diag", "spherical"] = "full"
    restarts: int = 3
    regularisation: Number = 1e-6

    def __post_init__(self) -> None:
        _check.store(self, components=_check.integer("components", self.components, least=1, most=10_000))
        _check.store(self, restarts=_check.integer("restarts", self.restarts, least=1, most=10_000))
        if self.covariance_type not in _KINDS:
            raise InvalidParameter("covariance_type must be 'full', 'tied', 'diag' or 'spherical'.")
        share = float(_check.exact("regularisation", self.regularisation))
        if not 0 < share <= 1:
            raise InvalidParameter("regularisation must be above 0 and at most 1.")
        _check.store(self, regularisation=share)
        scikit_module("mixture")  # now, and not in each block, where it would be an abstention

    @property
    def traits(self) -> Traits:
        """What is public of its laws."""
        return Traits(components=self.components, covariance=self.covariance_type)

    def least_records(self, dimension: int) -> int:
        """Return the number of records below which there is no fit: one for each free direction of a component.

        Parameters
        ----------
        dimension
            d, the number of columns.

        """
        columns = _check.integer("dimension", dimension, least=1)
        match self.covariance_type:
            case "full":
                return self.components * (columns + 1)
            case "tied":
                return self.components + columns
            case _:
                return 2 * self.components

    def fit(self, records: NDArray[Any], *, seed: int) -> Mixture:
        """Return the mixture fitted to the records that are finite.

        Parameters
        ----------
        records
            Numbers, shape (n, d), or (n,) for d = 1. A row with a NaN or an infinity is left out.
        seed
            Of the starts.

        Raises
        ------
        FitFailed
            If fewer than `least_records` rows are usable, a column is constant or beyond the range of floats, or
            expectation maximisation breaks down.

        """
        rows = finite_rows(records, law=_LAW)
        if rows.shape[1] == 0 or len(rows) < self.least_records(rows.shape[1]):
            fail("too few usable rows for this number of components", law=_LAW)
        standard, centre, spread = _standardised(rows)
        found = self._parameters(standard, seed)
        law = None
        if found is not None:
            weights, means, covariances = found
            law = _law(weights, centre + spread * means, covariances * np.outer(spread, spread))
        if law is None:
            fail("expectation maximisation broke down", law=_LAW)
        return law

    def _parameters(self, rows: _Floats, seed: int) -> tuple[_Floats, _Floats, _Floats] | None:
        estimator = scikit_module("mixture").GaussianMixture(
            self.components,
            covariance_type=self.covariance_type,
            n_init=self.restarts,
            reg_covar=self.regularisation,
            max_iter=_MOST_STEPS,
            tol=_TOLERANCE,
            random_state=SharedRandomness(seed).seed("mixture"),
        )
        try:
            with quiet(), one_thread():
                return parameters(estimator.fit(rows))
        except Exception:  # noqa: BLE001 - whatever it is, its text may quote data
            return None


def _standardised(rows: _Floats) -> tuple[_Floats, _Floats, _Floats]:
    """Return the rows with mean 0 and deviation 1 in each column, the means and the deviations."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    if (low == high).any():
        fail("a column is constant", law=_LAW)
    middle, width = low / 2 + high / 2, high / 2 - low / 2
    if not ((np.abs(middle) < _RANGE) & (width < _RANGE) & (width > 1 / _RANGE)).all():
        fail("a variance is beyond the range of floats", law=_LAW)
    inside = (rows - middle) / width
    mean = inside.mean(axis=0)
    inside -= mean
    deviation = np.sqrt(np.square(inside).mean(axis=0))
    return inside / deviation, middle + width * mean, width * deviation


def _law(weights: _Floats, means: _Floats, covariances: _Floats) -> Mixture | None:
    """Return the law with its components in the order of their means, None if a covariance is singular."""
    order = sorted(range(len(weights)), key=lambda at: (*means[at].tolist(), float(weights[at])))
    try:
        return as_law(weights[order], means[order], covariances[order])
    except InvalidParameter:
        return None
