"""The command line as people meet it: exit codes, one line on stderr, nothing of a cell in any output."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import accord
import accord.synthesis.task
from accord.cli.app import app
from accord.distributions import Categorical, Normal
from accord.errors import FitFailed, InvalidParameter
from accord.privacy import ApproxDP
from accord.synthesis import SamplePlan, Synthesis

CASES = Path(__file__).parent / "cases"
EXAMPLES = Path(__file__).parents[2] / "examples"
CANARY = "CANARY7301"

NUMBER = 'version = 1\n[[columns]]\nname = "{}"\nkind = "number"\n'
CATEGORY = 'version = 1\n[[columns]]\nname = "{}"\nkind = "category"\ncategories = ["a", "b"]\n'

Call = Callable[..., Result]


def release(model: Any = None, *, units: int = 100, word: str = "record") -> Synthesis:
    """The same release whatever the data are: only its number of units follows them."""
    plan = SamplePlan(units=units, blocks=10, block_size=units // 10, records=20, draws=4, typical_error=0.1)
    return Synthesis(model=model, guarantee=ApproxDP("0.5", "1e-6", unit=word), plan=plan, seeded=False)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own current folder for each test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCORD_DEBUG", raising=False)
    return tmp_path


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Replace the release by a fixed one; gives the list of its calls."""
    calls: list[dict[str, Any]] = []

    def synthesise(records: Any, **options: Any) -> Synthesis:
        calls.append({"records": records, **options})
        kind = Normal([1.5], [[4.0]]) if records.dtype != object else Categorical(["a", "b"], [0.25, 0.75])
        if records.shape[1] > 1:
            kind = Normal([1.5, -2.0], [[4.0, 3.0], [3.0, 9.0]])
        return release(kind, units=len(records), word=options.get("unit") or "record")

    monkeypatch.setattr(accord.synthesis.task, "synthesise", synthesise)
    return calls


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    def synthesise(*_: Any, **__: Any) -> NoReturn:
        pytest.fail("nothing may be released")

    monkeypatch.setattr(accord.synthesis.task, "synthesise", synthesise)


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def synth(data: str | Path, schema: str | Path = "s.toml", *more: str | Path, **options: str) -> Result:
    given = {"epsilon": "0.5", "delta": "1e-6", "rows": "5", "out": "out.csv", "learner": "blocks", **options}
    pairs = [word for name, value in given.items() for word in (f"--{name}", value)]
    return call("synth", data, "--schema", schema, *pairs, *more)


def write(name: str, content: str | bytes) -> Path:
    path = Path(name)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def snapshot() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


def refused(result: Result, *phrases: str, code: int = 2) -> str:
    assert result.exit_code == code, (result.exit_code, result.stderr)
    assert result.stdout == ""
    line = result.stderr
    assert line.startswith("accord: ")
    assert line.count("\n") == 1
    assert line.endswith(".\n")
    assert "Traceback" not in line
    assert CANARY not in line
    for phrase in phrases:
        assert phrase in line
    return line


# --- numbers, before any file is opened -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["0", "-1", "nan", "NaN", "inf", "1,5", "1e-400", "1e400", "much", "", "1e-10", "1001", "0x1"]
)
def test_E79_epsilon_out_of_range(never: None, value: str) -> None:
    refused(synth("none.csv", "none.toml", epsilon=value), "--epsilon", "1e-9 to 1000", 'not "off"')
    assert snapshot() == {}


@pytest.mark.parametrize("value", ["0", "-1e-6", "nan", "1", "1,5", "1e-400", "1e-31", "small", "", "2"])
def test_E79_delta_out_of_range(never: None, value: str) -> None:
    refused(synth("none.csv", "none.toml", delta=value), "--delta", "2^-100 to below 1", 'not "off"')


@pytest.mark.parametrize("option", ["rows", "blocks", "draws", "records"])
@pytest.mark.parametrize("value", ["0", "-3", "1.5", "nan", "many", "", "1e99"])
def test_counts_out_of_range(never: None, option: str, value: str) -> None:
    refused(synth("none.csv", "none.toml", **{option: value}), f"--{option}", "whole number")


def test_other_options_before_any_file(never: None) -> None:
    refused(synth("none.csv", "none.toml", learner="forest"), "--learner", "auto, tables, blocks")
    refused(synth("none.csv", "none.toml", **{"seed-for-tests": "x"}), "--seed-for-tests", "whole number")


def test_numbers_are_exact(frozen: list[dict[str, Any]]) -> None:
    write("s.toml", NUMBER.format("x"))
    write("d.csv", "x\n1\n2\n")
    assert synth("d.csv", epsilon="0.1", delta="1e-9", rows="1e1", blocks="7", draws="9", records="30").exit_code == 0
    options = frozen[0]
    assert (str(options["epsilon"]), str(options["delta"])) == ("1/10", "1/1000000000")
    assert (options["blocks"], options["draws"], options["records_per_vote"], options["seed"]) == (7, 9, 30, None)
    assert options["units"] is None
    assert len(Path("out.csv").read_text().splitlines()) == 11


# --- schema, then the place of the output, then the data --------------------------------------------------------------


def test_without_a_schema(never: None) -> None:
    result = call("synth", "none.csv", "--epsilon", "1", "--delta", "1e-6", "--rows", "5", "--out", "o.csv")
    refused(result, "accord schema DATA --out schema.toml", "--schema")


def test_the_order_of_checks(never: None) -> None:
    write("s.toml", NUMBER.format("x"))
    write("d.csv", f"x\n{CANARY}\n")
    write("out.csv", "old")
    before = snapshot()
    refused(synth("d.csv", "none.toml"), '"none.toml"', "does not exist")
    refused(synth("d.csv"), "--out", "already exists", "--force")
    refused(synth("d.csv", out="d.csv"), "--out", "also read")
    refused(synth("d.csv", out="s.toml"), "--out", "also read")
    refused(synth("d.csv", "s.toml", "--force", out="d.csv"), "--out", "also read")
    refused(synth("d.csv", out="none/out.csv"), "--out", "folder")
    refused(synth("d.csv", "s.toml", "--model", "new.csv", out="new.csv"), "--model", "also read or written")
    refused(synth("none.csv", out="new.csv"), '"none.csv"', "does not exist")
    refused(synth("d.csv", out="new.csv"), '"x"', 'unreadable = "missing"')
    assert snapshot() == before


def test_columns_that_no_learner_takes(never: None) -> None:
    both = NUMBER.format("x") + CATEGORY.format("c").replace("version = 1\n", "")
    nine = "".join([NUMBER.format("x"), *(NUMBER.format(name).replace("version = 1\n", "") for name in "abcdefgh")])
    for text in (both, nine):
        write("s.toml", text)
        refused(synth("none.csv"), "one to 8 number columns", "exactly one category column")
    write("s.toml", NUMBER.format("x"))
    refused(synth("none.csv", learner="empirical"), "--learner empirical", "gaussian")
    write("s.toml", CATEGORY.format("c"))
    refused(synth("none.csv", learner="gaussian"), "--learner gaussian", "empirical")


def test_a_draft_is_refused_by_the_name_of_its_column(never: None) -> None:
    write("d.csv", "age,city\n1,a\n")
    assert call("schema", "d.csv", "--out", "s.toml").exit_code == 0
    refused(synth("d.csv"), '"age"', "not completed")


# --- nasty files ------------------------------------------------------------------------------------------------------

NASTY = {
    "02_semicolon.csv": (NUMBER.format("temp_c"), "comma"),
    "05_na_is_a_code.csv": (CATEGORY.format("country"), "2 declared categories"),
    "13_ragged_rows.csv": (NUMBER.format("a"), "2 records"),
    "14_trailing_delimiter.csv": (NUMBER.format("a"), "3 records"),
    "17_header_only.csv": (NUMBER.format("age"), "no records"),
    "18_empty.csv": (NUMBER.format("x"), "empty"),
    "19_blank_lines_only.csv": (NUMBER.format("x"), "blank"),
    "31_latin1.csv": (NUMBER.format("montant"), "UTF-8"),
    "32_utf16.csv": (NUMBER.format("a"), "UTF-16"),
    "34_nul_and_control_bytes.csv": (NUMBER.format("a"), "NUL"),
    "44_truncated.csv.gz": (NUMBER.format("a"), "cut short"),
    "49_header_is_data.csv": (NUMBER.format("age"), "first line"),
    "50_two_header_lines_and_footer.csv": (NUMBER.format("age"), "first line"),
    "p01_nullable_int64.parquet": (NUMBER.format("id"), "2^53"),
    "p04_nested.parquet": (CATEGORY.format("tags"), "nested"),
    "p05_nan_versus_null.parquet": (NUMBER.format("x"), "finite"),
    "p06_zero_rows.parquet": (NUMBER.format("x"), "no records"),
    "p07_uint64_max.parquet": (NUMBER.format("u"), "2^53"),
    "p08_bool_with_null.parquet": (NUMBER.format("f"), "bool"),
    "p13_truncated.parquet": (NUMBER.format("x"), "damaged"),
    "p14_binary_and_empty_string.parquet": (CATEGORY.format("b"), "binary"),
}


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("as_json", [False, True])
def test_nasty_files_are_refused(never: None, name: str, *, as_json: bool) -> None:
    schema, phrase = NASTY[name]
    write("s.toml", schema)
    refused(synth(CASES / name, "s.toml", *(["--json"] if as_json else [])), phrase)
    assert snapshot().keys() == {"s.toml"}


FINE = {
    "01_bom_quoted_header.csv": (NUMBER.format("temp_c"), 3, 0),
    "12_quotes_newlines.csv": (NUMBER.format("score"), 7, 0),
    "33_cr_only_no_final_newline.csv": (NUMBER.format("b"), 3, 0),
    "42_reserved_names.csv": (NUMBER.format("__null__"), 3, 0),
    "43_gzip.csv.gz": (NUMBER.format("a"), 2, 0),
    "54_single_column_with_blank_cell.csv": (NUMBER.format("x"), 5, 2),
    "p11_pandas_index_column.parquet": (NUMBER.format("x"), 3, 0),
}


@pytest.mark.parametrize("name", FINE)
def test_nasty_files_that_are_fine(frozen: list[dict[str, Any]], name: str) -> None:
    schema, count, missing = FINE[name]
    write("s.toml", schema)
    assert synth(CASES / name).exit_code == 0
    records = frozen[0]["records"]
    assert records.shape == (count, 1)
    assert np.isnan(records).sum() == missing


CANARIES: dict[str, str | bytes] = {
    "text among numbers": f"x,y\n1,2\n{CANARY},3\n",
    "late text": "x,y\n" + "1,2\n" * 300_000 + f"{CANARY},3\n",
    "long text": f"x,y\n1,2\n{CANARY * 100_000},3\n",
    "too long": f"x,y\n1,2\n{CANARY * 1_000_000},3\n",
    "too many cells": f"x,y\n1,2\n{CANARY},3,4\n",
    "too few cells": f"x,y\n1,2\n{CANARY}\n",
    "long ragged row": f"x,y\n1,2\n{CANARY * 100_000}\n",
    "open quote": f'x,y\n1,"{CANARY}\n2,3\n',
    "open quote in the first column": f'x,y\n"{CANARY}\n2,3\n',
    "not UTF-8": f"x,y\n1,{CANARY}".encode() + b"\xff\n",
    "NUL": f"x,y\n1,{CANARY}\0\n",
    "no header": f"{CANARY},2\n3,4\n",
    "escape codes": f"x,y\n\x1b[31m{CANARY},2\n",
}


@pytest.mark.parametrize("case", CANARIES)
@pytest.mark.parametrize("kind", [NUMBER, CATEGORY])
@pytest.mark.parametrize("debug", ["0", "1"])
def test_E84_no_cell_in_any_output(
    never: None, monkeypatch: pytest.MonkeyPatch, case: str, kind: str, debug: str
) -> None:
    monkeypatch.setenv("ACCORD_DEBUG", debug)
    write("s.toml", kind.format("x"))
    write("d.csv", CANARIES[case])
    refused(synth("d.csv"))
    assert snapshot().keys() == {"s.toml", "d.csv"}


def test_no_cell_of_a_parquet_file_in_any_output(never: None) -> None:
    pq.write_table(pa.table({"x": [CANARY, "a"], "c": pa.array([CANARY, "a"]).dictionary_encode()}), "d.parquet")
    for schema in (
        NUMBER.format("x"),
        CATEGORY.format("x"),
        NUMBER.format("c"),
        CATEGORY.format("c"),
        NUMBER.format("z"),
    ):
        write("s.toml", schema)
        refused(synth("d.parquet"))
    write("s.toml", CATEGORY.format("x"))
    refused(synth("d.parquet", "s.toml", "--unit", "z"), '"z"')


def test_units_reach_the_release_and_the_words(frozen: list[dict[str, Any]]) -> None:
    write("s.toml", NUMBER.format("x"))
    write("d.csv", "x,who\n1,p\n2,q\n3,p\n")
    result = synth("d.csv", "s.toml", "--unit", "who")
    assert frozen[0]["units"].tolist() == [0, 1, 0]
    assert "replacing all records of one unit, wherever they stand; the number of units n is public" in result.stdout
    assert "share a value of who" in result.stdout
    assert "rows stand for: a random who's random record" in result.stdout


# --- what is printed and written --------------------------------------------------------------------------------------


def test_the_human_result(frozen: list[dict[str, Any]]) -> None:
    two = NUMBER.format("x") + 'decimals = 1\n[[columns]]\nname = "y"\nkind = "number"\ndecimals = 0\n'
    write("s.toml", two)
    write("d.csv", "x,y\n1,2\n3,4\n")
    result = synth("d.csv", "s.toml", "--model", "m.json")
    assert (result.exit_code, result.stderr) == (0, "")
    for phrase in (
        "x: mean 1.5, standard deviation 2",
        "y: mean -2, standard deviation 3",
        "correlation: 0.5000",
        "(0.5, 1e-6)-differential privacy, replacing one record; the number of records n is public",
        "this run only",
        "add up",
        "seeded: no",
        "10 blocks",
        "records per vote: 20",
        "draws: 4",
        "out.csv (5 rows)",
        "m.json",
        accord.__version__,
    ):
        assert phrase in result.stdout
    assert "\x1b" not in result.stdout
    assert Path("out.csv").read_text().startswith("x,y\n")
    model = accord.SyntheticTable.load("m.json")
    assert model.release.model is not None
    assert model.release.model["mean"] == [1.5, -2.0]
    with zipfile.ZipFile("m.json") as kept:
        assert all(b"d.csv" not in kept.read(name) for name in kept.namelist())


def test_the_json_result_has_stable_keys(frozen: list[dict[str, Any]]) -> None:
    write("s.toml", CATEGORY.format("c"))
    write("d.csv", "c\na\nb\n")
    result = synth("d.csv", "s.toml", "--json", epsilon="0.50")
    content = json.loads(result.stdout)
    assert list(content) == [
        "accord", "answer", "model", "guarantee", "rows_stand_for", "plan", "seeded", "noise_seeded",
        "rows", "files", "warnings", "commands",
    ]  # fmt: skip
    assert content["model"] == {
        "family": "categorical",
        "columns": ["c"],
        "categories": ["a", "b"],
        "probabilities": [0.25, 0.75],
    }
    guarantee = content["guarantee"]
    assert (guarantee["epsilon"], guarantee["epsilon_float"]) == ("0.50", 0.5)
    assert (guarantee["delta"], guarantee["delta_float"]) == ("1e-6", 1.0000000000000002e-06)
    assert (guarantee["neighbouring"], guarantee["unit"], guarantee["releases"]) == ("replace one", "record", 1)
    assert content["plan"] == {
        "units": 2,
        "blocks": 10,
        "block_size": 0,
        "records_per_vote": 20,
        "draws": 4,
        "typical_error": 0.1,
    }
    assert content["files"] == {"rows": "out.csv", "model": None}
    assert set(Path("out.csv").read_text().split()) <= {"c", "a", "b"}


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_E81_neighbours_with_the_same_release_look_the_same(frozen: list[dict[str, Any]], more: list[str]) -> None:
    schema = NUMBER.format("x") + 'unreadable = "missing"\n'
    write("s.toml", schema)
    seen = []
    for cell in ("3", "1e300", "", "nan", f"{CANARY}", '"two\nlines"'):
        write("d.csv", f"x,y\n1,2\n{cell},4\n5,6\n")
        options = ["--force", "--seed-for-tests", "5", "--model", "m.json", *more]
        result = synth("d.csv", "s.toml", *options, out="out.parquet")
        assert result.exit_code == 0
        seen.append((result.stdout, result.stderr, Path("out.parquet").read_bytes(), Path("m.json").read_bytes()))
    assert all(outputs == seen[0] for outputs in seen)
    assert len(frozen) == len(seen)


def test_delta_not_below_one_over_n_is_a_warning(frozen: list[dict[str, Any]]) -> None:
    write("s.toml", NUMBER.format("x"))
    write("d.csv", "x,who\n" + "1,p\n" * 10)
    result = synth("d.csv", "s.toml", "--json", delta="0.1")
    assert result.exit_code == 0
    assert result.stderr.count("\n") == 1
    assert "warning: delta" in result.stderr
    assert "times their number is 1)" in result.stderr
    assert [one["code"] for one in json.loads(result.stdout)["warnings"]] == ["delta-too-large"]
    assert "not far below" in synth("d.csv", "s.toml", "--force", delta="0.099").stderr
    assert synth("d.csv", "s.toml", "--force", delta="0.0099").stderr == ""
    write("d.csv", "x,who\n" + "1,p\n1,q\n" * 10)
    found = synth("d.csv", "s.toml", "--force", "--unit", "who", epsilon="1", delta="1/2").stderr
    assert "number of units, so that" in found


def test_delta_too_large_for_the_selection_is_refused_before_a_file_is_opened() -> None:
    result = synth("nothing.csv", "nothing.toml", epsilon="0.5", delta="0.9")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "--delta must be at most exp(epsilon / 2) - 1, which is 0.284 at this --epsilon" in result.stderr


def test_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    write("s.toml", NUMBER.format("x"))
    write("d.csv", "x\n1\n2\n")
    monkeypatch.setattr(accord.synthesis.task, "synthesise", lambda *_, **__: release())
    before = snapshot()
    result = synth("d.csv", "s.toml", "--model", "m.json")
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    assert "no answer" in result.stderr
    assert "budget is spent all the same" in result.stderr
    assert "none: nothing was written" in result.stdout
    content = json.loads(synth("d.csv", "s.toml", "--json").stdout)
    assert (content["answer"], content["model"], content["rows"]) == (False, None, 0)
    assert content["files"] == {"rows": None, "model": None}
    assert snapshot() == before


def test_no_model_for_what_was_released_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> NoReturn:
        raise FitFailed("no normal law can be fitted.")

    write("s.toml", NUMBER.format("x"))
    write("d.csv", "x\n1\n2\n")
    monkeypatch.setattr(accord.synthesis.task, "synthesise", failing)
    refused(synth("d.csv"), "no answer", "spent", code=3)
    assert snapshot().keys() == {"s.toml", "d.csv"}


def test_overwriting_needs_force(frozen: list[dict[str, Any]]) -> None:
    write("s.toml", NUMBER.format("x"))
    write("d.csv", "x\n1\n2\n")
    write("m.json", "old")
    refused(synth("d.csv", "s.toml", "--model", "m.json"), "--model", "already exists")
    assert frozen == []
    assert synth("d.csv", "s.toml", "--model", "m.json", "--force").exit_code == 0
    assert Path("m.json").read_bytes() != b"old"


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_failing_write_leaves_nothing(
    frozen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def failing(*_: Any) -> NoReturn:
        raise OSError(28, "No space left on device")

    write("s.toml", NUMBER.format("x"))
    write("d.csv", "x\n1\n2\n")
    before = snapshot()
    monkeypatch.setattr(os, step, failing)
    refused(synth("d.csv", "s.toml", "--model", "m.json"), "No space left", "budget is spent", code=1)
    assert snapshot() == before


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError(CANARY), 1),
        (OSError(CANARY), 1),
        (OSError(28, "No space", CANARY), 1),
        (KeyboardInterrupt(CANARY), 130),
    ],
)
def test_what_nobody_expected(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    def failing(*_: Any, **__: Any) -> NoReturn:
        raise error

    write("s.toml", NUMBER.format("x"))
    write("d.csv", "x\n1\n2\n")
    monkeypatch.setattr(accord.synthesis.task, "synthesise", failing)
    line = refused(synth("d.csv"), code=code)
    assert (type(error).__name__ in line) == (code == 1 and not getattr(error, "strerror", None))
    assert snapshot().keys() == {"s.toml", "d.csv"}
    monkeypatch.setenv("ACCORD_DEBUG", "1")
    assert ("Traceback" in synth("d.csv").stderr) == (code == 1)


def test_what_the_learning_layer_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> NoReturn:
        raise InvalidParameter("blocks must be at least 42.")

    write("s.toml", NUMBER.format("x"))
    write("d.csv", "x\n1\n2\n")
    with monkeypatch.context() as patch:
        patch.setattr(accord.synthesis.task, "synthesise", failing)
        refused(synth("d.csv"), "at least 42")
    refused(synth("d.csv"), "too few records: there are 2, and about")
    write("d.csv", "x\n" + "1\n" * 300)
    refused(synth("d.csv", blocks="200"), "the largest usable number of blocks is 100")


def test_odd_names_do_not_reach_the_terminal(frozen: list[dict[str, Any]]) -> None:
    write("s.toml", NUMBER.format("\\u001b[31mred"))
    write("d.csv", "\x1b[31mred\n1\n2\n")
    result = synth("d.csv")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout


def test_progress_only_on_a_terminal(frozen: list[dict[str, Any]]) -> None:
    write("s.toml", NUMBER.format("x"))
    write("d.csv", "x\n1\n2\n")
    assert synth("d.csv").exit_code == 0
    assert frozen[0]["progress"] is None


# --- schema, demo, version --------------------------------------------------------------------------------------------


def test_schema_prints_or_writes_a_draft() -> None:
    write("d.csv", f"age,c\xefty\n{CANARY},2\n".encode())
    result = call("schema", "d.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    assert CANARY not in result.stdout
    assert 'name = "age"' in result.stdout
    assert call("schema", "d.csv", "--out", "s.toml").stdout == ""
    assert Path("s.toml").read_text(encoding="utf-8") == result.stdout
    before = snapshot()
    refused(call("schema", "d.csv", "--out", "s.toml"), "already exists")
    refused(call("schema", "d.csv", "--out", "d.csv", "--force"), "also read")
    assert snapshot() == before
    assert call("schema", "d.csv", "--out", "s.toml", "--force").exit_code == 0


@pytest.mark.parametrize("rows", [b"", b"\xff\xfe\0,,,\n", b'"open', b"1,2,3,4\n"])
def test_schema_reads_no_row(rows: bytes) -> None:
    write("d.csv", b"age,city\n" + rows)
    other = call("schema", "d.csv")
    write("d.csv", "age,city\n1,a\n")
    assert call("schema", "d.csv").stdout == other.stdout


def test_schema_of_parquet_and_of_no_table() -> None:
    assert 'name = "diagnosis"' in call("schema", CASES / "p02_dictionary_with_unused_level.parquet").stdout
    assert "flu" not in call("schema", CASES / "p02_dictionary_with_unused_level.parquet").stdout
    write("twins.csv", "x,x\n1,2\n")
    refused(call("schema", "twins.csv"), "two columns")
    for name in ("18_empty.csv", "19_blank_lines_only.csv", "32_utf16.csv", "p13_truncated.parquet", "none.csv"):
        refused(call("schema", CASES / name))


@pytest.mark.parametrize("as_json", [False, True])
def test_demo(*, as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """336,776 flights with ten columns, read, learnt and written, with a report; and as text with every tenth."""
    Path("to").mkdir()
    place = EXAMPLES
    if not as_json:
        place = Path("tenth").resolve()
        place.mkdir()
        (place / "flights.toml").symlink_to(EXAMPLES / "flights.toml")
        flights = pq.read_table(EXAMPLES / "flights.parquet")
        pq.write_table(flights.take(list(range(0, len(flights), 10))), place / "flights.parquet")
        monkeypatch.setattr(sys.modules["accord.cli.demo"], "example", lambda name, *, stack: place / name)
    write("to/flights-synthetic.csv", "an earlier demo")
    result = call("demo", "--out", "to", *(["--json"] if as_json else []))
    assert (result.exit_code, result.stderr) == (0, "")
    lines = Path("to/flights-synthetic.csv").read_text().splitlines()
    header = "month,day,hour,carrier,origin,dep_delay,arr_delay,air_time,distance"
    assert (len(lines), lines[0]) == (10_001, header)
    carriers = {line.split(",")[3] for line in lines[1:]}
    assert {"UA", "B6", "EV"} <= carriers
    assert "(1, 1e-8)-differential privacy" in Path("to/flights-report.html").read_text(encoding="utf-8")
    command = json.loads(result.stdout)["commands"][0] if as_json else result.stdout.splitlines()[1].strip()
    assert command.startswith(f"accord synth {place / 'flights.parquet'} --schema")
    refused(call("demo", "--out", "none"), "--out", "folder")


def test_version() -> None:
    assert call("--version").stdout == f"accord {accord.__version__}\n"


@pytest.mark.parametrize(
    "words", [[], ["synth"], ["synth", "d.csv"], ["fly"], ["synth", "--epsilonn", "1"], ["demo", "x"]]
)
def test_usage_errors(words: list[str]) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


# --- in a process of its own ------------------------------------------------------------------------------------------


def process(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    code = "import sys; from accord.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_a_refusal_and_a_release_in_a_process() -> None:
    write("s.toml", NUMBER.format("prix\u20ac"))
    write("d.csv", "prix\u20ac\n" + "\n".join(str(value % 97) for value in range(20_000)) + "\n")
    words = ["synth", "d.csv", "--schema", "s.toml", "--delta", "1e-6", "--rows", "10", "--out", "out.csv"]
    bad = process(*words, "--epsilon", "0")
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)
    good = process(*words, "--epsilon", "20", "--learner", "blocks", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert good.returncode in {0, 3}
    assert "Traceback" not in good.stderr
    assert "mean" in good.stdout or "no answer" in good.stderr
    tables = process(*words, "--epsilon", "20", "--force", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (tables.returncode, tables.stderr) == (0, "")
    assert "measured" in tables.stdout


def test_a_terminal_is_served_too(frozen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    write("s.toml", NUMBER.format("x"))
    write("d.csv", "x\n1\n2\n")
    result = synth("d.csv")
    assert result.exit_code == 0
    assert "mean 1.5" in result.stdout
    assert "Guarantee" in result.stdout
