"""Simulate how far fitted normal laws are from the true one, and store upper bounds of the quantiles.

The law of the total variation between fit and truth is the same for every normal law on R^d, so it is simulated at
N(0, I): the mean and the eigenvalues of the covariance of b records are drawn by Bartlett's decomposition, which costs
the same for every b. For each number of columns 2 to 5 and each b of a grid, an order statistic of the simulated
distances bounds each quantile from above; all bounds hold together with confidence 99.9 % (exact binomial, union).
Bands of neighbouring b store the greatest ``sqrt(b) * quantile`` only: the table stays small.

Run ``python benchmarks/learner_pivots.py --write`` to make ``src/accord/learners/learner_pivots.json`` again: it prints
the numbers of records that follow, against those of the closed bound. Without ``--write`` a few entries are simulated
on other seeds and set against the stored ones.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import math
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from accord.learners import GaussianLearner
from accord.learners.normal_sizes import geometric_sizes, records_for
from accord.randomness import Generator, SharedRandomness

TABLE = Path(__file__).resolve().parents[1] / "src" / "accord" / "learners" / "learner_pivots.json"
SEED = 20_261_130
RATIO = 1.06
MOST = 1 << 43
CONFIDENCE = 0.999
RUNS = ((12_000, 20_000), (5_000, 2 * MOST))
LEVELS = [round(0.5 / 1.1**step, 6) for step in range(58)]
DIMENSIONS = (2, 3, 4, 5)
UNIT = 10_000
_STEP = 0.25
_NODES = {2: 101, 3: 65, 4: 49, 5: 45}
_ALLOWANCE = 1e-4

_Floats = NDArray[np.float64]


def simulated(dimension: int, size: int, *, runs: int, generator: Generator) -> _Floats:
    """Return upper bounds of the total variation of ``runs`` fits to ``size`` records of N(0, I), shape (runs,)."""
    factor = np.tril(generator.standard_normal((runs, dimension, dimension)), -1)
    freedom = size - 1
    for place in range(dimension):
        factor[:, place, place] = np.sqrt(generator.chisquare(freedom - place, size=runs))
    product = factor @ factor.transpose(0, 2, 1)
    stretch: _Floats = np.linalg.eigvalsh(product / freedom - np.eye(dimension)).astype(np.float64)
    shift = generator.standard_normal((runs, dimension)) / math.sqrt(size)
    return np.concatenate([distances(shift[at : at + 100], stretch[at : at + 100]) for at in range(0, runs, 100)])


def distances(shift: _Floats, stretch: _Floats) -> _Floats:
    """Return upper bounds of TV(N(0, I), N(shift, diag(1 + stretch))), shape (n,) from (n, d) each.

    With ``M(s) = int p^(1-s) q^s``, TV is ``(1 / pi) int_0^oo Re(1 - M(1/2 + iu)) / (1/4 + u^2) du``: the trapezoidal
    rule in ``u / sigma``, sigma^2 the variance of the log ratio, converges exponentially; beyond its end |M| is
    replaced by its value there, which is greater. The allowance is far above the rule's error (see the check).
    """
    logs = np.log1p(stretch)
    sigma = np.sqrt((stretch**2).sum(axis=1) / 2 + (shift**2).sum(axis=1))
    grid = _STEP * np.arange(_NODES[shift.shape[1]])
    points = grid / sigma[:, None]
    size, turn = np.zeros_like(points), np.zeros_like(points)
    for place in range(shift.shape[1]):
        k, m, log = (column[:, place, None] for column in (stretch, shift, logs))
        real, imaginary = 1 + k / 2, -points * k
        squared = real**2 + imaginary**2
        pull = (0.25 + points**2) * m**2 / (2 * squared)
        size += log / 4 - np.log1p(k + k**2 / 4 + imaginary**2) / 4 - pull * real
        turn += -points * log / 2 - np.arctan2(imaginary, real) / 2 + pull * imaginary
    one_minus = -np.expm1(size) + 2 * np.exp(size) * np.sin(turn / 2) ** 2
    values = one_minus / (sigma[:, None] ** 2 / 4 + grid**2)
    inside = _STEP * (values.sum(axis=1) - values[:, 0] / 2 - values[:, -1] / 2)
    rest = 2 / sigma * np.arctan(sigma / (2 * grid[-1])) * (1 + np.exp(size[:, -1]))
    return np.asarray(sigma * (inside + rest) / math.pi * (1 + _ALLOWANCE))


def quantile_bounds(sample: _Floats, *, failure: float) -> _Floats:
    """Return for each level t with P[TV >= t] <= level, each wrong with chance at most ``failure``."""
    ordered, runs = np.sort(sample)[::-1], len(sample)
    found = []
    for level in LEVELS:
        ranks = np.arange(runs)
        good = np.flatnonzero(bdtr(ranks, runs, level) <= failure)
        found.append(float(ordered[good[-1]]) if len(good) else 1.0)
    return np.array(found)


def bands(sizes: list[int]) -> list[list[int]]:
    """Return the sizes cut into bands: alone up to 40, thrice the ratio up to 300, then half octaves, then octaves."""
    cut: list[list[int]] = []
    for size in sizes:
        width = 1.0 if size <= 40 else 1.2 if size <= 300 else 1.5 if size <= 5000 else 2.0
        if cut and size < cut[-1][0] * width:
            cut[-1].append(size)
        else:
            cut.append([size])
    return cut


def grid_of(dimension: int) -> list[int]:
    """Return the numbers of records simulated."""
    return [int(size) for size in geometric_sizes(dimension + 2, MOST, ratio=RATIO)]


def bands_of(dimension: int) -> dict[str, Any]:
    """Simulate one number of columns and return its rows: first and last size of a band, then the bounds."""
    start, rows = time.perf_counter(), []
    failure = (1 - CONFIDENCE) / (len(LEVELS) * sum(len(grid_of(other)) for other in DIMENSIONS))
    key = SharedRandomness(SEED)
    for band in bands(grid_of(dimension)):
        worst = np.zeros(len(LEVELS))
        for size in band:
            runs = next(runs for runs, most in RUNS if size <= most)
            sample = simulated(dimension, size, runs=runs, generator=key.stream(dimension, size))
            worst = np.maximum(worst, math.sqrt(size) * quantile_bounds(sample, failure=failure))
        rows.append([band[0], band[-1], *np.ceil(worst * UNIT).astype(int).tolist()])
    print(f"R^{dimension}: {len(grid_of(dimension))} sizes in {time.perf_counter() - start:.0f} s", flush=True)
    return {"dimension": dimension, "bands": rows}


def make_table() -> dict[str, Any]:
    """Simulate everything, a few minutes, and return the table as plain data."""
    with multiprocessing.Pool(len(DIMENSIONS)) as pool:
        tables = pool.map(bands_of, DIMENSIONS[::-1], chunksize=1)[::-1]
    return {
        "confidence": CONFIDENCE,
        "seed": SEED,
        "ratio": RATIO,
        "runs": [list(pair) for pair in RUNS],
        "unit": UNIT,
        "levels": LEVELS,
        "tables": tables,
    }


def write(table: dict[str, Any]) -> None:
    """Write one band a line."""
    head = {name: value for name, value in table.items() if name != "tables"}
    lines = ["{"] + [f' "{name}": {json.dumps(value)},' for name, value in head.items()] + [' "tables": [']
    for part in table["tables"]:
        rows = ",\n".join("   " + json.dumps(row, separators=(",", ":")) for row in part["bands"])
        comma = "" if part is table["tables"][-1] else ","
        lines += [f'  {{"dimension": {part["dimension"]}, "bands": [', rows, f"  ]}}{comma}"]
    TABLE.write_text("\n".join([*lines, " ]", "}"]) + "\n", encoding="utf-8")


def report() -> None:
    """Print numbers of records by the table against those of the closed bound."""
    for dimension in (1, *DIMENSIONS):
        learner = GaussianLearner(dimension=dimension)
        for alpha, beta in ((0.1, 0.1), (0.1, 0.025), (0.03, 0.1), (1e-3, 1 / 16), (1e-6, 1 / 16)):
            start = time.perf_counter()
            ours = learner.sample_complexity(alpha, beta)
            spent = time.perf_counter() - start
            closed = records_for(alpha, beta, dimension=dimension)
            print(
                f"R^{dimension} m({alpha:g}, {beta:g}) = {ours:.6g}, closed bound {closed:.6g}, ratio "
                f"{closed / ours:.2f}, {1000 * spent:.0f} ms"
            )


def recheck() -> None:
    """Simulate some entries on other seeds: the stored bound of a quantile against the plain estimate."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    level = 17
    for part in table["tables"]:
        for row in part["bands"][5::18]:
            size = row[1]
            generator = SharedRandomness(SEED + 1).stream(part["dimension"], size)
            sample = simulated(part["dimension"], size, runs=4000, generator=generator)
            plain = math.sqrt(size) * float(np.quantile(sample, 1 - LEVELS[level]))
            print(
                f"R^{part['dimension']} b = {size}: stored / simulated quantile at {LEVELS[level]:.3f} = "
                f"{row[2 + level] / UNIT / plain:.3f}"
            )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        write(make_table())
    else:
        recheck()
    report()


if __name__ == "__main__":
    main()
