"""``accord synth`` on tables of mixed columns: from a messy file to rows, a report and release.json."""

import json
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import accord.synthesis.task
from accord.cli.app import app
from accord.ledger import Ledger
from accord.marginals.run import Run
from accord.reports import check_release
from accord.synthesis.release import TableRelease, release_by_tables
from accord.tables import parse_schema, read_table

CANARY = "CANARY7301"
ROWS = 6000
SCHEMA = """
version = 2
[csv]
separator = ";"
[[columns]]
name = "region"
kind = "category"
categories = ["north", "south", "west"]
[[columns]]
name = "age"
kind = "integer"
bounds = [0, 110]
unreadable = "missing"
[[columns]]
name = "income"
kind = "number"
decimals = 2
bounds = [0, 200000]
required = true
[[columns]]
name = "smokes"
kind = "boolean"
true = ["yes"]
false = ["no"]
required = true
unreadable = "missing"
[[columns]]
name = "seen"
kind = "date"
format = "%d/%m/%Y"
bounds = ["01/01/2020", "31/12/2021"]
[[columns]]
name = "grade"
kind = "ordinal"
categories = ["low", "middle", "high"]
[[columns]]
name = "country"
kind = "constant"
value = "CH"
[[columns]]
name = "file"
kind = "id"
prefix = "p"
[[columns]]
name = "note"
kind = "drop"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def data(*, seed: int = 1, first: str = "", rows: int = ROWS) -> str:
    """Rows in which smokers are older, and the region says what is earned."""
    generator = np.random.default_rng(seed)
    lines = ["region;age;income;smokes;seen;grade;country;file;note"]
    for _ in range(rows):
        region, smokes = int(generator.integers(3)), bool(generator.random() < 0.3)
        age = "" if generator.random() < 0.1 else str(int(np.clip(generator.normal(35 + 20 * smokes, 8), 0, 110)))
        income = f"{np.clip(generator.normal(40_000 + 30_000 * region, 9_000), 0, 200_000):.2f}"
        day, month, year = (int(generator.integers(low, high)) for low, high in ((1, 29), (1, 13), (2020, 2022)))
        seen = f"{day:02d}/{month:02d}/{year}"
        grade = ["low", "middle", "high"][int(generator.integers(3))]
        name = ["north", "south", "west"][region]
        lines.append(f"{name};{age};{income};{'yes' if smokes else 'no'};{seen};{grade};CH;x;{CANARY}")
    if first:
        lines[1] = first
    return "\n".join(lines) + "\n"


def synth(*more: str, epsilon: str = "2", rows: str = "3000", schema: str = SCHEMA, text: str | None = None) -> Result:
    Path("s.toml").write_text(schema, encoding="utf-8")
    Path("d.csv").write_text(data() if text is None else text, encoding="utf-8")
    words = ["synth", "d.csv", "--schema", "s.toml", "--epsilon", epsilon, "--delta", "1e-6", "--rows", rows]
    return CliRunner().invoke(app, [*words, "--out", "out.csv", "--force", *more], catch_exceptions=False)


def test_a_mixed_table_from_file_to_accounts() -> None:
    result = synth("--report", "r.html", "--release", "r.json", "--curator-report", "c.html", "--model", "m.json")
    assert result.exit_code == 0, result.stderr
    assert CANARY not in result.output
    lines = Path("out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "region;age;income;smokes;seen;grade;country;file"
    assert len(lines) == 3001
    cells = [line.split(";") for line in lines[1:]]
    assert {row[0] for row in cells} <= {"north", "south", "west", ""}
    assert np.mean([row[0] == "" for row in cells]) < 0.01, "what noise alone makes"
    assert all(re.fullmatch(r"\d{1,3}|", row[1]) for row in cells)
    assert 0.05 < np.mean([row[1] == "" for row in cells]) < 0.15
    assert all(re.fullmatch(r"\d+\.\d\d", row[2]) and float(row[2]) <= 200_000 for row in cells)
    assert {row[3] for row in cells} == {"yes", "no"}, "a required column is never missing"
    assert all(re.fullmatch(r"\d\d/\d\d/202[01]|", row[4]) for row in cells)
    assert np.mean([row[4] == "" for row in cells]) < 0.03, "what noise alone makes"
    assert {row[6] for row in cells} == {"CH"}
    assert [row[7] for row in cells] == [f"p{number}" for number in range(1, 3001)]
    # what goes together in the data goes together in the rows
    ages = {word: np.mean([float(row[1]) for row in cells if row[1] and row[3] == word]) for word in ("yes", "no")}
    assert ages["yes"] > ages["no"] + 10
    earned = [np.mean([float(row[2]) for row in cells if row[0] == name]) for name in ("north", "south", "west")]
    assert earned[0] + 15_000 < earned[1] < earned[2] - 15_000
    page = Path("r.html").read_text(encoding="utf-8")
    assert "(2, 1e-6)-differential privacy" in page
    assert "bounds are public knowledge" in page
    release = json.loads(Path("r.json").read_text(encoding="ascii"))
    assert check_release(release) == ()
    assert release["guarantee"]["units"] == ROWS
    assert [table["name"] for table in release["columns"]] == ["region", "age", "income", "smokes", "seen", "grade"]
    assert Path("c.html").read_text(encoding="utf-8").count("NOT FOR RELEASE") == 2
    assert CANARY not in "".join(
        Path(name).read_text(encoding="utf-8", errors="replace") for name in ("r.html", "r.json", "m.json")
    )
    assert CliRunner().invoke(app, ["check", "r.json"]).exit_code == 0


def test_json_names_stages_and_files() -> None:
    result = synth("--json", "--report", "r.html")
    content = json.loads(result.stdout)
    assert content["model"]["family"] == "tables"
    assert content["files"]["report"] == "r.html"
    assert {"units", "learner", "composition", "stages", "expected_errors"} <= content["plan"].keys()
    assert content["plan"]["units"] == ROWS
    spent = [stage for stage in content["plan"]["stages"] if stage["epsilon"] is not None]
    assert all(Fraction(stage["epsilon"]) < 2 for stage in spent)


def test_E81_E86_neighbouring_files_give_equal_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    first_of = cache(lambda: release_by_tables(given[0], epsilon=2, delta="1e-6"))
    given: list[Any] = []

    def frozen(table: Any, **_: Any) -> TableRelease:
        """Return the same release whatever the data are."""
        given.append(table)
        return first_of()

    monkeypatch.setattr(accord.synthesis.task, "release_by_tables", frozen)
    seen = []
    odd = ["", "north;1e999;1;no;31/02/2020;low;CH;x;y", f"north;{CANARY};5;maybe;;high;CH;x;y", 'south;"4\n5";1;;;;;;']
    for first in ("", *odd):
        text = data(rows=20, first=first)
        result = synth(
            "--seed-for-tests", "5", "--report", "r.html", "--release", "r.json", "--model", "m.json",
            schema=SCHEMA.replace('"integer"\n', '"integer"\n').replace(
                'format = "%d/%m/%Y"', 'format = "%d/%m/%Y"\nunreadable = "missing"'
            ),
            text=text,
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        files = tuple(Path(name).read_bytes() for name in ("out.csv", "r.html", "r.json", "m.json"))
        seen.append((result.stdout, result.stderr, *files))
    assert len(given) == len(seen)
    del seen[0]  # the run that made the release was also told of its verdicts
    assert all(outcome == seen[0] for outcome in seen)


def test_a_ledger_is_charged_once_and_refuses_the_second() -> None:
    with Ledger.create("l.db", epsilon=3, delta="1e-5"):
        pass
    assert synth("--ledger", "l.db").exit_code == 0
    again = synth("--ledger", "l.db")
    assert again.exit_code == 2
    assert "over the cap" in again.stderr
    with Ledger("l.db") as ledger:
        assert ledger.statement().spent.epsilon == 2
        assert ledger.statement().charges == 1


def test_units_are_protected_together() -> None:
    lines = data().splitlines()
    text = "\n".join(f"{line};{'who' if place == 0 else place // 3}" for place, line in enumerate(lines)) + "\n"
    result = synth("--unit", "who", "--json", text=text)
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout)
    assert content["guarantee"]["unit_column"] == "who"
    assert content["plan"]["units"] == ROWS // 3 + 1


def test_interrupted_runs_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with Ledger.create("l.db", epsilon=3, delta="1e-5"):
        pass
    monkeypatch.setattr(Run, "model", stopped)
    before = set(Path().iterdir())
    result = synth("--ledger", "l.db", "--report", "r.html")
    assert result.exit_code == 130
    assert "nothing was written" in result.stderr
    assert {path.name for path in set(Path().iterdir()) - before} <= {"s.toml", "d.csv", "l.db-wal", "l.db-shm"}
    with Ledger("l.db") as ledger:
        assert ledger.statement().spent.epsilon == 2, "what had begun counts as spent"


# --- plans ------------------------------------------------------------------------------------------------------------


def test_a_dry_run_reads_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        pytest.fail("a row was read")

    monkeypatch.setattr("accord.tables.csv_file.csv_batches", never)
    monkeypatch.setattr("accord.tables.reader.csv_batches", never)
    result = synth("--dry-run", "--size", "6000")
    assert result.exit_code == 0, result.stderr
    assert "no row was read and nothing is spent" in result.stdout
    assert "Is n = 6000 enough?" in result.stdout
    assert not Path("out.csv").exists()
    few = synth("--dry-run", "--size", "100")
    assert "enough? no" in few.stdout
    as_json = json.loads(synth("--dry-run", "--size", "6000", "--json").stdout)
    assert as_json["units"] == 6000
    assert as_json["expected_errors"]["smokes"] < 0.1
    assert "--size" in synth("--dry-run").stderr
    assert synth("--size", "5").exit_code == 2


@pytest.mark.parametrize("learner", ["tables", "blocks", "gaussian-mixture:2", "scipy:norm"])
def test_every_learner_has_a_plan_and_keeps_its_size(learner: str) -> None:
    schema = 'version = 2\n[[columns]]\nname = "x"\nkind = "number"\n'
    text = "x\n" + "".join(f"{value:.3f}\n" for value in np.random.default_rng(1).normal(5, 2, 20_000))
    planned = synth("--dry-run", "--size", "20000", "--learner", learner, schema=schema, text=text)
    assert planned.exit_code == 0, planned.stderr
    done = synth("--learner", learner, "--report", "r.html", "--release", "r.json", schema=schema, text=text)
    assert done.exit_code == 0, done.stderr
    rows = np.array(Path("out.csv").read_text(encoding="utf-8").split()[1:], dtype=float)
    assert abs(rows.mean() - 5) < 0.5
    assert abs(rows.std() - 2) < 0.6
    assert check_release(json.loads(Path("r.json").read_text(encoding="ascii"))) == ()


# --- odd tables -------------------------------------------------------------------------------------------------------


def one_column(kind: str, more: str, cells: list[str]) -> Result:
    schema = f'version = 2\n[[columns]]\nname = "x"\nkind = "{kind}"\nunreadable = "missing"\n{more}\n'
    return synth(schema=schema, text="x,y\n" + "".join(f"{cell},1\n" for cell in cells), rows="500")


def drawn() -> list[str]:
    return Path("out.csv").read_text(encoding="utf-8").splitlines()[1:]


def test_E50_a_constant_column() -> None:
    assert one_column("integer", "bounds = [0, 100]", ["42"] * 3000).exit_code == 0
    assert np.mean([cell == "42" for cell in drawn()]) > 0.95


def test_E52_a_column_without_a_value() -> None:
    assert one_column("number", "bounds = [0, 1]", [""] * 3000).exit_code == 0
    assert np.mean([cell == "" for cell in drawn()]) > 0.95


def test_E53_infinite_cells_are_missing() -> None:
    cells = ["inf", "-inf", "nan", "1e400", "0.5"] * 800
    assert one_column("number", "bounds = [0, 1]", cells).exit_code == 0
    assert 0.7 < np.mean([cell == "" for cell in drawn()]) < 0.9


def test_E57_a_very_skewed_column_keeps_its_zeros_and_its_bounds() -> None:
    cells = ["0.0"] * 2700 + [f"{value:.1f}" for value in np.random.default_rng(1).uniform(0, 1000, 299)] + ["1e12"]
    assert one_column("number", "bounds = [0, 1000]\ndecimals = 1", cells).exit_code == 0
    values = np.array([float(cell) for cell in drawn() if cell])
    assert values.min() >= 0
    assert values.max() <= 1000
    assert len(set(values.tolist())) > 1


def test_E59_negative_numbers_without_bounds() -> None:
    values = -np.random.default_rng(1).uniform(5, 100, 20_000)
    assert one_column("number", "", [f"{value:.2f}" for value in values]).exit_code == 0
    made = np.array([float(cell) for cell in drawn() if cell])
    assert abs(made.mean() + 52) < 8
    assert made.min() > -250
    assert made.max() < 60


def test_B6_few_records_without_bounds_are_answered_with_what_is_called_noise() -> None:
    result = one_column("number", "", ["1", "2", "3"])
    assert result.exit_code == 0, result.stderr
    assert "[too-few-records]" in result.stderr


@pytest.mark.parametrize(
    ("learner", "kind", "word"),
    [
        ("forest", "number", "--learner must be one of"),
        ("gaussian-mixture:0", "number", "--learner must be one of"),
        ("scipy:nothing", "number", "--learner must be one of"),
        ("scipy:poisson", "number", "--learner must be one of"),
        ("gaussian-mixture", "boolean", "--learner tables"),
        ("gaussian", "boolean", "does not fit"),
    ],
)
def test_learners_that_do_not_fit(learner: str, kind: str, word: str) -> None:
    schema = f'version = 2\n[[columns]]\nname = "x"\nkind = "{kind}"\n'
    result = synth("--learner", learner, schema=schema, text="x\n1\n")
    assert result.exit_code == 2
    assert word in result.stderr


def test_options_of_blocks_belong_to_blocks() -> None:
    assert "--learner blocks" in synth("--blocks", "10").stderr


def test_what_was_written_is_read_by_the_same_schema() -> None:
    assert synth().exit_code == 0
    again = read_table(Path("out.csv"), schema=parse_schema(SCHEMA))
    assert len(again) == 3000
