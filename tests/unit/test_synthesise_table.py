"""The front room: a table in, a synthetic table out, the same as the command line gives."""

import datetime as dt
import hashlib
import importlib
import io
import json
import os
import pickle
import sys
import types
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import accord
from accord import SyntheticTable, plan_table, synthesise_table
from accord.cli.app import app
from accord.core import VerdictWarning, collected
from accord.errors import BudgetExceeded, DataError, FitFailed, InvalidParameter, NothingReleased, SchemaMismatch
from accord.ledger import Ledger
from accord.reports import check_release
from accord.synthesis import task
from accord.tables import Schema, parse_schema
from accord.tables.dtypes import kind_of
from accord.tables.frames import read_data

SCHEMA = """
version = 3
[[columns]]
name = "age"
kind = "integer"
bounds = [0, 99]
unreadable = "missing"
[[columns]]
name = "region"
kind = "category"
categories = ["north", "south", "7"]
unreadable = "missing"
[[columns]]
name = "member"
kind = "boolean"
required = true
unreadable = "missing"
[[columns]]
name = "joined"
kind = "date"
bounds = ["2000-01-01", "2020-12-31"]
unreadable = "missing"
[[columns]]
name = "country"
kind = "constant"
value = "CH"
"""
NUMBER = 'version = 3\n[[columns]]\nname = "x"\nkind = "number"\n'
LABEL = 'version = 3\n[[columns]]\nname = "x"\nkind = "category"\ncategories = ["a", "b"]\n'
ROWS = 800


def mapping(rows: int = ROWS) -> dict[str, Any]:
    source = np.random.default_rng(3)
    days = np.datetime64("2005-03-01") + source.integers(0, 4000, rows)
    return {
        "unused": [object()] * rows,
        "age": source.integers(18, 80, rows),
        "region": source.choice(["north", "south", "7"], rows),
        "member": source.random(rows) < 0.4,
        "joined": days,
        "who": source.integers(0, rows // 2 + 1, rows),
    }


def arrow(rows: int = ROWS) -> pa.Table:
    return pa.table({name: values for name, values in mapping(rows).items() if name != "unused"})


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Freeze what the operating system gives; calling the fixture starts it again."""
    count = [0]

    def bytes_of_system(size: int) -> bytes:
        count[0] += 1
        return hashlib.shake_256(f"system {count[0]}".encode()).digest(size)

    def start() -> None:
        count[0] = 0

    monkeypatch.setattr(os, "urandom", bytes_of_system)
    return start


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    def released(*_: Any, **__: Any) -> NoReturn:
        pytest.fail("nothing may be released")

    for name in ("synthesise", "release_by_tables", "release_by_density"):
        monkeypatch.setattr(task, name, released)


def command(*words: str | Path) -> None:
    result = CliRunner().invoke(app, ["synth", *(str(word) for word in words)])
    assert result.exit_code == 0, result.stderr


# --- the same as the command line -------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [None, "who"])
def test_rows_and_reports_are_those_of_the_command_line(
    tmp_path: Path, frozen: Callable[[], None], unit: str | None
) -> None:
    data, schema = tmp_path / "d.parquet", tmp_path / "s.toml"
    pq.write_table(arrow(), data)
    schema.write_text(SCHEMA, encoding="utf-8")
    files = [tmp_path / name for name in ("out.csv", "r.html", "r.json")]
    more: list[str] = [] if unit is None else ["--unit", unit]
    asked: list[str | Path] = ["--schema", schema, "--report", files[1], "--release", files[2], *more]
    asked += ["--epsilon", "2", "--delta", "1e-5", "--rows", "300", "--seed-for-tests", "7"]
    frozen()
    command(data, *asked, "--out", files[0])
    expected = [file.read_bytes() for file in files]
    frozen()
    synthetic = synthesise_table(data, schema, epsilon="2", delta="1e-5", unit=unit, seed=7)
    synthetic.report(files[1], rows=300, seed=7)
    synthetic.report(files[2], rows=300, seed=7)
    assert [file.read_bytes() for file in files[1:]] == expected[1:]
    frozen()
    command(data, *asked, "--out", tmp_path / "out.parquet", "--force")
    stored = io.BytesIO()
    pq.write_table(synthetic.sample(300, seed=7), stored)
    assert stored.getvalue() == (tmp_path / "out.parquet").read_bytes()
    found = pa.csv.read_csv(io.BytesIO(expected[0]))
    assert found.column("age").to_pylist() == synthetic.sample(300, seed=7).column("age").to_pylist()


@pytest.mark.parametrize("learner", ["blocks", "scipy:norm"])
def test_other_learners_give_what_the_command_line_gives(
    tmp_path: Path, frozen: Callable[[], None], learner: str
) -> None:
    data = pa.table({"x": np.random.default_rng(1).normal(5, 2, 4000)})
    pq.write_table(data, tmp_path / "d.parquet")
    (tmp_path / "s.toml").write_text(NUMBER, encoding="utf-8")
    frozen()
    command(
        *(tmp_path / "d.parquet", "--schema", tmp_path / "s.toml", "--epsilon", "2", "--delta", "1e-5", "--rows", "9"),
        *("--out", tmp_path / "out.parquet", "--seed-for-tests", "3", "--learner", learner),
    )
    frozen()
    synthetic = synthesise_table(data, NUMBER, epsilon=2, delta="1e-5", learner=learner, seed=3)
    assert synthetic.sample(9, seed=3).equals(pq.read_table(tmp_path / "out.parquet"))
    assert (synthetic.release.sizes is not None) == (learner == "blocks")
    with pytest.raises(InvalidParameter, match="draw rows, or use tables"):
        synthetic.marginal("x")


def test_all_kinds_of_data_give_the_same_release(tmp_path: Path, frozen: Callable[[], None]) -> None:
    pq.write_table(arrow(), tmp_path / "d.parquet")
    pa.csv.write_csv(arrow(), tmp_path / "d.csv")
    lists = {name: list(values) for name, values in mapping().items()}
    plain = {name: arrow().column(name).to_pylist() for name in arrow().column_names}
    kinds = [tmp_path / "d.parquet", str(tmp_path / "d.csv"), arrow(), mapping(), lists, plain]
    rows = []
    for data in kinds:
        frozen()
        synthetic = synthesise_table(data, SCHEMA, epsilon=2, delta="1e-5", unit="who", seed=1)
        rows.append([cells.tolist() for cells in synthetic.cells(50, seed=1)])
    assert all(repr(one) == repr(rows[0]) for one in rows)


# --- frames -----------------------------------------------------------------------------------------------------------


def codes(values: Any, *, name: str = "age") -> list[float]:
    schema = parse_schema(SCHEMA)
    table = read_data({**mapping(len(values)), name: values}, schema=schema)
    place = [column.name for column in schema.read].index(name)
    return [float(cell) for cell in table.columns[place]]


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("age", [1, 2.0, "3", None, np.nan, np.float32(4), "x", 2.5, [1]], [1, 2, 3, None, None, 4, None, None, None]),
        ("age", np.ma.masked_array([1, 2, 3], mask=[False, True, False]), [1, None, 3]),
        ("age", np.array([1.0, np.nan, np.inf]), [1, None, None]),
        ("age", [10**5000, "\ud800", True, 7], [None, None, None, 7]),
        ("region", ["north", 7, 7.0, "7", None, object()], [0, 2, 2, 2, -1, -1]),
        ("region", np.array([7.0, np.nan]), [2, -1]),
        ("member", [True, "false", np.bool_(False), None, 3], [1, 0, 0, -1, -1]),
        ("joined", [dt.date(2000, 1, 2), "2000-01-03", dt.datetime(2000, 1, 4, 5), None], [10958, 10959, 10960, None]),  # noqa: DTZ001
        ("joined", np.array(["2000-01-02", "NaT"], dtype="datetime64[ns]"), [10958, None]),
        ("joined", [dt.datetime(2000, 1, 2, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))], [10957]),
    ],
)
def test_each_cell_is_read_by_itself(name: str, values: Any, expected: list[float | None]) -> None:
    found = codes(values, name=name)
    assert found == [pytest.approx(np.nan if one is None else one, nan_ok=True) for one in expected]
    for place in range(len(values)):
        assert codes(values[place : place + 1], name=name) == pytest.approx(found[place : place + 1], nan_ok=True)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (np.zeros((3, 2)), "must be a data frame"),
        (3, "must be a data frame"),
        ({}, "no column"),
        ({"x": [[1.0], [2.0]]}, "not finite numbers"),
        ({"x": 5}, "one entry a record"),
        ({"x": np.zeros((2, 2))}, "one entry a record"),
        ({"x": []}, "no records"),
        (pa.table({"x": ["CANARY"]}), "stores it as string"),
        (pa.table([pa.array([1.0]), pa.array([2.0])], names=["x", "x"]), "2 columns named"),
    ],
)
@pytest.mark.usefixtures("never")
def test_what_is_no_table_is_refused_and_nothing_is_released(data: Any, error: str) -> None:
    with pytest.raises((InvalidParameter, SchemaMismatch, DataError), match=error) as refusal:
        synthesise_table(data, NUMBER, epsilon=1, delta="1e-6")
    assert "CANARY" not in str(refusal.value)


def test_columns_of_several_lengths_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="one length"):
        synthesise_table({**mapping(), "age": [1, 2]}, SCHEMA, epsilon=1, delta="1e-6")


@pytest.mark.parametrize("cells", [[1.5, 2, 3], [None, "a", "b"], ["\ud800", "a", "b"], ["", "a", "b"]])
def test_units_that_name_nobody_are_refused(cells: list[Any]) -> None:
    with pytest.raises(SchemaMismatch, match="unit column"):
        read_data({**mapping(3), "who": cells}, schema=parse_schema(SCHEMA).with_unit("who"))


def test_units_are_compared_as_texts() -> None:
    cells = ["1", 1, 1.0, np.int8(1), "01", True]
    table = read_data({**mapping(6), "who": cells}, schema=parse_schema(SCHEMA).with_unit("who"))
    assert table.units is not None
    assert table.units.tolist() == [0, 0, 0, 0, 1, 2]


def test_rows_are_a_frame_of_the_kind_of_the_data() -> None:
    rows = synthesise_table(mapping(), SCHEMA, epsilon=2, delta="1e-5").sample(20)
    assert list(rows) == ["age", "region", "member", "joined", "country"]
    assert {type(values) for values in rows.values()} == {np.ndarray}
    assert isinstance(synthesise_table(arrow(), SCHEMA, epsilon=2, delta="1e-5").sample(20), pa.Table)


def test_a_frame_of_polars_goes_through_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    class DataFrame:  # a stand-in: the project does not need the real one
        __module__ = "polars.dataframe"
        columns = ("age",)

        def __init__(self, table: pa.Table) -> None:
            self.table = table

        def to_arrow(self) -> pa.Table:
            return self.table

    package = types.ModuleType("polars")
    package.from_arrow = DataFrame  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "polars", package)
    rows = synthesise_table(DataFrame(arrow()), SCHEMA, epsilon=2, delta="1e-5").sample(20)
    assert isinstance(rows, DataFrame)
    assert rows.table.num_rows == 20


def test_a_frame_of_pandas_is_read_and_given() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: values for name, values in mapping().items() if name != "unused"})
    assert kind_of(frame) == "pandas"
    assert isinstance(synthesise_table(frame, SCHEMA, epsilon=2, delta="1e-5").sample(20), pandas.DataFrame)


def test_a_frame_of_pandas_is_told_by_its_library() -> None:
    class Series(np.ndarray[Any, Any]):
        __module__ = "pandas"

        def to_numpy(self) -> Any:
            return self.view(np.ndarray)

    class DataFrame:
        __module__ = "pandas"

        def __init__(self, columns: dict[str, Any]) -> None:
            self.columns = list(columns)
            self.held = [np.asarray(values).view(Series) for values in columns.values()]

        @property
        def iloc(self) -> "DataFrame":
            return self

        def __getitem__(self, where: tuple[Any, int]) -> Any:
            return self.held[where[1]]

    data = {name: values for name, values in mapping().items() if name != "unused"}
    schema = parse_schema(SCHEMA)
    found, expected = read_data(DataFrame(data), schema=schema), read_data(data, schema=schema)
    assert all(
        np.array_equal(one, other, equal_nan=True) for one, other in zip(found.columns, expected.columns, strict=True)
    )


# --- refusals before anything is spent --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"epsilon": 0}, "^epsilon must be a number from 1e-9"),
        ({"epsilon": float("nan")}, "^epsilon"),
        ({"delta": 0}, "^delta must be a number from 2"),
        ({"learner": "best"}, "^learner must be one of"),
        ({"learner": "gaussian-mixture:0"}, "^learner must be one of"),
        ({"blocks": 10}, "^blocks, draws and records_per_vote belong to learner blocks"),
        ({"learner": "blocks", "draws": 3}, "^draws must be"),
        ({"learner": "blocks", "delta": "0.9", "epsilon": "0.5"}, "^delta must be at most"),
        ({"seed": -1}, "^seed must be"),
        ({"learner": "empirical"}, "does not fit the declared columns"),
        ({"unit": "x"}, "also a declared column"),
        ({"ledger": "l.db"}, "must be a Ledger"),
        ({"schema": 3}, "schema must be a Schema"),
        ({"schema": "none.toml"}, "does not exist"),
        ({"schema": "version = 3\n"}, "at least one column"),
    ],
)
@pytest.mark.usefixtures("never")
def test_refusals_come_before_a_record_is_read(asked: dict[str, Any], error: str) -> None:
    class Unread(dict[str, Any]):
        def keys(self) -> NoReturn:
            pytest.fail("no record may be read")

    terms = {"schema": NUMBER, "epsilon": 1, "delta": "1e-6", **asked}
    with pytest.raises((InvalidParameter, SchemaMismatch), match=error):
        synthesise_table(Unread(), terms.pop("schema"), **terms)
    if not {"seed", "ledger"} & asked.keys():
        plan = {"schema": NUMBER, "epsilon": 1, "delta": "1e-6", **asked}
        with pytest.raises((InvalidParameter, SchemaMismatch), match=error):
            plan_table(plan.pop("schema"), 100, **plan)


def test_a_schema_is_a_path_a_schema_or_a_text(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCHEMA, encoding="utf-8")
    for schema in (SCHEMA, parse_schema(SCHEMA), tmp_path / "s.toml", str(tmp_path / "s.toml")):
        assert plan_table(schema, 1000, epsilon=1, delta="1e-6").units == 1000


# --- ledger, verdicts, answers ----------------------------------------------------------------------------------------


def test_a_ledger_is_charged_once_and_refuses_before_a_record_is_read(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "l.db", epsilon=1, delta="1e-5", unit="who") as ledger:
        synthetic = synthesise_table(mapping(), SCHEMA, epsilon=1, delta="1e-6", unit="who", ledger=ledger)
        assert (str(ledger.spent.epsilon), ledger.spent.unit) == ("1", synthetic.guarantee.unit)
        assert synthetic.ledger is not None
        assert synthetic.ledger.unconfirmed == 0
        with pytest.raises(BudgetExceeded):
            synthesise_table("nothing.csv", SCHEMA, epsilon="0.1", delta="1e-6", unit="who", ledger=ledger)
        with pytest.raises(InvalidParameter):
            synthesise_table("nothing.csv", SCHEMA, epsilon="0.1", delta="1e-6", ledger=ledger)  # another unit
        assert ledger.statement().charges == 1


def test_verdicts_are_told_once_and_kept() -> None:
    with collected() as told:
        synthetic = synthesise_table(mapping(40), SCHEMA, epsilon="0.1", delta="0.01", unit="who")
    codes_told = [verdict.code for verdict in told]
    assert tuple(told) == synthetic.verdicts
    assert {"delta-too-large", "weighted-by-unit", "too-few-records"} <= set(codes_told)
    assert len(set(told)) == len(told)
    assert [entry["code"] for entry in synthetic.account()["warnings"]] == codes_told
    with pytest.warns(VerdictWarning, match="delta-too-large"):
        synthesise_table(mapping(40), SCHEMA, epsilon="0.1", delta="0.1")


def test_blocks_that_do_not_agree_give_no_answer() -> None:
    data = {"x": np.random.default_rng(0).choice(["a", "b"], 3000)}
    found = [
        synthesise_table(data, LABEL, epsilon=1, delta="1e-6", learner="blocks", records_per_vote=2000, draws=4)
        for _ in range(3)
    ]
    synthetic = next(one for one in found if not one.answered)
    assert synthetic.guarantee.epsilon == 1
    assert "no answer" in repr(synthetic)
    for refused in (lambda: synthetic.sample(3), lambda: synthetic.marginal("x"), lambda: synthetic.report("r.html")):
        with pytest.raises(InvalidParameter, match="no answer"):
            refused()


def test_no_model_for_what_was_released(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> NoReturn:
        raise FitFailed("no normal law can be fitted.")

    monkeypatch.setattr(task, "synthesise", failing)
    with pytest.raises(NothingReleased, match="budget is spent"):
        synthesise_table({"x": [1.0, 2.0]}, NUMBER, epsilon=1, delta="1e-6", learner="blocks")


# --- what is made of a release ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def synthetic() -> SyntheticTable:
    return synthesise_table(mapping(5000), SCHEMA, epsilon=3, delta="1e-6")


def test_marginals_are_shares_of_declared_cells(synthetic: SyntheticTable) -> None:
    region = synthetic.marginal("region")
    assert region.cells == (("north", "south", "7", None),)
    assert region.shares == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=0.05)
    pair = synthetic.marginal(["member", "age"])
    assert pair.shares.shape == tuple(map(len, pair.cells))
    assert pair.shares.sum() == pytest.approx(1)
    assert pair.shares[-1].sum() == 0  # required
    assert pair.shares.sum(axis=1) == pytest.approx(synthetic.marginal("member").shares)
    ends = [cell for cell in pair.cells[1] if isinstance(cell, tuple)]
    assert pair.cells[1][-1] is None
    assert all(one[1] == other[0] for one, other in pairwise(ends))
    for wrong in ([], "unused", ["age", "age"], "country"):
        with pytest.raises(InvalidParameter, match="columns must be different ones"):
            synthetic.marginal(wrong)


def test_the_shares_of_one_column_of_labels_that_blocks_agree_on() -> None:
    found = synthesise_table({"x": ["a", "b", "b"] * 4000}, LABEL, epsilon=2, delta="1e-6", learner="blocks")
    assert found.answered
    assert found.marginal("x").shares == pytest.approx([1 / 3, 2 / 3, 0], abs=0.2)


def test_a_report_checks(synthetic: SyntheticTable, tmp_path: Path) -> None:
    synthetic.report(tmp_path / "r.json")
    assert check_release(json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))) == ()
    synthetic.report(str(tmp_path / "r.html"))
    assert "differential privacy" in (tmp_path / "r.html").read_text(encoding="utf-8")
    for wrong in ("r.txt", tmp_path / "nowhere" / "r.html"):
        with pytest.raises(InvalidParameter, match="path"):
            synthetic.report(wrong)


@pytest.mark.parametrize(("rows", "seed"), [(0, None), (10**8, None), ("x", None), (1, -1), (1, 0.5)])
def test_rows_and_seeds_are_checked(synthetic: SyntheticTable, rows: Any, seed: Any) -> None:
    with pytest.raises(InvalidParameter):
        synthetic.sample(rows, seed=seed)


def test_rows_are_new_unless_seeded(synthetic: SyntheticTable) -> None:
    one, other = (synthetic.sample(200, seed=5)["age"] for _ in range(2))
    np.testing.assert_array_equal(one, other)  # noise may give missing cells, which are equal here
    assert synthetic.sample(200)["age"].tolist() != synthetic.sample(200)["age"].tolist()


def test_a_release_travels_and_holds_no_record() -> None:
    data = mapping(3000)
    data["age"][0] = 77
    found = synthesise_table({**data, "who": ["SECRET-NAME"] + ["x"] * 2999}, SCHEMA, epsilon=1, delta="1e-6")
    stored = pickle.dumps(found)
    assert b"SECRET-NAME" not in stored
    assert len(stored) < 1_000_000
    again = pickle.loads(stored)  # noqa: S301 - our own
    assert again.sample(50, seed=2)["age"].tolist() == found.sample(50, seed=2)["age"].tolist()
    assert "SyntheticTable(ApproxDP" in repr(again)


def test_the_plan_is_what_the_release_will_be() -> None:
    outlook = plan_table(SCHEMA, 5000, epsilon=3, delta="1e-6")
    assert outlook.errors.keys() == {"age", "region", "member", "joined"}
    assert "Is n = 5000 enough?" in str(outlook)
    assert outlook.document()["plan"] == list(outlook.lines)
    blocks = plan_table(NUMBER, 50_000, epsilon=1, delta="1e-6", learner="blocks")
    assert "typical error" in blocks.lines[-1]
    assert plan_table(NUMBER, 50_000, epsilon=1, delta="1e-6", learner="scipy:norm").lines[0].startswith("locate 1")


def test_names_are_lazy_and_public() -> None:
    assert {"SyntheticTable", "plan_table", "synthesise_table"} <= set(accord.__all__)
    assert accord.synthesise_table is accord.synthesis.synthesise_table


def test_a_schema_is_drafted_from_types_alone() -> None:
    stamps = np.array(["2020-01-01T10:00:00", "2021-01-01T10:00:00"], dtype="datetime64[s]")
    plain = {"a": np.array([1, 2]), "b": np.array([1.5, 2]), "c": np.array([True, False]), "d": stamps, "e": ["x", "y"]}
    frames: list[Any] = [plain, pa.table({**plain, "f": pa.array(["secret", "x"]).dictionary_encode()})]
    try:
        pandas = importlib.import_module("pandas")
    except ModuleNotFoundError:
        pass
    else:
        frames.append(pandas.DataFrame({**plain, "f": pandas.Categorical(["secret", "x"])}))
    for frame in frames:
        text = Schema.draft(frame)
        assert "secret" not in text
        assert "tell of records" in text
        with pytest.raises(SchemaMismatch, match="kind"):
            parse_schema(text)
        decided = text.replace('kind = "?"', 'kind = "drop"')
        kinds = [column.kind for column in parse_schema(decided).columns]
        assert kinds == ["integer", "number", "boolean", "datetime", "drop", "drop"][: len(kinds)]
    for odd in ("d.csv", 3, None):
        with pytest.raises(InvalidParameter):
            Schema.draft(odd)
