"""What a kept release gives on the command line: free, without the data, refused in one line."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from accord import SyntheticTable
from accord.cli.app import app
from accord.ledger import Ledger

pytestmark = pytest.mark.filterwarnings("ignore")
SCHEMA = """
version = 3
unit = "who"
[[columns]]
name = "age"
kind = "integer"
bounds = [0, 120]
[[columns]]
name = "sex"
kind = "category"
categories = ["f", "m"]
[[columns]]
name = "row"
kind = "id"
prefix = "r"
"""


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


def refused(result: Result, *parts: str) -> None:
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert all(part in result.stderr for part in parts), result.stderr


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    ages, people = rng.integers(20, 90, 3000), rng.integers(0, 1500, 3000)
    lines = [f"{age},{'fm'[age > 50]},p{who}" for age, who in zip(ages.tolist(), people.tolist(), strict=True)]
    Path("d.csv").write_text("\n".join(["age,sex,who", *lines]) + "\n")
    Path("s.toml").write_text(SCHEMA)
    Ledger.create("l", epsilon=3, delta="1e-5", unit="who").close()
    fixed = ["--schema", "s.toml", "--epsilon", "2", "--delta", "1e-6", "--rows", "50", "--ledger", "l"]
    result = call("synth", "d.csv", *fixed, "--out", "o.csv", "--model", "m.accord")
    assert result.exit_code == 0, result.stderr
    Path("d.csv").unlink()
    return Path("m.accord")


def spent() -> int:
    with Ledger("l") as ledger:
        return ledger.statement().charges


def test_rows_of_a_kept_release_are_free_and_the_same_for_a_seed(kept: Path) -> None:
    result = call("sample", str(kept), "--rows", "2000", "--out", "a.csv", "--seed", "5")
    assert result.exit_code == 0, result.stderr
    assert "free of charge" in result.stdout
    assert "(2, 1e-6)-differential privacy" in result.stdout
    assert "random record of a random who" in result.stdout or "random" in result.stdout
    lines = Path("a.csv").read_text().splitlines()
    assert (lines[0], len(lines)) == ("age,sex,row", 2001)
    assert call("sample", str(kept), "--rows", "2000", "--out", "b.csv", "--seed", "5").exit_code == 0
    assert call("sample", str(kept), "--rows", "2000", "--out", "c.csv", "--seed", "6").exit_code == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes() != Path("c.csv").read_bytes()
    assert call("sample", str(kept), "--rows", "7", "--out", "d.parquet").exit_code == 0
    assert pq.read_table("d.parquet").num_rows == 7
    found = json.loads(call("sample", str(kept), "--rows", "7", "--out", "e.csv", "--json").stdout)
    assert found["guarantee"] == SyntheticTable.load(kept).account()["guarantee"]
    assert (found["rows"], found["files"]) == (7, {"rows": "e.csv"})
    assert spent() == 1


def test_reports_and_checks_of_a_kept_release(kept: Path) -> None:
    assert call("report", str(kept), "--out", "r.html").exit_code == 0
    assert Path("r.html").read_text().startswith("<!doctype html>")
    assert call("report", str(kept), "--out", "r.json").exit_code == 0
    for file in (str(kept), "r.json"):
        result = call("check", file)
        assert result.exit_code == 0, result.stderr
        assert "compose to at most" in result.stdout
    assert spent() == 1


def test_a_kept_release_whose_promise_is_changed_is_refuted(kept: Path) -> None:
    table = SyntheticTable.load(kept)
    release = table.release
    object.__setattr__(release, "guarantee", type(release.guarantee)("1/2", release.guarantee.delta, unit="who"))
    Path("m2.accord").write_bytes(table.kept())
    result = call("check", "m2.accord")
    assert result.exit_code == 4
    assert "REFUTED" in result.output or "refuted" in result.output


def test_refusals(kept: Path) -> None:
    refused(call("sample", "none.accord", "--rows", "3", "--out", "x.csv"), "no such file")
    refused(call("sample", "s.toml", "--rows", "3", "--out", "x.csv"), "no accord model")
    refused(call("sample", str(kept), "--rows", "0", "--out", "x.csv"), "--rows", "from 1 to 10000000")
    refused(call("sample", str(kept), "--rows", "3", "--out", "x.csv", "--seed", "-1"), "--seed")
    refused(call("sample", str(kept), "--rows", "3", "--out", str(kept), "--force"), "also read")
    refused(call("sample", str(kept), "--rows", "3", "--out", "o.csv"), "already exists")
    refused(call("report", str(kept), "--out", "x.txt"), ".html", ".json")
    with zipfile.ZipFile("odd.zip", "w") as file:
        file.writestr("a", "b")
    refused(call("check", "odd.zip"), "no accord model")
    assert not Path("x.csv").exists()


def test_a_kept_release_does_not_say_how_earlier_runs_ended(kept: Path) -> None:
    """Charges are made before anything is read; whether a run then ended hard may depend on the data."""
    with zipfile.ZipFile(kept) as file:
        stated = json.loads(file.read("content.json"))["value"]["ledger"]
    assert stated.keys() == {"is", "cap", "spent", "remaining", "charges"}
    ledger = SyntheticTable.load(kept).ledger
    assert ledger is not None
    assert (ledger.charges, ledger.unconfirmed, ledger.head) == (1, None, "")


def test_rows_of_one_kind(kept: Path) -> None:
    result = call("sample", str(kept), "--rows", "300", "--out", "old.csv", "--where", "sex = 'm' and age >= 80")
    assert result.exit_code == 0, result.stderr
    assert "condition" in result.stdout
    cells = [line.split(",") for line in Path("old.csv").read_text().splitlines()[1:]]
    assert len(cells) == 300
    assert all(int(age) >= 80 and sex == "m" for age, sex, _ in cells)
    asked = ["--rows", "3", "--out", "j.csv", "--json", "--where", "age >= 80"]
    found = json.loads(call("sample", str(kept), *asked).stdout)
    assert found["where"]["probability"] == SyntheticTable.load(kept).probability("age >= 80").value
    refused(call("sample", str(kept), "--rows", "3", "--out", "x.csv", "--where", "size > 3"), "the columns are")
    refused(call("sample", str(kept), "--rows", "3", "--out", "x.csv", "--where", "age > 3 and age < 3"), "in no row")
    assert spent() == 1
