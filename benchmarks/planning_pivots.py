"""Make ``src/accord/planning/pivots.json``: certified sizes for normal laws (method C), one row a setting.

Run ``python benchmarks/planning_pivots.py [DIMENSION ...]``; rows of other dimensions stay as they are. Every row is a
function of the seeds below. About ten minutes in all for d = 1 to 3, and as long again for d = 5.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import json
import sys
import time
from pathlib import Path

from accord.theory.planning import certify_normal

TABLE = Path(__file__).parents[1] / "src" / "accord" / "planning" / "pivots.json"
SEEDS = {1: 20_261_131, 2: 20_261_132, 3: 20_261_133, 5: 20_261_205}
SETTINGS = {
    1: [
        *(("0.1", epsilon, 1000) for epsilon in ("1", "2", "4", "0.5", "0.25", "0.1")),
        *((alpha, "1", 1000) for alpha in ("0.2", "0.3", "0.05")),
    ],
    2: [("0.1", "1", 600)],
    3: [("0.1", "1", 400)],
    5: [("0.1", "1", 400)],
}


def main() -> None:
    for dimension in map(int, sys.argv[1:] or map(str, SETTINGS)):
        rows = []
        for alpha, epsilon, runs in SETTINGS[dimension]:
            start = time.perf_counter()
            row = certify_normal(
                dimension=dimension,
                alpha=alpha,
                beta="0.1",
                epsilon=epsilon,
                delta="1e-6",
                runs=runs,
                seed=SEEDS[dimension],
            )
            rows.append(row)
            took = time.perf_counter() - start
            print(
                f"d = {dimension}, alpha {alpha}, epsilon {epsilon}: n = {row['records_needed']}, "
                f"{row['successes']} of {runs} runs, {took:.0f} s",
                flush=True,
            )
            kept = [old for old in json.loads(TABLE.read_text()) if old["dimension"] != dimension]
            TABLE.write_text(json.dumps(sorted([*kept, *rows], key=lambda one: one["dimension"]), indent=1) + "\n")


if __name__ == "__main__":
    main()
