"""Shift rounding against the plain fit, and dyadic races of several widths against one race, in one run on one core.

    python benchmarks/rounding.py

Prints CPU seconds of fits, votes and selection for 100 blocks and 10,000 draws, with ratios to the fits; then, for
pairs of laws on the line, disagreement over total variation (one race: about 1.4) and microseconds a vote by node_bits.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import time
from typing import Any

import numpy as np

from accord.couplings import DyadicCoupling, ShiftRounding
from accord.distributions import Mixture, Normal
from accord.laws import total_variation
from accord.learners import GaussianLearner
from accord.mechanisms import BestOfDraws
from accord.randomness import SharedRandomness

BLOCKS, DRAWS, PAIR_DRAWS = 100, 10_000, 4_000


def seconds(action: Any) -> tuple[float, Any]:
    """Return CPU seconds and result."""
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def rounding(dimension: int, block_size: int) -> None:
    generator = np.random.default_rng(dimension)
    data = generator.normal(size=(BLOCKS, block_size, dimension))
    shared, best = SharedRandomness(0), BestOfDraws(epsilon=1, delta="1e-6", draws=DRAWS)
    fits, laws = seconds(lambda: [GaussianLearner().fit(block, seed=0) for block in data])
    coupling = ShiftRounding(dimension=dimension, step=6.0)
    votes, coupled = seconds(lambda: coupling.couple(laws, records=block_size, draws=DRAWS, shared=shared))
    choice, _ = seconds(lambda: best.release(coupled.keys))
    print(
        f"{dimension:>3}{block_size:>8}{fits:>10.3f}{votes:>10.3f}{choice:>10.3f}{votes / fits:>12.1f}"
        f"{choice / fits:>12.1f}"
    )


def dyadic(bits: int, pairs: list[tuple[Any, Any]]) -> None:
    ratios, spent = [], 0.0
    for number, (first, second) in enumerate(pairs):
        coupling, shared = DyadicCoupling(node_bits=bits), SharedRandomness(number)
        took, coupled = seconds(
            lambda c=coupling, p=first, q=second, s=shared: c.couple([p, q], records=1, draws=PAIR_DRAWS, shared=s)
        )
        spent += took
        ratios.append(float((coupled.keys[:, 0] != coupled.keys[:, 1]).mean()) / float(total_variation(first, second)))
    each = spent / (2 * PAIR_DRAWS * len(pairs)) * 1e6
    print(f"{bits:>9}{np.mean(ratios):>10.2f}{min(ratios):>10.2f}{max(ratios):>10.2f}{each:>14.1f}")


def main() -> None:
    """Print both tables."""
    print(f"shift rounding, {BLOCKS} blocks, {DRAWS} draws: CPU seconds")
    print(f"{'d':>3}{'block':>8}{'fits':>10}{'votes':>10}{'choice':>10}{'votes/fits':>12}{'choice/fits':>12}")
    for dimension, block_size in ((1, 10), (2, 50), (5, 450), (10, 2_000)):
        rounding(dimension, block_size)
    pairs: list[tuple[Any, Any]] = [
        (Normal(place, 1.0), Normal(place + 0.2, 1.2)) for place in (0.0, 3.0, 50.0, 700.0, 1e4, 1.7e5, 2e6, 3e7)
    ]
    humps = [Mixture([Normal(0.0, 1.0), Normal(40.0 + shift, 4.0)], [0.5, 0.5]) for shift in (0.0, 0.5)]
    pairs.append((humps[0], humps[1]))
    print(f"\ndyadic, {len(pairs)} pairs of laws: disagreement over total variation")
    print(f"{'node_bits':>9}{'mean':>10}{'least':>10}{'most':>10}{'us a vote':>14}")
    for bits in (2, 4, 6, 8, 10):
        dyadic(bits, pairs)


if __name__ == "__main__":
    main()
