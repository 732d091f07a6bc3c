"""Statements about sampled votes, each wrong with a chance of at most 1e-9: law, independence, agreement."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, kolmogorov, ndtr, ndtri
from scipy.stats import beta

from accord.core.coupling import Distribution, Measure
from accord.core.shared import Generator
from accord.distributions import Categorical, Normal, OnALine, PointMass, Product, on_a_line
from accord.distributions.categorical import label_indices

__all__ = [
    "Closeness",
    "CouplingFault",
    "Scores",
    "check_agreement",
    "check_marginal",
    "check_unrelated",
    "closeness",
    "standard_scores",
]


class CouplingFault(AssertionError):
    """A coupling failed its suite; the text says which check."""


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


_TAIL = 1e-9
_LINE = 6.2  # two-sided 6e-10
_FAR_LINE = 8.0  # for thousands of lags at once
_MOST_POOLED = 400_000
_MOST_DENSITIES = 2_000_000
_BATCHES = 20
_SURE = 8.0  # standard errors, themselves known from twenty batches


# --- marginals --------------------------------------------------------------------------------------------------------


def check_marginal(scores: Scores, *, draws: int, records: int) -> None:
    """Refuse tuples whose records are not independent with their law, or whose draws are not independent."""
    table = scores.values.reshape(draws, records, -1)
    for column in range(table.shape[2]):
        own = table[:, :, column]
        total = own.sum(axis=1) / math.sqrt(records)
        series = {
            "the first record": own[:, 0],
            "the last record": own[:, -1],
            "all records": own.ravel()[:_MOST_POOLED],
        }
        if records > 1:
            spread = ndtri(np.clip(chdtr(records, np.square(own).sum(axis=1)), 1e-17, 1 - 2.0**-53))
            series |= {"the sum over a tuple": total, "the spread of a tuple": spread}
            _small((own[:, 1:] * own[:, :-1]).ravel(), scores.inflation, "neighbouring records are not independent")
        for values in (own[:, 0], total):
            _uncorrelated(values)
        for name, values in series.items():
            _standard_normal(values, scores.inflation, f"{name} does not follow the law")
        for other in range(column):
            product = (own * table[:, :, other]).ravel()
            if scores.inflation == 1.0:
                _small(product, 1.0, "columns do not depend on each other as in the law")


def _standard_normal(values: Floats, inflation: float, message: str) -> None:
    """Refuse by Kolmogorov's statistic, by the mean and by the mean square (Wilson and Hilferty)."""
    n = len(values)
    level = ndtr(np.sort(values))
    steps = np.arange(n + 1) / n
    distance = max(float((steps[1:] - level).max()), float((level - steps[:-1]).max()))
    mean = float(values.sum()) / math.sqrt(n)
    cube = (float(np.square(values).mean()) ** (1 / 3) - (1 - 2 / (9 * n))) / math.sqrt(2 / (9 * n))
    if kolmogorov(math.sqrt(n) * distance / inflation) < _TAIL or max(abs(mean), abs(cube)) > _LINE * inflation:
        raise CouplingFault(message)


def _small(products: Floats, inflation: float, message: str) -> None:
    """Refuse products of independent standard normal numbers that do not average to 0."""
    if abs(float(products.sum())) > _LINE * inflation * math.sqrt(len(products)) * 1.05:
        raise CouplingFault(message)


def _uncorrelated(values: Floats) -> None:
    """Refuse a correlation of draws at any distance."""
    n = len(values)
    transform = np.fft.rfft(values - values.mean())
    lags = np.fft.irfft(np.abs(transform) ** 2, n)[1 : n // 2 + 1]
    if np.abs(lags).max() > _FAR_LINE * math.sqrt(n) * float(np.square(values).mean()):
        raise CouplingFault("draws are not independent of each other")


def check_unrelated(first: Scores, second: Scores, *, draws: int) -> None:
    """Refuse tuples under two keys that have to do with each other."""
    tables = [scores.values.reshape(draws, -1) for scores in (first, second)]
    for place in (0, tables[0].shape[1] - 1):
        product = tables[0][:, place] * tables[1][:, place]
        _small(product, 1.0, "different keys give related votes")


# --- agreement --------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Closeness:
    """Total variation of two laws of tuples, and the agreement of a race (theory S1), each with its doubt."""

    total_variation: float
    doubt: float
    race: float
    race_doubt: float


def closeness(p: Distribution, q: Distribution, *, records: int, generator: Generator) -> Closeness:
    """Estimate both from the log densities of tuples that are drawn half from p and half from q."""
    size = max(400, min(40_000, _MOST_DENSITIES // records)) // (2 * _BATCHES) * _BATCHES
    ratios = [_log_ratios(p, q, law.sample(size * records, generator), records) for law in (p, q)]
    batches = [np.concatenate(pair) for pair in zip(*(np.split(row, _BATCHES) for row in ratios), strict=True)]
    distances = [float(np.abs(np.tanh(batch / 2)).mean()) for batch in batches]
    races = [_race(batch) for batch in batches]
    bias = 1.0 / len(batches[0])  # a race among so many points is that of the laws up to about one point's weight
    whole = np.concatenate(batches)
    return Closeness(
        float(np.abs(np.tanh(whole / 2)).mean()),
        _SURE * float(np.std(distances, ddof=1)) / math.sqrt(_BATCHES),
        _race(whole),
        _SURE * float(np.std(races, ddof=1)) / math.sqrt(_BATCHES) + bias,
    )


def _log_ratios(p: Distribution, q: Distribution, records: NDArray[Any], size: int) -> Floats:
    """Return ``log q - log p`` of each tuple."""
    with np.errstate(invalid="ignore"):
        logs = q.log_density(records).reshape(-1, size).sum(axis=1) - p.log_density(records).reshape(-1, size).sum(
            axis=1
        )
    return np.asarray(logs, dtype=np.float64)


def _race(log_ratio: Floats) -> float:
    """Return S1 for points drawn from the mean of two laws, from the logs of their ratio q / p.

    ``E_y 1 / E_x max(p(x) / p(y), q(x) / q(y))`` with densities with respect to the mean law; the maximum is the first
    term where ``log_ratio(x) <= log_ratio(y)``.
    """
    order = np.sort(log_ratio)
    p, q = 1 - np.tanh(order / 2), 1 + np.tanh(order / 2)
    below, above = np.cumsum(p) / len(order), (q.sum() - np.cumsum(q)) / len(order)
    with np.errstate(divide="ignore", invalid="ignore"):
        need = below / p + np.where(above > 0, above / q, 0.0)
    return float(np.where(np.isfinite(need), 1 / need, 0.0).mean())


def check_agreement(equal: int, draws: int, *, low: float, high: float, message: str) -> None:
    """Refuse a number of agreements that no probability between ``low`` and ``high`` explains (Clopper-Pearson)."""
    least = float(beta.ppf(_TAIL, equal, draws - equal + 1)) if equal else 0.0
    most = float(beta.ppf(1 - _TAIL, equal + 1, draws - equal)) if equal < draws else 1.0
    if most < low or least > high:
        raise CouplingFault(message)
