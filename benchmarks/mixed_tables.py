"""Errors, time and memory of `MarginalLearner` on mixed tables, and of the peers that are installed.

Run it in an environment that has accord; for the ratios add a peer (a benchmark only, accord does not need it)::

    pip install dpmm
    python benchmarks/mixed_tables.py --data DIR [--tasks flights5,cps5] [--seeds 5] [--epsilon 1] [--peer]

DIR holds flights.parquet, cps_sw8.parquet, diamonds.parquet and us_military.parquet (the tables of nycflights13, AER,
ggplot2 and openintro). Columns, bounds and levels of a task are public; the guarantee is (epsilon, 1e-6) under
replacing one record. Errors are mean total variation distances between tables of the synthetic records, as many as the
real ones, and those of the data; each task runs in a process of its own, on one thread. A peer whose guarantee is for
adding or removing a record runs at the epsilon that gives the same guarantee under replacing one.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import itertools
import math
import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from accord.marginals import Column, Domain, MarginalLearner, NumericBinning

CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
DELTA = "1e-6"
REPLACE_ONE = 0.69  # dpmm's epsilon for adding or removing a record with half the rho of epsilon 1


@dataclass(frozen=True)
class Task:
    """A table with public columns; numbers have bounds."""

    codes: np.ndarray
    columns: list[Column]
    numbers: np.ndarray | None = None
    bounds: tuple[tuple[float, float], ...] = ()


def numbers_of(table: Any, name: str) -> np.ndarray:
    return np.array([math.nan if cell is None else cell for cell in table[name].to_pylist()], dtype=float)


def codes_of(table: Any, name: str, levels: Sequence[str]) -> np.ndarray:
    places = {level: place for place, level in enumerate(levels)}
    return np.array([places[str(cell)] for cell in table[name].to_pylist()])


def ordered(name: str, size: int) -> Column:
    return Column(name, size, kind="ordered")


def flights5(data: Path) -> Task:
    table = pq.read_table(data / "flights.parquet", columns=["month", "carrier", "origin", "hour", "arr_delay"])
    delay = numbers_of(table, "arr_delay")
    status = np.where(np.isnan(delay), 4, np.digitize(np.nan_to_num(delay), [0.5, 15.5, 60.5]))
    month, hour = numbers_of(table, "month").astype(int) - 1, numbers_of(table, "hour").astype(int)
    carrier, origin = codes_of(table, "carrier", CARRIERS), codes_of(table, "origin", ["EWR", "JFK", "LGA"])
    columns = [
        ordered("month", 12),
        Column("carrier", 16),
        Column("origin", 3),
        ordered("hour", 24),
        Column("status", 5),
    ]
    return Task(np.stack([month, carrier, origin, hour, status], axis=1), columns)


def cps5(data: Path) -> Task:
    table = pq.read_table(data / "cps_sw8.parquet")
    codes = [
        codes_of(table, "gender", ["male", "female"]),
        codes_of(table, "region", ["Northeast", "Midwest", "South", "West"]),
        np.clip(np.round(numbers_of(table, "education")).astype(int), 6, 20) - 6,
        np.clip(numbers_of(table, "age").astype(int), 21, 64) - 21,
        np.clip((numbers_of(table, "earnings") / 4).astype(int), 0, 19),
    ]
    columns = [Column("gender", 2), Column("region", 4), ordered("educ", 15), ordered("age", 44), ordered("earn", 20)]
    return Task(np.stack(codes, axis=1), columns)


def diam4(data: Path) -> Task:
    table = pq.read_table(data / "diamonds.parquet")
    price = (np.log(numbers_of(table, "price")) - math.log(300)) / (math.log(20000) - math.log(300))
    codes = [
        codes_of(table, "cut", ["Fair", "Good", "Very Good", "Premium", "Ideal"]),
        codes_of(table, "color", list("DEFGHIJ")),
        codes_of(table, "clarity", ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]),
        np.clip(np.floor(price * 10), 0, 9).astype(int),
    ]
    columns = [ordered("cut", 5), ordered("color", 7), ordered("clarity", 8), ordered("price", 10)]
    return Task(np.stack(codes, axis=1), columns)


def military6(data: Path) -> Task:
    table = pq.read_table(data / "us_military.parquet")
    codes, columns = [], []
    for name, size in (("grade", 3), ("branch", 4), ("gender", 2), ("race", 7), ("hisp", 2)):
        cells = np.array([str(cell) for cell in table[name].to_pylist()])
        codes.append(np.unique(cells, return_inverse=True)[1])
        columns.append(Column(name, size))
    codes.append(numbers_of(table, "rank").astype(int) - 1)
    return Task(np.stack(codes, axis=1), [*columns, ordered("rank", 11)])


def diamonds5(data: Path) -> Task:
    table = pq.read_table(data / "diamonds.parquet")
    real = numbers_of(table, "x") > 0
    logs = {name: np.log(np.where(real, numbers_of(table, name), 1)) for name in ("carat", "price", "x")}
    columns = [logs["carat"], numbers_of(table, "depth"), numbers_of(table, "table"), logs["price"], logs["x"]]
    bounds = ((math.log(0.2), math.log(5.2)), (50.0, 75.0), (50.0, 75.0), (math.log(300), math.log(20000)))
    bounds = (*bounds, (math.log(3.0), math.log(11.0)))
    numbers = np.stack([np.clip(one[real], *ends) for one, ends in zip(columns, bounds, strict=True)], axis=1)
    return Task(np.zeros((0, 0), dtype=int), [], numbers, bounds)


def minutes(name: str, low: float, high: float) -> Callable[[Path], Task]:
    def read(data: Path) -> Task:
        cells = numbers_of(pq.read_table(data / "flights.parquet", columns=[name]), name)
        return Task(np.zeros((0, 0), dtype=int), [], cells[~np.isnan(cells)][:, None], ((low, high),))

    return read


TASKS: dict[str, Callable[[Path], Task]] = {
    "flights5": flights5,
    "cps5": cps5,
    "diam4": diam4,
    "military6": military6,
    "diamonds5": diamonds5,
    "arr_delay": minutes("arr_delay", -100.0, 400.0),
    "air_time": minutes("air_time", 0.0, 700.0),
}


def variation(left: np.ndarray, right: np.ndarray, shape: Sequence[int]) -> float:
    """Total variation distance of two tables of codes."""
    cells = math.prod(shape)
    counts = [
        np.bincount(np.ravel_multi_index(tuple(codes.T), tuple(shape)), minlength=cells) / len(codes)
        for codes in (left, right)
    ]
    return float(np.abs(counts[0] - counts[1]).sum() / 2)


def table_errors(real: np.ndarray, fake: np.ndarray, shape: Sequence[int]) -> dict[str, float]:
    found = {}
    for way in (1, 2, 3):
        tables = list(itertools.combinations(range(len(shape)), way))
        errors = [variation(real[:, t], fake[:, t], [shape[c] for c in t]) for t in tables]
        if errors:
            found[f"{way}-way"] = float(np.mean(errors))
    return found


def cut(numbers: np.ndarray, bounds: Sequence[tuple[float, float]], cells: int) -> np.ndarray:
    shares = [(numbers[:, c] - low) / (high - low) for c, (low, high) in enumerate(bounds)]
    return np.stack([np.clip(np.floor(one * cells), 0, cells - 1).astype(int) for one in shares], axis=1)


def number_errors(real: np.ndarray, fake: np.ndarray, bounds: Sequence[tuple[float, float]]) -> dict[str, float]:
    if len(bounds) == 1:
        fine = round(bounds[0][1] - bounds[0][0])
        return {
            "50 bins": variation(cut(real, bounds, 50), cut(fake, bounds, 50), [50]),
            "per minute": variation(cut(real, bounds, fine), cut(fake, bounds, fine), [fine]),
        }
    pairs = list(itertools.combinations(range(len(bounds)), 2))
    coarse = [cut(one, bounds, 20) for one in (real, fake)]
    fine_cells = [cut(one, bounds, 40) for one in (real, fake)]
    difference = np.abs(np.corrcoef(real.T) - np.corrcoef(fake.T))[np.triu_indices(len(bounds), 1)]
    one_way = [variation(fine_cells[0][:, [c]], fine_cells[1][:, [c]], [40]) for c in range(len(bounds))]
    return {
        "1-way": float(np.mean(one_way)),
        "2-way": float(np.mean([variation(coarse[0][:, p], coarse[1][:, p], [20, 20]) for p in pairs])),
        "correlation": float(difference.mean()),
    }


def clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def since(start: tuple[float, float]) -> dict[str, float]:
    wall, processor = clocks()
    return {"seconds": wall - start[0], "CPU seconds": processor - start[1]}


def ours(task: Task, epsilon: float, generator: np.random.Generator) -> tuple[np.ndarray, dict[str, float]]:
    start = clocks()
    if task.numbers is None:
        learner = MarginalLearner(Domain(task.columns), epsilon=epsilon, delta=DELTA)
        return learner.release(task.codes).value.rounded(len(task.codes), generator), since(start)
    numbers, single = task.numbers, task.numbers.shape[1] == 1
    binnings = [
        NumericBinning.equal(low, high, cells=round(high - low), decimals=0) if single else
        NumericBinning.equal(low, high, cells=40)
        for low, high in task.bounds
    ]  # fmt: skip
    codes = np.stack([binning.encode(numbers[:, c]) for c, binning in enumerate(binnings)], axis=1)
    domain = Domain([binning.column(str(c)) for c, binning in enumerate(binnings)])
    model = MarginalLearner(domain, epsilon=epsilon, delta=DELTA).release(codes).value
    fake = model.rounded(len(numbers), generator)
    decoded = [binning.decode(fake[:, c], generator, masses=model.marginal([c])) for c, binning in enumerate(binnings)]
    return np.stack(decoded, axis=1), since(start)


def dpmm(task: Task, epsilon: float, seed: int) -> tuple[np.ndarray, dict[str, float]]:
    """AIM of dpmm with three rounds a column and 500 iterations: with its defaults it does not end in minutes."""
    import pandas as pd  # type: ignore[import-untyped, import-not-found, unused-ignore]  # noqa: PLC0415
    from dpmm.models.aim import AIMGM  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    codes, shape = task.codes, [column.size for column in task.columns]
    if task.numbers is not None:
        cells = 40 if task.numbers.shape[1] > 1 else 50
        codes, shape = cut(task.numbers, task.bounds, cells), [cells] * task.numbers.shape[1]
    frame = pd.DataFrame(codes, columns=[str(c) for c in range(len(shape))])
    start = clocks()
    model = AIMGM(
        epsilon=epsilon * REPLACE_ONE,
        delta=float(DELTA),
        rounds=3 * len(shape),
        n_iters=500,
        domain={str(c): size for c, size in enumerate(shape)},
        random_state=np.random.RandomState(seed),
        n_jobs=1,
    )
    model.fit(frame)
    fake = model.generate(len(codes)).to_numpy().astype(int)
    figures = since(start)
    if task.numbers is None:
        return fake, figures
    places = (fake + np.random.default_rng(seed).random(fake.shape)) / cells
    lows, highs = np.array(task.bounds).T
    return lows + places * (highs - lows), figures


def run(name: str, data: str, epsilon: float, seed: int, peer: bool, queue: Any) -> None:  # noqa: FBT001, PLR0917
    task = TASKS[name](Path(data))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if peer:
        fake, figures = dpmm(task, epsilon, seed)
    else:
        fake, figures = ours(task, epsilon, np.random.default_rng(seed))
    figures["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["MB more than the data"] = figures["MB"] - before / 1024
    if task.numbers is None:
        errors = table_errors(task.codes, fake, [column.size for column in task.columns])
    else:
        errors = number_errors(task.numbers, fake, task.bounds)
    queue.put({**errors, **figures})


def alone(name: str, data: str, epsilon: float, seed: int, *, peer: bool) -> dict[str, float]:
    """Run in a process of its own, so that times and memory are its own."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=run, args=(name, data, epsilon, seed, peer, queue))
    process.start()
    found: dict[str, float] = queue.get()
    process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--peer", action="store_true", help="run dpmm's AIM too")
    arguments = parser.parse_args()
    for name in arguments.tasks.split(","):
        medians = {}
        for peer in (False, True) if arguments.peer else (False,):
            seeds = range(1 if peer else arguments.seeds)
            runs = [alone(name, arguments.data, arguments.epsilon, seed, peer=peer) for seed in seeds]
            medians[peer] = {key: median(one[key] for one in runs) for key in runs[0]}
            figures = ", ".join(f"{key} {value:.5g}" for key, value in medians[peer].items())
            print(f"{name} {'dpmm AIM' if peer else 'accord'} ({len(runs)} seeds): {figures}", flush=True)
        if arguments.peer:
            ratios = ", ".join(f"{key} {medians[True][key] / medians[False][key]:.2f}" for key in medians[False])
            print(f"{name} dpmm AIM / accord: {ratios}", flush=True)


if __name__ == "__main__":
    main()
