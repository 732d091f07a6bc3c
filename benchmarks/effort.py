"""Expected and measured time and memory of releases of tables, from the example flights many times over.

    python benchmarks/effort.py [--copies 1 10 30] [--workers 2]

Each size runs in a fresh process: reading files a batch at a time, the release, and 10,000 rows. Prints CPU seconds
and the peak of resident memory, each with its ratio to what ``--dry-run`` expects, which should be from 1/3 to 3. With
workers also the time of counting all pairs of columns, in at most 32 groups each: one worker against so many, in turn,
best of eight. 90 copies are 3e7 rows, for a night; 297 are 1e8 rows, which take some ten minutes, 4 GB of memory and
600 MB of disk.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from accord.synthesis.on_workers import coded_on_workers
from accord.synthesis.task import schema_of, task_of
from accord.synthesis.terms import terms_of
from accord.workers import DaskWorkers

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
GROUPS = 32
TASK = task_of(schema_of(EXAMPLES / "flights.toml"), terms_of(epsilon=1, delta="1e-8"))


def one(folder: Path) -> None:
    """Release a folder and print what it took, as JSON."""
    began = time.process_time()
    table = TASK.read(folder)
    read = time.process_time() - began
    TASK.run(table).sample(10_000, seed=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"read": read, "seconds": time.process_time() - began, "bytes": peak}))


def counted(folder: Path, *, workers: int) -> tuple[float, float]:
    """Return the least time of eight in which all pairs were counted by one worker, and by several, in turn."""
    with ExitStack() as stack:
        engines = []
        for count in (1, workers):
            own = stack.enter_context(DaskWorkers.local(count))
            engine = stack.enter_context(coded_on_workers(folder, schema=TASK.schema, workers=own)).engine()
            runs = {place: np.arange(0, size, -(-size // GROUPS)) for place, size in enumerate(engine.shape)}
            engines.append(engine.in_runs(runs).recoded())  # as a release does once cells are known
        pairs = list(combinations(range(len(engines[0].shape)), 2))
        times: list[list[float]] = [[], []]
        for _ in range(8):
            for engine, taken in zip(engines, times, strict=True):
                began = time.perf_counter()
                engine.count(pairs)
                taken.append(time.perf_counter() - began)
        return min(times[0]), min(times[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 10, 30])
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one is not None:
        one(asked.one)
        return
    flights = pq.read_table(EXAMPLES / "flights.parquet")
    for copies in asked.copies:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(copies):
                pq.write_table(flights, Path(folder) / f"{number:04}.parquet")
            expected = TASK.outlook(copies * flights.num_rows).effort
            assert expected is not None
            words = [sys.executable, __file__, "--one", folder]
            done = subprocess.run(words, capture_output=True, check=True, text=True)  # noqa: S603 - this very file
            took = json.loads(done.stdout)
            print(
                f"{copies * flights.num_rows} rows: reading {took['read']:.1f} CPU s, all {took['seconds']:.1f} CPU s "
                f"({took['seconds'] / expected.seconds:.2f} of what was expected), {took['bytes'] / 1e9:.2f} GB "
                f"({took['bytes'] / expected.memory:.2f})"
            )
            if asked.workers:
                alone, together = counted(Path(folder), workers=asked.workers)
                print(
                    f"  counting: {alone:.2f} s by one worker, {alone / together:.2f} times faster by {asked.workers}"
                )


if __name__ == "__main__":
    main()
