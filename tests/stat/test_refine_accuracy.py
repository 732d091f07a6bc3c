"""How near refined models come to the truth, beside the same fit without privacy on the same records.

Keys are fixed and printed by a failing assertion. Each bound is several times what was seen, so that the secret noise
breaks it with a chance below 1e-6 (an error is at least twice its median in the bounds below, and its tail is that of
a norm of normal noise); and the opening model, or a law a tenth off, is rejected by the same bound.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.density.refine import StatisticsRefiner
from accord.distributions import Distribution, Mixture, Normal
from accord.learners import GaussianLearner
from accord.randomness import SharedRandomness

Floats = NDArray[np.float64]


def error(found: Distribution, truth: Normal) -> float:
    """The root of half the Kullback-Leibler divergence of one normal law from another."""
    assert isinstance(found, Normal)
    inverse = np.linalg.inv(np.array(truth.covariance))
    covariance, shift = np.array(found.covariance), np.array(found.mean) - np.array(truth.mean)
    logs = [float(np.linalg.slogdet(np.array(law.covariance))[1]) for law in (found, truth)]
    divergence = np.trace(inverse @ covariance) - len(shift) + shift @ inverse @ shift + logs[1] - logs[0]
    return math.sqrt(max(float(divergence), 0.0) / 4)


def variation(found: Distribution, truth: Distribution) -> float:
    """Total variation on the line, on a grid far finer than the laws."""
    grid = np.linspace(-12, 12, 12_001)[:, None]
    gap = np.abs(np.exp(found.log_density(grid)) - np.exp(truth.log_density(grid)))
    return 0.5 * float(gap.sum()) * 24 / 12_000


@pytest.mark.parametrize("key", [1, 2, 3])
@pytest.mark.parametrize(("units", "bound"), [(10_000, 0.04), (100_000, 0.01)])
def test_a_normal_law_on_the_line(key: int, units: int, bound: float) -> None:
    truth = Normal(3.0, 4.0)
    records = truth.sample(units, SharedRandomness(key).stream("data"))
    opening = Normal(4.0, 9.0)
    found = StatisticsRefiner(epsilon="0.5", delta="1e-6").refine(opening, records, units=units).model
    assert error(found, truth) < bound, key
    assert error(opening, truth) > bound
    assert error(Normal(3.2, 4.4), truth) > bound


@pytest.mark.parametrize("key", [1, 2])
def test_a_normal_law_on_five_columns_that_are_nearly_collinear(key: int) -> None:
    shape = SharedRandomness(key).stream("shape").standard_normal((5, 5))
    truth = Normal(np.arange(5.0), shape @ shape.T + 0.05 * np.eye(5))
    records = truth.sample(100_000, SharedRandomness(key).stream("data"))
    opening = Normal(np.array(truth.mean) + 0.4 * shape[:, 0], 1.5 * np.array(truth.covariance))
    found = StatisticsRefiner(epsilon="0.5", delta="1e-6").refine(opening, records, units=100_000).model
    plain = GaussianLearner().fit(records, seed=0)
    assert error(found, truth) < 5 * error(plain, truth), key
    assert error(found, truth) < 0.03, key
    assert error(Normal(truth.mean, 1.1 * np.array(truth.covariance)), truth) > 0.03


MIXTURES = [
    Mixture([Normal(-1.5, 1.0), Normal(2.0, 0.5)], [1, 1]),
    Mixture([Normal(-3.0, 0.36), Normal(0.0, 1.0), Normal(2.5, 0.64)], [3, 4, 3]),
]


@pytest.mark.parametrize("truth", MIXTURES)
def test_mixtures_on_the_line(truth: Mixture) -> None:
    records = truth.sample(100_000, SharedRandomness(4).stream("data"))
    opening = Normal(0.5, 16.0)
    refiner = StatisticsRefiner(epsilon="0.5", delta="1e-6", components=len(truth.components))
    found = refiner.refine(opening, records, units=100_000, shared=SharedRandomness(4)).model
    assert variation(found, truth) < 0.015
    assert variation(opening, truth) > 0.2
    moved = Mixture(
        [Normal(part.mean[0] + 0.1, part.covariance[0][0]) for part in truth.components if isinstance(part, Normal)],
        truth.weights,
    )
    assert variation(moved, truth) > 0.015


def test_a_heavy_tail_that_the_opening_knows_nothing_of() -> None:
    truth = Mixture([Normal(0.0, 1.0), Normal(4.0, 16.0), Normal(30.0, 400.0)], [80, 15, 5])
    records = truth.sample(200_000, SharedRandomness(6).stream("data"))
    refiner = StatisticsRefiner(epsilon="0.5", delta="1e-6", components=4)
    found = refiner.refine(Normal(0.2, 1.5), records, units=200_000, shared=SharedRandomness(6)).model
    assert isinstance(found, Mixture)
    inner, outer = found.interval([-2.0, 10.0], [2.0, 200.0])
    true_inner, true_outer = truth.interval([-2.0, 10.0], [2.0, 200.0])
    assert abs(inner - true_inner) < 0.02
    assert abs(outer - true_outer) < 0.1 * true_outer


def test_two_groups_in_the_plane() -> None:
    truth = Mixture([Normal([-2, 0], [[1, 0.8], [0.8, 1]]), Normal([2, 1], [[1, -0.5], [-0.5, 1]])], [2, 1])
    records = truth.sample(50_000, SharedRandomness(8).stream("data"))
    refiner = StatisticsRefiner(epsilon="0.5", delta="1e-6", components=2)
    opening = Normal([0.5, 0.5], [[6, 0], [0, 3]])
    found = refiner.refine(opening, records, units=50_000, shared=SharedRandomness(8)).model
    fresh = truth.sample(100_000, SharedRandomness(9).stream("fresh"))
    loss = float((truth.log_density(fresh) - found.log_density(fresh)).mean())
    assert loss < 0.02
    assert float((truth.log_density(fresh) - opening.log_density(fresh)).mean()) > 0.5
