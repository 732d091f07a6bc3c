"""Any estimator that can be fitted, scored and drawn from, as a learner."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import ambient_seed
from accord.core.cells import Cells
from accord.core.coupling import Distribution
from accord.core.errors import InvalidParameter
from accord.core.shared import SharedRandomness
from accord.distributions import Mixture
from accord.learners._affine import AffineMap, affine_map, split
from accord.learners._estimator_law import EstimatorLaw
from accord.learners._estimators import (
    check_estimator,
    fresh_copy,
    identity,
    is_made_of_records,
    is_scikit,
    one_thread,
    quiet,
    reseed,
)
from accord.learners._scikit_mixtures import as_law, is_mixture, parameters
from accord.learners._tables import fail, finite_rows

__all__ = ["SklearnLearner"]

_LAW = "law"
_LOOKED_AT = 64
_DRAWN = 4
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class SklearnLearner:
    """Fit a copy of an estimator that has ``fit``, ``score_samples`` and ``sample``.

    A `GaussianMixture` or `BayesianGaussianMixture` of scikit-learn becomes a `Mixture` of normal laws; behind scalers
    in a ``Pipeline`` the same, in the units of the records. What others score and draw is wrapped: ``score_samples`` is
    the density, draws come from ``sample``, and a seed is set at every place that has one.

    Formal guarantees
    -----------------
    - Purity: an unfitted copy is fitted with one thread; every ``random_state`` in it, at any depth, is set from
      ``seed``, whatever the estimator came with, and for a draw from the draw's generator. Nothing is kept.
    - Records: double precision; a row with a NaN or an infinity is left out.
    - Sampling: exactly as many rows as asked for, not grouped by component.
    - Failure: `FitFailed`, with a text that holds no data. Warnings are dropped.
    - Density: for the two mixtures, alone or behind scalers, that of the law that is drawn from. Scores of a
      `BayesianGaussianMixture` are no density (they are means of logarithms over parameters): it is the mixture with
      the fitted weights, means and covariances, which is what its ``sample`` draws from.
    - Not promised: for other estimators, that draws follow the scores, that scores are normalised, or that an estimator
      with a cache or a generator hidden outside its attributes is a function of records and seed.

    Parameters
    ----------
    estimator
        An instance; a copy is kept. Steps of a ``Pipeline`` before the last may be StandardScaler, MinMaxScaler,
        MaxAbsScaler, RobustScaler or PCA without loss of columns; its ``memory`` is not used. Something without
        scikit-learn's ``get_params`` is copied as it is: give it unfitted.

    Raises
    ------
    InvalidParameter
        If the estimator is a class, lacks a method, cannot be copied, estimates by kernels (theory 9), or is a pipeline
        with other steps.

    Source: theory 6, 9; ``docs/estimators.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.mixture import GaussianMixture
    >>> learner = SklearnLearner(GaussianMixture(2, random_state=7))
    >>> learner
    SklearnLearner(GaussianMixture(n_components=2, random_state=7))
    >>> records = np.concatenate((np.linspace(-6, -4, 50), np.linspace(4, 6, 50)))
    >>> law = learner.fit(records, seed=0)
    >>> law.dimension, [round(weight, 3) for weight in law.weights]
    (1, [0.5, 0.5])

    """

    _estimator: Any = field(compare=False)
    cells: ClassVar[Cells] = "numbers"
    _digest: bytes

    def __init__(self, estimator: Any) -> None:  # noqa: ANN401 - any class with three methods
        check_estimator(estimator, drawn_by=None if isinstance(estimator, type) else split(estimator)[1])
        try:
            own = fresh_copy(estimator)
        except Exception:  # noqa: BLE001 - another library's object
            own = None
        if own is None:
            message = f"{type(estimator).__name__} cannot be copied: scikit-learn's clone and copy.deepcopy refuse it."
            raise InvalidParameter(message)
        _forget_places(own)
        object.__setattr__(self, "_estimator", own)
        object.__setattr__(self, "_digest", identity(own))

    def __repr__(self) -> str:
        return f"SklearnLearner({self._estimator!r})"

    @property
    def estimator(self) -> Any:  # noqa: ANN401 - any class with three methods
        """A copy of the estimator, unfitted."""
        return fresh_copy(self._estimator)

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        """Return the law fitted to the records that are finite: a `Mixture`, or a wrapper of the fitted estimator.

        Parameters
        ----------
        records
            Numbers, shape (n, d), or (n,) for d = 1. A row with a NaN or an infinity is left out.
        seed
            Of every generator in the estimator.

        Raises
        ------
        FitFailed
            If no row is usable, the estimator fails, or what it learnt cannot be scored at the records and drawn from.

        """
        rows = finite_rows(records, law=_LAW)
        if rows.size == 0:
            fail("no usable rows", law=_LAW)
        law, usable = None, False
        try:
            with quiet(), one_thread():
                law = self._law(rows, seed)
                usable = isinstance(law, Mixture) or _works(law, rows)
        except Exception:  # noqa: BLE001 - whatever it is, its text may quote data
            law = None
        name = type(self._estimator).__name__
        if law is None:
            fail(f"{name} does not take these records", law=_LAW)
        if not usable:
            fail(f"{name} cannot score its own records, or draws the same rows with every seed", law=_LAW)
        return law

    def _law(self, rows: _Floats, seed: int) -> Mixture | EstimatorLaw:
        estimator = fresh_copy(self._estimator)
        reseed(estimator, seed)
        with ambient_seed(SharedRandomness(seed).seed("ambient")):
            returned = estimator.fit(rows.copy())
        fitted = returned if callable(getattr(returned, "score_samples", None)) else estimator
        if is_made_of_records(fitted):
            raise ArithmeticError
        steps, last = split(fitted)
        before = None
        if steps:
            before = affine_map(steps, dimension=rows.shape[1])
            _require_same(before, steps, rows)
        if is_mixture(last):
            return _mixture(last, before)
        return EstimatorLaw(type(last).__name__, rows.shape[1], identity(fitted), fitted, before)


def _forget_places(estimator: Any) -> None:  # noqa: ANN401 - another library's object
    """Turn off the memory of pipelines: it keeps what blocks have fitted in files."""
    if is_scikit(estimator, "Pipeline"):
        estimator.memory = None
        for _, step in estimator.steps:
            _forget_places(step)


def _mixture(estimator: Any, before: AffineMap | None) -> Mixture:  # noqa: ANN401 - another library's object
    weights, means, covariances = parameters(estimator)
    if before is None:
        return as_law(weights, means, covariances)
    return as_law(weights, before.back(means), before.backward.T @ covariances @ before.backward)


def _require_same(before: AffineMap, steps: tuple[Any, ...], rows: _Floats) -> None:
    """Check the map against what the steps do: a later version of a scaler may do something else."""
    images = rows[:_LOOKED_AT]
    for step in steps:
        images = np.asarray(step.transform(images))
    scale = np.abs(images).max() + 1
    if not (np.abs(before.to(rows[:_LOOKED_AT]) - images) <= 1e-6 * scale).all():
        raise ArithmeticError


def _works(law: EstimatorLaw, rows: _Floats) -> bool:
    """Return whether the law has a density at its own records, and draws that depend on the seed."""
    first, second = (law.sample(_DRAWN, SharedRandomness("check").stream(at)) for at in range(2))
    scored = np.isfinite(law.log_density(rows[:_LOOKED_AT])).all()
    drawn = (
        np.isfinite(first).all() and np.isfinite(second).all() and not (np.sort(first, 0) == np.sort(second, 0)).all()
    )
    return bool(scored and drawn)
