"""Every road from a table to what is published, on neighbours, with the releases of its mechanisms frozen.

Then nothing is left to chance: public bytes must be equal, mechanisms the same in the same order, and what each is
applied to within its declared sensitivity. Somewhere the whole sensitivity is used, so that the comparison has power.
"""

import csv
import hashlib
import io
import os
import pickle
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from typer.testing import CliRunner

from accord import PrivateDensity
from accord.cli.app import app
from accord.core import blocks
from accord.learners import GaussianLearner
from accord.learning import PrivateLearner, PrivateSampler
from accord.randomness import PrivateRandomness, SharedRandomness, uniform_order
from accord.testing import ReplayRandomness, Tape

Row = list[str]
Rows = list[Row]
Program = Callable[[Rows], dict[str, bytes]]

KINDS = """
version = 2
{unit}
[[columns]]
name = "cat"
kind = "category"
categories = ["a", "b", "c"]
unreadable = "missing"
[[columns]]
name = "ord"
kind = "ordinal"
categories = ["lo", "mid", "hi"]
unreadable = "missing"
required = true
[[columns]]
name = "flag"
kind = "boolean"
unreadable = "missing"
[[columns]]
name = "x"
kind = "number"
unreadable = "missing"
{bounds}
[[columns]]
name = "money"
kind = "number"
decimals = 2
bounds = [0, 1000]
unreadable = "missing"
[[columns]]
name = "whole"
kind = "integer"
bounds = [0, 20]
outside = "unreadable"
unreadable = "missing"
[[columns]]
name = "day"
kind = "date"
format = "%d/%m/%Y"
bounds = ["01/01/2020", "31/12/2021"]
unreadable = "missing"
[[columns]]
name = "time"
kind = "datetime"
unreadable = "missing"
bounds = ["2020-01-01 00:00:00", "2021-01-01 00:00:00"]
"""
NAMES = ["cat", "ord", "flag", "x", "money", "whole", "day", "time"]

# fmt: off
HOSTILE = [
    "", " ", "nan", "inf", "-inf", "1e400", "-1e400", "1e308", "-1.7976931348623157e308", "1e-320", "9007199254740993",
    "9007199254740992.0", "0x1F", "1_000", "\u0661\u0662", "  7 ", '"quo""ted"', "'; DROP", "NULL", "true", "TRUE",
    "a ", "A", "31/02/2020", "29/02/2020", "1/1/2020", "01/01/0001", "31/12/9999", "01/01/10000", "2020-02-30 25:61:61",
    "2020-06-01 12:00:00", "0000-00-00 00:00:00", "9999-12-31 23:59:59", "-0", "+5", "5.", ".", " .5", "1e5", "\u00e9",
    "x" * 100_000, "20.0", "20", "21", "-1", "1000.005", "0.005", "1e99", "1e100", "1e101", "4.9e-324", "1,5",
]
# fmt: on


def usual(source: random.Random) -> Row:
    """A record as most are."""
    return [
        source.choice("aabc"),
        source.choice(["lo", "mid", "hi"]),
        source.choice(["true", "false"]),
        repr(round(source.gauss(50, 9), 3)),
        f"{source.choice([0, 0, 100, source.uniform(0, 1000)]):.2f}",
        str(source.randrange(21)),
        f"{source.randrange(1, 29):02d}/{source.randrange(1, 13):02d}/2020",
        f"2020-{source.randrange(1, 13):02d}-{source.randrange(1, 29):02d} 1{source.randrange(10)}:00:00",
    ]


def hostile(source: random.Random, make: Callable[[random.Random], Row]) -> Row:
    """A record that tries to be noticed."""
    row, how = make(source), source.random()
    if how < 0.3:
        return [source.choice(HOSTILE) for _ in row]
    if how < 0.5:
        return [source.choice(HOSTILE)] * len(row)
    for _ in range(source.randrange(1, 4)):
        row[source.randrange(len(row))] = source.choice(HOSTILE)
    return row


def records(count: int, make: Callable[[random.Random], Row], *, seed: int) -> Rows:
    """Records, each with its own unit in a last cell."""
    source = random.Random(seed)
    return [[*make(source), f"u{place}"] for place in range(count)]


def visits(count: int, make: Callable[[random.Random], Row], *, seed: int) -> Rows:
    """Units with 1 to 7 records each, which stand together."""
    source = random.Random(seed)
    return [[*make(source), f"u{unit}"] for unit in range(count) for _ in range(source.choice([1, 1, 1, 2, 3, 7]))]


def neighbour(rows: Rows, make: Callable[[random.Random], Row], *, source: random.Random, several: bool) -> Rows:
    """The same table with the records of one unit replaced, at the place of its first one."""
    name = source.choice(rows)[-1]
    first = next(place for place, row in enumerate(rows) if row[-1] == name)
    count = source.choice([1, 1, 2, 5, 11, 60]) if several else 1
    new = [[*hostile(source, make), name] for _ in range(count)]
    if source.random() < 0.3:
        new = [new[0]] * count
    kept = [row for row in rows[first:] if row[-1] != name]
    return [*rows[:first], *new, *kept]


def moved(rows: Rows, make: Callable[[random.Random], Row], *, source: random.Random, several: bool) -> Rows:
    """The same table with one unit's records replaced, which stand elsewhere and between others' records."""
    name = source.choice(rows)[-1]
    kept = [row for row in rows if row[-1] != name]
    for _ in range(source.choice([1, 2, 9]) if several else 1):
        kept.insert(source.randrange(len(kept) + 1), [*hostile(source, make), name])
    return kept


def other_record(rows: Rows, make: Callable[[random.Random], Row], *, source: random.Random, several: bool) -> Rows:
    """The same table where a unit of one record has another one: of units that uses the whole sensitivity of counts."""
    del several
    counts = Counter(row[-1] for row in rows)
    place = source.choice([place for place, row in enumerate(rows) if counts[row[-1]] == 1])
    return [*rows[:place], [*hostile(source, make), rows[place][-1]], *rows[place + 1 :]]


def write(rows: Rows, path: Path, names: Sequence[str]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, "who"])
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def command(arguments: Sequence[str], files: Sequence[Path]) -> dict[str, bytes]:
    """Everything that a command leaves: exit code, both streams, files."""
    for file in files:
        file.unlink(missing_ok=True)
    result = CliRunner().invoke(app, [*arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    left = {file.name: file.read_bytes() for file in files if file.exists()}
    return {
        "code": str(result.exit_code).encode(),
        "out": result.stdout.encode(),
        "err": result.stderr.encode(),
        **left,
    }


def synth(folder: Path, *, schema: str, names: Sequence[str], epsilon: str) -> Program:
    """``accord synth`` with every account that it can write."""
    (folder / "schema.toml").write_text(schema, encoding="utf-8")
    data = folder / "data.csv"
    files = [folder / name for name in ("out.csv", "model.json", "report.html", "release.json")]

    def program(rows: Rows) -> dict[str, bytes]:
        write(rows, data, names)
        options = [
            *("--schema", str(folder / "schema.toml"), "--epsilon", epsilon, "--delta", "1e-4", "--rows", "200"),
            *("--out", str(files[0]), "--model", str(files[1]), "--report", str(files[2]), "--release", str(files[3])),
            *("--curator-report", str(folder / "curator.html"), "--seed-for-tests", "7", "--force", "--json"),
        ]
        return command(["synth", str(data), *options], files)  # the curator's page alone is a function of the records

    return program


@dataclass(frozen=True)
class Trial:
    """What a road was tried on."""

    used: dict[str, Fraction]
    calls: int


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Freeze what the operating system gives; calling the fixture starts it again."""
    count, orders = [0], [0]

    def order(
        units: int, *, randomness: PrivateRandomness
    ) -> np.ndarray[Any, Any]:  # noise drawn before does not shift it
        orders[0] += 1
        return uniform_order(units, randomness=ReplayRandomness(f"order {orders[0]}"))

    def bytes_of_system(size: int) -> bytes:
        count[0] += 1
        return hashlib.shake_256(f"system {count[0]}".encode()).digest(size)

    monkeypatch.setattr(os, "urandom", bytes_of_system)
    monkeypatch.setattr(blocks, "uniform_order", order)

    def start() -> None:
        count[0] = orders[0] = 0

    return start


def try_neighbours(
    program: Program,
    rows: Rows,
    make: Callable[[random.Random], Row],
    *,
    system: Callable[[], None],
    trials: int,
    several: bool,
    change: Callable[..., Rows] | None = None,
    before_each: Callable[[Rows], object] = lambda _: None,
) -> Trial:
    """Record a program, play it to its own table and then to neighbours."""
    tape = Tape()
    system()
    with tape.recording():
        first = program(rows)
    assert tape.calls, "no mechanism ran: the comparison would be empty"
    assert first.get("code", b"0") == b"0", first
    system()
    with tape.playing():
        expected = program(rows)  # noise takes nothing from the system when it is played
    assert tape.faults == []
    for trial, chosen in enumerate([*[change or neighbour] * trials, *[other_record] * (change is None)]):
        now = chosen(rows, make, source=random.Random(trial), several=several)
        before_each(now)
        system()
        with tape.playing():
            found = program(now)
        assert tape.faults == [], trial
        assert found.keys() == expected.keys(), trial
        assert [name for name in expected if found[name] != expected[name]] == [], trial
    return Trial(used=tape.used, calls=len(tape.calls))


CASES = {
    "records, bounds": (False, "bounds = [0, 100]", 300, "3"),
    "records, no bounds": (False, "", 1500, "20"),
    "units, bounds": (True, "bounds = [0, 100]", 250, "3"),
    "units, no bounds": (True, "", 1200, "20"),
}


def run_synth(
    case: str, folder: Path, *, system: Callable[[], None], trials: int, change: Callable[..., Rows] | None = None
) -> Trial:
    several, bounds, count, epsilon = CASES[case]
    schema = KINDS.format(unit='unit = "who"' if several else "", bounds=bounds)
    rows = (visits if several else records)(count, usual, seed=1)
    program = synth(folder, schema=schema, names=NAMES, epsilon=epsilon)
    return try_neighbours(program, rows, usual, system=system, trials=trials, several=several, change=change)


def show(case: str, trial: Trial) -> None:
    shares = ", ".join(f"{name} {float(share):.3f}" for name, share in sorted(trial.used.items()))
    print(f"{case}: {trial.calls} releases; largest share of a sensitivity in use: {shares}")  # noqa: T201 - nightly shows it


@pytest.mark.parametrize("case", ["records, bounds", "units, bounds"])
def test_synth_on_neighbours(case: str, tmp_path: Path, system: Callable[[], None]) -> None:
    trial = run_synth(case, tmp_path, system=system, trials=2)
    show(case, trial)
    assert max(trial.used.values()) > Fraction(99, 100)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", CASES)
def test_synth_on_many_neighbours(case: str, tmp_path: Path, system: Callable[[], None]) -> None:
    trial = run_synth(case, tmp_path, system=system, trials=10 if "no bounds" in case else 40)
    show(case, trial)
    assert max(trial.used.values()) > Fraction(99, 100)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", ["records, bounds", "units, bounds"])
def test_synth_on_neighbours_whose_records_stand_elsewhere(
    case: str, tmp_path: Path, system: Callable[[], None]
) -> None:
    trial = run_synth(case, tmp_path, system=system, trials=20, change=moved)
    show(f"{case}, moved", trial)
    assert max(trial.used.values()) > Fraction(99, 100)


# --- many columns: tables are chosen in rounds ------------------------------------------------------------------------

WIDE = 25


def wide(source: random.Random) -> Row:
    """A record of labels and numbers that depend on each other."""
    level = source.randrange(3)
    return [
        *(source.choice(["s", "p", "q", "r"][: 2 + level]) for _ in range(WIDE - 8)),
        *(str(source.randrange(10) + 10 * level) for _ in range(8)),
    ]


def run_wide(folder: Path, *, several: bool, system: Callable[[], None], trials: int) -> Trial:
    names = [f"c{place}" for place in range(WIDE)]
    columns = [
        f'[[columns]]\nname = "{name}"\nkind = "category"\ncategories = ["p", "q", "r", "s"]\nunreadable = "missing"\n'
        for name in names[:-8]
    ] + [
        f'[[columns]]\nname = "{name}"\nkind = "integer"\nbounds = [0, 40]\nunreadable = "missing"\n'
        for name in names[-8:]
    ]
    schema = "version = 2\n" + ('unit = "who"\n' if several else "") + "".join(columns)
    rows = (visits if several else records)(400, wide, seed=2)
    program = synth(folder, schema=schema, names=names, epsilon="2")
    return try_neighbours(program, rows, wide, system=system, trials=trials, several=several)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("several", [False, True])
def test_synth_in_rounds_on_neighbours(several: bool, tmp_path: Path, system: Callable[[], None]) -> None:  # noqa: FBT001
    trial = run_wide(tmp_path, several=several, system=system, trials=2)
    show(f"{WIDE} columns", trial)
    assert trial.used["Exponential"] > Fraction(1, 4)
    assert max(trial.used.values()) > Fraction(99, 100)


# --- discovery --------------------------------------------------------------------------------------------------------


def unknown(source: random.Random) -> Row:
    return [
        f"t{source.randrange(10**6)}",
        source.choice(["north", "south"]),
        repr(source.gauss(5, 2)),
        str(source.randrange(1000)),
        source.choice(["true", "false"]),
        f"2020-0{source.randrange(1, 10)}-1{source.randrange(10)}",
    ]


def run_discovery(folder: Path, *, several: bool, system: Callable[[], None], trials: int) -> Trial:
    names, data = ["free", "cat", "num", "int", "bool", "date"], folder / "data.csv"
    unit = ("--unit", "who") if several else ()

    def program(rows: Rows) -> dict[str, bytes]:
        write(rows, data, names)
        return command(["schema", str(data), "--discover", "--epsilon", "60", "--delta", "1e-3", *unit], ())

    rows = (visits if several else records)(400 if several else 800, unknown, seed=3)
    return try_neighbours(program, rows, unknown, system=system, trials=trials, several=several)


@pytest.mark.parametrize("several", [False, True])
def test_discovery_on_neighbours(several: bool, tmp_path: Path, system: Callable[[], None]) -> None:  # noqa: FBT001
    trial = run_discovery(tmp_path, several=several, system=system, trials=2)
    show("discovery", trial)
    assert max(trial.used.values()) > Fraction(99, 100)


# --- blocks: sampler, learner, density --------------------------------------------------------------------------------


def numeric(source: random.Random) -> Row:
    return [repr(source.gauss(50, 9)), repr(source.gauss(-3, 1))]


def cells(rows: Rows) -> np.ndarray[Any, Any]:
    """The numbers of a table, each read alone: what is no number is missing."""

    def read(cell: str) -> float:
        try:
            return float(cell)
        except ValueError:
            return float("nan")

    return np.array([[read(cell) for cell in row[:-1]] for row in rows])


def owners(rows: Rows, *, several: bool) -> list[str] | None:
    return [row[-1] for row in rows] if several else None


def by_sampler(rows: Rows, *, several: bool) -> dict[str, bytes]:
    sampler = PrivateSampler(GaussianLearner(), epsilon=3, delta="1e-4", blocks=30, records=20, draws=8)
    release = sampler.release(cells(rows), units=owners(rows, several=several), shared=SharedRandomness(5))
    return {"value": pickle.dumps(release.value), "guarantee": repr(release.guarantee).encode()}


def by_learner(rows: Rows, *, several: bool) -> dict[str, bytes]:
    learner = PrivateLearner(GaussianLearner(), epsilon=3, delta="1e-4", blocks=30, records=20, draws=8)
    release = learner.release(cells(rows), units=owners(rows, several=several), shared=SharedRandomness(5))
    return {"value": repr(release.value).encode(), "guarantee": repr(release.guarantee).encode()}


def by_density(rows: Rows, *, several: bool) -> dict[str, bytes]:
    density = PrivateDensity(
        GaussianMixture(2), epsilon=40, delta="1e-3", random_state=3, unit="who" if several else None
    )
    density.fit(cells(rows), groups=owners(rows, several=several))
    return {
        "law": repr(density.model_).encode(),
        "sample": density.sample(20).tobytes(),
        "report": repr(density.report_).encode(),
        "guarantee": repr(density.guarantee_).encode(),
        "columns": repr(density.n_features_in_).encode(),
    }


ROADS = {"sampler": by_sampler, "learner": by_learner, "density": by_density}


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("road", ROADS)
def test_blocks_on_neighbours(road: str, several: bool, system: Callable[[], None]) -> None:  # noqa: FBT001
    rows = (visits if several else records)(900, numeric, seed=4)
    trial = try_neighbours(
        lambda table: ROADS[road](table, several=several), rows, numeric, system=system, trials=4, several=several
    )
    show(road, trial)
    assert max(trial.used.values()) > Fraction(99, 100)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("road", ["sampler", "density"])
def test_blocks_on_neighbours_whose_records_stand_elsewhere(
    road: str,
    several: bool,  # noqa: FBT001
    system: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The two secret orders are coupled by the units' names: a uniform order stays one under a renumbering."""
    rows = (visits if several else records)(900, numeric, seed=6)
    now = rows

    def numbers(table: Rows) -> dict[str, int]:
        return {name: place for place, name in enumerate(dict.fromkeys(row[-1] for row in table))}

    def coupled(count: int, *, randomness: PrivateRandomness) -> np.ndarray[Any, Any]:
        names, places = list(numbers(rows)), numbers(now)
        return np.array([places[names[unit]] for unit in uniform_order(count, randomness=randomness)])

    def look(table: Rows) -> None:
        nonlocal now
        now = table

    monkeypatch.setattr(blocks, "uniform_order", coupled)
    trial = try_neighbours(
        lambda table: ROADS[road](table, several=several),
        rows,
        numeric,
        system=system,
        trials=4,
        several=several,
        change=moved,
        before_each=look,
    )
    show(f"{road}, moved", trial)
    assert trial.used["BestOfDraws"] == 1
