"""Couple II against the isolated couplings of the same laws: ratios of times and of agreement, measured in one run.

python benchmarks/couplings_of_tuples.py
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections import Counter
from typing import Any

from accord.couplings import NormalLattice, RaceCoupling
from accord.distributions import Categorical, Normal
from accord.randomness import SharedRandomness
from accord.theory import TuplePoissonCoupling

DRAWS = 8


def measured(coupling: Any, laws: list[Any], *, records: int) -> tuple[float, float]:
    """Seconds, and the share of blocks that hold the most frequent tuple, on average over draws."""
    start = time.perf_counter()
    keys = coupling.couple(laws, records=records, draws=DRAWS, shared=SharedRandomness.fresh()).keys
    seconds = time.perf_counter() - start
    tops = [Counter(row.tolist()).most_common(1)[0][1] for row in keys]
    return seconds, sum(tops) / (DRAWS * len(laws))


def main() -> None:
    generator = SharedRandomness("benchmark").stream("laws")
    for blocks, records, block_size in ((20, 30, 200), (100, 100, 200), (100, 100, 2000)):
        spread = block_size**-0.5
        normals = [Normal(float(mean), 1.0) for mean in generator.normal(0, spread, size=blocks)]
        counts = generator.multinomial(block_size, [0.2, 0.3, 0.5], size=blocks)
        labels = [Categorical(["a", "b", "c"], row) for row in counts]
        for name, laws, second, first in (
            ("normal", normals, TuplePoissonCoupling(step=0.05), NormalLattice(dimension=1)),
            ("labels", labels, TuplePoissonCoupling(), RaceCoupling(["a", "b", "c"])),
        ):
            here, agree = measured(second, laws, records=records)
            there, other = measured(first, laws, records=records)
            print(
                f"{name} k={blocks} l={records} b={block_size}: time {here:.2f} s, {here / there:.2f} x "
                f"{type(first).__name__}; agreement {agree:.2f}, {agree / other:.2f} x"
            )


if __name__ == "__main__":
    main()
