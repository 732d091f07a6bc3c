"""Every road from a table to what is published, on neighbours, with the releases of its mechanisms frozen.

Then nothing is left to chance: public bytes must be equal, mechanisms the same in the same order, and what each is
applied to within its declared sensitivity. Somewhere the whole sensitivity is used, so that the comparison has power.
"""

import csv
import io
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from accord.cli.app import app
from accord.testing import Tape

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
            *("--seed-for-tests", "7", "--force", "--json"),
        ]
        return command(["synth", str(data), *options], files)

    return program


@dataclass(frozen=True)
class Trial:
    """What a road was tried on."""

    used: dict[str, Fraction]
    calls: int


def try_neighbours(
    program: Program,
    rows: Rows,
    make: Callable[[random.Random], Row],
    *,
    trials: int,
    several: bool,
    answers: bool = True,
) -> Trial:
    tape = Tape()
    with tape.recording():
        first = program(rows)
    assert tape.calls, "no mechanism ran: the comparison would be empty"
    if answers:
        assert first.get("code", b"0") == b"0", first
    for trial in range(trials):
        with tape.playing():
            second = program(neighbour(rows, make, source=random.Random(trial), several=several))
        assert tape.faults == [], trial
        assert second.keys() == first.keys(), trial
        assert [name for name in first if second[name] != first[name]] == [], trial
    return Trial(used=tape.used, calls=len(tape.calls))


CASES = {
    "records, bounds": (False, "bounds = [0, 100]", 300, "3"),
    "records, no bounds": (False, "", 1500, "20"),
    "units, bounds": (True, "bounds = [0, 100]", 250, "3"),
    "units, no bounds": (True, "", 1200, "20"),
}


def run_synth(case: str, folder: Path, *, trials: int) -> Trial:
    several, bounds, count, epsilon = CASES[case]
    schema = KINDS.format(unit='unit = "who"' if several else "", bounds=bounds)
    rows = (visits if several else records)(count, usual, seed=1)
    return try_neighbours(
        synth(folder, schema=schema, names=NAMES, epsilon=epsilon), rows, usual, trials=trials, several=several
    )


def show(case: str, trial: Trial) -> None:
    shares = ", ".join(f"{name} {float(share):.3f}" for name, share in sorted(trial.used.items()))
    print(f"{case}: {trial.calls} releases; largest share of a sensitivity in use: {shares}")  # noqa: T201 - shown by make nightly


@pytest.mark.parametrize("case", ["records, bounds", "units, bounds"])
def test_synth_on_neighbours_moves_within_sensitivities_and_leaves_equal_bytes(case: str, tmp_path: Path) -> None:
    trial = run_synth(case, tmp_path, trials=3)
    show(case, trial)
    assert max(trial.used.values()) > Fraction(99, 100)


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES)
def test_synth_on_many_neighbours(case: str, tmp_path: Path) -> None:
    trial = run_synth(case, tmp_path, trials=40 if "no bounds" not in case else 10)
    show(case, trial)
    assert max(trial.used.values()) > Fraction(99, 100)
