"""A false account is refuted: each field of a release.json that carries a promise is changed, and the check sees."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.mixture import GaussianMixture
from typer.testing import CliRunner

from accord.accounting.account import account, rule_of
from accord.accounting.of_stages import GRAIN, total_of
from accord.cli.app import app
from accord.core.exact import to_fraction
from accord.core.release import Composed, Stage
from accord.errors import InvalidParameter
from accord.learners import EmpiricalLearner
from accord.learning import PrivateDensity
from accord.marginals import Column as Codes
from accord.marginals import Domain, MarginalLearner
from accord.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential, StableMode
from accord.privacy import ApproxDP, Neighbouring, PureDP, Release
from accord.reports import check_release, taken_at_word
from accord.synthesis.discovery import discover
from accord.theory import AgnosticPrivateLearner

ROWS = 64
"""Of the synthetic rows: a share of them is a float without rounding."""

FREE = {
    "accord": "which version wrote the file",
    "learner": "words for people",
    "stages.#.what": "words for people",
    "claims": "premises in the words of a person: the file cannot show that one is missing",
    "claims.#": "the same",
    "claims.#.what": "the same",
    "claims.#.by": "the same",
    "seeded": "the word of whoever ran it; the noise never is, which noise_seeded says",
    "budget": "the words of a ledger: the ledger says what is left",
    "columns": "in another order",
    "columns.#.kind": "how a column was declared: no promise is about it",
    "columns.#.labels": "in another order; of few labels the pairs repeat it",
    "columns.#.labels.#": "names of public labels and bins",
    "columns.#.shares": "in another order; of few labels the pairs repeat it",
    "columns.#.merged_error": "a part of the expected error: any from 0 to that",
    "columns.#.low": "how wide intervals are: each must hold its share, from 0 to 1",
    "columns.#.low.#": "the same",
    "columns.#.high": "the same",
    "columns.#.high.#": "the same",
    "pairs": "tables are shown of some pairs alone",
    "pairs.#": "the same",
    "pairs.#.names": "of two pairs for which no error is known",
    "pairs.#.labels": "names of public labels and bins",
    "pairs.#.labels.#": "the same",
    "pairs.#.labels.#.#": "the same",
    "pairs.#.shares": "in another order with the same sums",
    "pairs.#.shares.#": "in another order with the same sums",
    "expected_pair_errors": "of pairs of which no table is shown: the error is nowhere else",
    "expected_pair_errors.#": "the same",
    "expected_pair_errors.#.names": "the same",
    "expected_pair_errors.#.names.#": "the same",
    "expected_pair_errors.#.expected_error": "the same",
    "expected_pair_errors.#.merged_share": "the same",
    "warnings": "a warning repeats what is elsewhere; those that the numbers make due may not be missing",
    "warnings.#": "the same",
    "warnings.#.text": "the same",
    "composition.stages.#.delta": "still true: a smaller delta at which the total is below the promise too",
    "stages": "still true: stages of one numeric group in another order",
}
"""Fields of which some other value is no contradiction, and why."""


def synth(place: Path, *, unit: bool, bounds: bool, columns: int = 1, epsilon: str = "1") -> dict[str, Any]:
    """Run the command line; the released file."""
    names = [f"c{number}" for number in range(columns)]
    sizes = [2 + 5 * number for number in range(columns)]
    lines = [
        ",".join([*(str((row * 7 + number) % size) for number, size in enumerate(sizes)), str(row % 97), str(row // 2)])
        for row in range(4000)
    ]
    (place / "d.csv").write_text(",".join([*names, "y", "household"]) + "\n" + "\n".join(lines), encoding="utf-8")
    schema = "version = 2\n" + ('unit = "household"\n' if unit else "")
    for name, size in zip(names, sizes, strict=True):
        labels = ", ".join(f'"{label}"' for label in range(size))
        schema += f'[[columns]]\nname = "{name}"\nkind = "category"\ncategories = [{labels}]\n'
    schema += '[[columns]]\nname = "y"\nkind = "number"\n' + ("bounds = [0, 100]\n" if bounds else "")
    if not unit:
        schema += '[[columns]]\nname = "household"\nkind = "drop"\n'
    (place / "s.toml").write_text(schema, encoding="utf-8")
    made = ["--schema", str(place / "s.toml"), "--epsilon", epsilon, "--delta", "1e-6", "--rows", str(ROWS)]
    files = ["--out", str(place / "o.csv"), "--release", str(place / "r.json")]
    result = CliRunner().invoke(app, ["synth", str(place / "d.csv"), *made, *files])
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads((place / "r.json").read_text(encoding="utf-8"))
    return found


def document(release: Any, *, unit_column: str | None = None) -> dict[str, Any]:
    return completed(account(release, units=1000, unit_column=unit_column))


def completed(made: Mapping[str, Any]) -> dict[str, Any]:
    """Return an account as a file without tables."""
    rest = {"claims": [], "seeded": False, "rows": 1, "columns": [], "pairs": [], "budget": {}}
    kept = {key: made[key] for key in account(Release(None, PureDP(1)), units=1)}
    loaded: dict[str, Any] = json.loads(
        json.dumps({"format": "accord release", "format_version": 2, "accord": "", **kept, **rest})
    )
    return loaded


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    kinds: dict[str, dict[str, Any]] = {
        "records without bounds": {"unit": False, "bounds": False, "epsilon": "4"},
        "units with bounds": {"unit": True, "bounds": True},
        "records of many columns": {"unit": False, "bounds": True, "columns": 6},
    }
    found = {name: synth(tmp_path_factory.mktemp("made"), **kind) for name, kind in kinds.items()}
    density = PrivateDensity(GaussianMixture(), epsilon=1, delta="1e-6")
    density.fit(np.random.default_rng(1).normal(50, 10, size=(6000, 1)))
    found["a density"] = completed(density.report_)
    texts = [pa.array([str(row % 3) for row in range(3000)]), pa.array([str(row * 7 % 997) for row in range(3000)])]
    found["a discovery"] = document(discover(texts, names=["a", "b"], epsilon=4, delta="1e-6"))
    wide = Domain([Codes("a", 6), Codes("b", 8), Codes("c", 14, kind="number"), Codes("d", 16, kind="number")])
    codes = np.random.default_rng(1).integers(0, 3, size=(3000, 4))
    rounds = MarginalLearner(wide, epsilon=1, delta="1e-6", rounds=2)
    found["marginals in rounds"] = document(rounds.release(codes))
    found["marginals of units in rounds"] = document(rounds.release(codes, units=np.arange(3000) // 2))
    return found


TABLES = ("records without bounds", "units with bounds", "records of many columns")
KINDS = (*TABLES, "a density", "a discovery", "marginals in rounds", "marginals of units in rounds")


def changes(value: Any) -> Iterator[Any]:
    """Return other values of a field."""
    match value:
        case bool():
            yield not value
        case str():
            number = number_of(value)
            if number is not None:
                yield from (str(number * 2 or 1), str(number / 2 or Fraction(1, 2)), str(-number or -1))
            yield from (f"{value} x", "", None)
        case int():
            yield from (value + 1, value - 1, str(value))
        case float():
            yield from (value * 1.5 + 0.01, value / 2 or 0.1, -value - 0.001, float("nan"), None)
        case None:
            yield from ("1/2", 0.5, "x")
        case list():
            yield from ({}, [*value, *value[-1:]] or [1], value[:-1] or 1)
            if value[::-1] != value:
                yield value[::-1]
        case dict():
            yield []


def number_of(text: str) -> Fraction | None:
    try:
        return to_fraction(text)
    except ValueError:
        return None


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Return every field; of long lists the first and the last."""
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from fields(inner, (*path, key))
    if isinstance(value, list):
        for place in sorted({0, len(value) - 1} if value else ()):
            yield from fields(value[place], (*path, place))


def put(content: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return the content with one field changed, or without it."""
    changed = copy.deepcopy(content)
    place: Any = changed
    for step in path[:-1]:
        place = place[step]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


def refuted(content: dict[str, Any]) -> bool:
    try:
        return check_release(content) != ()
    except InvalidParameter:  # of no format that can be worked out: exit code 2
        return True


@pytest.mark.parametrize("kind", KINDS)
def test_B4_every_field_of_an_account_that_carries_a_promise_is_refuted(
    kind: str, real: dict[str, dict[str, Any]]
) -> None:
    content = real[kind]
    assert check_release(content) == ()
    assert kind not in {"records of many columns", "marginals in rounds"} or any(
        "choice of a table" in stage["what"] for stage in content["stages"]
    )
    survivors = set()
    for path, value in fields(content):
        name = ".".join("#" if isinstance(step, int) else step for step in path)
        name = name.replace("composition.stages.#.stages", "composition.stages")
        for changed in (*changes(value), KeyError):
            if not refuted(put(content, path, changed)):
                survivors.add((name, str(value)[:40], str(changed)[:40]))
    free = {*FREE} if content["columns"] else {*FREE, "rows"}
    assert {one for one in survivors if one[0] not in free} == set()


@pytest.mark.parametrize(
    ("part", "path", "value"),
    [
        ("release.account_faults", ("guarantee", "statement"), "(0, 0)-differential privacy"),
        ("release.consistency_faults", ("columns", 0, "high", 0), 2.0),
        ("release._words_fault", ("stages", 0, "detail"), "epsilon 0"),
        ("release._own_fault", ("stages", -1, "parameters", "neighbouring"), KeyError),
        ("release._group_faults", ("composition", "how"), "parallel"),
    ],
)
def test_B4_mutant_a_check_that_leaves_a_part_out_is_caught(
    part: str, path: tuple[Any, ...], value: Any, real: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = put(real["units with bounds"], path, value)
    if path == ("composition", "how"):
        words = rule_of(Composed(how="parallel", stages=()))
        changed["guarantee"]["composition"] = words
        del changed["composition"]["delta"]
    assert refuted(changed)
    monkeypatch.setattr(f"accord.reports.{part}", lambda *_, **__: None if part.endswith("_fault") else [])
    assert not refuted(changed)


@pytest.mark.parametrize("kind", TABLES)
def test_B4_an_interval_or_an_error_that_contradicts_is_refuted(kind: str, real: dict[str, dict[str, Any]]) -> None:
    content = real[kind]
    for place, column in enumerate(content["columns"]):
        share = max(column["shares"])
        at = column["shares"].index(share)
        for key, value in (("low", share + 0.01), ("low", -0.01), ("high", share - 0.01), ("high", 1.01)):
            assert refuted(put(content, ("columns", place, key, at), value)), key
        assert refuted(put(content, ("columns", place, "merged_error"), column["expected_error"] + 0.01))
        assert refuted(put(content, ("columns", place, "merged_error"), -0.01))
        assert refuted(put(content, ("columns", place, "low"), column["low"][:-1]))
        assert refuted(put(content, ("columns", place, "low"), None))
    for place in range(len(content["expected_pair_errors"])):
        assert refuted(put(content, ("expected_pair_errors", place, "expected_error"), 1.5))
        assert refuted(put(content, ("expected_pair_errors", place, "merged_share"), -0.1))


# --- forgers who change more than one field ---------------------------------------------------------------------------


def forged(*stages: Stage | Composed, epsilon: Any = "0.1", delta: Any = "1e-6") -> dict[str, Any]:
    """Return the file of a promise that these stages are said to make: its words are all as accord writes them."""
    return document(Release(None, ApproxDP(epsilon, delta), stages))


def of(release: Release[Any]) -> Stage:
    (stage,) = release.stages
    assert isinstance(stage, Stage)
    return stage


LOUD = of(DiscreteLaplace(sensitivity=1, scale="0.1").release(3))
QUIET = of(DiscreteLaplace(sensitivity=1, scale=100).release(3))
CURVE = of(DiscreteGaussian(sensitivity=1, sigma=100).release([1, 2], delta="1e-6"))
RISING = of(Exponential(sensitivity=1, epsilon="0.01", monotone=True).select([1.0, 2.0]))
CHOICE = of(Exponential(sensitivity=1, epsilon="0.01").select([1.0, 2.0]))


def other(stage: Stage, **changed: Any) -> Stage:
    kept = {name: getattr(stage, name) for name in Stage.__dataclass_fields__}
    return Stage(**{**kept, **changed})


def parallel(*stages: Stage | Composed, surplus: Fraction = Fraction(0)) -> Composed:
    return Composed(how="parallel", stages=stages, surplus=surplus)


FORGERIES: dict[str, Callable[[], dict[str, Any]]] = {
    "a mechanism that is said to be claimed": lambda: forged(other(LOUD, guarantee=PureDP("0.01"), claimed=True)),
    "a true one that is said to be claimed": lambda: forged(other(QUIET, claimed=True)),
    "a mechanism that is called slack": lambda: forged(other(LOUD, mechanism="coupling slack", guarantee=PureDP(0))),
    "slack with an epsilon": lambda: forged(
        Stage(mechanism="coupling slack", parameters=(("coupling", "Mine"),), guarantee=ApproxDP("0.01", "1e-9"))
    ),
    "slack that is said to be claimed": lambda: forged(
        Stage(
            mechanism="coupling slack",
            parameters=(("coupling", "Mine"),),
            guarantee=ApproxDP(0, "1e-9"),
            claimed=True,
        )
    ),
    "a claim without numbers": lambda: forged(Stage(mechanism="Mine", parameters=(), guarantee=None, claimed=True)),
    "a parameter too many": lambda: forged(other(QUIET, parameters=(*QUIET.parameters, ("records", 3)))),
    "sums that are called parallel": lambda: forged(parallel(QUIET, QUIET), epsilon="0.01", delta=0),
    "choices side by side without a surplus": lambda: forged(parallel(CHOICE, CHOICE), epsilon="0.01", delta=0),
    "choices side by side whose scores all rise": lambda: forged(parallel(RISING, RISING, surplus=GRAIN)),
    "choices and counts side by side": lambda: forged(parallel(CHOICE, QUIET, surplus=GRAIN)),
    "a surplus inside a numeric group": lambda: forged(
        Composed(how="numeric", delta=Fraction("1e-6"), stages=(parallel(CHOICE, surplus=Fraction(50)),))
    ),
    "a curve at another delta than its group": lambda: forged(
        Composed(how="numeric", delta=Fraction("1e-7"), stages=(CURVE,))
    ),
    "another relation": lambda: document(
        Release(None, ApproxDP(1, "1e-6", Neighbouring.ADD_OR_REMOVE_ONE), (QUIET,)),
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_B4_a_forgery_that_agrees_with_itself_is_refuted(name: str) -> None:
    assert refuted(FORGERIES[name]())


def test_B4_true_accounts_of_the_same_shapes_stand() -> None:
    for stages in ((QUIET,), (parallel(CHOICE, CHOICE, surplus=GRAIN),), (QUIET, QUIET, CHOICE)):
        assert check_release(forged(*stages)) == ()
    numeric = Composed(how="numeric", delta=Fraction("1e-6"), stages=(CURVE, QUIET))
    assert check_release(forged(numeric, epsilon=1)) == ()


def test_B4_a_parallel_group_in_a_numeric_one_counts_with_its_surplus() -> None:
    inside = parallel(CHOICE, CHOICE, surplus=Fraction(1, 10))
    epsilon, delta = total_of(Composed(how="numeric", delta=Fraction("1e-6"), stages=(inside,)))
    assert epsilon >= Fraction("0.21") - Fraction("1e-5")
    assert delta == Fraction("1e-6")


def test_B4_delta_without_epsilon_is_refuted() -> None:
    content = forged(Composed(how="numeric", delta=Fraction("1e-6"), stages=(CURVE,)), epsilon=1)
    assert check_release(content) == ()
    content["stages"][0]["delta"] = "1/2"
    assert refuted(content)


def test_B4_a_file_is_not_made_true_by_an_older_format(tmp_path: Path) -> None:
    content = forged(QUIET)
    for spent, code in (("1/100", 2), ("500", 4)):
        content["stages"][0]["epsilon"], content["stages"][0]["delta"] = spent, "0"
        (tmp_path / "r.json").write_text(json.dumps({**content, "format_version": 1}), encoding="utf-8")
        result = CliRunner().invoke(app, ["check", str(tmp_path / "r.json")])
        assert result.exit_code == code
        assert "holds" not in result.stdout
        assert code == 4 or "format 1, which cannot be worked out" in result.stderr


def test_B4_what_is_taken_at_its_word_is_said(tmp_path: Path) -> None:
    claim = Stage(mechanism="Mine\x1b[2J", parameters=(), guarantee=PureDP("0.01"), claimed=True)
    slack = Stage(mechanism="coupling slack", parameters=(("coupling", "Mine"),), guarantee=ApproxDP(0, "1e-9"))
    content = forged(claim, slack, QUIET, parallel(CHOICE, surplus=GRAIN))
    assert check_release(content) == ()
    assert [verdict.code for verdict in taken_at_word(content)] == ["stages-at-their-word", "parallel-at-its-word"]
    (tmp_path / "r.json").write_text(json.dumps(content), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(tmp_path / "r.json")])
    assert result.exit_code == 0
    assert "2 of 4 stages are taken at their word" in result.stdout
    assert "\x1b" not in result.stdout
    shown = json.loads(CliRunner().invoke(app, ["check", str(tmp_path / "r.json"), "--json"]).stdout)
    assert [one["code"] for one in shown["warnings"]] == ["stages-at-their-word", "parallel-at-its-word"]
    assert taken_at_word(forged(QUIET)) == ()
    assert [verdict.code for verdict in taken_at_word(forged())] == ["no-stages"]


def test_B4_parts_of_different_units_stand_with_a_word() -> None:
    learner = AgnosticPrivateLearner(EmpiricalLearner(("a", "b")), epsilon=1, delta="1e-4", parts=3, blocks=60)
    content = document(learner.release(np.array(["a"] * 540)))
    assert content["composition"]["how"] == "parallel"
    assert check_release(content) == ()
    assert [verdict.code for verdict in taken_at_word(content)] == ["parallel-at-its-word"]


def test_B4_votes_of_a_coupling_that_is_not_isolated_stand_with_a_word() -> None:
    votes = StableMode(epsilon="0.05", delta="1e-7").release(["a"] * 10)
    slack = Stage(mechanism="coupling slack", parameters=(("coupling", "Mine"),), guarantee=ApproxDP(0, "1e-9"))
    both = Composed(how="basic", stages=(of(votes), slack))
    content = forged(parallel(both, both))
    assert check_release(content) == ()


def test_B4_a_delta_too_large_for_its_units_must_be_named() -> None:
    content = forged(QUIET, delta="1e-3")
    assert content["units"] == 1000
    assert check_release(content) == ("warnings must say that delta is too large for so many units, exactly if it is",)
