"""Two-stage coupling against the matrix product, or the plain densities, that it cannot do without; on one core.

    python benchmarks/two_stage.py

Prints CPU seconds for 100 laws and 32 draws: normal laws on R^5 with tuples of 100 records, and mixtures of three
normal laws on R with tuples of 30 records. The ratio is to one matrix product that gives as many log densities of
normal laws at as many candidates, and for mixtures to `accord.distributions.log_densities` at as many records. Then how
often the blocks agree, how well the candidates serve a block's law, and the peak memory so far.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import resource
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from accord.couplings import ModelReference, NormalReference, TwoStageCoupling
from accord.distributions import Distribution, Mixture, Normal, log_densities
from accord.randomness import SharedRandomness

LAWS, DRAWS = 100, 32


def seconds(action: Any) -> tuple[float, Any]:
    """Return CPU seconds and result, the best of two."""
    best, result = float("inf"), None
    for _ in range(2):
        start = time.process_time()
        result = action()
        best = min(best, time.process_time() - start)
    return best, result


def report(title: str, coupling: TwoStageCoupling, laws: Sequence[Distribution], *, records: int, peer: Any) -> None:
    """Print one case."""
    first = time.process_time()
    number = coupling.candidates_for(records)
    chosen = time.process_time() - first
    spent, coupled = seconds(lambda: coupling.couple(laws, records=records, draws=DRAWS, shared=SharedRandomness(1)))
    compared, what = peer(number)
    most = [Counter(row.tolist()).most_common(1)[0][1] for row in coupled.keys]
    print(f"\n{title}: {number} candidates a draw (chosen in {chosen:.2f} s)")
    print(f"  couple {spent:.2f} s; {what} {compared:.2f} s; ratio {spent / compared:.1f}")
    print(f"  most equal votes a draw: median {int(np.median(most))}, best {max(most)} of {LAWS}")
    print(f"  a block's law: {coupling.diagnose(laws[0], records=records)}")
    print(f"  peak memory so far {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def normal_laws(generator: np.random.Generator, *, block: int, coarse: int, strength: int) -> None:
    """Normal laws on R^5: fits to ``block`` records about a fit to ``coarse`` records."""

    def fit(size: int) -> Normal:
        records = generator.standard_normal((size, 5))
        return Normal(records.mean(axis=0), np.cov(records.T))

    laws = [fit(block) for _ in range(LAWS)]
    coupling = TwoStageCoupling(NormalReference(fit(coarse), strength=strength))

    def peer(number: int) -> tuple[float, str]:
        table, features = generator.standard_normal((LAWS, 21)), generator.standard_normal((21, 8192))
        rows = np.empty((LAWS, 8192))

        def products() -> None:
            for _ in range(DRAWS * number // 8192):
                np.matmul(table, features, out=rows)

        return seconds(products)[0], "matrix product"

    report(f"normal on R^5, blocks of {block}, strength {strength}", coupling, laws, records=100, peer=peer)


def mixtures(generator: np.random.Generator) -> None:
    """Mixtures of three normal laws on R, about 64 public ones that scatter more."""

    def mixture(scatter: float) -> Mixture:
        moved = scatter * generator.standard_normal(6)
        parts = [Normal(-4 + moved[0], np.exp(moved[1])), Normal(moved[2], np.exp(moved[3])), Normal(5 + moved[4], 2.0)]
        return Mixture(parts, [0.3, 0.4, 0.3 * np.exp(moved[5])])

    laws = [mixture(0.03) for _ in range(LAWS)]
    reference = ModelReference([mixture(0.1) for _ in range(64)])
    reference.usual_candidates(30)  # compiles

    def peer(number: int) -> tuple[float, str]:
        records = generator.normal(scale=4.0, size=(number * 30, 1))
        spent, _ = seconds(lambda: log_densities(laws, records))
        return spent * DRAWS, "plain log densities of as many records"

    report("3 normals on R", TwoStageCoupling(reference, candidates=2048), laws, records=30, peer=peer)


def main() -> None:
    """Print all cases."""
    generator = np.random.default_rng(1)
    print(f"{LAWS} laws, {DRAWS} draws; CPU seconds on one core")
    normal_laws(generator, block=2000, coarse=200, strength=180)
    normal_laws(generator, block=1000, coarse=100, strength=90)
    mixtures(generator)


if __name__ == "__main__":
    main()
