"""Refined models against the same fit without privacy, on the same records; on one core.

    python benchmarks/refine.py [--runs 10] [--epsilon 0.5] [--large]

Half of a budget of epsilon 1 is usual for refining. Each line: the median error of both over the runs, the ratio, and
seconds of the private one. The error of normal laws is the root of half the divergence; of mixtures on the line total
variation by quadrature; in the plane and beyond the loss of log likelihood on fresh records. The opening model is off
by a fraction of its standard deviation and too wide. ``--large`` shows that the cost is linear up to 10^7 records, and
the peak memory.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import math
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from accord.density.refine import StatisticsRefiner
from accord.distributions import Distribution, Mixture, Normal
from accord.learners import GaussianLearner

DELTA = "5e-7"
GRID = np.linspace(-20, 40, 60_001)[:, None]


def divergence(found: Any, truth: Normal) -> float:
    inverse = np.linalg.inv(np.array(truth.covariance))
    covariance, shift = np.array(found.covariance), np.array(found.mean) - np.array(truth.mean)
    logs = [float(np.linalg.slogdet(np.array(law.covariance))[1]) for law in (found, truth)]
    total = np.trace(inverse @ covariance) - len(shift) + shift @ inverse @ shift + logs[1] - logs[0]
    return math.sqrt(max(float(total), 0.0) / 4)


def variation(found: Any, truth: Distribution) -> float:
    gap = np.abs(np.exp(found(GRID)) - np.exp(truth.log_density(GRID)))
    return 0.5 * float(gap.sum()) * float(GRID[1, 0] - GRID[0, 0])


def plain_mixture(records: Any, *, components: int, seed: int) -> GaussianMixture:
    """The maximum of likelihood: run to its end, from two starts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GaussianMixture(components, tol=1e-6, max_iter=2000, n_init=2, random_state=seed).fit(records)


def report(title: str, runs: int, one: Callable[[int], tuple[float, float, float]]) -> None:
    private, plain, seconds = np.median([one(run) for run in range(runs)], axis=0)
    print(f"{title:58s} {private:9.5f} {plain:9.5f} {private / plain:7.2f}x {seconds:8.2f} s", flush=True)


def timed(refiner: Any, opening: Distribution, records: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    found = refiner.refine(opening, records, units=len(records)).model
    return found, time.perf_counter() - start


def normals(runs: int, epsilon: str) -> None:
    for size in (10_000, 100_000, 1_000_000):
        truth = Normal(3.0, 4.0)

        def one(run: int, size: int = size, truth: Normal = truth) -> tuple[float, float, float]:
            records = truth.sample(size, np.random.default_rng(run))
            refiner = StatisticsRefiner(epsilon=epsilon, delta=DELTA)
            found, seconds = timed(refiner, Normal(3.6, 9.0), records)
            return divergence(found, truth), divergence(GaussianLearner().fit(records, seed=0), truth), seconds

        report(f"normal on R, n = {size}", runs, one)

    def five(run: int) -> tuple[float, float, float]:
        generator = np.random.default_rng(run)
        shape = generator.standard_normal((5, 5))
        truth = Normal(generator.standard_normal(5), shape @ shape.T + 0.1 * np.eye(5))
        records = truth.sample(100_000, generator)
        opening = Normal(np.array(truth.mean) + 0.4 * shape[:, 0], 1.5 * np.array(truth.covariance))
        found, seconds = timed(StatisticsRefiner(epsilon=epsilon, delta=DELTA), opening, records)
        return divergence(found, truth), divergence(GaussianLearner().fit(records, seed=0), truth), seconds

    report("normal on R^5, n = 100000", runs, five)


def line_mixtures(runs: int, epsilon: str) -> None:
    laws = {
        "2 normals": Mixture([Normal(-1.5, 1.0), Normal(2.0, 0.5)], [1, 1]),
        "3 normals": Mixture([Normal(-3.0, 0.36), Normal(0.0, 1.0), Normal(2.5, 0.64)], [3, 4, 3]),
        "3 normals, a heavy tail": Mixture([Normal(0.0, 1.0), Normal(4.0, 9.0), Normal(12.0, 36.0)], [80, 15, 5]),
    }
    for title, truth in laws.items():
        count = len(truth.components)

        def one(run: int, truth: Mixture = truth, count: int = count) -> tuple[float, float, float]:
            records = truth.sample(100_000, np.random.default_rng(run))
            spread = float(np.quantile(records, 0.75) - np.quantile(records, 0.25)) / 1.35
            opening = Normal(float(np.median(records)) + 0.3 * spread, 2 * spread**2)
            found, seconds = timed(StatisticsRefiner(epsilon=epsilon, delta=DELTA, components=count), opening, records)
            plain = plain_mixture(records, components=count, seed=run)
            return variation(found.log_density, truth), variation(plain.score_samples, truth), seconds

        report(f"{title} on R, n = 100000", min(runs, 5), one)


def space_mixtures(runs: int, epsilon: str) -> None:
    for dimension, count in ((2, 3), (5, 4)):

        def one(run: int, dimension: int = dimension, count: int = count) -> tuple[float, float, float]:
            generator = np.random.default_rng(run)
            parts = []
            for _ in range(count):
                shape = generator.standard_normal((dimension, dimension)) / math.sqrt(dimension)
                parts.append(
                    Normal(2.5 * generator.standard_normal(dimension), shape @ shape.T + 0.2 * np.eye(dimension))
                )
            truth = Mixture(parts, 1 + generator.random(count))
            records, fresh = truth.sample(100_000, generator), truth.sample(100_000, generator)
            mean, covariance = records.mean(axis=0), np.cov(records.T)
            opening = Normal(mean + 0.3 * np.sqrt(np.diag(covariance)), 1.5 * covariance)
            found, seconds = timed(StatisticsRefiner(epsilon=epsilon, delta=DELTA, components=count), opening, records)
            plain = plain_mixture(records, components=count, seed=run)
            best = float(truth.log_density(fresh).mean())
            return best - float(found.log_density(fresh).mean()), best - float(plain.score(fresh)), seconds

        report(f"{count} normals on R^{dimension}, n = 100000 (loss in nats)", min(runs, 5), one)


def large(epsilon: str) -> None:
    print("\nseconds by number of records (StatisticsRefiner)")
    for dimension, count in ((1, 8), (5, 1)):
        for size in (100_000, 1_000_000, 10_000_000):
            records = np.random.default_rng(1).standard_normal((size, dimension))
            opening = Normal(np.full(dimension, 0.2), 1.5 * np.eye(dimension))
            _, seconds = timed(StatisticsRefiner(epsilon=epsilon, delta=DELTA, components=count), opening, records)
            print(f"  d = {dimension}, K = {count}, n = {size:9d}: {seconds:7.2f} s", flush=True)
            del records
    print(f"peak memory, records included: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epsilon", default="0.5")
    parser.add_argument("--large", action="store_true")
    chosen = parser.parse_args()
    print(f"epsilon {chosen.epsilon}, delta {DELTA}; medians of up to {chosen.runs} runs")
    print(f"{'':58s} {'private':>9s} {'plain':>9s} {'ratio':>8s}")
    for task in (normals, line_mixtures, space_mixtures):
        task(chosen.runs, chosen.epsilon)
    if chosen.large:
        large(chosen.epsilon)


if __name__ == "__main__":
    main()
