"""The lattices: CPU seconds, peak memory and cells a law, against a matrix product that evaluates as many densities.

    python benchmarks/lattices.py [laws] [draws]

The ratio is the CPU time of a coupling over that of one product ``x @ A`` with squares summed by row, for as many
points x as there are cells read, times laws and draws. One core; made-up laws.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import resource
import sys
import time
from collections import Counter

import numpy as np

from accord.couplings import Coupled, Coupling, HashedLattice, NormalLattice
from accord.couplings.lattice.cells import Chart, NormalCells, SeenLaw
from accord.couplings.lattice.loops import listed
from accord.distributions import Normal
from accord.errors import FitFailed
from accord.randomness import SharedRandomness

BLOCK = 400
AT_ONCE = 1 << 16


def megabytes() -> int:
    """Peak memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def one_product(points: float, dimension: int) -> float:
    """CPU seconds to evaluate a quadratic form at this many points by matrix products."""
    generator = np.random.default_rng(0)
    x, a = generator.normal(size=(AT_ONCE, dimension)), generator.normal(size=(dimension, dimension))
    np.square(x @ a).sum(axis=1)
    start = time.process_time()
    for _ in range(20):
        np.square(x @ a).sum(axis=1)
    return (time.process_time() - start) / (20 * AT_ONCE) * points


def show(what: str, coupled: Coupled, *, seconds: float, cells: float, dimension: int, before: int) -> None:
    """Print a line: ``cells`` is the mean number a law and draw."""
    votes = coupled.keys
    draws, blocks = votes.shape
    kept = [[vote for vote in row if isinstance(vote, bytes)] for row in votes]
    top = max((Counter(row).most_common(1)[0][1] if row else 0) for row in kept)
    silent = sum(not isinstance(vote, bytes) for vote in votes.flat) / votes.size
    ratio = seconds / one_product(cells * blocks * draws, dimension)
    print(
        f"{what:<42} {seconds:7.2f} s CPU  {cells:10.0f} cells a law and draw  {ratio:7.1f} x a matrix product  "
        f"peak {megabytes()} MB (before: {before})  best agreement {top / blocks:.2f}  abstained {silent:.2f}",
        flush=True,
    )


def fitted(truth: np.ndarray, *, blocks: int, generator: np.random.Generator) -> list[Normal]:
    """Laws fitted to blocks of data of one normal law with this covariance."""
    factor, size = np.linalg.cholesky(truth), len(truth)
    tables = [generator.normal(size=(BLOCK, size)) @ factor.T + np.arange(size) for _ in range(blocks)]
    return [Normal(table.mean(axis=0), np.cov(table.T).reshape(size, size)) for table in tables]


def timed(coupling: Coupling, laws: list[Normal], *, records: int, draws: int) -> tuple[Coupled, float]:
    """Couple, with CPU seconds."""
    start = time.process_time()
    coupled = coupling.couple(laws, records=records, draws=draws, shared=SharedRandomness(1))
    return coupled, time.process_time() - start


def main() -> None:
    """Print the table."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    draws = int(sys.argv[2]) if len(sys.argv) > 2 else 32
    generator = np.random.default_rng(7)
    print(f"{blocks} laws fitted to {BLOCK} records each, {draws} draws")
    for dimension in (1, 2, 5, 9):
        for condition in (1.0, 10.0, 1e4):
            if dimension == 1 and condition > 1:
                continue
            basis, _ = np.linalg.qr(generator.normal(size=(dimension, dimension)))
            truth = basis * np.geomspace(1.0, 1.0 / condition, dimension) @ basis.T
            laws = fitted(truth, blocks=blocks if condition < 1e3 or dimension < 9 else 2, generator=generator)
            if dimension == 9 and condition == 10.0:
                laws = laws[:10]
            before = megabytes()
            lattice = HashedLattice(dimension=dimension)
            coupled, seconds = timed(lattice, laws, records=1, draws=draws)
            try:
                cells = float(lattice.cells_read(laws[0], draws=draws, shared=SharedRandomness(1)).mean())
            except FitFailed:
                cells = float("nan")
            what = f"hashed lattice, D = {dimension}, condition {condition:g}, k = {len(laws)}"
            show(what, coupled, seconds=seconds, cells=cells, dimension=dimension, before=before)
    for dimension, records in ((1, 100), (2, 100), (3, 40), (3, 100), (3, 300)):
        laws = fitted(np.eye(dimension) + 0.5, blocks=blocks if records != 40 else 10, generator=generator)
        chart = Chart(dimension=dimension, records=records)
        mean, factor = np.array(laws[0].mean), laws[0].cholesky
        if dimension < 3:
            cells = len(NormalCells.search(chart, mean=mean, cholesky=factor).cells)
        else:
            cells = len(listed(SeenLaw.of(chart, mean=mean, cholesky=factor), root=np.uint64(0))[0])
            NormalLattice(dimension=3).couple(laws[:1], records=300, draws=1, shared=SharedRandomness(0))  # compiles
        before = megabytes()
        coupled, seconds = timed(NormalLattice(dimension=dimension), laws, records=records, draws=draws)
        what = f"normal lattice, R^{dimension}, l = {records}, k = {len(laws)}"
        show(what, coupled, seconds=seconds, cells=cells, dimension=chart.size, before=before)


if __name__ == "__main__":
    main()
