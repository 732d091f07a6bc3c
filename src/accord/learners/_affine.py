"""Pipelines that scale and turn columns before an estimator, as affine maps that densities can be taken through."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter
from accord.learners._estimators import is_scikit

__all__ = ["AffineMap", "affine_map", "split"]

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
