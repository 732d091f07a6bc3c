"""Any estimator that can be fitted, scored and drawn from, as a learner."""

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.alone import ambient_seed
from accord.core.cells import Cells
from accord.core.coupling import Distribution, Measure
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator, SharedRandomness
from accord.distributions import Mixture, Rows
from accord.learners.estimators import (
    as_law,
    check_estimator,
    fresh_copy,
    identity,
    is_made_of_records,
    is_mixture,
    is_scikit,
    one_thread,
    parameters,
    quiet,
    reseed,
)
from accord.learners.tables import fail, finite_rows

__all__ = [
    "AffineMap",
    "EstimatorLaw",
    "SklearnLearner",
    "affine_map",
    "split",
]


_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
_SAME = 1e-6
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class AffineMap:
    """The map ``x -> (x - centre) @ forward`` of rows, with its inverse ``z -> centre + z @ backward``.

    Parameters
    ----------
    centre
        Shape (d,).
    forward, backward
        Shape (d, d), inverse to each other.

    """

    centre: _Floats
    forward: _Floats
    backward: _Floats

    def then(self, other: Self) -> Self:
        """Return the map that applies this one first."""
        return type(self)(
            self.centre + other.centre @ self.backward, self.forward @ other.forward, other.backward @ self.backward
        )

    def to(self, rows: _Floats) -> _Floats:
        """Return the images of rows, shape (n, d)."""
        images: _Floats = (rows - self.centre) @ self.forward
        return images

    def back(self, images: _Floats) -> _Floats:
        """Return the rows with these images, shape (n, d)."""
        rows: _Floats = self.centre + images @ self.backward
        return rows

    @property
    def log_volume(self) -> float:
        """By what the log density of an image must be raised to be that of the row."""
        return float(np.linalg.slogdet(self.forward)[1])


def split(estimator: Any) -> tuple[tuple[Any, ...], Any]:  # noqa: ANN401 - another library's object
    """Return the steps before the last one, and the last one, which scores and draws; refuse steps that bend.

    Steps are taken out of pipelines within pipelines; those that do nothing are left out.

    Raises
    ------
    InvalidParameter
        If a step is not known to be affine and one-to-one: the scores behind it are densities in another space.

    """
    steps = _flat(estimator)
    for step in steps[:-1]:
        _require_affine(step)
    return tuple(steps[:-1]), steps[-1]


def _flat(estimator: Any) -> list[Any]:  # noqa: ANN401 - another library's object
    if not is_scikit(estimator, "Pipeline"):
        return [estimator]
    last = len(estimator.steps) - 1
    idle = ("passthrough", None)
    return [
        part for at, (_, step) in enumerate(estimator.steps) if at == last or step not in idle for part in _flat(step)
    ]


def _require_affine(step: Any) -> None:  # noqa: ANN401 - another library's object
    kind = type(step).__name__
    if not is_scikit(step, *_SCALERS, "PCA"):
        raise InvalidParameter(
            f"the step {kind} of the Pipeline is not known to be affine: the scores of what comes after it are "
            f"densities in another space. Known are {', '.join(_SCALERS)} and PCA."
        )
    if getattr(step, "clip", False):
        raise InvalidParameter(f"the step {kind} of the Pipeline must not clip: that is not one-to-one.")
    if kind == "PCA" and step.n_components is not None:
        raise InvalidParameter(
            "the step PCA of the Pipeline must keep all columns (n_components=None): a law on fewer has no density."
        )


def affine_map(steps: tuple[Any, ...], *, dimension: int) -> AffineMap:
    """Return the map of fitted steps one after the other.

    Raises
    ------
    ArithmeticError
        If it is not one-to-one.

    """
    found = AffineMap(np.zeros(dimension), np.eye(dimension), np.eye(dimension))
    for step in steps:
        found = found.then(_one(step, dimension))
    if not all(np.isfinite(part).all() for part in (found.centre, found.forward, found.backward)):
        raise ArithmeticError
    return found


def _one(step: Any, dimension: int) -> AffineMap:  # noqa: ANN401 - another library's object
    none, one = np.zeros(dimension), np.ones(dimension)
    match type(step).__name__:
        case "StandardScaler":
            return _scaling(_or(step.mean_ if step.with_mean else None, none), _or(step.scale_, one))
        case "RobustScaler":
            return _scaling(_or(step.center_, none), _or(step.scale_, one))
        case "MaxAbsScaler":
            return _scaling(none, step.scale_)
        case "MinMaxScaler":
            unit = 1 / step.scale_
            return _scaling(step.data_min_ - step.feature_range[0] * unit, unit)
        case _:
            return _rotation(step, dimension)


def _or(value: Any, otherwise: _Floats) -> _Floats:  # noqa: ANN401 - a scaler's attribute, None where it is not used
    return otherwise if value is None else np.asarray(value, dtype=np.float64)


def _scaling(centre: _Floats, unit: _Floats) -> AffineMap:
    if not (unit != 0).all():
        raise ArithmeticError
    return AffineMap(centre, np.diag(1 / unit), np.diag(unit))


def _rotation(step: Any, dimension: int) -> AffineMap:  # noqa: ANN401 - another library's object
    axes = np.asarray(step.components_, dtype=np.float64)
    if axes.shape != (dimension, dimension):
        raise ArithmeticError
    unit = np.sqrt(step.explained_variance_) if step.whiten else np.ones(dimension)
    if not (unit > _SAME * unit.max()).all():
        raise ArithmeticError
    return AffineMap(np.asarray(step.mean_, dtype=np.float64), axes.T / unit, unit[:, None] * axes)


_SEEDS = 1 << 32
_MOST_CALLS = 100


@final
@dataclass(frozen=True, slots=True)
class EstimatorLaw:
    """A law with a density on R^d, read through ``score_samples`` and ``sample`` of a fitted estimator.

    Formal guarantees
    -----------------
    - Value: the estimator is never changed; laws with equal digests are equal.
    - Sampling: exactly ``size`` rows in random order, a function of the generator: every generator inside a copy of the
      estimator, and the global ones, are seeded from it.
    - Density: -inf at a row that is not finite, and where the estimator gives no number; never NaN.
    - Not promised: that draws follow the density, or are independent. That is the estimator's.

    Parameters
    ----------
    name
        The estimator's class.
    dimension
        d.
    digest
        What stands for the estimator in comparisons.
    estimator
        Fitted; nobody else may hold it.
    before
        The map from records to what the last step of a pipeline sees.

    """

    name: str
    dimension: int
    digest: bytes = field(repr=False)
    estimator: Any = field(repr=False, compare=False)
    before: AffineMap | None = field(repr=False, compare=False)

    @property
    def measure(self) -> Measure:
        """Lebesgue measure on R^d."""
        return Measure.LEBESGUE

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` rows, shape (size, d).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read for a seed, and for an order.

        """
        count = _check.integer("size", size, least=0)
        parts: list[_Floats] = [np.zeros((0, self.dimension))]
        for calls in range(_MOST_CALLS):
            missing = count - sum(map(len, parts))
            if missing <= 0:
                break
            parts.append(self._draw(missing + 8 * calls, int(generator.integers(_SEEDS))))
        rows = np.concatenate(parts)
        if len(rows) < count:
            raise InvalidParameter(f"sample of {self.name} gives fewer rows than it was asked for.")
        mixed = rows[generator.permutation(len(rows))[:count]]
        records: Rows = mixed if self.before is None else self.before.back(mixed)
        return records

    def _draw(self, size: int, seed: int) -> _Floats:
        estimator = copy.deepcopy(self.estimator)
        reseed(estimator, seed)
        last = split(estimator)[1]
        with quiet(), ambient_seed(seed):
            own = {"random_state": seed} if "random_state" in _arguments(last.sample) else {}
            drawn = last.sample(size, **own)
        rows = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn, dtype=np.float64)
        if rows.ndim == 1 and self.dimension == 1:
            rows = rows[:, None]
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise InvalidParameter(f"sample of {self.name} must give one row for each draw, with the records' columns.")
        return rows

    def log_density(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log density at each record, shape (n,).

        Parameters
        ----------
        x
            Shape (n, d); (n,) is accepted for d = 1.

        """
        rows = self._rows(x)
        density = np.full(len(rows), -np.inf)
        usable = np.isfinite(rows).all(axis=1)
        if not usable.any():
            return density
        with quiet(), ambient_seed(0):
            scores = np.asarray(self.estimator.score_samples(rows[usable]), dtype=np.float64)
        if scores.shape != (int(usable.sum()),):
            raise InvalidParameter(f"score_samples of {self.name} must give one number for each row.")
        volume = 0.0 if self.before is None else self.before.log_volume
        density[usable] = np.where(np.isfinite(scores), scores + volume, -np.inf)
        return density

    def _rows(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        try:
            rows = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            rows = np.zeros((0, 0, 0))
        if rows.ndim == 1 and (self.dimension == 1 or rows.size == 0):
            rows = rows.reshape(-1, self.dimension)
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise InvalidParameter(f"records must be numbers of shape (n, {self.dimension}).")
        return rows


def _arguments(function: Any) -> frozenset[str]:  # noqa: ANN401 - another library's method
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return frozenset()


_LAW = "law"
_LOOKED_AT = 64
_DRAWN = 4


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
        _check.store(self, _estimator=own, _digest=identity(own))

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
