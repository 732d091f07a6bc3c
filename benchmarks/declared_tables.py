"""Errors, time and memory of a declared table from file to accounts, with bounds and without.

    python benchmarks/declared_tables.py [--data DIR] [--seeds 5] [--epsilon 1]

Uses the example flights; with DIR, also diamonds.parquet (ggplot2's table). Prints the mean total variation of single
columns and of pairs, each also as a multiple of what as many rows drawn again from the real ones have, and the ratio of
the error without bounds to that with them.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import resource
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow.parquet as pq

from accord.errors import NothingReleased
from accord.evaluation import evaluate
from accord.synthesis.release import release_by_tables
from accord.tables import Column, Schema, Table, read_schema, read_table

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
FLIGHT_BOUNDS = {"dep_delay": (-60, 1500), "arr_delay": (-100, 1500), "air_time": (0, 800), "distance": (0, 5200)}
DIAMONDS = {
    "carat": (0.2, 5.2),
    "depth": (50.0, 75.0),
    "table": (50.0, 75.0),
    "price": (300.0, 20000.0),
    "x": (3.0, 11.0),
}


def with_bounds(table: Table, bounds: dict[str, tuple[float, float]]) -> Table:
    columns = tuple(
        Column(**{**fields(column), "bounds": bounds[column.name]}) if column.name in bounds else column
        for column in table.schema.columns
    )
    values = tuple(
        np.clip(one, *bounds[column.name]) if column.name in bounds else one
        for column, one in zip(table.schema.read, table.columns, strict=True)
    )
    return Table(columns=values, units=None, schema=Schema(columns=columns))


def fields(column: Column) -> dict[str, object]:
    return {name: getattr(column, name) for name in column.__dataclass_fields__}


def flights() -> dict[str, Table]:
    free = read_table(EXAMPLES / "flights.parquet", schema=read_schema(EXAMPLES / "flights.toml"))
    return {"flights9, no bounds": free, "flights9, bounds": with_bounds(free, FLIGHT_BOUNDS)}


def diamonds(data: Path) -> dict[str, Table]:
    found = pq.read_table(data / "diamonds.parquet")
    columns = tuple(Column(name=name, kind="number", decimals=0 if name == "price" else 2) for name in DIAMONDS)
    values = tuple(np.asarray(found[name].to_pylist(), dtype=float) for name in DIAMONDS)
    free = Table(columns=values, units=None, schema=Schema(columns=columns))
    return {"diamonds5, no bounds": free, "diamonds5, bounds": with_bounds(free, DIAMONDS)}


def measured(table: Table, *, epsilon: str, seeds: int) -> tuple[float, float, float]:
    """Return median errors of one and two columns and the floor of two, printing a line."""
    ones, twos, floors, corrs, spent = [], [], [], [], []
    no_answer = 0
    for seed in range(seeds):
        start = time.process_time()
        try:
            release = release_by_tables(table, epsilon=epsilon, delta="1e-6")
        except NothingReleased:
            no_answer += 1
            continue
        rows = release.rows(len(table), seed=seed)
        spent.append(time.process_time() - start)
        found = evaluate(table.columns, rows, schema=table.schema)
        ones.append(found.one_way)
        twos.append(found.two_way or 0.0)
        floors.append(sum(pair.floor for pair in found.pairs) / len(found.pairs))
        corrs.append(found.correlation_error or 0.0)
    one, two, floor = median(ones), median(twos), median(floors)
    print(
        f"  1-way {one:.4f}, 2-way {two:.4f} ({two / floor:.1f} x a resample's), correlations {median(corrs):.4f}; "
        f"{median(spent):.1f} s of CPU, no answer {no_answer} of {seeds}",
        flush=True,
    )
    return one, two, floor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilon", default="1")
    given = parser.parse_args()
    if given.data is None:
        print("without --data left out: diamonds", flush=True)
    tables = flights() | (diamonds(given.data) if given.data else {})
    errors = {}
    for name, table in tables.items():
        print(f"{name}: {len(table)} rows, {len(table.columns)} columns, epsilon {given.epsilon}", flush=True)
        errors[name] = measured(table, epsilon=given.epsilon, seeds=given.seeds)[1]
    for name in {name.partition(",")[0] for name in errors}:
        ratio = errors[f"{name}, no bounds"] / errors[f"{name}, bounds"]
        print(f"{name}: 2-way error without bounds / with bounds: {ratio:.2f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
