"""The agnostic and the boosted learner in practice, beside what the theorems promise.

1. A normal law with 5 % of contamination (a narrow peak 6 standard deviations away) against a public list of 51 normal
   laws. The theorem's promise is (8 C^2 + 9 C) OPT + alpha with C = 3, that is 99 OPT + alpha: nothing at OPT = 0.05.
   Its sizes are printed; releases are made at sizes by hand that 1e6 to 1e7 records allow, each a peer of the same
   minimum-distance estimator without privacy on all records, and of one on T records (what the second step has).
2. Boosting against best of draws: records that L10 asks for, and certified ones, over beta.

``python benchmarks/private_learners.py [agnostic] [boosted]``. Printed are ratios; nothing is asserted.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import sys
import time

import numpy as np

from accord.distributions import Distribution, Mixture, Normal
from accord.errors import InvalidParameter
from accord.laws import total_variation
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.privacy import NoAnswerType
from accord.randomness import SharedRandomness
from accord.theory import AgnosticPrivateLearner, BlackBoxPrivateLearner, BoostedPrivateLearner, MinimumDistanceLearner
from accord.theory.planning import agnostic_sizes

LIST = [Normal(place / 4, scale**2) for place in range(-8, 9) for scale in (0.7, 1.0, 1.4)]
TRUTH = Normal(0.25, 1.0)
BLOCKS = 40
"""At epsilon = 1, delta = 1e-6 a vote needs 16 of 16, or 21 and more of 40."""


def contaminated(share: float) -> Distribution:
    return Mixture([TRUTH, Normal(6.25, 0.01)], [1 - share, share])


def agnostic() -> None:
    key = SharedRandomness("benchmark of the agnostic learner")
    learner = MinimumDistanceLearner(LIST)
    for alpha in ("0.5", "0.9"):
        sizes = agnostic_sizes(learner, alpha=alpha, beta="0.1", epsilon=1, delta="1e-6", agnostic_factor=3)
        print(
            f"L11, alpha = {alpha}, beta = 0.1: n = {sizes.required_records:.2g} (T = {sizes.parts}, k = "
            f"{sizes.blocks}, b = {sizes.block_size})",
            flush=True,
        )
    for share in (0.05, 0.003):
        law = contaminated(share)
        best = min(total_variation(law, one) for one in LIST)
        for parts, block_size in ((50, 500), (200, 500), (200, 1250)):
            private = AgnosticPrivateLearner(learner, epsilon=1, delta="1e-6", parts=parts, blocks=BLOCKS)
            size = parts * BLOCKS * block_size
            errors, plain, few, took = [], [], [], 0.0
            for run in range(5):
                here = key.child(str(share), parts, block_size, run)
                data = law.sample(size, here.stream("data"))
                start = time.perf_counter()
                value = private.release(data, shared=here).value
                took += time.perf_counter() - start
                errors.append(1.0 if isinstance(value, NoAnswerType) else total_variation(value, law))
                plain.append(total_variation(learner.fit(data, seed=0), law))
                few.append(total_variation(learner.fit(data[:parts], seed=0), law))
            print(
                f"{share:.1%} contaminated, OPT = {best:.4f}, n = {size:.1e}, T = {parts}, b = {block_size}: private "
                f"error {np.mean(errors):.4f} (worst {max(errors):.4f}) = {np.mean(errors) / best:.2f} OPT; without "
                f"privacy {np.mean(plain):.4f}, from T records {np.mean(few):.4f}; promised multiple 99 OPT = "
                f"{99 * best:.2f}; {took / 5:.1f} s a release",
                flush=True,
            )


def boosted() -> None:
    for name, learner in (("2 labels", EmpiricalLearner(range(2))), ("normal on R", GaussianLearner(dimension=1))):
        for beta in ("0.1", "0.01", "0.001"):
            settings = {"alpha": "0.1", "beta": beta, "epsilon": 1, "delta": "1e-6"}
            black_box = BlackBoxPrivateLearner(learner, **settings).required_records
            theorem = BoostedPrivateLearner(learner, **settings).required_records
            try:
                certified = f"{BoostedPrivateLearner(learner, method='certified', **settings).required_records:.2g}"
            except InvalidParameter:
                certified = "none"
            print(
                f"{name}, beta = {beta}: L9 {black_box:.2g}, L10 {theorem:.2g} (L9 / L10 = "
                f"{black_box / theorem:.2g}), certified {certified}",
                flush=True,
            )


def main() -> None:
    parts = {"agnostic": agnostic, "boosted": boosted}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
