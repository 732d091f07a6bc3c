"""Choose directions and bins from a public model. Post-processing."""

import numpy as np
from numpy.typing import NDArray

from accord.core.shared import Generator
from accord.learning.density.refine._mixture_shape import NormalMixture, root_of
from accord.learning.density.refine._projections import BinnedProjections

__all__ = ["bins_about", "directions_of", "useful_bins"]

Floats = NDArray[np.float64]
_SAMPLE = 20_000
_FEWEST, _MOST = 10, 160
_MOST_AROUND = 300


def useful_bins(*, units: int, variance: float, components: int) -> int:
    """Return about how many bins keep most of what the records say, given the variance of the noise of a count.

    More bins lose less by rounding (about ``c / B^2``, c of the order of ``10 K^2``) and add
    ``B variance / n`` of noise.
    """
    best = (20.0 * components**2 * units / variance) ** (1 / 3)
    return int(min(max(best, _FEWEST), _MOST))


def directions_of(model: NormalMixture, *, components: int, full: bool, angles: int, generator: Generator) -> Floats:
    """Return directions a, shape (J, d), along which the model has variance 1.

    The columns. Between each two columns so many, at equal angles once the two are uncorrelated and of variance 1. With
    more than two columns, in coordinates in which the model has covariance 1: for one component sums and differences
    of two coordinates, which tell its covariance best; for several, directions all around, which tell what belongs
    together.
    """
    covariance = model.moments()[1]
    if not full:
        covariance = np.diag(np.diag(covariance))
    d = len(covariance)
    rows = list(np.diag(1 / np.sqrt(np.diag(covariance))))
    if angles == 0:
        return np.array(rows)
    pairs = [(i, j) for i in range(d) for j in range(i)]
    if components > 1 or d == 2:
        for i, j in pairs:
            inverse = np.linalg.inv(root_of(covariance[np.ix_([i, j], [i, j])]))
            for step in range(1, angles + 1):
                turn = np.pi * step / (angles + 1)
                row = np.zeros(d)
                row[[i, j]] = np.array([np.cos(turn), np.sin(turn)]) @ inverse
                rows.append(row)
    if d > 2:
        inverse = np.linalg.inv(root_of(covariance))
        if components == 1:
            rows.extend((inverse[i] + sign * inverse[j]) / np.sqrt(2) for i, j in pairs for sign in (-1, 1))
        else:
            around = generator.standard_normal((min(2 * d * (d + 1), _MOST_AROUND), d))
            rows.extend(around / np.linalg.norm(around, axis=1)[:, None] @ inverse)
    return np.array(rows)


def bins_about(
    model: NormalMixture, directions: Floats, *, bins: int, tails: int, wide: float, generator: Generator
) -> BinnedProjections:
    """Return bins that the model, made wider, fills evenly, and ``tails`` on either side that double in width.

    Parameters
    ----------
    wide
        How much of the bins goes to the model's covariance three times as wide.

    """
    far = int(_SAMPLE * wide)
    mean, covariance = model.moments()
    near = model.draw(_SAMPLE - far, generator)
    outer = mean + 3 * generator.standard_normal((far, len(mean))) @ root_of(covariance).T
    values = directions @ np.concatenate([near, outer]).T
    levels = np.linspace(0, 1, bins + 1)
    levels[0], levels[-1] = 0.25 / bins, 1 - 0.25 / bins
    middle = np.quantile(values, levels, axis=1).T
    reach = (middle[:, -1:] - middle[:, :1]) / 4
    steps = reach * (2.0 ** np.arange(1, tails + 1) - 1)
    inner = np.concatenate([middle[:, :1] - steps[:, ::-1], middle, middle[:, -1:] + steps], axis=1)
    return BinnedProjections(directions=directions, inner=np.ascontiguousarray(inner))
