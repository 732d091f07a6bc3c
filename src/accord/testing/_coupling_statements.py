"""Statements about sampled votes, each wrong with a chance of at most 1e-9: law, independence, agreement."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, kolmogorov, ndtr, ndtri
from scipy.stats import beta

from accord.core.shared import Generator
from accord.distributions import Distribution
from accord.testing._coupling_fault import CouplingFault
from accord.testing._coupling_scores import Scores

__all__ = ["Closeness", "check_agreement", "check_marginal", "check_unrelated", "closeness"]

Floats = NDArray[np.float64]

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
