"""Verdicts travel: each once on stderr, in ``--json``, release.json and the report."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from accord.cli.app import app
from accord.reports import check_release

SCHEMA = """version = 2
[[columns]]
name = "sex"
kind = "category"
categories = ["f", "m"]
[[columns]]
name = "age"
kind = "integer"
bounds = [0, 99]
"""


def synth(*options: str, rows: str, schema: str = SCHEMA, epsilon: str, delta: str = "1e-6") -> Result:
    Path("s.toml").write_text(schema, encoding="utf-8")
    Path("d.csv").write_text("sex,age,who\n" + rows, encoding="utf-8")
    files = ["--out", "o.csv", "--report", "r.html", "--release", "r.json", "--force", "--json"]
    arguments = ["--schema", "s.toml", "--epsilon", epsilon, "--delta", delta, "--rows", "50", *files, *options]
    return CliRunner().invoke(app, ["synth", "d.csv", *arguments])


def codes_in(result: Result) -> list[str]:
    """Return the codes, after a look whether every account has the same verdicts, each once."""
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)["warnings"]
    release = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert check_release(release) == ()
    assert release["warnings"] == told
    assert result.stderr.splitlines() == [f"accord: warning: {one['text']} [{one['code']}]" for one in told]
    page = Path("r.html").read_text(encoding="utf-8")
    assert page.count('<p class="warning">') == len(told)
    assert all(page.count(f"<code>{one['code']}</code>") >= 1 for one in told)
    assert len({(one["code"], one["text"]) for one in told}) == len(told)
    return [one["code"] for one in told]


def test_B5_verdicts_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    few = codes_in(synth(rows="f,20,a\nm,30,b\n" * 4, epsilon="0.01"))
    assert [code for code in few if code != "mostly-missing"] == ["too-few-records", *["column-is-noise"] * 2]

    many = "".join(f"{'fm'[row % 2]},{'' if row % 20 else row % 90},{row // 2}\n" for row in range(4000))
    assert codes_in(synth(rows=many, epsilon="3")) == ["mostly-missing"]
    known = SCHEMA + "mostly_missing = true\n"
    assert codes_in(synth(rows=many, schema=known, epsilon="3")) == []
    weighted = codes_in(synth("--unit", "who", rows=many, schema=known, epsilon="3", delta="1e-4"))
    assert weighted == ["delta-too-large", "weighted-by-unit"]


def test_B5_a_dry_run_has_the_verdicts_of_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = synth("--dry-run", "--size", "8", rows="", epsilon="0.01")
    assert [one["code"] for one in json.loads(result.stdout)["warnings"]] == ["too-few-records"]
    assert set(json.loads(result.stdout)["expected_errors"]) == {"sex", "age"}


def test_B2_errors_by_name_in_every_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{'fm'[row % 2]},{row % 90},a\n" for row in range(4000))
    result = synth(rows=rows, epsilon="1")
    plan = json.loads(result.stdout)["plan"]
    release = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert {one["name"]: one["expected_error"] for one in release["columns"]} == plan["expected_errors"]
    assert plan["expected_errors"]["sex"] < plan["expected_errors"]["age"]
    (pair,) = plan["expected_pair_errors"]
    assert pair["names"] == ["sex", "age"]
    assert release["pairs"][0]["expected_error"] == pair["expected_error"] > plan["expected_errors"]["sex"]
    for column in release["columns"]:
        for low, share, high in zip(column["low"], column["shares"], column["high"], strict=True):
            assert low <= share <= high
    page = Path("r.html").read_text(encoding="utf-8")
    assert len({line for line in page.splitlines() if "expected error" in line}) >= 3
