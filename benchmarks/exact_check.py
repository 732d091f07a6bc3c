"""Exact check of two laws with 1e5 atoms, both directions, on one core.

The peer is dp-accounting, which is no dependency of accord. To measure it in the same run::

    uv pip install dp-accounting     # into the environment that runs this script

CPU time, best of several runs, from the same two dicts of float probabilities. accord computes in whole numbers and
looks both ways; dp-accounting rounds to a grid of log ratios of width 1e-4 and, without ``symmetric=False``, looks one
way only.
"""

import importlib
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from accord.laws import FiniteLaw, smallest_delta, smallest_epsilon

ATOMS = 100_000
EPSILON = 1.0
REPEATS = 7
LIMIT_MS = 100.0


def cpu_ms(work: Callable[[], Any]) -> tuple[float, Any]:
    """Best CPU time in milliseconds, and the last result."""
    best, result = math.inf, None
    for _ in range(REPEATS):
        start = time.process_time()
        result = work()
        best = min(best, 1e3 * (time.process_time() - start))
    return best, result


def two_dicts() -> tuple[dict[int, float], dict[int, float]]:
    generator = np.random.default_rng(0)
    rows = []
    for _ in range(2):
        weights = generator.exponential(size=ATOMS)
        rows.append(dict(enumerate((weights / weights.sum()).tolist())))
    return rows[0], rows[1]


def peer(p: dict[int, float], q: dict[int, float]) -> list[tuple[str, Callable[[], Any]]]:
    try:
        pld = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    except ImportError:
        print("dp-accounting is not installed: no ratio (see the head of this script)")
        return []
    first = {atom: math.log(weight) for atom, weight in p.items()}
    second = {atom: math.log(weight) for atom, weight in q.items()}

    def work(*, symmetric: bool) -> float:
        made = pld.from_two_probability_mass_functions(first, second, symmetric=symmetric)
        return float(made.get_delta_for_epsilon(EPSILON))

    return [
        ("dp-accounting, one direction", lambda: work(symmetric=True)),
        ("dp-accounting, both directions", lambda: work(symmetric=False)),
    ]


def main() -> None:
    p, q = two_dicts()
    laws = FiniteLaw(p), FiniteLaw(q)
    check, delta = cpu_ms(lambda: smallest_delta(*laws, epsilon=EPSILON))
    whole, _ = cpu_ms(lambda: smallest_delta(FiniteLaw(p), FiniteLaw(q), epsilon=EPSILON))
    search, epsilon = cpu_ms(lambda: smallest_epsilon(*laws, delta=delta))
    print(f"{ATOMS} atoms, epsilon {EPSILON}")
    print(f"accord smallest_delta, both directions       {check:8.1f} ms   delta {float(delta):.15f} (within 1e-50)")
    print(f"accord the same, with making both laws       {whole:8.1f} ms")
    print(f"accord smallest_epsilon at that delta        {search:8.1f} ms   epsilon {epsilon:.15f}")
    for name, work in peer(p, q):
        took, value = cpu_ms(work)
        print(f"{name:44} {took:8.1f} ms   delta {value:.15f}")
        print(f"    ratio to accord: {took / check:.1f} (check alone), {took / whole:.1f} (with making both laws)")
    assert check <= LIMIT_MS, f"{check:.1f} ms is more than {LIMIT_MS} ms"


if __name__ == "__main__":
    main()
