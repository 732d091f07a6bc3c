"""Coupled votes against the non-private fit of the same learner on the same rows, in one run, on one core.

    python benchmarks/votes.py

Prints CPU seconds and the ratio for 100 blocks and 32 draws: normal on R, normal on R^2, 3 and 16 categories, all on
336,776 rows as the example table has; and the peak memory of the whole.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import resource
import time
from typing import Any

import numpy as np

from accord.core.blocks import fit_blocks
from accord.couplings import Coupling, NormalLattice, RaceCoupling
from accord.learners import EmpiricalLearner, GaussianLearner, Learner
from accord.learning import partition
from accord.randomness import SharedRandomness

ROWS, BLOCKS, DRAWS = 336_776, 100, 32


def seconds(action: Any) -> tuple[float, Any]:
    """Return CPU seconds and result, the best of three."""
    best, result = float("inf"), None
    for _ in range(3):
        start = time.process_time()
        result = action()
        best = min(best, time.process_time() - start)
    return best, result


def compare(name: str, learner: Learner, coupling: Coupling, data: np.ndarray, records: int) -> None:
    """Print one line of the table."""
    shared = SharedRandomness(0)
    plain, _ = seconds(lambda: learner.fit(data, seed=0))
    rows = partition(len(data), blocks=BLOCKS, in_place_key=shared)
    fits, laws = seconds(lambda: fit_blocks(learner, data, blocks=rows, shared=shared))
    votes, _ = seconds(lambda: coupling.couple(laws, records=records, draws=DRAWS, shared=shared))
    print(
        f"{name:<16}{records:>8}{plain:>12.4f}{fits:>12.4f}{votes:>12.4f}{(fits + votes) / plain:>12.1f}",
    )


def main() -> None:
    """Print the table."""
    generator = np.random.default_rng(1)
    line = generator.normal(size=(ROWS, 1))
    plane = generator.normal(size=(ROWS, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    print(f"{ROWS} rows, {BLOCKS} blocks, {DRAWS} draws; CPU seconds on one core")
    print(f"{'':<16}{'records':>8}{'plain fit':>12}{'block fits':>12}{'votes':>12}{'ratio':>12}")
    compare("normal on R", GaussianLearner(), NormalLattice(dimension=1), line, 3367)
    compare("normal on R^2", GaussianLearner(), NormalLattice(dimension=2), plane, 1000)
    for count, records in ((3, 600), (16, 200)):
        labels = np.array([f"level {i}" for i in range(count)], dtype=object)
        data = labels[generator.integers(count, size=(ROWS, 1))]
        compare(f"{count} categories", EmpiricalLearner(labels.tolist()), RaceCoupling(labels.tolist()), data, records)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
