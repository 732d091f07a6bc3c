"""Accuracy of tables by one measure: accord on what a user knows, resampled rows, and dpmm, on the same rows.

    python benchmarks/table_accuracy.py [--data DIR] [--tasks adult,wide-60] [--epsilons 1] [--splits 5|1,2,3|cached]
        [--known e,b,n] [--peer-python PYTHON] [--cache FILE]

DIR holds flights.parquet, cps_sw8.parquet, diamonds.parquet, us_military.parquet and adult.csv (the tables of
nycflights13, AER, ggplot2 and openintro, and UCI's census rows coded by 14 public bins); without it the made-up tables
run alone. 80 % of the rows of a split are learnt from, 20 % tested on; a number of splits asks for fresh ones. The
guarantee is (epsilon, 1e-6) under replacing one record. Knowledge: "e" has the bins of the measure, "b" bounds and
decimals, "n" no bounds; a made-up table may have words of its own. Errors are distances to the training rows; each run
has a process of its own and one thread.

PYTHON is an interpreter with dpmm (``pip install dpmm`` in an environment of its own: it wants old packages). FILE
keeps what peers reached, by task, version, epsilon and split; splits that are in it are not run again.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import math
import multiprocessing
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from accuracy.made_up import Columns
from accuracy.measures import measured
from accuracy.tasks import TASKS, Label, Task

from accord import __version__
from accord.core.verdict import VerdictWarning
from accord.errors import AccordError
from accord.synthesis import SyntheticTable, synthesise_table

DELTA = "1e-6"
MEASURE = 1  # raise it when a measure changes: older results of peers no longer count
PEERS = Path(__file__).parent / "accuracy" / "peers.py"
ERRORS = ("1-way", "2-way", "2-way, worst", "2-way, rarest tenth", "3-way", "rank correlations", "CPU seconds")


@dataclass(frozen=True)
class Run:
    """One tool on one split of a task."""

    task: str
    tool: str
    epsilon: str
    split: int
    data: str
    python: str = ""

    def key(self, version: str) -> str:
        """Return the name of its result in a cache."""
        return "|".join([self.task, self.tool, version, self.epsilon, str(self.split), f"measure {MEASURE}"])


def resampled(train: Columns, *, split: int) -> Columns:
    size = len(next(iter(train.values())))
    drawn = np.random.default_rng([split, 9]).integers(0, size, size)
    return {name: cells[drawn] for name, cells in train.items()}


def ours(task: Task, train: Columns, *, known: str, epsilon: str) -> tuple[Columns, dict[str, float]]:
    given, size = task.given(train), len(next(iter(train.values())))
    start = time.process_time()
    release = synthesise_table(given, task.known[known], epsilon=epsilon, delta=DELTA)
    cells = release.cells(size)
    figures = {"CPU seconds": time.process_time() - start}
    return columns_of(task, release, cells), figures


def columns_of(task: Task, release: SyntheticTable, cells: tuple[np.ndarray, ...]) -> Columns:
    """Return synthetic rows with missing cells, where there are some, filled: the measures know none."""
    found: Columns = {}
    for column, one in zip(release.schema.read, cells, strict=True):
        lost = one < 0 if isinstance(task.columns[column.name], Label) else np.isnan(one)
        kept = one[~lost]
        filled = one.copy()
        if lost.any():
            filled[lost] = np.resize(kept, int(lost.sum())) if len(kept) else 0
        found[column.name] = filled
    return found


def peer(task: Task, train: Columns, run: Run) -> tuple[Columns, dict[str, float]]:
    specs = task.chosen if run.tool.endswith("chosen cells") else task.columns
    codes = np.stack([spec.codes(train[name]) for name, spec in specs.items()], axis=1)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, codes=codes, sizes=np.array([spec.size for spec in specs.values()]))
        method = run.tool.split()[1]
        command = [run.python, str(PEERS), method, run.epsilon, DELTA, str(run.split % 2**32), str(source), str(target)]
        plain = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=plain)  # noqa: S603 - own file
        made = np.load(target)
        fake, (seconds, megabytes) = made["codes"], made["figures"].tolist()
    generator = np.random.default_rng([run.split, 8])
    columns = {name: spec.decode(fake[:, c], generator) for c, (name, spec) in enumerate(specs.items())}
    return columns, {"CPU seconds": seconds, "MB": megabytes}


def work(run: Run, queue: Any) -> None:
    import warnings  # noqa: PLC0415 - a worker's own filter

    warnings.simplefilter("ignore", VerdictWarning)
    task = TASKS[run.task]
    train, test = task.rows(Path(run.data), run.split)
    try:
        if run.tool == "resampled":
            fake, figures = resampled(train, split=run.split), {}
        elif run.tool.startswith("accord "):
            known = run.tool.removeprefix("accord ")
            fake, figures = ours(task, train, known=known, epsilon=run.epsilon)
            figures["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        else:
            fake, figures = peer(task, train, run)
    except (AccordError, subprocess.CalledProcessError) as error:
        queue.put(f"{type(error).__name__}: {str(error)[:300]}")
        return
    queue.put({**measured(task, train, test, fake), **figures})


def alone(run: Run) -> dict[str, float] | str:
    """Run in a process of its own, so that times and memory are its own."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(run, queue))
    process.start()
    while True:
        try:
            found: dict[str, float] | str = queue.get(timeout=5)
            break
        except Exception:  # noqa: BLE001 - the queue is empty
            if not process.is_alive():
                found = "the process ended without a result"
                break
    process.join()
    return found


class Cache:
    """What peers reached, by task, tool, version, epsilon and split."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.found: dict[str, dict[str, float]] = json.loads(path.read_text()) if path and path.exists() else {}

    @property
    def version(self) -> str:
        """The newest version of the peer in it."""
        return max((key.split("|")[2] for key in self.found), default="")

    def keep(self, key: str, result: dict[str, float]) -> None:
        """Add a result; other processes may add theirs between."""
        if self.path is None:
            return
        latest = json.loads(self.path.read_text()) if self.path.exists() else {}
        latest[key] = {name: float(f"{value:.5g}") for name, value in result.items()}
        self.found = latest
        self.path.write_text(json.dumps(latest, indent=1, sort_keys=True) + "\n")

    def splits(self, task: str, *, epsilon: str) -> list[int]:
        """Return the splits of a task that peers have run on."""
        parts = [key.split("|") for key in self.found]
        return sorted({int(part[4]) for part in parts if part[0] == task and part[3] == epsilon})


def version_of(python: str) -> str:
    told = subprocess.run([python, str(PEERS), "version"], check=True, capture_output=True, text=True)  # noqa: S603 - own file
    return told.stdout.strip()


@dataclass(frozen=True)
class Line:
    """Medians of one tool."""

    task: str
    epsilon: str
    tool: str
    figures: dict[str, float]


def markdown(lines: list[Line], *, version: str) -> str:
    """Return tables for a page: one of errors, one of what made-up tables are measured by."""
    words = list(dict.fromkeys(word for line in lines for word in line.figures if word not in {*ERRORS, "MB"}))
    blocks = [f"{datetime.now(tz=UTC):%Y-%m-%d}, accord {__version__}{', ' if version else ''}{version}\n"]
    for columns, chosen in (
        (ERRORS, [line for line in lines if "1-way" in line.figures]),
        (tuple(words), [line for line in lines if any(word in line.figures for word in words)]),
    ):
        if chosen:
            head = ("task", "epsilon", "tool", *columns)
            rows = [
                (line.task, line.epsilon, line.tool, *(figure(line.figures.get(word)) for word in columns))
                for line in chosen
            ]
            blocks.append("\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)) + "\n")
    return "\n".join(blocks)


def figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


@dataclass(frozen=True)
class Comparison:
    """All tools on the same splits of one task."""

    task: str
    epsilon: str
    splits: list[int]
    known: tuple[str, ...]
    data: str
    python: str
    version: str
    cache: Cache
    only_peers: bool

    def tell(self) -> list[Line]:
        """Run what is asked for, print medians and ratios, and return the medians."""
        medians = {}
        for tool in self.tools():
            results = [found for split in self.splits if (found := self.result(tool, split=split)) is not None]
            if results:
                medians[tool] = {key: median(one[key] for one in results) for key in results[0]}
                self.say(f"{tool} ({len(results)} splits)", medians[tool])
        for theirs in (tool for tool in medians if tool.startswith("dpmm ")):
            for tool in (tool for tool in medians if tool.startswith("accord ")):
                self.say(f"{tool} / {theirs}", ratios(medians[tool], medians[theirs]))
        if {"accord b", "accord n"} <= medians.keys():
            self.say("accord n / accord b", ratios(medians["accord n"], medians["accord b"]))
        return [Line(self.task, self.epsilon, tool, figures) for tool, figures in medians.items()]

    def tools(self) -> list[str]:
        """Return what to run, peers before accord."""
        task = TASKS[self.task]
        peers = [f"dpmm {method}" for method in task.peers if self.version]
        if self.only_peers:
            return peers
        known = [word for word in task.known if not self.known or word in self.known]
        return [*(["resampled"] if task.table_errors else []), *peers, *(f"accord {word}" for word in known)]

    def result(self, tool: str, *, split: int) -> dict[str, float] | None:
        """Return what a tool reaches on a split, from the cache for peers; None if it gives nothing."""
        run = Run(self.task, tool, self.epsilon, split, self.data, self.python)
        key = run.key(self.version)
        if tool.startswith("dpmm "):
            if key in self.cache.found:
                return self.cache.found[key]
            if not self.python:
                return None
        found = alone(run)
        if isinstance(found, str):
            print(f"{self.task}, epsilon {self.epsilon}, {tool}, split {split}: {found}", flush=True)
            return None
        if tool.startswith("dpmm "):
            self.cache.keep(key, found)
        return found

    def say(self, what: str, figures: dict[str, float]) -> None:
        """Print a line."""
        if figures:
            listed = ", ".join(f"{key} {value:.4g}" for key, value in figures.items())
            print(f"{self.task}, epsilon {self.epsilon}, {what}: {listed}", flush=True)


def ratios(ours: dict[str, float], theirs: dict[str, float]) -> dict[str, float]:
    return {key: round(ours[key] / theirs[key], 2) for key in ERRORS if theirs.get(key) and key in ours}


def splits_of(text: str) -> list[int]:
    """Return fresh splits for a number, the listed ones for a list (also of one: "7,"), and none for "cached"."""
    if text == "cached":
        return []
    if not text.isdigit():
        return [int(split) for split in text.rstrip(",").split(",")]
    fresh = [1 + secrets.randbelow(10**6) for _ in range(int(text))]
    print(f"splits {','.join(map(str, fresh))}", flush=True)
    return fresh


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tasks", help=f"of {', '.join(TASKS)}")
    parser.add_argument("--epsilons", default="1")
    parser.add_argument("--splits", default="5")
    parser.add_argument("--known")
    parser.add_argument("--peer-python")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--markdown", type=Path, help="write the medians as tables")
    parser.add_argument("--only-peers", action="store_true", help="fill the cache")
    given = parser.parse_args()
    asked = given.tasks.split(",") if given.tasks else list(TASKS)
    names = [name for name in asked if given.data or not TASKS[name].needs_data]
    if names != asked:
        print(f"without --data left out: {', '.join(name for name in asked if name not in names)}", flush=True)
    cache, fresh = Cache(given.cache), splits_of(given.splits)
    version = version_of(given.peer_python) if given.peer_python else cache.version
    start = time.perf_counter()
    lines: list[Line] = []
    for name in names:
        for epsilon in given.epsilons.split(","):
            lines += Comparison(
                task=name,
                epsilon=epsilon,
                splits=fresh or cache.splits(name, epsilon=epsilon),
                known=tuple(given.known.split(",")) if given.known else (),
                data=str(given.data or ""),
                python=given.peer_python or "",
                version=version,
                cache=cache,
                only_peers=given.only_peers,
            ).tell()
            if given.markdown:
                given.markdown.write_text(markdown(lines, version=version), encoding="utf-8")
    print(f"{math.ceil(time.perf_counter() - start)} s", file=sys.stderr)


if __name__ == "__main__":
    main()
