"""Stages: a release says what ran, that composes to at most the promise, and a false account is refuted."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.mixture import GaussianMixture
from typer.testing import CliRunner

from accord import SyntheticTable, mechanisms
from accord.accounting.account import account
from accord.accounting.of_stages import losses_of, rebuilt, settled, total_of
from accord.cli.app import app
from accord.core.release import composing, leaves
from accord.core.verdict import collected
from accord.learners import EmpiricalLearner
from accord.learning import PrivateDensity, PrivateSampler
from accord.ledger import Ledger
from accord.marginals import Column as Codes
from accord.marginals import Domain, MarginalLearner
from accord.marginals import looks as _looks
from accord.mechanisms import DiscreteLaplace
from accord.privacy import ApproxDP, Neighbouring, PureDP, Release
from accord.reports import check_release
from accord.reports.tables import _bin_names
from accord.synthesis.discovery import discover
from accord.synthesis.learner import TableLearner
from accord.tables import Column, Schema, Table

ROADS = (
    ("DiscreteGaussian", "release"),
    ("DiscreteLaplace", "release"),
    ("Exponential", "select"),
    ("AboveThreshold", "release"),
    ("ThresholdedCounts", "release"),
    ("BestOfDraws", "release"),
    ("StableMode", "release"),
)
Ran = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """A tape of its own: every mechanism that runs, with its fields, in order."""
    tape: Ran = []
    for name, method in ROADS:
        kind = getattr(mechanisms, name)
        original = getattr(kind, method)

        def run(self: Any, *given: Any, _original: Any = original, **more: Any) -> Any:
            release = _original(self, *given, **more)
            fields = {field: getattr(self, field) for field in type(self).__dataclass_fields__}
            tape.append((type(self).__name__, fields))
            return release

        monkeypatch.setattr(kind, method, run)
    return tape


def same(release: Any, ran: Ran) -> None:
    """The stages are the mechanisms that ran, and the account of them is true and computed again."""
    (root,) = release.stages
    stages = list(leaves(root))
    assert [stage.mechanism for stage in stages] == [name for name, _ in ran]
    for stage, (_, fields) in zip(stages, ran, strict=True):
        built = rebuilt(stage)
        assert {name: getattr(built, name) for name in fields} == fields
    epsilon, delta = total_of(root)
    assert 0 < epsilon <= release.guarantee.epsilon
    assert delta <= release.guarantee.delta
    faults = check_release(document(release))
    assert faults == ()


def document(release: Any) -> dict[str, Any]:
    rest = {"claims": [], "seeded": False, "rows": 1, "columns": [], "pairs": [], "budget": {}}
    column = None if release.guarantee.unit in {"record", "unit"} else release.guarantee.unit
    made = account(release, units=100, unit_column=column)
    content = {"format": "accord release", "format_version": 2, "accord": "", **made, **rest}
    loaded: dict[str, Any] = json.loads(json.dumps(content))
    return loaded


def numbers(rows: int, columns: int, *, seed: int = 3) -> Any:
    return np.random.default_rng(seed).normal(50, 10, size=(rows, columns))


WIDE = Domain(
    [Codes("a", 6), Codes("b", 8, kind="ordered"), Codes("c", 14, kind="number"), Codes("d", 16, kind="number")]
)
MARGINALS = {
    "full": (Domain([Codes("a", 4), Codes("b", 3)]), None),
    "pairs": (WIDE, None),
    "rounds": (WIDE, 2),
}


@pytest.mark.parametrize("units", [False, True], ids=["records", "units"])
@pytest.mark.parametrize("mode", ["full", "pairs", "rounds"])
def test_B3_the_stages_of_marginals_are_the_mechanisms_that_ran(mode: str, *, units: bool, ran: Ran) -> None:
    domain, rounds = MARGINALS[mode]
    codes = np.random.default_rng(1).integers(0, 3, size=(3000, domain.dimension))
    learner = MarginalLearner(domain, epsilon=1, delta="1e-6", rounds=rounds)
    assert learner.plan(3000, several_records=units).mode == mode
    release = learner.release(codes, units=np.arange(3000) // 2 if units else None)
    assert ran
    same(release, ran)


def table(*, unit: bool) -> tuple[Schema, Table]:
    schema = Schema(
        columns=(
            Column(name="sex", kind="category", categories=("f", "m")),
            Column(name="few", kind="number", bounds=(0.0, 9.0)),
            Column(name="height", kind="number"),
        ),
        unit="person" if unit else None,
    )
    count = 8000
    sex = np.arange(count, dtype=np.int32) % 2
    few = (np.arange(count) % 2).astype(np.float64)
    units = np.arange(count) // 2 if unit else None
    return schema, Table(columns=(sex, few, numbers(count, 1)[:, 0]), units=units, schema=schema)


@pytest.mark.parametrize("unit", [False, True], ids=["records", "units"])
def test_B3_the_stages_of_a_table_are_the_mechanisms_that_ran(*, unit: bool, ran: Ran) -> None:
    """Counts of cells, in as many rounds as the plan says, and choices at coarse groups; few values leave few cells."""
    schema, rows = table(unit=unit)
    release = TableLearner(schema, epsilon=4, delta="1e-6").release(rows)
    assert {name for name, _ in ran} == {"DiscreteGaussian", "Exponential"}
    plan = TableLearner(schema, epsilon=4, delta="1e-6").plan(4000 if unit else 8000, several_records=unit)
    assert len(ran) == sum(step.times for step in plan.steps)
    same(release, ran)


def test_B3_the_stages_of_discovery_are_the_mechanisms_that_ran(ran: Ran) -> None:
    columns = [pa.array([str(one) for one in values]) for values in (np.arange(3000) % 3, numbers(3000, 1)[:, 0])]
    same(discover(columns, names=["a", "b"], epsilon=4, delta="1e-6"), ran)
    assert {"DiscreteLaplace", "ThresholdedCounts"} <= {name for name, _ in ran}


@pytest.mark.parametrize("draws", [1, 4])
def test_B3_the_stages_of_blocks_are_the_mechanisms_that_ran(draws: int, ran: Ran) -> None:
    sampler = PrivateSampler(EmpiricalLearner(("a", "b")), epsilon=1, delta="1e-6", blocks=60, records=1, draws=draws)
    same(sampler.release(np.array(["a"] * 600)), ran)
    assert len(ran) == 1


def test_B3_B6_the_report_of_a_density_is_its_account(ran: Ran) -> None:
    density = PrivateDensity(GaussianMixture(), epsilon=1, delta="1e-6")
    density.fit(numbers(6000, 1))
    for found in (density.report_, density.curator_report_):
        assert [stage["mechanism"] for stage in found["stages"]] == [name for name, _ in ran]
        assert found["rows_stand_for"] == "a random record"
        assert Fraction(found["guarantee"]["epsilon_float"]) >= Fraction(found["guarantee"]["epsilon"])


# --- the assertion ----------------------------------------------------------------------------------------------------


def test_B3_half_the_noise_is_caught_by_the_release_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    original = DiscreteLaplace

    def quiet(*, sensitivity: Any, scale: Any) -> Any:
        return original(sensitivity=sensitivity, scale=scale / 2)

    monkeypatch.setattr(_looks, "DiscreteLaplace", quiet)
    codes = np.zeros((500, 2), dtype=int)
    with pytest.raises(AssertionError, match="spend more than is promised"):
        MarginalLearner(MARGINALS["full"][0], epsilon=1, delta="1e-6").release(codes)


def test_B3_fewer_stages_than_planned_are_no_fault_and_more_are() -> None:
    mechanism = DiscreteLaplace(sensitivity=1, scale=2)
    with composing("basic") as run:
        mechanism.release(1)
        mechanism.release(2)
    (kept,) = settled(run, PureDP(1))
    assert total_of(kept) == (Fraction(1), Fraction(0))
    with pytest.raises(AssertionError):
        settled(run, PureDP("0.9"))
    with composing("parallel", surplus=Fraction(1, 100)) as side_by_side:
        mechanism.release(1)
        mechanism.release(2)
    assert total_of(side_by_side.composed) == (Fraction(52, 100), Fraction(0))


def test_B3_map_keeps_stages_and_threads_do_not_mix() -> None:
    release = DiscreteLaplace(sensitivity=1, scale=2).release(1)
    assert release.map(lambda one: one + 1).stages == release.stages
    with composing("basic") as outer:
        with composing("basic", apart=True) as inner:
            DiscreteLaplace(sensitivity=1, scale=2).release(1)
        assert len(inner.composed.stages) == 1
    assert outer.composed.stages == ()


def test_B3_records_are_composed_by_their_own_law() -> None:
    domain = MARGINALS["pairs"][0]
    codes = np.random.default_rng(1).integers(0, 3, size=(3000, 4))
    release = MarginalLearner(domain, epsilon=1, delta="1e-6").release(codes)
    _, exact = losses_of(leaves(release.stages[0]))
    assert exact
    epsilon, _ = total_of(release.stages[0])
    assert epsilon > Fraction(9, 10)


# --- the check --------------------------------------------------------------------------------------------------------


SCHEMA = """version = 2
unit = "household"
[[columns]]
name = "x"
kind = "category"
categories = ["a", "b"]
[[columns]]
name = "y"
kind = "number"
bounds = [0, 100]
"""


@pytest.fixture
def made(tmp_path: Path) -> Path:
    rows = [f"{'ab'[place % 2]},{place % 97},{place // 2}" for place in range(2000)]
    (tmp_path / "d.csv").write_text("x,y,household\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "s.toml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


def test_B1_B4_B6_one_account_everywhere(made: Path) -> None:
    place = made
    base = ["synth", str(place / "d.csv"), "--schema", str(place / "s.toml"), "--epsilon", ".3", "--delta", "1e-5"]
    files = ["--rows", "50", "--out", str(place / "o.csv")]
    more = [
        f"--{name}={place / name}.{kind}"
        for name, kind in (("model", "accord"), ("release", "json"), ("report", "html"))
    ]
    result = CliRunner().invoke(app, [*base, *files, *more, "--json"])
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    model = SyntheticTable.load(place / "model.accord").account()
    release = json.loads((place / "release.json").read_text())
    page = (place / "report.html").read_text()
    words = "a random household's random record"
    assert [one["rows_stand_for"] for one in (shown, model, release)] == [words] * 3
    assert words.replace("'", "&#39;") in page
    for one in (shown, model, release):
        guarantee = one["guarantee"]
        assert guarantee["unit"] == "household"
        assert Fraction(guarantee["epsilon_float"]) >= Fraction(3, 10)
        assert Fraction(guarantee["delta_float"]) >= Fraction(1, 10**5)
    same_keys = ("statement", "epsilon", "epsilon_float", "delta", "delta_float", "neighbouring", "unit", "unit_column")
    for key in same_keys:
        assert shown["guarantee"][key] == model["guarantee"][key] == release["guarantee"][key]
    assert shown["plan"]["stages"] == release["stages"]
    assert "one person share" not in page
    text = CliRunner().invoke(app, [*base, *files, "--force"]).stdout
    dry = CliRunner().invoke(app, [*base, "--dry-run", "--size", "1000"]).stdout
    assert words in text
    assert words in dry

    good = CliRunner().invoke(app, ["check", str(place / "release.json")])
    assert good.exit_code == 0, good.stdout
    assert "worked out again" in good.stdout
    assert "no stage is missing, is the word" in good.stdout
    for change in ("epsilon", "parameters"):
        false = json.loads(json.dumps(release))
        for stage in false["stages"][:2]:
            if change == "epsilon":
                stage["epsilon"] = "500"
            else:
                number = next(name for name in ("epsilon", "scale", "sigma") if name in stage["parameters"])
                stage["parameters"][number] = "1/1000" if number != "epsilon" else "500"
        (place / "false.json").write_text(json.dumps(false))
        assert CliRunner().invoke(app, ["check", str(place / "false.json")]).exit_code == 4


def test_B4_stages_that_cost_more_are_refuted_though_each_is_true() -> None:
    content = document(Release(1, PureDP(1), DiscreteLaplace(sensitivity=1, scale=1).release(1).stages))
    assert check_release(content) == ()
    content["stages"] *= 2
    content["composition"]["stages"] = [0, 1]
    assert check_release(content) == ("the stages spend more epsilon than is promised",)


def test_B6_a_column_without_numbers_is_an_answer_that_says_so(tmp_path: Path) -> None:
    schema = Schema(columns=(Column(name="x", kind="number"),))
    empty = Table(columns=(np.full(8000, np.nan),), units=None, schema=schema)
    with Ledger.create(tmp_path / "l.db", epsilon=2, delta="1e-5") as ledger, collected() as verdicts:
        release = TableLearner(schema, epsilon=1, delta="1e-6").release(empty, ledger=ledger)
        assert release.guarantee == ApproxDP(1, "1e-6")
        assert ledger.statement().spent.epsilon == 1
    assert "mostly-missing" in {verdict.code for verdict in verdicts}


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        (Neighbouring.REPLACE_ONE, "replacing all records of one unit, wherever they stand; the number of units n is"),
        (Neighbouring.REPLACE_ONE_IN_PLACE, "at its place; the number of units n is public, and so is the order"),
        (Neighbouring.ADD_OR_REMOVE_ONE, "adding or removing all records of one unit; the number of units is secret"),
    ],
)
def test_B6_the_statement_says_the_relation_of_the_guarantee(relation: Neighbouring, words: str) -> None:
    found = account(Release(1, PureDP(1, relation, "person")), units=10)
    assert words in found["guarantee"]["statement"]


def test_B6_no_bin_begins_at_minus_zero() -> None:
    names = _bin_names(Column(name="x", kind="number"), np.array([-0.0, 1.0, 2.0]))
    assert names == ["0 to 1", "1 to 2"]
    whole = _bin_names(Column(name="x", kind="integer", decimals=0), np.array([-0.5, 0.5, 1.5]))
    assert not any(name.startswith("-0") for name in whole)
