"""What models draw follows the law they state, and the plan's errors are not too small.

Each test accepts the truth at a p-value above 1e-6 and rejects a law that is 10 % wrong in half of its cells below it.
Seeds are fixed; an assertion shows the one it used.
"""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from accord.marginals import Column, Domain, MarginalLearner, MarginalModel
from accord.randomness import SharedRandomness
from accord.testing import ReplayRandomness

RARE = 1e-6
DRAWS = 400_000

CASES: dict[str, tuple[Domain, dict[str, Any]]] = {
    "one table": (Domain([Column("a", 6), Column("b", 5)]), {}),
    "all cells": (Domain([Column("a", 30), Column("b", 4), Column("c", 3), Column("d", 3)]), {"rounds": 4}),
    "junction tree": (
        Domain([Column(str(c), 3) for c in range(6)]),
        {"rounds": 6, "max_cells": 100, "tree_cells": 100},
    ),
}


def model_of(case: str, *, seed: int) -> MarginalModel:
    domain, given = CASES[case]
    generator = SharedRandomness(seed).stream("data")
    codes = [generator.integers(0, domain.shape[0], 20_000)]
    for size in domain.shape[1:]:
        codes.append(np.where(generator.random(20_000) < 0.5, codes[-1] % size, generator.integers(0, size, 20_000)))
    learner = MarginalLearner(domain, epsilon=5, delta="1e-6", **given)
    model = learner.release(np.stack(codes, axis=1), randomness=ReplayRandomness(seed)).value
    assert isinstance(model, MarginalModel)
    return model


def law_of(model: MarginalModel) -> Any:
    shape = model.domain.shape
    cells = np.stack(np.unravel_index(np.arange(model.domain.cells), shape), axis=1)
    return np.exp(model.log_density(cells))


def p_value(records: Any, shape: tuple[int, ...], law: Any) -> float:
    """Of the chi-squared test, cells in order of probability put together until 20 are expected."""
    counts = np.bincount(np.ravel_multi_index(tuple(records.T), shape), minlength=law.size).astype(float)
    order = np.argsort(law)
    bins = np.floor(np.cumsum(law[order]) * len(records) / 20)
    groups = np.unique(bins, return_inverse=True)[1]
    expected = np.bincount(groups, weights=len(records) * law[order])
    observed = np.bincount(groups, weights=counts[order])
    return float(chi2.sf((((observed - expected) ** 2) / expected).sum(), len(expected) - 1))


def ten_percent_wrong(law: Any) -> Any:
    wrong = law * np.where(np.arange(law.size) % 2, 1.1, 1.0)
    return wrong / wrong.sum()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("case", CASES)
def test_independent_records_follow_the_stated_law(case: str, seed: int) -> None:
    model = model_of(case, seed=seed)
    law = law_of(model)
    records = model.sample(DRAWS, SharedRandomness(seed).stream("draws"))
    shape = model.domain.shape
    assert p_value(records, shape, law) > RARE, f"seed {seed}"
    assert p_value(records, shape, ten_percent_wrong(law)) < RARE, f"seed {seed}"


@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("case", CASES)
def test_rounded_records_keep_the_law_of_all_columns_together(case: str, seed: int) -> None:
    """Their tables vary less than independent records' do, so chi-squared is smaller than its law, never larger."""
    model = model_of(case, seed=seed)
    law = law_of(model)
    generator = SharedRandomness(seed).stream("draws")
    records = np.concatenate([model.rounded(DRAWS // 5, generator) for _ in range(15)])
    shape = model.domain.shape
    assert p_value(records, shape, law) > RARE, f"seed {seed}"
    assert p_value(records, shape, ten_percent_wrong(law)) < RARE, f"seed {seed}"


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_measured_tables_are_nearer_than_the_plan_says(seed: int) -> None:
    sizes = (9, 8, 7, 6)
    domain = Domain([Column(str(size), size) for size in sizes])
    generator = SharedRandomness(seed).stream("data")
    codes = np.stack([generator.integers(0, size, 30_000) for size in sizes], axis=1)
    codes[:, 1] = np.where(generator.random(30_000) < 0.5, codes[:, 0] % 8, codes[:, 1])
    learner = MarginalLearner(domain, epsilon=1, delta="1e-6")
    plan = learner.plan(30_000)
    assert plan.mode == "pairs"
    model = learner.release(codes, randomness=ReplayRandomness(seed)).value
    assert isinstance(model, MarginalModel)
    errors = []
    for pair in combinations(range(4), 2):
        truth = np.zeros((sizes[pair[0]], sizes[pair[1]]))
        np.add.at(truth, tuple(codes[:, list(pair)].T), 1 / len(codes))
        errors.append(float(np.abs(model.marginal(pair) - truth).sum() / 2))
    stated = float(np.mean([error.error for error in plan.errors if error.way == 2]))
    # Half as large would be too good: then noise would be missing.
    assert stated / 4 < float(np.mean(errors)) < stated, f"seed {seed}"


@pytest.mark.parametrize("seed", [8, 9])
def test_the_noise_of_the_full_table_is_what_the_plan_says(seed: int) -> None:
    """Where counts are large, nothing is cut off: the errors are the noise. Rejects a scale 10 % off."""
    domain = Domain([Column("a", 4000)])
    codes = np.repeat(np.arange(4000), 500)[:, None]
    learner = MarginalLearner(domain, epsilon="0.1", delta="1e-6")
    model = learner.release(codes, randomness=ReplayRandomness(seed)).value
    assert isinstance(model, MarginalModel)
    errors = len(codes) * model.marginal([0]) - 500
    scale = float(np.abs(errors - np.median(errors)).mean())
    # The mean of 4000 Laplace sizes has a standard deviation of scale / sqrt(4000); 5 of them are 8 %.
    assert abs(scale / 20 - 1) < 5 / math.sqrt(4000), f"seed {seed}"
