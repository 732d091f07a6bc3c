"""Run every certified row in full: releases through the public classes, at the planned n, on data of that class.

Prints how many releases succeeded (within alpha = 0.1 of the truth; no answer is a failure), the 95 % Clopper-Pearson
interval, the promise, and the ratio of n to the theorem's. ``python benchmarks/planning.py [ROW ...]``; rows: two,
sixteen, line, space. Fewer releases are made for the large rows; the count is printed.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import beta as beta_law

from accord.couplings import ShiftRounding
from accord.distributions import Normal
from accord.laws import total_variation
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.learning import PrivateLearner
from accord.privacy import NoAnswerType
from accord.randomness import SharedRandomness
from accord.theory import BlackBoxPrivateLearner
from accord.theory.planning import Plan, plan

ASKED: dict[str, Any] = {"alpha": "0.1", "beta": "0.1", "epsilon": 1, "delta": "1e-6"}


def labels(found: Plan, truth: Any, key: SharedRandomness) -> bool:
    learner = BlackBoxPrivateLearner(EmpiricalLearner(range(len(truth))), **ASKED, method="certified")
    data = key.stream("data").choice(len(truth), size=found.records, p=truth)
    value: Any = learner.release(data, shared=key).value
    if isinstance(value, NoAnswerType):
        return False
    return 0.5 * float(np.abs(np.array(value.probabilities) - truth).sum()) < 0.1


def normal(found: Plan, truth: Normal, key: SharedRandomness) -> bool:
    numbers = found.certificate.numbers
    learner = PrivateLearner(
        GaussianLearner(),
        epsilon=1,
        delta="1e-6",
        blocks=found.blocks,
        records=found.synthetic_records,
        draws=found.draws,
        coupling=ShiftRounding(dimension=numbers["dimension"], step=numbers["step"]),
    )
    value = learner.release(truth.sample(found.records, key.stream("data")), shared=key).value
    return not isinstance(value, NoAnswerType) and total_variation(value, truth) < 0.1


def run(name: str, learner: Any, truth: Any, release: Callable[[Plan, Any, SharedRandomness], bool], runs: int) -> None:
    found = plan(learner, **ASKED, method="certified")
    theorem = plan(learner, **ASKED)
    key = SharedRandomness(f"benchmark of planning: {name}")
    start = time.perf_counter()
    hits = sum(release(found, truth, key.child(number)) for number in range(runs))
    took = time.perf_counter() - start
    low = beta_law.ppf(0.025, hits, runs - hits + 1) if hits else 0.0
    high = beta_law.ppf(0.975, hits + 1, runs - hits) if hits < runs else 1.0
    print(
        f"{name}: n = {found.records} (theorem / certified = {theorem.records / found.records:.2g}); {hits} of {runs} "
        f"releases succeeded, 95 % interval {low:.3f} to {high:.3f}, promised 0.9; {took:.0f} s",
        flush=True,
    )


def main() -> None:
    factor = np.array([[2.0, 0, 0, 0, 0], [1, 3, 0, 0, 0], [0, 1, 0.5, 0, 0], [0, 0, 1, 1, 0], [5, 0, 0, 0, 10.0]])
    space = Normal([1.0, -2.0, 3.0, 100.0, 0.0], factor @ factor.T)
    steep = 1 / np.arange(1, 17)
    two, sixteen = EmpiricalLearner(range(2)), EmpiricalLearner(range(16))
    rows: dict[str, list[tuple[Any, ...]]] = {
        "two": [(f"2 labels, p = {p}", two, np.array([p, 1 - p]), labels, 300) for p in (0.5, 0.2, 0.02)],
        "line": [("normal on R", GaussianLearner(dimension=1), Normal([-7.0], [[math.pi]]), normal, 300)],
        "sixteen": [
            ("16 labels, uniform", sixteen, np.full(16, 1 / 16), labels, 20),
            ("16 labels, steep", sixteen, steep / steep.sum(), labels, 20),
        ],
        "space": [("normal on R^5", GaussianLearner(dimension=5), space, normal, 30)],
    }
    for name in sys.argv[1:] or rows:
        for row in rows[name]:
            run(*row)


if __name__ == "__main__":
    main()
