"""Among the laws that a learner can fit, find the one that explains released counts best: free of charge.

The candidates are made as by the parametric bootstrap: records drawn from the law at hand, fitted again by the learner.
They scatter about it in all directions in which the learner can move, and less the more records are drawn.
"""

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.coupling import Learner
from accord.core.shared import SharedRandomness
from accord.distributions import Distribution
from accord.distributions.protocol import OnALine
from accord.learners import ScipyLearner
from accord.learning.density.line_sketch import NoisyCells
from accord.learning.density.sketch_fit import fit_all

__all__ = ["cell_masses", "search"]

_Floats = NDArray[np.float64]

_CANDIDATES = 24
_FIRST, _MOST, _MOST_OF_QUICK = 100, 4000, 20_000
_GROWTH, _GROWTH_IF_KEPT = 1.5, 4.0
_MOST_ROUNDS = 24
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


def search(
    learner: Learner,
    opening: Distribution,
    cells: NoisyCells,
    *,
    centre: float,
    scale: float,
    shared: SharedRandomness,
    n_jobs: int | None = None,
) -> Distribution:
    """Return the best law found, which may be ``opening``: in rounds of candidates with ever more records.

    A law is as good as its masses are near to the counts: squared differences over the variance of noise and counting.

    Parameters
    ----------
    learner
        Any `Learner` of one column.
    opening
        A law of it, in the column's own units.
    cells
        Released.
    centre, scale
        Of the column: cells are in these units.
    shared
        Where the candidates come from.
    n_jobs
        Workers, as joblib counts them; changes nothing but the time.

    Source
    ------
    theory 7 (refine), M6; proof page ``docs/proofs/private-density.md``.

    """
    edges, present = centre + scale * cells.edges, cells.present
    law, size = opening, float(_FIRST)
    most = float(_MOST_OF_QUICK if isinstance(learner, ScipyLearner) else _MOST)
    masses = cell_masses(law, edges)
    for number in range(_MOST_ROUNDS):
        key = shared.child("round", number)
        drawn = [
            np.asarray(law.sample(int(size), key.stream("records", place)), dtype=np.float64)
            for place in range(_CANDIDATES)
        ]
        found = [each for each in fit_all(learner, drawn, shared=key, n_jobs=n_jobs) if each is not None]
        expected = present * np.maximum(masses, 0.0)
        variance = cells.noise**2 + expected
        options = [(law, masses), *[(each, cell_masses(each, edges)) for each in found]]
        losses = [float((((cells.counts - present * option[1]) ** 2) / variance).sum()) for option in options]
        best = int(np.argmin([loss if np.isfinite(loss) else np.inf for loss in losses]))
        law, masses = options[best]
        if size >= most:
            break
        size = min(most, size * (_GROWTH_IF_KEPT if best == 0 else _GROWTH))
    return law


def cell_masses(law: Distribution, edges: _Floats) -> _Floats:
    """Return the mass of each cell, those at the ends with all that lies beyond, shape (m,); NaN where a law fails.

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> cell_masses(Normal(0, 1), np.array([-1.0, 0.0, 5.0])).round(3).tolist()
    [0.5, 0.5]

    """

    def ask() -> _Floats:
        if isinstance(law, OnALine):
            ends = np.concatenate([[-np.inf], edges[1:-1], [np.inf]])
            return np.asarray(law.interval(ends[:-1], ends[1:]), dtype=np.float64)
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        points = middle[:, None] + half[:, None] * _NODES
        density = np.exp(law.log_density(points.reshape(-1, 1))).reshape(points.shape)
        return np.asarray((density @ _WEIGHTS) * half, dtype=np.float64)

    return alone(ask, failed=np.full(len(edges) - 1, np.nan))  # another's law that fails only loses
