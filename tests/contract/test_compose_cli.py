"""``accord compose``: totals from flags and files, every rule, refusals in one sentence."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from accord.accounting import DiscreteGaussianLoss, DiscreteLaplaceLoss, PrivacyAccountant
from accord.cli import compose as module
from accord.cli.app import app
from accord.privacy import ApproxDP, best_composition

TOML = """
delta = 1e-6
neighbouring = "add or remove one"
unit = "person"

[[rounds]]
kind = "pure"
epsilon = 0.1
count = 10

[[rounds]]
kind = "approx"
epsilon = "0.2"
delta = 1e-9
count = 5

[[rounds]]
kind = "laplace"
epsilon = "1/3"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["compose", *arguments])


def total(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    content: dict[str, Any] = json.loads(result.stdout)
    return content


def test_C4_check_values_side_by_side() -> None:
    content = total("--approx", "0.1,1e-10x1000", "--delta", "1e-6")
    found = {bound["rule"]: bound for bound in content["bounds"]}
    assert found["basic"]["epsilon"] == "100"
    assert found["basic"]["delta"] == "1e-7"
    assert found["advanced"]["epsilon_float"] == pytest.approx(27.2029, abs=5e-5)
    assert found["optimal"]["epsilon_float"] == pytest.approx(19.40185234, abs=1e-8)
    assert content["best"] == found["optimal"]
    assert content["best"]["delta_float"] >= Fraction("1e-6")
    assert (
        Fraction(content["best"]["epsilon"])
        >= best_composition([ApproxDP("0.1", "1e-10")] * 1000, delta="1e-6").epsilon
    )


def test_the_best_is_marked_for_people() -> None:
    result = run("--laplace", "0.05x1000", "--delta", "1e-6")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "Total of 1000 rounds at delta 1e-6 (replace one record)"
    (best,) = [line for line in lines if line.startswith("*")]
    assert best.startswith("* privacy loss: 8.2044")
    assert any(line.startswith("  basic: 50, delta 0 [C2]") for line in lines)
    assert len(lines) == 7


def test_gaussian_by_its_closed_form() -> None:
    for text in ("50x1000", "sigma=50,x1000", "sigma=50x1000", " 50 x 1000 "):
        content = total("--gaussian", text, "--delta", "1e-6")
        assert content["best"]["epsilon_float"] == pytest.approx(2.92160059, abs=5e-9)


@pytest.mark.parametrize(
    ("kind", "number", "loss"),
    [
        ("discrete-laplace", "0.05", DiscreteLaplaceLoss("0.05", 1)),
        ("discrete-gaussian", "20", DiscreteGaussianLoss(sigma=20)),
    ],
)
def test_discrete_noise_has_the_total_of_its_own_law(kind: str, number: str, loss: Any, folder: Path) -> None:
    best = total(f"--{kind}", f"{number}x1000", "--delta", "1e-6")["best"]
    accountant = PrivacyAccountant()
    accountant.charge(loss, times=1000)
    own = accountant.total(delta="1e-6").epsilon
    assert own <= Fraction(best["epsilon"]) <= own * Fraction(1 + 1e-15)
    name = "epsilon" if kind == "discrete-laplace" else "sigma"
    (folder / "own.toml").write_text(f"delta = 1e-6\n[[rounds]]\nkind = '{kind}'\n{name} = {number}\ncount = 1000\n")
    assert total("own.toml")["best"] == best
    refused = run(f"--{kind}", "-1x3", "--delta", "1e-6")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"{kind} -1: " in refused.stderr


def test_help_says_where_a_stable_mode_goes() -> None:
    assert "stable mode" in " ".join(run("--help").output.replace("│", " ").split())


def test_flags_may_be_given_several_times_and_add_up() -> None:
    content = total("--pure", "0.1x10", "--pure", "0.1x20", "--exponential", "0.2", "--delta", "1e-6")
    assert content["rounds"][1] == {"kind": "pure", "numbers": ["0.1"], "count": 20}
    other = total("--exponential", "0.2", "--pure", "0.1x30", "--delta", "1e-6")
    assert other["bounds"] == content["bounds"]


@pytest.mark.parametrize("name", ["rounds.toml", "rounds.json"])
def test_files(name: str, folder: Path) -> None:
    text = TOML
    if name.endswith("json"):
        text = (
            '{"delta": 1e-6, "neighbouring": "add or remove one", "unit": "person", "rounds": ['
            '{"kind": "pure", "epsilon": 0.1, "count": 10}, '
            '{"kind": "approx", "epsilon": "0.2", "delta": 1e-9, "count": 5},'
            '{"kind": "laplace", "epsilon": "1/3"}]}'
        )
    (folder / name).write_text(text)
    content = total(name)
    assert (content["neighbouring"], content["unit"]) == ("add or remove one", "person")
    assert content["bounds"][0]["epsilon"].startswith("2.333333")  # 0.1 is one tenth, not a float
    assert [entry["count"] for entry in content["rounds"]] == [10, 5, 1]
    again = total(name, "--pure", "0.5", "--delta", "1e-3", "--unit", "household", "--neighbouring", "replace-one")
    assert (again["delta"], again["unit"], again["neighbouring"]) == ("1e-3", "household", "replace one")


def test_E26_an_infinite_total_says_why() -> None:
    content = total("--approx", "0.1,1e-8x1000", "--delta", "1e-6")
    assert content["best"]["epsilon"] is None
    assert "more than the 1e-06 that is allowed" in content["best"]["reason"]
    result = run("--approx", "0.1,1e-8x1000", "--delta", "1e-6")
    assert result.exit_code == 0
    assert "optimal: infinite: the guarantees alone spend a delta of 9.99995e-06" in result.stdout
    assert "*" not in result.stdout


def test_plain_addition_holds_above_epsilon_1000() -> None:
    best = total("--pure", "1001x2", "--delta", "0")["best"]
    assert (best["rule"], best["epsilon"], best["delta"]) == ("basic", "2002", "0")


def test_a_million_rounds_take_no_more_work_than_ten_thousand(work: Callable[[Callable[[], object]], int]) -> None:
    assert total("--pure", "0.001x1000000", "--delta", "1e-6")["bounds"][0]["epsilon"] == "1000"
    few = work(lambda: total("--pure", "0.001x10000", "--delta", "1e-6"))
    assert work(lambda: total("--pure", "0.001x1000000", "--delta", "1e-6")) < 2 * few


def test_E34_a_delta_not_needed_is_not_spent_and_one_missing_is_named() -> None:
    assert total("--pure", "1", "--delta", "1e-6")["bounds"][0]["delta"] == "0"
    missing = total("--gaussian", "5", "--delta", "0")
    assert missing["best"]["epsilon"] is None
    assert "without slack a Gaussian has no finite epsilon" in missing["bounds"][0]["reason"]
    refused = run("--approx", "1,1e-6")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--delta is missing" in refused.stderr


def test_what_is_printed_is_rounded_up() -> None:
    assert module._digits(Fraction(1, 3), 8) == "0.33333334"
    assert module._digits(Fraction(2, 3), 2) == "0.67"
    assert module._digits(Fraction(1, 10**7), 8) == "1e-7"
    assert module._digits(Fraction(0), 8) == "0"
    assert module._digits(Fraction(100), 8) == "100"
    assert module._digits(Fraction(10**30), 8) == "1e+30"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no rounds: give a file, or flags"),
        (("--pure", "0.1x10"), "--delta is missing"),
        (("--pure", "0.1,1e-9x10", "--delta", "0"), "--pure must be written EPSILONxCOUNT, such as --pure 0.1x1000"),
        (("--approx", "0.1x10", "--delta", "0"), "--approx must be written EPSILON,DELTAxCOUNT"),
        (("--gaussian", "scale=3x10", "--delta", "0"), "--gaussian must be written SIGMAxCOUNT"),
        (("--pure", "0.1x0", "--delta", "0"), "the count of pure must be a whole number, from 1 to 1000000"),
        (("--pure", "0.1x9999999", "--delta", "0"), "the count of pure"),
        (("--pure", "-1x3", "--delta", "0"), "pure -1: epsilon must be at least 0"),
        (("--pure", "nanx3", "--delta", "0"), "pure nan: epsilon is not finite"),
        (("--laplace", "5000", "--delta", "0"), "laplace 5000: epsilon must be from 0 to 1000"),
        (("--gaussian", "0", "--delta", "0.1"), "gaussian 0: sigma must be above 0"),
        (("--pure", "1", "--delta", "1"), "delta must be at least 0 and below 1"),
        (("--pure", "1", "--delta", "x"), "delta is not written as a number"),
        (
            ("--pure", "1", "--delta", "0", "--neighbouring", "swap"),
            "neighbouring must be 'replace one' or 'replace one in place' or 'add or",
        ),
        (("missing.toml",), "the file of rounds cannot be read: No such file"),
        ((".",), "the file of rounds cannot be read: Is a directory"),
    ],
)
def test_refusals_are_one_sentence(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rounds = 3", "needs a list 'rounds'"),
        ("rounds = []", "needs a list 'rounds'"),
        ("rounds = [", "no TOML"),
        ("[[rounds]]\nkind = 'uniform'", "entry 1 of rounds needs a kind: pure, approx"),
        ("[[rounds]]\nkind = 'pure'", "entry 1 of rounds needs epsilon"),
        ("[[rounds]]\nkind = 'pure'\nepsilon = 1\ndelta = 0", "entry 1 of rounds has an unknown key 'delta'"),
        ("[[rounds]]\nkind = 'pure'\nepsilon = true", "epsilon must be a number or a word"),
        ("[[rounds]]\nkind = 'pure'\nepsilon = 1\ncount = 1.5", "the count of pure"),
        ("deltas = 1\n[[rounds]]\nkind = 'pure'\nepsilon = 1", "the file has an unknown key 'deltas'"),
        ("\x00\xff", "no TOML"),
        ("#" * (1 << 20) + "\n", "larger than 1 MB"),
    ],
)
def test_files_that_are_wrong_are_refused_in_one_sentence(text: str, message: str, folder: Path) -> None:
    (folder / "rounds.toml").write_text(text, encoding="latin-1")
    result = run("rounds.toml", "--delta", "1e-6")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    (folder / "rounds.json").write_text("[1]")
    assert "must be a table" in run("rounds.json", "--delta", "0").stderr


def test_a_terminal_shows_a_table() -> None:
    """Through a pseudo-terminal where there is one."""
    pty = pytest.importorskip("pty")
    parent, child = pty.openpty()
    command = [str(Path(sys.executable).parent / "accord"), "compose", "--pure", "0.1x30", "--delta", "1e-6"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(command, stdout=child, env=environment, timeout=60, check=False)
    os.close(child)
    shown = os.read(parent, 100_000).decode()
    os.close(parent)
    assert done.returncode == 0
    assert "epsilon" in shown
    assert "2.3458877" in shown
    assert "basic" in shown
