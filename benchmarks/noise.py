"""CPU time of a million noisy values, with the peers measured in the same run if they are installed.

Run it in an environment that has accord; for the ratios add the peers (benchmarks only, accord does not need them)::

    pip install opendp diffprivlib "scikit-learn<1.7"
    python benchmarks/noise.py [--size 1000000] [--peer-size 20000]

A peer is run on fewer values and its time is scaled up in proportion. Times are medians, operating-system randomness
included.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from accord.mechanisms import DiscreteGaussian, DiscreteLaplace, Laplace

Runner = Callable[[int], Any]


def seconds(run: Runner, size: int, *, repeats: int) -> float:
    run(size)  # tables, imports
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run(size)
        times.append(time.process_time() - start)
    return median(times)


def ours() -> dict[str, Runner]:
    def discrete(scale: int) -> Runner:
        mechanism = DiscreteLaplace(sensitivity=1, scale=scale)
        return lambda size: mechanism.release(np.zeros(size, dtype=np.int64))

    def gaussian(sigma: int) -> Runner:
        mechanism = DiscreteGaussian(sensitivity=1, sigma=sigma)
        return lambda size: mechanism.release(np.zeros(size, dtype=np.int64), delta="0.5")

    real = Laplace(sensitivity=1, epsilon=1)
    runs: dict[str, Runner] = {f"DiscreteLaplace, scale {scale}": discrete(scale) for scale in (1, 20, 1000)}
    runs["Laplace, floats"] = lambda size: real.release(np.linspace(-1000, 1000, size))
    runs |= {f"DiscreteGaussian, sigma {sigma}": gaussian(sigma) for sigma in (1, 20, 1000)}
    return runs


def opendp() -> dict[str, Runner]:
    try:
        import opendp.prelude as dp  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
    except ImportError:
        return {}
    dp.enable_features("contrib")

    def integers(make: Any, metric: Any, scale: int) -> Runner:
        mechanism = make(dp.vector_domain(dp.atom_domain(T=int)), metric, scale=float(scale))
        return lambda size: mechanism([0] * size)

    def floats(size: int) -> Any:
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
        return dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=1.0, k=-40)([0.5] * size)

    runs: dict[str, Runner] = {
        f"DiscreteLaplace, scale {scale}": integers(dp.m.make_laplace, dp.l1_distance(T=int), scale)
        for scale in (1, 20, 1000)
    }
    runs["Laplace, floats"] = floats
    for sigma in (1, 20, 1000):
        runs[f"DiscreteGaussian, sigma {sigma}"] = integers(dp.m.make_gaussian, dp.l2_distance(T=float), sigma)
    return runs


def diffprivlib() -> dict[str, Runner]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from diffprivlib import mechanisms  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
    except ImportError:
        return {}

    def geometric(scale: int) -> Runner:
        mechanism = mechanisms.Geometric(epsilon=1 / scale, sensitivity=1)
        return lambda size: [mechanism.randomise(0) for _ in range(size)]

    real = mechanisms.Laplace(epsilon=1.0, sensitivity=1.0)
    runs: dict[str, Runner] = {f"DiscreteLaplace, scale {scale}": geometric(scale) for scale in (1, 20, 1000)}
    runs["Laplace, floats"] = lambda size: [real.randomise(0.5) for _ in range(size)]
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--peer-size", type=int, default=20_000)
    arguments = parser.parse_args()
    peers = {name: runs for name, runs in (("opendp", opendp()), ("diffprivlib", diffprivlib())) if runs}
    if not peers:
        print("No peer is installed: accord alone. For ratios: pip install opendp diffprivlib 'scikit-learn<1.7'")
    print(f"CPU seconds for {arguments.size:,} values; in brackets how many times accord is faster")
    for name, run in ours().items():
        mine = seconds(run, arguments.size, repeats=5)
        cells = [f"{name:27} accord {mine:7.4f}"]
        for peer, runs in peers.items():
            if name in runs:
                theirs = seconds(runs[name], arguments.peer_size, repeats=3) * arguments.size / arguments.peer_size
                cells.append(f"{peer} {theirs:7.2f} ({theirs / mine:5.0f} x)")
        print("   ".join(cells), flush=True)


if __name__ == "__main__":
    main()
