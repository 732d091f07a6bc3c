"""``accord check`` and ``accord audit`` as a user meets them."""

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accord.cli.app import app
from accord.cli.audit_targets import TARGETS

MECHANISM = """
epsilon = "{epsilon}"
delta = "{delta}"
neighbours = [["yes", "no"]]
[[rows]]
input = "yes"
law = {{ yes = "3/4", no = "1/4" }}
[[rows]]
input = "no"
law = {{ yes = 1, no = 3 }}
"""


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def written(folder: Path, text: str, name: str = "claim.toml") -> str:
    place = folder / name
    place.write_text(text, encoding="utf-8")
    return str(place)


# --- check ------------------------------------------------------------------------------------------------------------


def test_a_true_claim_stands_and_a_false_one_is_refuted(tmp_path: Path) -> None:
    holds = run("check", written(tmp_path, MECHANISM.format(epsilon="1.0987", delta=0)))
    assert holds.exit_code == 0, holds.stderr
    assert "holds" in holds.stdout
    refuted = run("check", written(tmp_path, MECHANISM.format(epsilon="1.0986", delta=0)), "--json")
    assert refuted.exit_code == 4
    content = json.loads(refuted.stdout)
    assert content["holds"] is False
    assert 0 < content["smallest_delta_float"] < 1e-4
    assert sorted(content["worst"]["pair"]) == ["no", "yes"]
    assert refuted.stderr == "accord: the claim is refuted.\n"


def test_lists_of_records_use_the_relation_by_name(tmp_path: Path) -> None:
    rows = [{"input": [a, b], "law": {"sum": 1 + a + b, "other": 3 - a - b}} for a in (0, 1) for b in (0, 1)]
    text = json.dumps({"epsilon": 1, "delta": 0, "neighbours": "replace one", "rows": rows})
    assert run("check", written(tmp_path, text, "claim.json")).exit_code == 0
    assert run("check", written(tmp_path, text.replace('"epsilon": 1', '"epsilon": 0.5'), "b.json")).exit_code == 4


def test_saved_plans_are_worked_out_again(tmp_path: Path) -> None:
    plans = run("plan", "--learner", "categorical", "--categories", "2", "--json").stdout
    good = run("check", written(tmp_path, plans, "plans.json"))
    assert good.exit_code == 0, good.stderr
    assert good.stdout.count("holds") == 4
    content = json.loads(plans)
    content["plans"][2]["records"] -= 1
    assert run("check", written(tmp_path, json.dumps(content), "less.json")).exit_code == 4
    content = json.loads(plans)
    content["plans"][3]["numbers"]["block_size"] -= 1
    assert run("check", written(tmp_path, json.dumps(content), "smaller.json")).exit_code == 4


@pytest.mark.parametrize(
    "change",
    [{"epsilon": "1/100"}, {"delta": "1e-9"}, {"alpha": "1/100"}, {"beta": 0}, {"safe": True}]
    + [{key: 1} for key in ("blocks", "block_size", "synthetic_records", "draws")]
    + [{"parts": 2}, {"method": "theorem"}, {"blocks": None}],
    ids=str,
)
def test_B4_a_plan_that_says_more_than_its_certificate_is_refuted(tmp_path: Path, change: dict[str, Any]) -> None:
    sizes = ("--alpha", "0.1", "--beta", "0.1", "--epsilon", "1", "--delta", "1e-6")
    content = json.loads(run("plan", "--learner", "normal", *sizes, "--method", "certified", "--json").stdout)
    assert run("check", written(tmp_path, json.dumps(content), "true.json")).exit_code == 0
    around = {"epsilon", "delta", "alpha", "beta", "safe"} & change.keys()
    (content if around else content["plans"][-1]).update(change)
    assert run("check", written(tmp_path, json.dumps(content), "false.json")).exit_code == 4


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a = [", "TOML"),
        ("a = 1", "neither"),
        (MECHANISM.format(epsilon="-1", delta=0), "epsilon"),
        (MECHANISM.format(epsilon="1", delta=2), "delta"),
        (MECHANISM.format(epsilon="1", delta=0).replace('"no"]]', '"maybe"]]'), "no row"),
        (MECHANISM.format(epsilon="1", delta=0).replace('[["yes", "no"]]', "3"), "neighbours"),
        (MECHANISM.format(epsilon="1", delta=0).replace('[["yes", "no"]]', '[["yes", "yes"]]'), "different"),
        (MECHANISM.format(epsilon="1", delta=0).replace('[["yes", "no"]]', '["yes"]'), "pairs"),
        (MECHANISM.format(epsilon="1", delta=0).replace('"3/4"', "true"), "numbers"),
        (MECHANISM.format(epsilon="1", delta=0).replace('"3/4"', '"-3/4"'), "weight"),
        (MECHANISM.format(epsilon="1", delta=0).replace('input = "yes"', "input = {}"), "input"),
        ("plans = []", "plans"),
        ("plans = [{}]", "certificate"),
    ],
)
def test_what_is_no_claim_is_refused(tmp_path: Path, text: str, word: str) -> None:
    found = run("check", written(tmp_path, text))
    assert found.exit_code == 2, found.stderr
    assert word in found.stderr
    assert found.stderr.count("\n") == 1


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    assert run("check", str(tmp_path / "none.toml")).exit_code == 2
    place = tmp_path / "b.json"
    place.write_bytes(b"\xff\xfe")
    assert "JSON in UTF-8" in run("check", str(place)).stderr


# --- audit ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TARGETS)
def test_accords_own_claims_stand(name: str) -> None:
    # from runs each is wrong with probability 1e-7
    found = run("audit", name, "--runs", "300", "--confidence", "0.9999999", "--json")
    assert found.exit_code == 0, found.stderr
    content = json.loads(found.stdout)
    assert content["refuted"] is False
    assert 0 <= content["epsilon_at_least"] <= 1


def test_enumeration_shows_that_the_promises_are_tight() -> None:
    for name, least in (("stable-mode", 0.999), ("permute-and-flip", 0.999), ("exponential", 0.9)):
        assert json.loads(run("audit", name, "--json").stdout)["epsilon_at_least"] > least


def test_a_file_that_forgets_half_of_the_noise_is_refuted(tmp_path: Path) -> None:
    code = """
        from accord.mechanisms import DiscreteLaplace
        noise = DiscreteLaplace(sensitivity=1, scale="0.5")
        pair = (0, 1)
        score = float
        def run(count):
            return noise.release(count).value
    """
    place = written(tmp_path, textwrap.dedent(code), "mine.py")
    found = run("audit", place, "--epsilon", "1", "--runs", "4000", "--confidence", "0.9999999")
    assert found.exit_code == 4, found.stderr
    assert "REFUTED" in found.stdout
    assert run("audit", place, "--epsilon", "2", "--runs", "2000", "--confidence", "0.9999999").exit_code == 0


def test_a_file_with_a_law_is_enumerated(tmp_path: Path) -> None:
    code = "pair = (0, 1)\ndef law(bit):\n    return {0: 1 + bit, 1: 2 - bit}\n"
    place = written(tmp_path, code, "law.py")
    content = json.loads(run("audit", place, "--epsilon", "0.6", "--json").stdout)
    assert content["method"] == "enumeration"
    assert content["refuted"] is True
    assert content["epsilon_at_least"] == pytest.approx(0.6931471805, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nothing"], "no such target"),
        (["missing.py"], "does not exist"),
        (["laplace", "--epsilon", "0"], "epsilon"),
        (["laplace", "--runs", "99"], "runs"),
        (["laplace", "--runs", "many"], "--runs"),
        (["laplace", "--confidence", "1"], "confidence"),
        (["stable-mode", "--delta", "2"], "delta"),
    ],
)
def test_bad_arguments_get_one_line(arguments: list[str], word: str) -> None:
    found = run("audit", *arguments)
    assert found.exit_code == 2, found.stderr
    assert word in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "word"),
    [("pair = (0, 1)", "run"), ("def run(x): return x", "pair"), ("1 / 0", "ZeroDivisionError"), ("pair = 3", "pair")],
)
def test_a_file_that_is_no_target(tmp_path: Path, code: str, word: str) -> None:
    found = run("audit", written(tmp_path, code, "odd.py"))
    assert found.exit_code == 2
    assert word in found.stderr


# --- releases ---------------------------------------------------------------------------------------------------------


def release(**guarantee: Any) -> str:
    promise = {
        "epsilon": "1",
        "epsilon_float": 1.0,
        "delta": "1e-6",
        "delta_float": 1e-6,
        "neighbouring": "replace one",
        "unit": "record",
        "unit_column": None,
        "units": 100,
        "composition": "basic: epsilons and deltas add",
        "noise_seeded": False,
        **guarantee,
    }
    stage = {"what": "all", "mechanism": "stable mode", "epsilon": "1", "delta": "1e-6", "detail": ""}
    lists: dict[str, list[str]] = {key: [] for key in ("claims", "columns", "pairs", "warnings")}
    more = {"accord": "0.1.0", "learner": "", "seeded": False, "rows": 1, "budget": {}, "stages": [stage]}
    return json.dumps({"format": "accord release", "format_version": 1, "guarantee": promise, **lists, **more})


def test_a_release_is_checked(tmp_path: Path) -> None:
    old = run("check", written(tmp_path, release(), "release.json"))
    assert old.exit_code == 2, old.stdout
    assert "format 1, which cannot be worked out" in old.stderr
    less = run("check", written(tmp_path, release(epsilon="0.5", epsilon_float=0.5), "less.json"), "--json")
    assert less.exit_code == 4
    assert json.loads(less.stdout)["faults"] == ["the stages spend more epsilon than is promised"]
    twice = release().replace('"epsilon": "1"', '"epsilon": "1", "epsilon": "1"', 1)
    assert "stands twice" in run("check", written(tmp_path, twice, "twice.json")).stderr
    newer = release().replace('"format_version": 1', '"format_version": 3')
    assert run("check", written(tmp_path, newer, "newer.json")).exit_code == 2
