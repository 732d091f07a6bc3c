"""Sample complexities (theory 6, S6): certified sizes keep their promise, and the bounds behind them are bounds.

Failures at the certified b are far rarer than promised (Chernoff and McDiarmid are generous), so a count above the
promised one has probability below 1e-6. Seeds are fixed.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from accord.distributions import Categorical, Normal
from accord.errors import InvalidParameter
from accord.laws import kl_divergence, total_variation
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.learners._normal_accuracy import expected_kl, log_tail, records_for

SEED = 20261130


def divergences(*, dimension: int, records: int, runs: int) -> NDArray[np.float64]:
    """Return KL(fit || truth) of many fits."""
    generator = np.random.default_rng([SEED, dimension, records])
    truth = Normal(np.zeros(dimension), np.eye(dimension))
    learner = GaussianLearner()
    return np.array([kl_divergence(learner.fit(truth.sample(records, generator), seed=0), truth) for _ in range(runs)])


@pytest.mark.parametrize(("dimension", "records"), [(1, 12), (1, 200), (3, 30)])
def test_S6_mean_divergence_of_normal_fits_is_as_computed(dimension: int, records: int) -> None:
    sample = divergences(dimension=dimension, records=records, runs=4_000)
    mean, error = sample.mean(), sample.std() / math.sqrt(len(sample))
    claimed = expected_kl(records, dimension=dimension)
    assert abs(mean - claimed) < 5.5 * error
    assert abs(mean - 0.85 * claimed) > 5.5 * error
    assert abs(mean - 1.15 * claimed) > 5.5 * error


@pytest.mark.parametrize(("dimension", "records"), [(1, 12), (3, 30), (5, 1000)])
def test_tail_bound_holds_and_is_not_idle(dimension: int, records: int) -> None:
    sample = divergences(dimension=dimension, records=records, runs=1_500)
    for level in (0.5, 0.2, 0.05):
        place = float(np.quantile(sample, 1 - level))
        bound = math.exp(log_tail(place, records=records, dimension=dimension))
        assert bound >= level - 5.5 * math.sqrt(level / len(sample))
    assert log_tail(20 * float(sample.mean()), records=records, dimension=dimension) < math.log(1e-3)


def test_mean_divergence_agrees_on_both_branches() -> None:
    freedom = 2_000_001
    assert expected_kl(freedom, dimension=2) == pytest.approx(2.5 / freedom, rel=1e-5)
    assert expected_kl(200_000, dimension=2) == pytest.approx(2.5 / 200_000, rel=1e-4)
    assert expected_kl(2, dimension=2) == math.inf


@pytest.mark.parametrize(("dimension", "alpha", "beta"), [(1, 0.25, 0.1), (2, 0.3, 0.1)])
def test_L9_normal_fits_keep_the_promise(dimension: int, alpha: float, beta: float) -> None:
    records = GaussianLearner(dimension=dimension).sample_complexity(alpha, beta)
    generator = np.random.default_rng([SEED, dimension])
    factor = np.tril(np.ones((dimension, dimension)))
    truth = Normal(np.arange(dimension) * 1e3, factor @ factor.T)
    runs = 400
    fits = [GaussianLearner().fit(truth.sample(records, generator), seed=0) for _ in range(runs)]
    failures = sum(total_variation(fit, truth) >= alpha for fit in fits)
    assert failures <= beta * runs
    quarter = [GaussianLearner().fit(truth.sample(records // 12, generator), seed=0) for _ in range(runs)]
    assert sum(total_variation(fit, truth) >= alpha for fit in quarter) > beta * runs


@pytest.mark.parametrize("weights", [[1, 1], [1, 3], [1, 99], [5, 3, 1, 1]])
def test_L9_label_counts_keep_the_promise_exactly(weights: list[int]) -> None:
    labels = [f"level {i}" for i in range(len(weights))]
    truth = Categorical(labels, weights)
    learner = EmpiricalLearner(labels)
    alpha, beta = 0.2, 0.1
    records = learner.sample_complexity(alpha, beta)
    if len(weights) == 2:
        counts = np.arange(records + 1)
        error = np.abs((counts + 0.25) / (records + 0.5) - truth.probabilities[0])
        law = binom.pmf(counts, records, truth.probabilities[0])
        assert law[error >= alpha].sum() <= beta
        mean = float(law @ error)
        assert mean <= (0.5 * math.sqrt(records) + 0.25) / (records + 0.5)
    else:
        generator = np.random.default_rng(SEED)
        drawn = generator.multinomial(records, truth.probabilities, size=20_000)
        fitted = (drawn + 0.25) / (records + 0.25 * len(weights))
        error = 0.5 * np.abs(fitted - truth.probabilities).sum(axis=1)
        assert (error >= alpha).mean() <= beta


@pytest.mark.parametrize("block", [1, 5, 60])
@pytest.mark.parametrize("share", [0.0, 1e-4, 0.03, 0.5])
def test_S6_tuples_of_labels_stay_below_the_bound_exactly(block: int, share: float) -> None:
    records = 7
    learner = EmpiricalLearner(["no", "yes"])
    counts = np.arange(block + 1)
    fitted = (counts + 0.25) / (block + 0.5)
    law = binom.pmf(counts, block, share)
    tuples = np.arange(records + 1)
    apart = 0.5 * np.abs(
        binom.pmf(tuples[None, :], records, fitted[:, None]) - binom.pmf(tuples, records, share)[None, :]
    ).sum(axis=1)
    bound = learner.tuple_total_variation(records, block)
    assert float(law @ apart) <= bound
    affinity = np.sqrt(fitted * share) + np.sqrt((1 - fitted) * (1 - share))
    assert float(law @ (1 - affinity)) <= 1 - math.sqrt(block / (block + 0.5)) + 1 / (2 * block)


def test_S6_tuples_of_normals_stay_below_the_bound() -> None:
    records, block = 20, 100
    generator = np.random.default_rng(SEED)
    truth = Normal(np.zeros(1), np.eye(1))
    joint = Normal(np.zeros(records), np.eye(records))
    apart = []
    for _ in range(60):
        fit = GaussianLearner().fit(truth.sample(block, generator), seed=0)
        many = Normal(np.full(records, fit.mean[0]), np.eye(records) * fit.covariance[0][0])
        apart.append(total_variation(joint, many))
    bound = GaussianLearner(dimension=1).tuple_total_variation(records, block)
    assert np.mean(apart) < bound < 2 * np.mean(apart)


def test_complexities_are_monotone_and_refuse_what_they_cannot_state() -> None:
    learners: list[GaussianLearner | EmpiricalLearner] = [
        GaussianLearner(dimension=2),
        EmpiricalLearner(["a", "b", "c"]),
    ]
    for learner in learners:
        sizes = [learner.sample_complexity(alpha, 0.1) for alpha in (0.5, 0.1, 1e-3, 1e-6)]
        assert sizes == sorted(sizes)
        sizes = [learner.sample_complexity(0.1, beta) for beta in (0.5, 0.1, 1e-3, 1e-9)]
        assert sizes == sorted(sizes)
        for bad in (0, 1, -1, 2, math.nan):
            with pytest.raises(InvalidParameter):
                learner.sample_complexity(bad, 0.1)
    with pytest.raises(InvalidParameter, match="dimension"):
        GaussianLearner().sample_complexity(0.1, 0.1)
    assert records_for(0.999, 0.999, dimension=1) >= 2
