"""Every kind of coupling on one page: CPU seconds against a matrix product that evaluates as many log densities.

    python benchmarks/couplings.py [names of rows]

100 laws, 32 draws, one core; each row in a process of its own, so that its peak memory is its own. "densities" is how
many log densities of one law one draw reads: for lattices the cells whose bounds are compared, for tuples of mixtures
the records of all candidates. The peer, in the same process, is a product of a table of so many points with D + 1
features and the laws' 100 columns. "agree" is the most equal votes in the best draw. The last column holds aims to
compare with; none is asserted.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import math
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accord.couplings import (
    AtomRace,
    Coupling,
    DyadicCoupling,
    ModelReference,
    NormalLattice,
    NormalReference,
    RaceCoupling,
    ShiftRounding,
    StatisticCoupling,
    TwoStageCoupling,
)
from accord.couplings.lattice.cells import Chart, NormalCells, SeenLaw
from accord.couplings.lattice.loops import listed
from accord.couplings.statistics.gamma import GammaStatistic
from accord.couplings.statistics.sums import ExponentialSum, PoissonSum
from accord.distributions import Categorical, Exponential, Gamma, Mixture, Normal, Poisson
from accord.randomness import SharedRandomness
from accord.theory import PoissonCoupling, TuplePoissonCoupling

LAWS, DRAWS = 100, 32
AT_ONCE = 8192


@dataclass(frozen=True)
class Row:
    """One line: laws, how many densities a law reads a draw, of how many features each, and the aim in seconds."""

    coupling: Coupling
    laws: list[Any]
    records: int
    densities: float
    features: int
    aim: float | None = None


def one_product(row: Row) -> float:
    """CPU seconds to evaluate as many log densities by matrix products."""
    generator = np.random.default_rng(0)
    points = row.densities * DRAWS
    table, laws = generator.normal(size=(AT_ONCE, row.features + 1)), generator.normal(size=(row.features + 1, LAWS))
    out = np.empty((AT_ONCE, LAWS))
    repeats = max(3, min(200, round(points / AT_ONCE)))
    np.matmul(table, laws, out=out)
    start = time.process_time()
    for _ in range(repeats):
        np.matmul(table, laws, out=out)
    return (time.process_time() - start) / (repeats * AT_ONCE) * points


def fitted(dimension: int, size: int, *, generator: np.random.Generator) -> list[Any]:
    """Normal laws fitted to ``size`` records each."""
    tables = [generator.normal(size=(size, dimension)) for _ in range(LAWS)]
    return [Normal(table.mean(axis=0), np.cov(table.T).reshape(dimension, dimension)) for table in tables]


def levels(generator: np.random.Generator) -> list[Any]:
    names = [f"level {number}" for number in range(1000)]
    weights = 1.0 / np.arange(1.0, 1001.0)
    return [Categorical(names, generator.multinomial(20_000, weights / weights.sum()) + 0.25) for _ in range(LAWS)]


def lattice(dimension: int, *, generator: np.random.Generator, aim: float) -> Row:
    laws = fitted(dimension, 400, generator=generator)
    chart = Chart(dimension=dimension, records=100)
    mean, factor = np.array(laws[0].mean), laws[0].cholesky
    if dimension < 3:
        cells = len(NormalCells.search(chart, mean=mean, cholesky=factor).cells)
    else:
        cells = len(listed(SeenLaw.of(chart, mean=mean, cholesky=factor), root=np.uint64(0))[0])
        NormalLattice(dimension=3).couple(laws[:1], records=300, draws=1, shared=SharedRandomness(0))  # compiles
    return Row(NormalLattice(dimension=dimension), laws, 100, cells, chart.size, aim)


def two_stage_normal(generator: np.random.Generator) -> Row:
    laws = fitted(5, 2000, generator=generator)
    reference = NormalReference(fitted(5, 200, generator=generator)[0], strength=180)
    coupling = TwoStageCoupling(reference)
    return Row(coupling, laws, 100, coupling.candidates_for(100), 20, 30.0)


def two_stage_mixture(generator: np.random.Generator) -> Row:
    def mixture(scatter: float) -> Mixture:
        moved = scatter * generator.standard_normal(6)
        parts = [Normal(-4 + moved[0], np.exp(moved[1])), Normal(moved[2], np.exp(moved[3])), Normal(5 + moved[4], 2.0)]
        return Mixture(parts, [0.3, 0.4, 0.3 * np.exp(moved[5])])

    reference = ModelReference([mixture(0.1) for _ in range(64)])
    reference.usual_candidates(30)  # compiles
    return Row(
        TwoStageCoupling(reference, candidates=2048), [mixture(0.03) for _ in range(LAWS)], 30, 2048 * 30, 2, 10.0
    )


def points(rule: str, *, generator: np.random.Generator) -> Row:
    """The race over points of a public law reads M = sup f of them on average."""
    laws, wide = fitted(1, 400, generator=generator), 9.0
    most = [
        math.exp(0.5 * math.log(wide / law.covariance[0][0]) + law.mean[0] ** 2 / (2 * (wide - law.covariance[0][0])))
        for law in laws
    ]
    return Row(PoissonCoupling(Normal(0.0, wide), rule=rule), laws, 1, float(np.mean(most)), 2)


def statistic(family: Any, *, generator: np.random.Generator) -> Row:
    scales = np.exp(0.02 * generator.normal(size=LAWS))
    if family is Gamma:
        shapes = 2 * np.exp(0.03 * generator.normal(size=LAWS))
        laws = [Gamma(float(shape), float(scale)) for shape, scale in zip(shapes, scales, strict=True)]
        chart: Any = GammaStatistic(100)
    else:
        laws = [family(float(4 * scale)) for scale in scales]
        chart = PoissonSum(100) if family is Poisson else ExponentialSum(100)
    return Row(StatisticCoupling(family), laws, 100, len(chart.reach(laws[0]).cells), 2)


def tuple_poisson(generator: np.random.Generator) -> Row:
    """About k (log k + 0.6) points of 30 records a draw, each weighed by all laws."""
    many = LAWS * (math.log(LAWS) + 0.6)
    return Row(TuplePoissonCoupling(step=0.05), fitted(1, 400, generator=generator), 30, many * 30, 2)


ROWS: dict[str, Callable[[np.random.Generator], Row]] = {
    "race, 1000 levels": lambda g: Row(RaceCoupling(levels(g)[0].categories), levels(g), 1, 1000, 1, 0.3),
    "atoms, 1000 levels": lambda g: Row(AtomRace(), levels(g), 1, 1000, 1),
    "normal lattice, R": lambda g: lattice(1, generator=g, aim=0.5),
    "normal lattice, R^2": lambda g: lattice(2, generator=g, aim=3.0),
    "normal lattice, R^3": lambda g: lattice(3, generator=g, aim=60.0),
    "two stages, normal on R^5": two_stage_normal,
    "two stages, 3 normals on R": two_stage_mixture,
    "points of a public law, race": lambda g: points("race", generator=g),
    "points of a public law, earliest": lambda g: points("earliest", generator=g),
    "sum of Poisson records": lambda g: statistic(Poisson, generator=g),
    "sum of exponential records": lambda g: statistic(Exponential, generator=g),
    "sum and proportions, gamma": lambda g: statistic(Gamma, generator=g),
    "tuple Poisson": tuple_poisson,
    "dyadic": lambda g: Row(DyadicCoupling(), fitted(1, 400, generator=g), 1, 256 * 6, 1),
    "shift rounding, R^5": lambda g: Row(ShiftRounding(dimension=5), fitted(5, 2000, generator=g), 100, 1, 20),
}


def measure(name: str) -> None:
    """Print one line."""
    row = ROWS[name](np.random.default_rng(7))
    spent = math.inf
    for key in range(2):
        start = time.process_time()
        votes = row.coupling.couple(row.laws, records=row.records, draws=DRAWS, shared=SharedRandomness(key)).keys
        spent = min(spent, time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tops = [Counter(key for key in draw if isinstance(key, bytes)).most_common(1) for draw in votes]
    best = max((top[0][1] for top in tops if top), default=0)
    aim = "" if row.aim is None else f"{row.aim:g}"
    print(
        f"{name:<34}{row.records:>5}{row.densities:>12.0f}{spent:>10.3f}{spent / one_product(row):>10.1f}{peak:>8.0f}"
        f"{best:>8}{aim:>8}",
        flush=True,
    )


def main() -> None:
    """Print the table: one process a row."""
    if sys.argv[1:2] == ["--row"]:
        measure(sys.argv[2])
        return
    print(f"{LAWS} laws, {DRAWS} draws; CPU seconds on one core, the better of two runs")
    heads = ("", "l", "densities", "seconds", "x product", "MB", "agree", "aim, s")
    print("{:<34}{:>5}{:>12}{:>10}{:>10}{:>8}{:>8}{:>8}".format(*heads), flush=True)
    for name in sys.argv[1:] or ROWS:
        subprocess.run([sys.executable, __file__, "--row", name], check=True)  # noqa: S603 - this very script


if __name__ == "__main__":
    main()
