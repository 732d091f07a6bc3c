"""PrivateDensity against the same estimator without privacy, and against a private baseline that is told bounds.

    python benchmarks/private_density.py [--data DIR] [--runs 10] [--only NAME]

At epsilon 1, delta 1e-6. Each row: the median error of runs, that of the same estimator fitted to the records, their
ratio, and the ratio of the baseline. Errors are total variation: to the true law by quadrature, or to the records on 50
bins (40 and 20 x 20 for several columns). DIR holds flights.parquet (columns arr_delay, air_time) and diamonds.parquet;
without it those rows are left out. The baseline (CoinPress-style: five rounds of clipped noisy moments; for other
families the estimator fitted to a noisy histogram of 100 bins) is given bounds, which PrivateDensity does not need.
Then how often there is an answer, CPU seconds and memory for 10^5, 10^6 and 10^7 records, and the peak memory.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import itertools
import math
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.stats as st
from sklearn.mixture import GaussianMixture

from accord import PrivateDensity
from accord.distributions import Distribution, Mixture, Normal
from accord.errors import NothingReleased
from accord.learners import GaussianLearner, ScipyLearner, SklearnLearner

EPSILON, DELTA = 1, "1e-6"
RHO = 0.0174  # zCDP that implies (1, 1e-6)-DP
Table = Any


# --- errors -----------------------------------------------------------------------------------------------------------


def on_line(density: Callable[[Table], Table], low: float, high: float) -> Callable[[Distribution], float]:
    """Total variation to a density on R by quadrature."""
    grid = np.linspace(low, high, 40_001)
    true, step = density(grid), grid[1] - grid[0]
    return lambda law: 0.5 * float(np.abs(np.exp(law.log_density(grid[:, None])) - true).sum() * step)


def in_space(true: Distribution, generator: np.random.Generator) -> Callable[[Distribution], float]:
    """Total variation to a law on R^d from 200,000 draws of it."""
    drawn = true.sample(200_000, generator)
    logs = true.log_density(drawn)
    return lambda law: float(np.maximum(0.0, 1 - np.exp(law.log_density(drawn) - logs)).mean())


def in_bins(column: Table, low: float, high: float) -> Callable[[Distribution], float]:
    """Total variation to records on 50 bins, the law's own mass beyond the ends added to the end bins."""
    edges = np.linspace(low, high, 51)
    found = np.bincount(np.clip(((column - low) / (high - low) * 50).astype(int), 0, 49), minlength=50) / len(column)
    ends = np.concatenate([[-np.inf], edges[1:-1], [np.inf]])
    return lambda law: 0.5 * float(np.abs(law.interval(ends[:-1], ends[1:]) - found).sum())  # type: ignore[attr-defined]


def in_margins(records: Table, bounds: list[tuple[float, float]]) -> tuple[Callable[[Distribution], float], ...]:
    """Mean total variation on 40 bins a column, and on 20 x 20 for two columns, from as many draws as 8 tables."""

    def codes(table: Table, column: int, bins: int) -> Table:
        low, high = bounds[column]
        return np.clip(((table[:, column] - low) / (high - low) * bins).astype(int), 0, bins - 1)

    def margins(table: Table) -> tuple[list[Table], list[Table]]:
        d = len(bounds)
        one = [np.bincount(codes(table, c, 40), minlength=40) / len(table) for c in range(d)]
        two = [
            np.bincount(codes(table, a, 20) * 20 + codes(table, b, 20), minlength=400) / len(table)
            for a, b in itertools.combinations(range(d), 2)
        ]
        return one, two

    true = margins(records)

    def error(which: int) -> Callable[[Distribution], float]:
        def measure(law: Distribution) -> float:
            found = margins(law.sample(8 * len(records), np.random.default_rng(0)))[which]
            return float(np.mean([0.5 * np.abs(a - b).sum() for a, b in zip(found, true[which], strict=True)]))

        return measure

    return error(0), error(1)


# --- the baseline that is told bounds ---------------------------------------------------------------------------------


def noisy_moments(records: Table, low: Table, high: Table, rho: float, generator: np.random.Generator) -> Normal:
    """Mean and covariance of records clipped to a box, with Gaussian noise (zCDP ``rho``), made positive definite."""
    n, d = records.shape
    centre, half = (low + high) / 2, (high - low) / 2
    scaled = (np.clip(records, low, high) - centre) / half
    rows = np.concatenate(
        [scaled, np.stack([scaled[:, i] * scaled[:, j] for i in range(d) for j in range(i + 1)], 1)], 1
    )
    sigma = 2 * math.sqrt(rows.shape[1]) / n / math.sqrt(2 * rho)
    noisy = rows.mean(axis=0) + sigma * generator.standard_normal(rows.shape[1])
    mean, second = noisy[:d], np.zeros((d, d))
    second[np.tril_indices(d)] = noisy[d:]
    covariance = second + np.tril(second, -1).T - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    covariance = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    return Normal(centre + half * mean, covariance * np.outer(half, half))


def told_normal(records: Table, low: Table, high: Table, generator: np.random.Generator) -> Distribution:
    """Five rounds: the box that was told, then four deviations about what came out, half of the budget on the last.

    To the deviations is added what the noise of the round may hide.
    """
    n, d = records.shape
    for part in (1 / 8, 1 / 8, 1 / 8, 1 / 8, 1 / 2):
        found = noisy_moments(records, low, high, RHO * part, generator)
        noise = 2 * math.sqrt(d * (d + 3) / 2) / n / math.sqrt(2 * RHO * part) * (high - low) / 2
        hidden = np.diag(np.array(found.covariance)) + 3 * noise * (high - low) / 2
        mean, spread = np.array(found.mean), 4 * (np.sqrt(hidden) + noise)
        low, high = np.maximum(low, mean - spread), np.minimum(high, mean + spread)
    return found


def told_histogram(
    learner: Any, column: Table, low: float, high: float, generator: np.random.Generator
) -> Distribution:
    """The estimator fitted to 100,000 draws from a noisy histogram of 100 bins between bounds."""
    counts = np.histogram(np.clip(column, low, high), bins=100, range=(low, high))[0]
    noisy = np.maximum(0.0, counts + generator.standard_normal(100) * math.sqrt(2) / math.sqrt(2 * RHO))
    bins = generator.choice(100, size=100_000, p=noisy / noisy.sum())
    points = low + (bins + generator.random(100_000)) / 100 * (high - low)
    law: Distribution = learner.fit(points[points > low][:, None], seed=0)
    return law


# --- rows -------------------------------------------------------------------------------------------------------------


def row(
    title: str,
    *,
    data: Callable[[np.random.Generator], Table],
    estimator: Any,
    plain: Any,
    errors: dict[str, Callable[[Distribution], float]],
    told: Callable[[Table, np.random.Generator], Distribution],
    runs: int,
    aim: str,
) -> None:
    """Print one row, or one for each measure."""
    found: dict[str, list[tuple[float, float, float]]] = {measure: [] for measure in errors}
    seconds, answers = 0.0, 0
    for run in range(runs):
        generator = np.random.default_rng(run)
        records = data(generator)
        start = time.process_time()
        try:
            private = PrivateDensity(estimator, epsilon=EPSILON, delta=DELTA).fit(records).model_
        except NothingReleased:
            continue
        seconds += time.process_time() - start
        answers += 1
        open_law, told_law = plain.fit(records, seed=run), told(records, generator)
        for measure, error in errors.items():
            found[measure].append((error(private), error(open_law), error(told_law)))
    for measure, triples in found.items():
        ours, theirs, baseline = np.median(np.array(triples), axis=0)
        print(
            f"{title:34s}{measure:8s} {ours:.4f}  not private {theirs:.4f}  ratio {ours / theirs:5.2f} (aim {aim})  "
            f"told bounds {baseline / theirs:6.2f}  {seconds / answers:5.1f} s  answers {answers}/{runs}",
            flush=True,
        )


def mixture(weights: list[float], means: list[float], deviations: list[float]) -> Mixture:
    return Mixture([Normal(mean, s * s) for mean, s in zip(means, deviations, strict=True)], weights)


def synthetic_rows(runs: int, only: str) -> None:
    """Rows that need no files."""
    one = GaussianMixture(1)
    for n, aim in ((10_000, "4"), (100_000, "2"), (1_000_000, "2")):
        if only in f"normal on R, n = {n}":
            row(
                f"normal on R, n = {n}",
                data=lambda g, n=n: g.normal(50, 3, (n, 1)),  # type: ignore[misc]
                estimator=one,
                plain=GaussianLearner(),
                errors={"TV": on_line(lambda x: st.norm.pdf(x, 50, 3), 20, 80)},
                told=lambda x, g: told_normal(x, np.array([-1000.0]), np.array([1000.0]), g),
                runs=runs,
                aim=aim,
            )
    if only in "normal on R^5, n = 100000":
        root = np.tril(np.random.default_rng(7).normal(size=(5, 5))) + 1.5 * np.eye(5)
        true = Normal(np.arange(5.0), root @ root.T)
        row(
            "normal on R^5, n = 100000",
            data=lambda g: true.sample(100_000, g),
            estimator=one,
            plain=GaussianLearner(),
            errors={"TV": in_space(true, np.random.default_rng(8))},
            told=lambda x, g: told_normal(x, np.full(5, -1000.0), np.full(5, 1000.0), g),
            runs=runs,
            aim="3",
        )
    for true in (mixture([0.4, 0.6], [0, 4], [1, 1.5]), mixture([0.3, 0.4, 0.3], [0, 4, 9], [1, 0.7, 2])):
        count = len(true.weights)
        if only in f"mixture of {count} on R, n = 100000":
            learner = SklearnLearner(GaussianMixture(count))
            row(
                f"mixture of {count} on R, n = 100000",
                data=lambda g, true=true: true.sample(100_000, g),  # type: ignore[misc]
                estimator=GaussianMixture(count),
                plain=learner,
                errors={"TV": on_line(lambda x, true=true: np.exp(true.log_density(x[:, None])), -10, 25)},  # type: ignore[misc]
                told=lambda x, g, learner=learner: told_histogram(learner, x[:, 0], -20, 30, g),  # type: ignore[misc]
                runs=runs,
                aim="1.5",
            )
    if only in "log-normal, n = 10000":
        row(
            "log-normal, n = 10000",
            data=lambda g: g.lognormal(3, 0.75, (10_000, 1)),
            estimator=st.lognorm,
            plain=ScipyLearner("lognorm"),
            errors={"TV": on_line(lambda x: st.lognorm.pdf(x, 0.75, 0, math.exp(3)), 1e-9, 400)},
            told=lambda x, g: told_histogram(ScipyLearner("lognorm"), x[:, 0], 0, 250, g),
            runs=runs,
            aim="4",
        )


def file_rows(folder: Path, runs: int, only: str) -> None:
    """Rows on tables."""
    for name, low, high in (("arr_delay", -100.0, 400.0), ("air_time", 0.0, 700.0)):
        if only in name:
            column = pq.read_table(folder / "flights.parquet", columns=[name])[name].to_numpy().astype(float)
            column = column[~np.isnan(column)]
            learner = SklearnLearner(GaussianMixture(8))
            row(
                f"{name}, GaussianMixture(8)",
                data=lambda _, column=column: column[:, None],  # type: ignore[misc]
                estimator=GaussianMixture(8),
                plain=learner,
                errors={"50 bins": in_bins(np.clip(column, low, high), low, high)},
                told=lambda x, g, learner=learner, low=low, high=high: told_histogram(learner, x[:, 0], low, high, g),  # type: ignore[misc]
                runs=runs,
                aim="1.2",
            )
    if only in "diamonds":
        table = pq.read_table(folder / "diamonds.parquet", columns=["carat", "depth", "table", "price", "x"])
        carat, depth, width, price, x = (table[c].to_numpy().astype(float) for c in table.column_names)
        usable = x > 0
        logs = [np.log(column[usable]) for column in (carat, price, x)]
        records = np.stack([logs[0], depth[usable], width[usable], logs[1], logs[2]], axis=1)
        bounds = [(math.log(0.2), math.log(5.2)), (50.0, 75.0), (50.0, 75.0), (math.log(300), math.log(20_000))]
        bounds.append((math.log(3.0), math.log(11.0)))
        clipped = np.clip(records, [low for low, _ in bounds], [high for _, high in bounds])
        one, two = in_margins(clipped, bounds)
        row(
            "diamonds, GaussianMixture(6)",
            data=lambda _: clipped,
            estimator=GaussianMixture(6),
            plain=SklearnLearner(GaussianMixture(6)),
            errors={"1-way": one, "2-way": two},
            told=lambda x, g: told_normal(x, np.array([a for a, _ in bounds]), np.array([b for _, b in bounds]), g),
            runs=runs,
            aim="1.3",
        )


def answers(runs: int) -> None:
    """How often there is an answer at the least sizes."""
    laws: dict[str, Callable[..., Table]] = {
        "normal": lambda g, size: g.normal(size=size),
        "exponential": lambda g, size: g.exponential(size=size),
        "Cauchy": lambda g, size: g.standard_cauchy(size=size),
        "whole numbers": lambda g, size: np.round(g.exponential(3.0, size=size)),
    }
    for columns, n in ((1, 5000), (5, 20_000)):
        for name, draw in laws.items():
            found = 0
            for run in range(runs):
                try:
                    PrivateDensity(GaussianMixture(1), epsilon=EPSILON, delta=DELTA).fit(
                        draw(np.random.default_rng(run), (n, columns))
                    )
                    found += 1
                except NothingReleased:
                    pass
            print(f"answers: {name}, {columns} column(s), n = {n}: {found}/{runs} (aim 95 %)", flush=True)


def costs() -> None:
    """CPU seconds by number of records."""
    for n in (100_000, 1_000_000, 10_000_000):
        records = np.random.default_rng(1).normal(size=(n, 1))
        start = time.process_time()
        PrivateDensity(GaussianMixture(3), epsilon=EPSILON, delta=DELTA).fit(records)
        spent = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"cost: n = {n}: {spent:.1f} s, {spent / n * 1e6:.2f} s per 10^6 records, peak memory {peak:.2f} GB",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    synthetic_rows(given.runs, given.only)
    if given.data is None:
        print("without --data left out: the tables of files", flush=True)
    else:
        file_rows(given.data, given.runs, given.only)
    if given.only in "answers":
        answers(2 * given.runs)
    if given.only in "costs":
        costs()


if __name__ == "__main__":
    main()
