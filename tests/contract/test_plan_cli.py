"""``accord plan``: every method side by side, JSON, plots, refusals."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accord.cli.app import app
from accord.theory.planning import Certificate


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["plan", *arguments])


def test_all_methods_side_by_side() -> None:
    result = run("--learner", "normal", "--dimension", "1", "--alpha", ".1", "--epsilon", "1", "--delta", "1e-6")
    assert result.exit_code == 0, result.stderr
    for text in ("theorem (L9)", "boosted (L10)", "certified A", "* certified C", "m(0.1, 0.025) = "):
        assert text in result.stdout
    only = run("--learner", "categorical", "--categories", "2", "--method", "certified")
    assert "* certified B" in only.stdout
    assert "theorem" not in only.stdout


def test_json_holds_certificates_that_verify() -> None:
    result = run("--learner", "categorical", "--categories", "2", "--json")
    assert result.exit_code == 0
    content = json.loads(result.stdout)
    assert [entry["name"] for entry in content["plans"]] == ["L9", "L10", "A", "B"]
    for entry in content["plans"]:
        assert entry["records"] == entry["blocks"] * entry["block_size"] * entry["parts"]
        text = json.dumps(
            {
                "method": entry["name"],
                "numbers": entry["numbers"],
                "inequalities": entry["inequalities"],
                "premises": entry["premises"],
            }
        )
        assert Certificate.from_json(text).verify()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--alpha", "0"], "alpha"),
        (["--beta", "1"], "beta"),
        (["--epsilon", "11"], "epsilon"),
        (["--epsilon", "2", "--method", "theorem"], "epsilon"),
        (["--delta", "0"], "delta"),
        (["--delta", "x"], "delta"),
        (["--learner", "forest"], "--learner"),
        (["--learner", "categorical", "--categories", "1"], "--categories"),
        (["--dimension", "0"], "dimension"),
        (["--method", "best"], "--method"),
        (["--plot", "picture.jpg"], ".png or .svg"),
        (["--plot", "no/such/folder/picture.png"], "folder"),
    ],
)
def test_refusals_name_what_is_wrong(arguments: list[str], word: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert word in result.stderr
    assert result.stdout == ""


def test_the_table_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    result = run("--learner", "categorical", "--categories", "16")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout)
    rows = [line for line in plain.splitlines() if "certified" in line or "theorem" in line]
    assert [row.split()[:2] for row in rows[2:]] == [["certified", "A:"], ["certified", "B:"], ["certified", "D:"]]
    assert all(len(row.rstrip()) <= 80 and len(row.split()) > 8 for row in rows)


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "plan.svg"
    assert run("--learner", "normal", "--plot", str(target)).exit_code == 0
    text = target.read_text(encoding="utf-8")
    assert "<svg" in text


def test_plot_without_matplotlib_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("--plot", str(tmp_path / "plan.png"))
    assert result.exit_code == 2
    assert "accord[plots]" in result.stderr
