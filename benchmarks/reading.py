"""Memory and speed of reading a CSV file: in batches, and as a whole.

    python benchmarks/reading.py [--megabytes 2000] [--folder DIR]

Writes a file of seven mixed columns into a temporary folder, reads it in one fresh process for each way, and prints
rows a second, and the peak of memory above an idle process as a multiple of the file's size.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from accord.tables import parse_schema, read_batches, read_table

SCHEMA = """
version = 2
unit = "person"
[[columns]]
name = "age"
kind = "integer"
bounds = [0, 120]
missing = ["NA"]
unreadable = "missing"
[[columns]]
name = "income"
kind = "number"
decimals = 2
[[columns]]
name = "weight"
kind = "number"
[[columns]]
name = "region"
kind = "category"
categories = ["north", "south", "east", "west"]
[[columns]]
name = "smokes"
kind = "boolean"
true = ["yes"]
false = ["no"]
[[columns]]
name = "seen"
kind = "date"
"""
PIECE = 100_000


def write(path: Path, *, megabytes: int) -> int:
    """Write a file of about this size, the same piece again and again; return its records."""
    generator = np.random.default_rng(1)
    ages = [str(age) if age < 100 else "NA" for age in generator.integers(0, 103, PIECE)]
    days = np.datetime64("2000-01-01") + generator.integers(0, 9000, PIECE)
    columns = [
        [str(one) for one in generator.integers(0, PIECE // 3, PIECE)],
        ages,
        [f"{one:.2f}" for one in generator.lognormal(10, 1, PIECE)],
        [repr(float(one)) for one in generator.normal(70, 15, PIECE)],
        generator.choice(["north", "south", "east", "west"], PIECE).tolist(),
        generator.choice(["yes", "no"], PIECE).tolist(),
        [str(one) for one in days],
        ['"a note, with a comma"'] * PIECE,
    ]
    piece = "".join(",".join(record) + "\n" for record in zip(*columns, strict=True)).encode()
    times = max(1, megabytes * 1_000_000 // len(piece))
    with path.open("wb") as handle:
        handle.write(b"person,age,income,weight,region,smokes,seen,note\n")
        for _ in range(times):
            handle.write(piece)
    return times * PIECE


def in_batches(path: Path) -> int:
    return sum(len(batch) for batch in read_batches(path, schema=parse_schema(SCHEMA)))


def whole(path: Path) -> int:
    return len(read_table(path, schema=parse_schema(SCHEMA)))


WAYS: dict[str, Callable[[Path], int]] = {"read_batches": in_batches, "read_table": whole}


def peak() -> float:
    """Return the largest memory of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def measured(way: str, path: Path) -> None:
    """Read in one way and print what it took, as JSON."""
    idle, started, begun = peak(), time.perf_counter(), time.process_time()
    records = WAYS[way](path)
    taken = {"wall": time.perf_counter() - started, "cpu": time.process_time() - begun}
    print(json.dumps({"records": records, "memory": peak() - idle, "idle": idle, **taken}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--way", choices=tuple(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.way is not None:
        measured(asked.way, asked.file)
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = Path(folder) / "large.csv"
        records = write(path, megabytes=asked.megabytes)
        size = path.stat().st_size / 1e6
        print(f"{records} records, {size:.0f} MB")
        for way in WAYS:
            words = [sys.executable, __file__, "--way", way, "--file", str(path)]
            done = subprocess.run(words, check=True, capture_output=True, text=True, env=dict(os.environ))  # noqa: S603 - itself
            found = json.loads(done.stdout)
            if found["records"] != records:
                raise SystemExit(f"{way} read {found['records']} records of {records}")
            print(
                f"{way}: {records / found['wall'] / 1e3:.0f} thousand rows/s ({found['cpu']:.1f} s CPU, "
                f"{size / found['wall']:.0f} MB/s), memory {found['memory']:.0f} MB above {found['idle']:.0f} = "
                f"{found['memory'] / size:.2f} of the file"
            )


if __name__ == "__main__":
    main()
