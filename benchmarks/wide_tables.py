"""Time, memory and errors on tables of many columns, with dpmm's MST on the same cells in the same run.

    python benchmarks/wide_tables.py [--tasks wide-60,binary-18] [--survey FILE.csv] [--peer-python PYTHON] [--seed 1]

Tables: mixed columns that hang together through five hidden factors (60 and 200 columns, 50,000 rows), two labels a
column (18, 30 and 60 columns, 5,000 rows), a survey of answers 1 to 5, "not asked" and missing (300 columns, 2,000
rows; FILE is such a table of one's own), and a clinic's numbers and flags (80 columns, 176 rows). The guarantee is
(epsilon, 1e-6) under replacing one record, epsilon 1 unless said. Errors are mean total variations of tables of one and
two columns on deciles of the true rows. "Alone" is the error of rows drawn column by column from the true columns: what
a tool reaches that learns nothing of how columns go together.

PYTHON is an interpreter with dpmm (``pip install dpmm`` in an environment of its own: it wants old packages). Its
numbers get 32 plain cells between the bounds. Each run has a process of its own and one thread.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import csv
import itertools
import multiprocessing
import resource
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from accuracy import made_up

from accord.core.verdict import VerdictWarning
from accord.synthesis import plan_table, synthesise_table

DELTA = "1e-6"
PEERS = Path(__file__).parent / "accuracy" / "peers.py"
PEER_CELLS = 32
DECILES = np.linspace(0.1, 0.9, 9)
ANSWERS = ("1", "2", "3", "4", "5", "-7")


@dataclass(frozen=True)
class Numbers:
    """A column of numbers with public bounds; ``decimals`` None for whole numbers."""

    low: float
    high: float
    decimals: int | None = None

    def lines(self) -> list[str]:
        """Return what a schema says of it."""
        kind = ['kind = "integer"'] if self.decimals is None else ['kind = "number"', f"decimals = {self.decimals}"]
        ends = (int(self.low), int(self.high)) if self.decimals is None else (self.low, self.high)
        return [*kind, f"bounds = [{ends[0]}, {ends[1]}]"]


@dataclass(frozen=True)
class Labels:
    """A column of labels, whose cells are positions; -1 is missing."""

    names: tuple[str, ...]
    required: bool = True

    def lines(self) -> list[str]:
        """Return what a schema says of it."""
        listed = ", ".join(f'"{name}"' for name in self.names)
        return ['kind = "category"', f"categories = [{listed}]", *(["required = true"] if self.required else [])]


Columns = dict[str, np.ndarray]
Kinds = dict[str, Numbers | Labels]


def wide(columns: int, seed: int) -> tuple[Columns, Kinds]:
    kinds: Kinds = {}
    for place in range(columns):
        if place % 3 == 0:
            kinds[f"c{place}"] = Labels(tuple(f"L{label}" for label in range(made_up.labels_of_wide(place))))
        else:
            kinds[f"c{place}"] = Numbers(-100.0, 200.0, 1) if place % 3 == 1 else Numbers(0, 5000)
    return made_up.wide(seed, columns=columns), kinds


def binary(columns: int, seed: int) -> tuple[Columns, Kinds]:
    generator = np.random.default_rng([seed, 7])
    factors = generator.normal(size=(5_000, 3))
    rows = {
        f"b{place}": (
            factors @ generator.normal(size=3) + generator.normal(size=5_000) > generator.normal()
        ).astype(int)
        for place in range(columns)
    }  # fmt: skip
    return rows, dict.fromkeys(rows, Labels(("no", "yes")))


def survey(seed: int) -> tuple[Columns, Kinds]:
    """Answers that hang together in groups of thirty; whole groups are not asked, or not answered."""
    generator = np.random.default_rng([seed, 8])
    rows: Columns = {}
    for group in range(10):
        opinion, skipped = generator.normal(size=2_000), generator.random(2_000) < 0.05
        for place in range(30):
            answer = np.clip(np.rint(opinion * generator.uniform(0.3, 1) + generator.normal(size=2_000) + 2), 0, 4)
            answer = np.where(skipped, 5, answer).astype(int)
            rows[f"q{30 * group + place:03}"] = np.where(generator.random(2_000) < 0.1, -1, answer)
    return rows, dict.fromkeys(rows, Labels(ANSWERS, required=False))


def survey_of(path: Path) -> tuple[Columns, Kinds]:
    """Return answers from a file; every word that is in none of the answers counts as missing."""
    with path.open(newline="", encoding="utf-8") as file:
        names, *lines = list(csv.reader(file))
    codes = {word: place for place, word in enumerate(ANSWERS)}
    rows = {name: np.array([codes.get(line[place], -1) for line in lines]) for place, name in enumerate(names)}
    return rows, dict.fromkeys(rows, Labels(ANSWERS, required=False))


def clinic(seed: int) -> tuple[Columns, Kinds]:
    generator = np.random.default_rng([seed, 9])
    health = generator.normal(size=(176, 4))
    rows: Columns = {}
    kinds: Kinds = {}
    for place in range(80):
        score = health @ (generator.normal(size=4) * (generator.random(4) < 0.5)) + generator.normal(size=176)
        name = f"v{place:02}"
        if place % 2:
            rows[name], kinds[name] = (score > 0.5).astype(int), Labels(("no", "yes"))
        else:
            rows[name], kinds[name] = np.clip(np.round(40 + 12 * score, 1), 0, 200), Numbers(0.0, 200.0, 1)
    return rows, kinds


TASKS: dict[str, Callable[[int], tuple[Columns, Kinds]]] = {
    "wide-60": lambda seed: wide(60, seed),
    "wide-200": lambda seed: wide(200, seed),
    "binary-18": lambda seed: binary(18, seed),
    "binary-30": lambda seed: binary(30, seed),
    "binary-60": lambda seed: binary(60, seed),
    "survey-300": survey,
    "clinic-80": clinic,
}


def errors(real: Columns, fake: Columns, kinds: Kinds) -> dict[str, float]:
    """Return mean total variations of one and two columns, and the worst of two, on deciles of the true rows."""
    ours, theirs, sizes = [], [], []
    for name, kind in kinds.items():
        if isinstance(kind, Labels):
            ours.append(real[name] % (len(kind.names) + 1))
            theirs.append(fake[name] % (len(kind.names) + 1))
            sizes.append(len(kind.names) + 1)
        else:
            cuts = np.unique(np.quantile(real[name], DECILES))
            ours.append(np.searchsorted(cuts, real[name], side="right"))
            theirs.append(np.searchsorted(cuts, fake[name], side="right"))
            sizes.append(len(cuts) + 1)

    def shares(codes: list[np.ndarray], table: tuple[int, ...]) -> np.ndarray:
        place = np.zeros(len(codes[0]), dtype=np.int64)
        for column in table:
            place = place * sizes[column] + codes[column]
        cells = int(np.prod([sizes[column] for column in table]))
        return np.bincount(place, minlength=cells) / len(place)

    def distances(way: int) -> list[float]:
        tables = itertools.combinations(range(len(sizes)), way)
        return [float(np.abs(shares(ours, table) - shares(theirs, table)).sum() / 2) for table in tables]

    pairs = distances(2)
    return {"1-way": float(np.mean(distances(1))), "2-way": float(np.mean(pairs)), "2-way, worst": max(pairs)}


def by_accord(rows: Columns, kinds: Kinds, *, epsilon: str) -> tuple[Columns, dict[str, float]]:
    given: dict[str, Any] = {}
    for name, kind in kinds.items():
        if isinstance(kind, Labels):
            texts = np.array([*kind.names, None], dtype=object)
            given[name] = texts[rows[name]]
        else:
            given[name] = rows[name]
    schema = made_up.schema_text([[f'name = "{name}"', *kind.lines()] for name, kind in kinds.items()])
    start = time.process_time()
    release = synthesise_table(given, schema, epsilon=epsilon, delta=DELTA)
    learnt = time.process_time()
    cells = dict(zip([column.name for column in release.schema.read], release.cells(sized(rows)), strict=True))
    seconds = {"CPU seconds": time.process_time() - start, "of which to learn": learnt - start}
    expected = plan_table(schema, sized(rows), epsilon=epsilon, delta=DELTA).effort
    assert expected is not None
    seconds["of what was expected"] = seconds["CPU seconds"] / expected.seconds
    fake = {name: cells[name] if isinstance(kind, Labels) else filled(cells[name]) for name, kind in kinds.items()}
    return fake, seconds


def filled(cells: np.ndarray) -> np.ndarray:
    """Return numbers with the few synthetic missing ones filled by others: the true rows have none."""
    lost = np.isnan(cells)
    return np.where(lost, np.resize(cells[~lost], len(cells)) if not lost.all() else 0.0, cells)


def by_peer(rows: Columns, kinds: Kinds, *, epsilon: str, python: str, seed: int) -> tuple[Columns, dict[str, float]]:
    codes, sizes = [], []
    for name, kind in kinds.items():
        if isinstance(kind, Labels):
            codes.append(rows[name] % (len(kind.names) + 1))
            sizes.append(len(kind.names) + 1)
        else:
            scaled = (rows[name] - kind.low) / (kind.high - kind.low) * PEER_CELLS
            codes.append(np.clip(scaled.astype(int), 0, PEER_CELLS - 1))
            sizes.append(PEER_CELLS)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, codes=np.stack(codes, axis=1), sizes=np.array(sizes))
        plain = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
        command = [python, str(PEERS), "MST", epsilon, DELTA, str(seed), str(source), str(target)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=plain)  # noqa: S603 - own file
        made = np.load(target)
        drawn, (seconds, megabytes) = made["codes"], made["figures"].tolist()
    generator = np.random.default_rng(seed)
    fake: Columns = {}
    for place, (name, kind) in enumerate(kinds.items()):
        fake[name] = drawn[:, place]
        if isinstance(kind, Numbers):
            width = (kind.high - kind.low) / PEER_CELLS
            fake[name] = kind.low + (drawn[:, place] + generator.random(len(drawn))) * width
    return fake, {"CPU seconds": seconds, "MB": megabytes}


def sized(rows: Columns) -> int:
    return len(next(iter(rows.values())))


@dataclass(frozen=True)
class Work:
    """One tool on one table."""

    task: str
    tool: str
    epsilon: str
    seed: int
    python: str
    file: Path | None

    def figures(self) -> dict[str, float]:
        """Return seconds, memory and errors."""
        rows, kinds = survey_of(self.file) if self.task == "survey-file" and self.file else TASKS[self.task](self.seed)
        if self.tool == "alone":
            generator = np.random.default_rng([self.seed, 10])
            fake, found = {name: generator.choice(cells, sized(rows)) for name, cells in rows.items()}, {}
        elif self.tool == "accord":
            fake, found = by_accord(rows, kinds, epsilon=self.epsilon)
            found["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        else:
            fake, found = by_peer(rows, kinds, epsilon=self.epsilon, python=self.python, seed=self.seed)
        return {**found, **errors(rows, fake, kinds)}

    def __call__(self, queue: Any) -> None:
        """Send the figures home."""
        warnings.simplefilter("ignore", VerdictWarning)
        try:
            queue.put(self.figures())
        except subprocess.CalledProcessError as error:
            queue.put(f"ended with {error.returncode}")

    def tell(self) -> None:
        """Run in a process of its own and print a line."""
        context = multiprocessing.get_context("spawn")
        queue = context.SimpleQueue()
        process = context.Process(target=self, args=(queue,))
        process.start()
        process.join()
        found = "no result" if queue.empty() else queue.get()
        told = found if isinstance(found, str) else ", ".join(f"{key} {value:.4g}" for key, value in found.items())
        print(f"{self.task}, {self.tool}: {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--tools", default="alone,dpmm MST,accord")
    parser.add_argument("--survey", type=Path)
    parser.add_argument("--peer-python", default="")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    tools = given.tools.split(",")
    if not given.peer_python and "dpmm MST" in tools:
        print("dpmm is missing: name an interpreter that has it by --peer-python", flush=True)
        tools.remove("dpmm MST")
    for task in [*given.tasks.split(","), *(["survey-file"] if given.survey else [])]:
        for tool in tools:
            Work(task, tool, given.epsilon, given.seed, given.peer_python, given.survey).tell()


if __name__ == "__main__":
    main()
