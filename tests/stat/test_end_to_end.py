"""From data to a released model: it succeeds, and its error is as planned (theory S9, S11, S12).

n = 4000, epsilon = 1, delta = 1e-6, 100 blocks, tuples of 90 records, 32 draws. In 400 runs the model was within total
variation .1 of the truth 97 % of the time, the same for all places and scales (the coupling is affine equivariant).
"""

import numpy as np
import pytest

from accord import laws
from accord.distributions import Categorical, Normal
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.learning import PrivateLearner
from accord.privacy import NoAnswer
from accord.synthesis import sample_rows, synthesise


def total_variation(p: Normal, q: Normal) -> float:
    """Total variation of two laws on the line, by quadrature around the second."""
    centre, width = q.mean[0], q.covariance[0][0] ** 0.5
    grid = np.linspace(centre - 12 * width, centre + 12 * width, 40_001)
    difference = np.abs(np.exp(p.log_density(grid)) - np.exp(q.log_density(grid)))
    return float(0.5 * np.trapezoid(difference, grid))


def successes(*, place: float, scale: float, runs: int, seed: int) -> int:
    generator = np.random.default_rng(seed)
    private = PrivateLearner(GaussianLearner(), epsilon=1, delta="1e-6", blocks=100, records=90, draws=32)
    good = 0
    for _ in range(runs):
        value = private.release(generator.normal(place, scale, size=4000)).value
        if value is not NoAnswer:
            assert isinstance(value, Normal)
            good += total_variation(value, Normal(place, scale**2)) < 0.1
    return good


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("place", "scale"), [(0.0, 1.0), (1e6, 1e-3), (-3.0, 1e5)])
def test_S12_error_is_as_planned(place: float, scale: float) -> None:
    seed = 4100
    good = successes(place=place, scale=scale, runs=200, seed=seed)
    print(f"data seed {seed}: {good} of 200 at N({place}, {scale}^2)")  # noqa: T201 - the figure asked for
    # At the measured 97 % fewer than 180 have probability 1e-6; right in 80 % of runs would pass with 1e-4.
    assert good >= 180


def test_S12_error_is_as_planned_in_short() -> None:
    seed = 4200
    good = successes(place=1e6, scale=1e-3, runs=30, seed=seed)
    # Binomial(30, .97): fewer than 22 has probability 3e-7. A method that is right half of the time passes with 8e-3.
    assert good >= 22, (seed, good)


def test_a_wrong_scale_would_be_noticed() -> None:
    assert (
        total_variation(Normal(0.0, 1.0), Normal(0.0, 1.21)) < 0.1 < total_variation(Normal(0.3, 1.0), Normal(0.0, 1.0))
    )


def test_synthesis_of_two_columns_and_of_categories() -> None:
    generator = np.random.default_rng(5)
    covariance = np.array([[4.0, 3.0], [3.0, 9.0]])
    table = generator.multivariate_normal([10.0, -5.0], covariance, size=60_000)
    found = synthesise(table, learner=GaussianLearner(), epsilon=1, delta="1e-6")
    assert isinstance(found.model, Normal)
    # The tuple has about 178 records: six standard errors of a mean, and of a variance.
    assert np.abs((np.asarray(found.model.mean) - [10.0, -5.0]) / [2.0, 3.0]).max() < 6 / 178**0.5
    assert np.abs(np.diag(found.model.covariance) / [4.0, 9.0] - 1).max() < 6 * (2 / 178) ** 0.5
    assert sample_rows(found, rows=1000, seed=1).shape == (1000, 2)

    labels = generator.choice(np.array(["a", "b", "c"], dtype=object), p=[0.5, 0.3, 0.2], size=(30_000, 1))
    found = synthesise(labels, learner=EmpiricalLearner(["a", "b", "c"]), epsilon=1, delta="1e-6")
    assert isinstance(found.model, Categorical)
    error = 6 * (0.25 / found.plan.records) ** 0.5 + 1 / found.plan.records
    assert np.abs(np.asarray(found.model.probabilities) - [0.5, 0.3, 0.2]).max() < error


@pytest.mark.parametrize("columns", [3, 5])
def test_default_sizes_answer_for_several_columns(columns: int) -> None:
    generator = np.random.default_rng([31, columns])
    factor = np.tril(generator.normal(size=(columns, columns))) + 2 * np.eye(columns)
    truth = Normal(1e3 * generator.normal(size=columns), factor @ factor.T)
    table = truth.sample(40_000, generator)
    answers = []
    for seed in range(4):
        synthesis = synthesise(table, learner=GaussianLearner(), epsilon=1, delta="1e-6", seed=seed)
        if isinstance(synthesis.model, Normal):
            answers.append(laws.total_variation(synthesis.model, truth))
    assert len(answers) >= 3
    assert np.median(answers) < 0.3
