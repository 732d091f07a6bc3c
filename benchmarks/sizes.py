"""Where the default tuple sizes come from: how many blocks agree, by tuple size, on data of several kinds.

    python benchmarks/sizes.py [runs]

For 100 blocks and 32 draws at epsilon = 1, delta = 1e-6 an answer needs 42 agreeing blocks in the best draw, for 118
blocks and 1000 draws (three and more columns) 49. For each
kind of data and each ratio (records of a tuple per record of a block) the table shows how often they agreed. Made-up
data, nothing private; the defaults in `accord.learning.sampler` keep to ratios that hold for skewed data too.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np

from accord.couplings import Coupling, NormalLattice, RaceCoupling, ShiftRounding
from accord.learners import EmpiricalLearner, GaussianLearner, Learner
from accord.mechanisms import BestOfDraws
from accord.randomness import SharedRandomness

DRAWS, MANY_DRAWS, BLOCK_SIZE = 32, 1000, 400
BLOCKS = {DRAWS: 100, MANY_DRAWS: 118}
Maker = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def share(make: Maker, learner: Learner, coupling: Coupling, *, ratio: float, runs: int, draws: int = DRAWS) -> float:
    """Return how often enough blocks agreed in the best draw."""
    votes = BestOfDraws(epsilon=1, delta="1e-6", draws=draws).votes_needed(failure="0.05")
    blocks, enough = BLOCKS[draws], 0
    for run in range(runs):
        generator = np.random.default_rng(run)
        laws = [learner.fit(make(generator, (BLOCK_SIZE, 1)), seed=0) for _ in range(blocks)]
        records = max(getattr(coupling, "least_records", 20), round(ratio * BLOCK_SIZE))
        keys = coupling.couple(laws, records=records, draws=draws, shared=SharedRandomness(run)).keys
        enough += max(max(Counter(row).values()) for row in keys) >= votes
    return enough / runs


def correlated(make: Maker, columns: int) -> Maker:
    """Return columns of the given kind, each but the first correlated with the one before."""

    def table(generator: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
        found = [make(generator, size)]
        for _ in range(columns - 1):
            found.append(0.9 * found[-1] + 0.4 * make(generator, size))
        return np.column_stack(found)

    return table


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    kinds: dict[str, Maker] = {
        "normal": lambda generator, size: generator.normal(size=size),
        "exponential": lambda generator, size: generator.exponential(size=size),
        "log-normal": lambda generator, size: generator.lognormal(sigma=1.0, size=size),
    }
    ratios = (0.1, 0.3, 0.6, 1.0, 2.0, 4.0)
    print(f"{runs} runs; {BLOCKS[DRAWS]} blocks of {BLOCK_SIZE}, {DRAWS} draws")
    print(f"{'':<24}" + "".join(f"{ratio:>8}" for ratio in ratios))
    for dimension in (1, 2):
        for kind, make in kinds.items():
            lattice = NormalLattice(dimension=dimension)
            maker = correlated(make, dimension)
            found = [share(maker, GaussianLearner(), lattice, ratio=ratio, runs=runs) for ratio in ratios]
            print(f"{kind} on R^{dimension}".ljust(24) + "".join(f"{value:>8.2f}" for value in found), flush=True)
    print(f"{BLOCKS[MANY_DRAWS]} blocks of {BLOCK_SIZE}, {MANY_DRAWS} draws")
    small = (0.02, 0.035, 0.06, 0.1, 0.2, 0.35)
    print(f"{'':<24}" + "".join(f"{ratio:>8}" for ratio in small))
    for dimension in range(3, 9):
        rounding = ShiftRounding(dimension=dimension)
        for kind, make in kinds.items():
            maker = correlated(make, dimension)
            found = [
                share(maker, GaussianLearner(), rounding, ratio=ratio, runs=runs, draws=MANY_DRAWS) for ratio in small
            ]
            print(f"{kind} on R^{dimension}".ljust(24) + "".join(f"{value:>8.2f}" for value in found), flush=True)
    print(f"{'':<24}" + "".join(f"{ratio:>8}" for ratio in ratios))
    for count in (2, 4, 16):
        labels = [f"level {i}" for i in range(count)]
        weights = np.arange(1, count + 1) / (count * (count + 1) / 2)
        names = np.array(labels, dtype=object)

        def draw(
            generator: np.random.Generator,
            size: tuple[int, int],
            names: np.ndarray = names,
            weights: np.ndarray = weights,
        ) -> np.ndarray:
            return generator.choice(names, p=weights, size=size)

        race, learner = RaceCoupling(labels), EmpiricalLearner(labels)
        found = [share(draw, learner, race, ratio=ratio, runs=runs) for ratio in ratios]
        print(f"{count} categories".ljust(24) + "".join(f"{value:>8.2f}" for value in found), flush=True)


if __name__ == "__main__":
    main()
