"""Records of a law as standard normal scores: independent N(0, 1) numbers if and only if the law is right."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from accord.core.shared import Generator
from accord.distributions import Categorical, Distribution, Measure, Normal, OnALine, PointMass, Product, on_a_line
from accord.distributions.categorical import label_indices

__all__ = ["Scores", "standard_scores"]

Floats = NDArray[np.float64]

_REFERENCE = 4  # times as many records of the law itself, where nothing else is known of it
_MOST_REFERENCE = 1_000_000


@final
@dataclass(frozen=True, slots=True)
class Scores:
    """Scores and how sure they are.

    Parameters
    ----------
    values
        Shape (n, c): independent standard normal numbers under the law, column by column.
    inflation
        By which factor errors grow because the law was known from a sample only; 1 if it was known exactly.

    """

    values: Floats
    inflation: float = 1.0


def standard_scores(law: Distribution, records: NDArray[Any], generator: Generator) -> Scores:
    """Return the scores of records of shape (n, d).

    By distribution functions (with ties broken at random) on a line and for labels, by whitening for normal laws,
    factor by factor for products; else by ranks of each column and of the density in a sample of the law.
    """
    if type(law) is Product:
        parts = [
            standard_scores(factor, records[:, first:last], generator)
            for factor, (first, last) in zip(law.factors, law.spans, strict=True)
        ]
        values = np.concatenate([part.values for part in parts], axis=1)
        return Scores(values, max(part.inflation for part in parts))
    if type(law) is Normal and law.dimension > 1:
        centred = _floats(records) - np.array(law.mean)
        return Scores(np.linalg.solve(law.cholesky, centred.T).T)
    levels = _levels(law, records, generator)
    return _sampled(law, records, generator) if levels is None else Scores(_normal(levels)[:, None])


def _levels(law: Distribution, records: NDArray[Any], generator: Generator) -> Floats | None:
    """Return the randomised distribution function at each record, uniform under the law; None if it is not known."""
    ties = generator.random(len(records))
    if type(law) is Categorical:
        index = label_indices(law.categories, records[:, 0])
        sums = np.concatenate([[0.0], np.cumsum(law.probabilities)])
        return np.where(index >= 0, sums[index] + ties * (sums[index + 1] - sums[index]), 0.0)
    if type(law) is PointMass and law.vector is None:
        return np.where(np.exp(law.log_mass(records)) > 0, ties, 0.0)
    line = on_a_line(law)
    if line is None:
        return None
    values = _floats(records)[:, 0]
    return np.asarray(line.cdf(values)) - ties * _masses(line, records)


def _masses(law: OnALine, records: NDArray[Any]) -> Floats:
    if law.measure is Measure.LEBESGUE:
        return np.zeros(len(records))
    mass = getattr(law, "log_mass", law.log_density)
    return np.exp(np.asarray(mass(records), dtype=np.float64))


def _sampled(law: Distribution, records: NDArray[Any], generator: Generator) -> Scores:
    size = min(_REFERENCE * len(records), _MOST_REFERENCE)
    reference = np.sort(_features(law, law.sample(size, generator)), axis=0)
    found = _features(law, records)
    columns = []
    for known, values in zip(reference.T, found.T, strict=True):
        low, high = np.searchsorted(known, values, side="left"), np.searchsorted(known, values, side="right")
        columns.append(_normal((low + (high - low + 1) * generator.random(len(values))) / (size + 1)))
    return Scores(np.stack(columns, axis=1), float(np.sqrt(1 + len(records) / size)))


def _features(law: Distribution, records: NDArray[Any]) -> Floats:
    """Return the columns, their sums with changing signs, and the log density, shape (n, d + 2)."""
    table = _floats(records)
    spread = np.abs(table).max(axis=0) + 1e-300
    mixed = (table / spread * np.where(np.arange(table.shape[1]) % 2, -1.0, 1.0)).sum(axis=1)
    return np.column_stack([table, mixed, law.log_density(records)])


def _floats(records: NDArray[Any]) -> Floats:
    return np.asarray(records, dtype=np.float64)


def _normal(levels: Floats) -> Floats:
    return np.asarray(ndtri(np.clip(levels, 1e-17, 1 - 2.0**-53)), dtype=np.float64)
