"""Ledgers as people meet them: ``accord ledger``, ``--ledger``, and ``ledger=`` on everything that spends."""

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import accord.synthesis.task
from accord import SyntheticTable
from accord.cli.app import app
from accord.core.unit_names import unit_word
from accord.distributions import Distribution, Normal
from accord.errors import BudgetExceeded, FitFailed, InvalidParameter, LedgerError, NotEnoughRecords
from accord.learners import GaussianLearner
from accord.learning import PrivateLearner, PrivateSampler
from accord.ledger import Ledger
from accord.mechanisms import DiscreteLaplace
from accord.privacy import AdaptiveSession, ApproxDP, NoAnswer, PureDP
from accord.randomness import SharedRandomness
from accord.synthesis import Synthesis, synthesise
from accord.synthesis.by_votes import SamplePlan

SCHEMA = 'version = 1\n[[columns]]\nname = "x"\nkind = "number"\n'
CANARY = "CANARY7301"

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # of Python 3.12, beside threads


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of 9000 numbers, one with people, and a schema of each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCORD_DEBUG", raising=False)
    monkeypatch.setenv("LOGNAME", "tester")
    numbers = np.random.default_rng(3).normal(5, 2, size=9000)
    lines = [f"{number:.3f},{person}" for person, number in enumerate(numbers)]
    Path("t.csv").write_text("\n".join(["x,patient", *lines]) + "\n", encoding="utf-8")
    Path("s.toml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Replace the fits by a fixed release that charges like the real one; gives the list of its calls."""
    calls: list[dict[str, Any]] = []

    def synthesise(records: Any, *, ledger: Ledger | None, unit: str | None, **options: Any) -> Synthesis:
        word = unit_word(unit, named=options["units"] is not None)
        guarantee = ApproxDP(options["epsilon"], options["delta"], unit=word)
        calls.append({"unit": unit, **options})
        if ledger is not None:
            ledger.confirm(ledger.charge(guarantee, what="fixed"))
        plan = SamplePlan(units=len(records), blocks=10, block_size=100, records=20, draws=4, typical_error=0.1)
        return Synthesis(model=Normal([1.5], [[4.0]]), guarantee=guarantee, plan=plan, seeded=False)

    monkeypatch.setattr(accord.synthesis.task, "synthesise", synthesise)
    return calls


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def create(*words: str) -> Result:
    return call("ledger", "create", "l", "--epsilon", "3", "--delta", "1e-5", *words)


def synth(*words: str, epsilon: str = "1") -> Result:
    fixed = ["--schema", "s.toml", "--delta", "1e-6", "--rows", "5", "--out", "o.csv", "--force", "--learner", "blocks"]
    return call("synth", "t.csv", "--epsilon", epsilon, *fixed, *words)


def shown(path: str = "l") -> dict[str, Any]:
    result = call("ledger", "show", path, "--json")
    assert result.exit_code == 0
    content: dict[str, Any] = json.loads(result.stdout)
    return content


def kinds() -> list[str]:
    return [entry["kind"] for entry in shown()["entries"]]


# --- accord ledger ----------------------------------------------------------------------------------------------------


def test_create_show_cap_verify() -> None:
    assert create("--who", "ana", "--why", "study 7").exit_code == 0
    assert call("ledger", "cap", "l", "--epsilon", "4", "--delta", "1e-5", "--why", "agreed").exit_code == 0
    content = shown()
    assert content["cap"] == {"epsilon": "4", "epsilon_float": 4.0, "delta": "1/100000", "delta_float": 1e-5}
    assert content["remaining"] == content["cap"]
    assert [(entry["who"], entry["why"]) for entry in content["entries"]] == [("ana", "study 7"), ("tester", "agreed")]
    text = call("ledger", "show", "l").stdout
    for word in ("study 7", "agreed", "tester", "replace one", "(4, 1e-05) is left", content["head"]):
        assert word in text
    found = call("ledger", "verify", "l", "--head", content["head"])
    assert found.exit_code == 0
    assert "2 entries" in found.stdout
    assert json.loads(call("ledger", "verify", "l", "--json").stdout)["holds"] is True


def test_a_broken_ledger_has_exit_code_2_and_says_where(folder: Path) -> None:
    create()
    call("ledger", "cap", "l", "--epsilon", "4", "--delta", "1e-5", "--why", CANARY)
    content = (folder / "l").read_bytes()
    (folder / "l").write_bytes(content.replace(CANARY.encode(), CANARY.lower().encode()))
    found = call("ledger", "verify", "l", "--json")
    assert found.exit_code == 2
    assert json.loads(found.stdout) == {
        "holds": False,
        "entries": 1,
        "head": json.loads(found.stdout)["head"],
        "problem": "entry 2 was changed: its digest does not match its content.",
    }
    assert call("ledger", "verify", "l").exit_code == 2
    for words in (["show", "l"], ["cap", "l", "--epsilon", "9", "--delta", "0", "--why", "x"]):
        result = call("ledger", *words)
        assert result.exit_code == 2
        assert "entry 2 was changed" in result.stderr
    assert synth("--ledger", "l").exit_code == 2
    assert not (folder / "o.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["create", "l", "--epsilon", "1,5", "--delta", "0"], "cap epsilon"),
        (["create", "l", "--epsilon", "-1", "--delta", "0"], "cap must have"),
        (["create", "l", "--epsilon", "nan", "--delta", "0"], "cap epsilon"),
        (["create", "l", "--epsilon", "1", "--delta", "1"], "cap must have"),
        (["create", "l", "--epsilon", "1", "--delta", "0", "--neighbouring", "x"], "--neighbouring"),
        (["create", "l", "--epsilon", "1", "--delta", "0", "--unit", ""], "unit"),
        (["create", "none/l", "--epsilon", "1", "--delta", "0"], "cannot be"),
        (["create", "s.toml", "--epsilon", "1", "--delta", "0"], "already"),
        (["show", "l"], "accord ledger create"),
        (["show", "s.toml"], "not a ledger"),
        (["show", "."], "folder"),
        (["verify", "l"], "accord ledger create"),
        (["cap", "l", "--epsilon", "1", "--delta", "0", "--why", "x"], "accord ledger create"),
    ],
)
def test_bad_arguments_have_exit_code_2_one_line_and_leave_nothing(
    folder: Path, words: list[str], message: str
) -> None:
    before = sorted(folder.iterdir())
    result = call("ledger", *words)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert sorted(folder.iterdir()) == before


def test_positive_amounts_are_never_shown_as_nothing_nor_spent_ones_rounded_down() -> None:
    with Ledger.create("l", epsilon=1, delta="1e-5") as ledger:
        ledger.charge(ApproxDP(Fraction(5e-324), Fraction(1, 10**330)), what="tiny")
        text = call("ledger", "show", "l").stdout
        assert "\tcharge\t4.94065645842e-324\t1e-330\t" in text
        assert "(4.94065645842e-324, 1e-330) of (1, 1e-05) is spent" in text
        assert "(0.999999999999, 9.99999999999e-06) is left" in text
        assert "basic: (4.94065645842e-324, 1e-330)" in text
        content = shown()
        assert [content["spent"]["epsilon_float"], content["spent"]["delta_float"]] == [5e-324, 5e-324]
        ledger.charge(ApproxDP(Fraction(1, 3), 0), what="third")
        assert "0.333333333334" in call("ledger", "show", "l").stdout


def test_the_largest_amounts_and_totals_of_any_length_are_shown() -> None:
    with Ledger.create("l", epsilon=10**6, delta="0.5") as ledger:
        ledger.charge(PureDP(999_000), what="large")
        for odd in range(40):  # the total has a denominator of some 12 000 digits
            ledger.charge(PureDP(Fraction(1, 3**690 + 2**odd)), what="odd")
        assert ledger.spent.epsilon.denominator > 10**4300
    assert "99900" in call("ledger", "show", "l").stdout
    content = shown()
    assert Fraction(content["remaining"]["epsilon"]) < 1000 < 10**6 - 998_999
    assert Fraction(content["spent"]["epsilon"]) > 999_000
    refused = call("ledger", "create", "m", "--epsilon", "1e400", "--delta", "0")
    assert refused.exit_code == 2
    assert "above a million" in refused.stderr


def test_text_of_a_ledger_cannot_play_with_a_terminal() -> None:
    with Ledger.create("l", epsilon=1, delta=0) as ledger:
        ledger.charge(ApproxDP("0.5", 0), what="[red]markup[/red] \N{NO-BREAK SPACE}".strip(), who='"quoted"')
    assert "[red]markup[/red]" in call("ledger", "show", "l").stdout


# --- accord synth --ledger --------------------------------------------------------------------------------------------


def test_synth_charges_prints_the_total_and_stops_at_the_cap(released: list[dict[str, Any]], folder: Path) -> None:
    create()
    first = synth("--ledger", "l", "--why", "first")
    assert first.exit_code == 0
    assert "(1, 1e-06) of (3, 1e-05) is spent by 1 charges and (2, 9e-06) is left" in first.stdout
    assert "this run only" not in first.stdout
    second = json.loads(synth("--ledger", "l", "--json", "--model", "m.json", epsilon="1.5").stdout)
    assert second["ledger"]["spent"]["epsilon"] == "5/2"
    assert second["ledger"]["charges"] == 2
    assert "(2.5, 2e-06) of (3, 1e-05)" in second["guarantee"]["budget"]
    kept = SyntheticTable.load(folder / "m.json").ledger
    assert kept is not None
    assert "(2.5, 2e-06)" in kept.words
    (folder / "o.csv").unlink()
    third = synth("--ledger", "l")
    assert third.exit_code == 2
    assert "would go over the cap of (3, 1e-05): (2.5, 2e-06) is spent" in third.stderr
    assert not (folder / "o.csv").exists()
    assert len(released) == 2
    assert kinds() == ["create", "charge", "confirm", "charge", "confirm"]
    assert [entry["who"] for entry in shown()["entries"]] == ["tester"] * 5
    assert shown()["entries"][1]["why"] == "first"


def test_without_a_ledger_the_report_says_this_run_only(released: list[dict[str, Any]]) -> None:
    result = json.loads(synth("--json").stdout)
    assert result["guarantee"]["budget"].startswith("this run only")
    assert "ledger" not in result


@pytest.mark.parametrize("ledger", [(), ("--ledger", "l")])
def test_all_accounts_of_a_run_hold_one_guarantee(released: list[Any], folder: Path, ledger: tuple[str, ...]) -> None:
    """--json adds how many runs there were and what a ledger says; every other key is that of release.json."""
    if ledger:
        create()
    found = json.loads(synth(*ledger, "--json", "--release", "r.json").stdout)["guarantee"]
    stated = json.loads((folder / "r.json").read_text(encoding="utf-8"))["guarantee"]
    assert {key: found[key] for key in stated} == stated
    assert found.keys() - stated.keys() == {"releases", "budget"}


def test_synth_creates_no_ledger_and_opens_no_table_before_the_ledger(released: list[Any], folder: Path) -> None:
    (folder / "t.csv").write_text("not a table", encoding="utf-8")
    result = synth("--ledger", "l")
    assert result.exit_code == 2
    assert "accord ledger create" in result.stderr
    assert not (folder / "l").exists()


@pytest.mark.parametrize("option", ["--out", "--model"])
def test_an_output_never_replaces_the_ledger(released: list[dict[str, Any]], folder: Path, option: str) -> None:
    create()
    before = (folder / "l").read_bytes()
    assert synth("--ledger", "l", option, "l").exit_code == 2
    assert (folder / "l").read_bytes() == before
    assert not released


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("kind", ["wal", "shm", "journal"])
@pytest.mark.parametrize("option", ["--out", "--model"])
def test_an_output_never_replaces_a_file_beside_the_ledger(
    released: list[dict[str, Any]], folder: Path, option: str, kind: str, *, link: bool
) -> None:
    (folder / "deep").mkdir()
    real, where = (folder / "deep" / "l", "link") if link else (folder / "l", "l")
    with Ledger.create(real, epsilon=3, delta="1e-5") as ledger:
        if link:
            (folder / "link").symlink_to(real)
        ledger.charge(ApproxDP(1, "1e-6"), what="a")
        refused = synth("--ledger", where, option, f"{real}-{kind}")
        assert refused.exit_code == 2
        assert f"{option} must not be a file" in refused.stderr
        assert ledger.spent == ApproxDP(1, "1e-6")
    assert not released


def test_the_unit_column_must_be_the_ledgers_unit(released: list[dict[str, Any]]) -> None:
    create("--unit", "patient")
    refused = synth("--ledger", "l")
    assert refused.exit_code == 2
    assert "protects each patient and the request protects each record" in refused.stderr
    assert synth("--ledger", "l", "--unit", "patient").exit_code == 0
    assert released[0]["unit"] == "patient"
    call("ledger", "create", "r", "--epsilon", "3", "--delta", "1e-5")
    assert synth("--ledger", "r", "--unit", "patient").exit_code == 2
    assert len(released) == 1


@pytest.mark.parametrize("name", ["record", "Record", "voter"])
def test_A13_a_unit_column_with_a_reserved_name_is_not_taken_for_records(
    released: list[dict[str, Any]], name: str
) -> None:
    table = Path("t.csv").read_text(encoding="utf-8")
    Path("t.csv").write_text(table.replace("x,patient", f"x,{name}"), encoding="utf-8")
    create("--unit", name)
    refused = synth("--ledger", "l", "--unit", name)
    assert refused.exit_code == 2
    assert f'protects each {name} and the request protects each unit "{name}"' in refused.stderr
    assert (released, kinds()) == ([], ["create"])
    Path("l").unlink()
    create("--unit", f'unit "{name}"')
    assert synth("--ledger", "l").exit_code == 2  # records are not such units either
    accepted = synth("--ledger", "l", "--unit", name)
    assert (accepted.exit_code, released[0]["unit"]) == (0, name)


def test_another_relation_is_refused(released: list[dict[str, Any]]) -> None:
    create("--neighbouring", "add-or-remove-one")
    result = synth("--ledger", "l")
    assert result.exit_code == 2
    assert "cannot be added" in result.stderr
    assert not released


def test_bad_input_spends_nothing(folder: Path) -> None:
    create()
    (folder / "t.csv").write_text(f"x\n1\n{CANARY}\n", encoding="utf-8")
    assert synth("--ledger", "l").exit_code == 2
    (folder / "t.csv").write_text("x\n1\n2\n", encoding="utf-8")
    assert synth("--ledger", "l").exit_code == 2
    assert kinds() == ["create"]
    assert CANARY.encode() not in (folder / "l").read_bytes()


def test_a_real_run_is_charged_and_confirmed(folder: Path) -> None:
    create("--unit", "patient")
    result = synth("--ledger", "l", "--unit", "patient")
    assert result.exit_code in {0, 3}
    content = shown()
    assert [entry["kind"] for entry in content["entries"]] == ["create", "charge", "confirm"]
    assert content["entries"][1]["unit"] == "patient"
    assert content["entries"][1]["what"].startswith("private sampler: GaussianLearner, ")
    assert content["spent"]["epsilon"] == "1"


def test_runs_without_an_answer_add_up(folder: Path) -> None:  # E37
    create()
    data = np.random.default_rng(4).uniform(size=900) * 10.0 ** np.random.default_rng(5).uniform(0, 9, size=900)
    (folder / "t.csv").write_text("x\n" + "\n".join(map(str, data)) + "\n", encoding="utf-8")
    codes = [synth("--ledger", "l", "--blocks", str(blocks)).exit_code for blocks in (60, 70, 80)]
    assert set(codes) <= {0, 3}
    assert 3 in codes
    assert shown()["spent"]["epsilon"] == "3"
    assert synth("--ledger", "l", "--blocks", "90").exit_code == 2


def test_a_fit_of_the_release_that_fails_stays_charged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(self: GaussianLearner, records: Any, *, seed: int) -> Distribution:
        raise FitFailed(CANARY)

    create()
    monkeypatch.setattr(GaussianLearner, "fit", fit)
    result = synth("--ledger", "l")
    assert result.exit_code == 3
    assert kinds() == ["create", "charge", "confirm"]
    assert CANARY.encode() not in (folder / "l").read_bytes()


# --- ledger= ----------------------------------------------------------------------------------------------------------


class Interrupted:
    """A learner that is stopped by its user."""

    def fit(self, records: Any, *, seed: int) -> Distribution:
        raise KeyboardInterrupt(CANARY)


def interrupt(done: int, total: int, what: str) -> None:
    """A person's interrupt, between two fits: a learner's own is its block's abstention."""
    raise KeyboardInterrupt(CANARY)


SIZES: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "blocks": 50, "records": 12, "draws": 4}
DATA = np.random.default_rng(1).normal(size=(1000, 1))


def spenders(learner: Any) -> dict[str, Any]:
    from accord.couplings import NormalLattice

    lattice = NormalLattice(dimension=1)
    return {
        "sampler": PrivateSampler(learner, coupling=lattice, **SIZES).release,
        "learner": PrivateLearner(learner, coupling=lattice, **SIZES).release,
    }


@pytest.mark.parametrize("kind", ["sampler", "learner"])
def test_a_failing_run_stays_charged_and_the_second_try_is_charged_again(folder: Path, kind: str) -> None:  # E33
    with Ledger.create("l", epsilon=3, delta="1e-5") as ledger:
        for tries in (1, 2):
            with pytest.raises(KeyboardInterrupt):
                spenders(Interrupted())[kind](DATA, ledger=ledger, progress=interrupt)
            assert ledger.spent == ApproxDP(tries, Fraction(tries, 10**6))
        assert [entry.kind for entry in ledger.entries()][1:] == ["charge", "abandon"] * 2
        assert ledger.entries()[-1].why == "failed: KeyboardInterrupt"
    assert CANARY.encode() not in (folder / "l").read_bytes()


@pytest.mark.parametrize("kind", ["sampler", "learner"])
def test_what_is_refused_before_the_first_fit_is_not_charged(kind: str) -> None:
    release = spenders(Interrupted())[kind]
    with Ledger.create("l", epsilon="0.5", delta="1e-5") as ledger:
        with pytest.raises(BudgetExceeded):
            release(DATA, ledger=ledger)
        with pytest.raises(NotEnoughRecords):
            release(DATA[:20], ledger=ledger)
        with pytest.raises(InvalidParameter):
            release(DATA, units=[1, 2], ledger=ledger)
        with pytest.raises(InvalidParameter, match="protects each record"):
            release(DATA, units=range(1000), ledger=ledger)
        with pytest.raises(InvalidParameter, match="needs units="):
            release(DATA, unit="person", ledger=ledger)
        assert len(ledger.entries()) == 1


@pytest.mark.parametrize("kind", ["sampler", "learner"])
def test_no_ledger_no_fit(kind: str, folder: Path) -> None:
    ledger = Ledger.create("l", epsilon=3, delta="1e-5")
    (folder / "l").rename(folder / "moved")
    with ledger, pytest.raises(LedgerError):
        spenders(Interrupted())[kind](DATA, ledger=ledger)


def test_a_release_carries_the_unit_that_was_charged() -> None:
    release = spenders(GaussianLearner())["sampler"]
    with Ledger.create("l", epsilon=3, delta="1e-5", unit="person") as ledger:
        made = release(DATA, units=list(range(1000)), unit="person", ledger=ledger)
        assert made.guarantee == ApproxDP(1, "1e-6", unit="person")
        assert ledger.spent == made.guarantee
        assert ledger.statement().unconfirmed == 0


def test_sessions_of_one_ledger_share_its_cap() -> None:
    count = DiscreteLaplace(sensitivity=1, scale=1)
    with Ledger.create("l", epsilon=2, delta=0) as ledger:
        for _ in range(2):
            session = AdaptiveSession([1, 2, 3], cap=PureDP(5), ledger=ledger)
            session.release(count, len)
        with pytest.raises(BudgetExceeded):
            AdaptiveSession([1, 2, 3], cap=PureDP(5), ledger=ledger).release(count, lambda _: pytest.fail("it looked"))
        assert kinds() == ["create", "charge", "confirm", "charge", "confirm"]


def test_synthesise_takes_a_ledger_and_no_answer_is_confirmed_too() -> None:
    with Ledger.create("l", epsilon=3, delta="1e-5") as ledger:
        wild = np.random.default_rng(4).standard_cauchy(size=900)
        shared: dict[str, Any] = {"learner": GaussianLearner(), "epsilon": 1, "delta": "1e-6", "blocks": 60}
        made = synthesise(wild, records_per_vote=400, ledger=ledger, **shared)
        assert made.model is None
        assert ledger.spent == made.guarantee
        assert ledger.statement().unconfirmed == 0


def test_the_process_isolation_forks_with_a_ledger_open() -> None:
    from accord.learning import Isolation

    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    sampler = PrivateSampler(GaussianLearner(), isolation=Isolation(kind="process"), **SIZES)
    with Ledger.create("l", epsilon=3, delta="1e-5") as ledger:
        release = sampler.release(DATA, ledger=ledger, shared=SharedRandomness(1))
        assert release.value is NoAnswer or release.value.shape == (12, 1)
        assert [entry.kind for entry in ledger.entries()] == ["create", "charge", "confirm"]
        assert ledger.verify().holds
