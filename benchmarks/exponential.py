"""CPU time of one selection among 1e5 candidates, with the peers measured in the same run if they are installed.

Run it in an environment that has accord; for the ratios add the peers (benchmarks only, accord does not need them)::

    pip install opendp diffprivlib "scikit-learn<1.7"
    python benchmarks/exponential.py [--candidates 100000]

Times are medians over rounds in which every case is run once, operating-system randomness included. For diffprivlib,
which is built for one score vector, building and drawing are both timed. The last line tells how much the time of each
depends on the scores: slowest case over fastest.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.mechanisms import Exponential, PermuteAndFlip

Scores = NDArray[np.float64]
Runner = Callable[[Scores], Any]
LIMIT_MS = 10.0
LARGEST_SPREAD = 1.25


def cases(candidates: int) -> dict[str, Scores]:
    generator = np.random.default_rng(0)
    dominant = np.zeros(candidates)
    dominant[candidates // 3] = 1e3
    return {
        "random": generator.random(candidates) * 20,
        "equal": np.zeros(candidates),
        "dominant": dominant,
        "both signs": generator.normal(size=candidates) * 100,
    }


def opendp() -> dict[str, Runner]:
    try:
        import opendp.prelude as dp  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
    except ImportError:
        return {}
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)

    def noisy_max(measure: Any) -> Any:
        return dp.m.make_noisy_max(*space, measure, scale=2.0)

    return {
        "opendp, permute and flip": noisy_max(dp.max_divergence()),
        "opendp, exponential": noisy_max(dp.zero_concentrated_divergence()),
    }


def diffprivlib() -> dict[str, Runner]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from diffprivlib import mechanisms  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
    except ImportError:
        return {}

    def build(kind: Any) -> Runner:
        return lambda scores: kind(epsilon=1.0, sensitivity=1.0, utility=scores.tolist()).randomise()

    return {
        "diffprivlib, permute and flip": build(mechanisms.PermuteAndFlip),
        "diffprivlib, exponential": build(mechanisms.Exponential),
    }


def milliseconds(runner: Runner, inputs: dict[str, Scores], *, rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in inputs}
    for turn in range(rounds + 1):
        for name, scores in inputs.items():
            start = time.process_time()
            runner(scores)
            if turn:  # the first round builds tables
                times[name].append(1e3 * (time.process_time() - start))
    return {name: median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=100_000)
    arguments = parser.parse_args()
    inputs = cases(arguments.candidates)
    exponential = Exponential(sensitivity=1, epsilon=1)
    flips = PermuteAndFlip(sensitivity=1, epsilon=1)
    mine = milliseconds(exponential.select, inputs, rounds=51)
    runs = {"accord, exponential": mine, "accord, permute and flip": milliseconds(flips.select, inputs, rounds=51)}
    peers = opendp() | diffprivlib()
    if not peers:
        print("No peer is installed: accord alone. For ratios: pip install opendp diffprivlib 'scikit-learn<1.7'")
    for name, runner in peers.items():
        runs[name] = milliseconds(runner, inputs, rounds=5)
    print(f"CPU milliseconds for one choice among {arguments.candidates:,}; in brackets over accord's exponential")
    for name, times in runs.items():
        cells = [f"{case} {value:8.2f} ({value / mine[case]:5.1f} x)" for case, value in times.items()]
        print(
            f"{name:31}" + "   ".join(cells) + f"   spread {max(times.values()) / min(times.values()):.2f}", flush=True
        )
    fast = "kept" if max(mine.values()) <= LIMIT_MS else "MISSED"
    even = "kept" if max(mine.values()) <= LARGEST_SPREAD * min(mine.values()) else "MISSED"
    print(f"limit {LIMIT_MS:.0f} ms: {fast}; spread {LARGEST_SPREAD}: {even}")


if __name__ == "__main__":
    main()
