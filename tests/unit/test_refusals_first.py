"""What public facts refuse is refused before anything is spent: a charge is followed by an answer or by no answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from accord.cli.app import app
from accord.errors import AccordError, InvalidParameter, NothingReleased, SchemaMismatch
from accord.learners import EmpiricalLearner, GaussianLearner, ScipyLearner
from accord.learning import PrivateSampler
from accord.learning.declared.discovery import discover
from accord.learning.declared.learner import TableLearner
from accord.learning.synthesis import synthesise
from accord.ledger import Ledger
from accord.ledger.spending import SPENT
from accord.randomness import SharedRandomness
from accord.tables import Column, Schema, Table, parse_schema

N = 1200
GRID = [
    *[(epsilon, "1e-6") for epsilon in ("1e-12", "1e-9", "1e-6", "1e-3", "1", "1000")],
    *[("1", delta) for delta in ("1e-300", "1e-30", ".5", ".999")],
    *[("1e-9", "1e-30"), ("1e-9", ".999"), ("1e-4", "1e-30"), ("1e-4", ".999"), ("1000", "1e-30"), ("1000", ".999")],
]
LABELS = Column(name="letter", kind="category", categories=("a", "b", "c"))
BOUNDED = Column(name="bounded", kind="number", bounds=(-5.0, 5.0))
FREE = Column(name="free", kind="number")
WIDE = tuple(Column(name=f"wide {place}", kind="category", categories=tuple("abcdefgh")) for place in range(11))
SLOW = {"rounds", "discovery", "density", "numbers without bounds", "bounded numbers and labels"}
FEW = [("1e-9", "1e-6"), ("1", "1e-30"), ("1e-4", ".999"), ("1000", "1e-6")]


def of(columns: tuple[Column, ...], *, units: bool = False) -> Table:
    stream = SharedRandomness(3).stream("table")
    cells = tuple(
        stream.integers(0, len(column.categories), N).astype(np.int32) if column.is_label else stream.normal(size=N)
        for column in columns
    )
    return Table(columns=cells, units=np.arange(N) // 2 if units else None, schema=Schema(columns=columns))


def tables(*columns: Column, units: bool = False) -> Callable[..., Any]:
    table = of(columns, units=units)
    return lambda **budget: TableLearner(table.schema, **budget).release(table)


def found(**budget: Any) -> Any:
    numbers = SharedRandomness(4).stream("cells").normal(size=N).round(2)
    cells = [pa.array([str(one) for one in numbers]), pa.array(["ab"[int(one > 0)] for one in numbers])]
    return discover(cells, names=["x", "sign"], **budget)


def sampled(learner: Any, **options: Any) -> Callable[..., Any]:
    numbers = SharedRandomness(5).stream("records").normal(size=N)
    records = (numbers > 0).astype(np.int64) if isinstance(learner, EmpiricalLearner) else numbers
    return lambda **budget: PrivateSampler(learner, blocks=200, records=4, **options, **budget).release(records)


def synthesised(**budget: Any) -> Any:
    return synthesise(SharedRandomness(6).stream("records").normal(size=N), learner=GaussianLearner(), **budget)


def density(estimator: Any) -> Callable[..., Any]:
    def fit(**budget: Any) -> Any:
        from accord import PrivateDensity

        return PrivateDensity(estimator, **budget).fit(SharedRandomness(7).stream("records").normal(size=(4 * N, 1)))

    return fit


ROADS = {
    "one column of labels": tables(LABELS),
    "bounded numbers": tables(BOUNDED),
    "bounded numbers and labels": tables(LABELS, BOUNDED),
    "units": tables(LABELS, BOUNDED, units=True),
    "numbers without bounds": tables(FREE),
    "rounds": tables(*WIDE),
    "discovery": found,
    "sampler": sampled(GaussianLearner()),
    "sampler with draws": sampled(EmpiricalLearner([0, 1]), draws=4),
    "synthesise": synthesised,
    "density": density(ScipyLearner("norm")),
}


def refusal_of(road: Callable[..., Any], **budget: str) -> AccordError | None:
    try:
        road(**budget)
    except NothingReleased:
        return None
    except AccordError as error:
        return error
    return None


@pytest.mark.parametrize("road", ROADS)
def test_B7_no_budget_is_charged_for_what_it_is_too_small_or_too_large_for(road: str) -> None:
    for epsilon, delta in FEW if road in SLOW else GRID:
        refused = refusal_of(ROADS[road], epsilon=epsilon, delta=delta)
        assert refused is None or SPENT not in getattr(refused, "__notes__", ()), (epsilon, delta, str(refused))


def test_B7_a_tiny_epsilon_ends_a_synthesis_before_it_is_spent(tmp_path: Any) -> None:
    (tmp_path / "data.csv").write_text("x\n" + "\n".join(str(place / 100) for place in range(500)) + "\n")
    (tmp_path / "schema.toml").write_text('version = 2\n[[columns]]\nname = "x"\nkind = "number"\nbounds = [0, 5]\n')
    arguments = ["synth", str(tmp_path / "data.csv"), "--schema", str(tmp_path / "schema.toml"), "--rows", "5"]
    arguments += ["--epsilon", "1e-9", "--delta", "1e-6", "--out", str(tmp_path / "out.csv")]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 2, ended.output
    assert "Nothing was spent" in ended.stderr


def test_B7_a_delta_too_small_for_one_column_names_the_column() -> None:
    with pytest.raises(InvalidParameter, match='too small to cut "bounded"'):
        TableLearner(Schema(columns=(BOUNDED,)), epsilon=1, delta="1e-30").plan(N)


def test_B9_too_many_labels_are_refused_with_the_schema_and_by_name() -> None:
    labels = ", ".join(f'"{place}"' for place in range(65_537))
    text = f'version = 2\n[[columns]]\nname = "town"\nkind = "category"\ncategories = [{labels}]\n'
    with pytest.raises(SchemaMismatch, match='"town" lists 65537 labels'):
        parse_schema(text)


@pytest.mark.parametrize("frame", [pa.table({"x": ["a", "b"] * 2000}), [{"x": 1.0}] * 4000], ids=["texts", "dicts"])
def test_B7_texts_and_dicts_for_a_learner_of_numbers_are_refused_first(frame: Any, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4, delta="1e-2", unit="record")
    with pytest.raises(AccordError) as caught:
        synthesise(frame, learner=GaussianLearner(), epsilon=1, delta="1e-3", ledger=ledger)
    assert SPENT not in getattr(caught.value, "__notes__", ())
    assert [entry.kind for entry in ledger.entries()] == ["create"]
