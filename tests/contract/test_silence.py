"""What a command says does not depend on the data in the corners: warnings, late errors, odd texts, accounts."""

import logging
import os
import re
import stat
import sys
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import accord.cli.app
import accord.cli.discovery
import accord.cli.job
import accord.cli.schema
import accord.location.locate
import accord.marginals.run
import accord.synthesis.curator
import accord.synthesis.discovery
import accord.synthesis.learner
from accord.cli.app import app
from accord.cli.guard import guarded
from accord.core import Verdict, tell
from accord.core.release import composing, note
from accord.errors import BudgetExceeded, InvalidParameter
from accord.ledger import Ledger, spending
from accord.marginals import MarginalLearner
from accord.marginals.engine import CountingEngine
from accord.mechanisms import DiscreteLaplace, ThresholdedCounts
from accord.privacy import ApproxDP
from accord.randomness import SharedRandomness
from accord.synthesis.discovery import discover
from accord.tables import parse_schema, read_table, read_texts

CANARY = "CANARY7301"
NUMBER = 'version = 2\n[[columns]]\nname = "x"\nkind = "number"\nunreadable = "missing"\n{}\n'
TIME = 'version = 2\n[[columns]]\nname = "t"\nkind = "{}"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCORD_DEBUG", raising=False)
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


def synth(cells: Sequence[str], *more: str, keys: str = "", epsilon: str = "2") -> Result:
    Path("s.toml").write_text(NUMBER.format(keys), encoding="utf-8")
    Path("d.csv").write_text("\n".join(["x", *cells]) + "\n", encoding="utf-8")
    fixed = ["--epsilon", epsilon, "--delta", "1e-6", "--rows", "50", "--out", "o.csv", "--force"]
    return call("synth", "d.csv", "--schema", "s.toml", *fixed, *more)


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_E25_constants_at_the_end_of_the_floats_have_an_answer() -> None:
    """They were charged, said exit code 2 and "edges must be finite", behind three warnings of numpy."""
    result = synth(["1.7976931348623157e308"] * 6000)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert set(Path("o.csv").read_text(encoding="utf-8").split()[1:]) <= {"1e+100", '""'}


@pytest.mark.parametrize("value", [0.3, 0.1, 0.7, 1 - 2**-53])
@pytest.mark.parametrize("towards", [0.0, 2.0])
def test_neighbouring_floats_that_both_are_frequent(value: float, towards: float) -> None:
    """0.3 and 0.1 + 0.2 are: their cells had one middle, and the release failed after it was charged.

    Without decimals they are one value, of which six digits are found.
    """
    other = float(np.nextafter(value, towards))
    result = synth([repr(value), repr(other)] * 3000, keys="bounds = [0, 2]")
    assert result.exit_code == 0, result.stderr
    written = [float(line) for line in Path("o.csv").read_text(encoding="utf-8").splitlines()[1:] if line.strip('"')]
    assert np.mean([abs(number - value) < 1e-5 * value for number in written]) > 0.9


@pytest.mark.parametrize("keys", ["bounds = [0, 1e101]", "edges = [-1e300, 0, 1e300]"])
def test_bounds_whose_squares_are_no_numbers(keys: str) -> None:
    result = synth(["1", "2"], "--ledger", "none", keys=keys)
    assert result.exit_code == 2
    assert "1e100" in result.stderr


# --- errors after the release has begun -------------------------------------------------------------------------------


def test_a_refusal_inside_the_release_is_no_answer_and_spent(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def fails(*_: object, **__: object) -> NoReturn:
        raise InvalidParameter(f"a text that may hold data: {CANARY}.")

    monkeypatch.setattr(accord.marginals.run, "learn_cells", fails)
    Ledger.create("l", epsilon=3, delta="1e-5").close()
    for more in ([], ["--ledger", "l"]):
        result = synth(["1", "2"] * 20, *more, keys="bounds = [0, 3]")
        assert result.exit_code == 3, "2 promises that nothing was spent"
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
        assert "InvalidParameter after the release had begun" in result.stderr
        assert "spent all the same" in result.stderr
        assert CANARY not in result.stderr
        assert not Path("o.csv").exists()
    with Ledger("l") as ledger:
        assert ledger.statement().charges == 1


@pytest.mark.parametrize(
    ("error", "code"), [(KeyError(CANARY), 1), (OSError(5, "input/output"), 1), (KeyboardInterrupt(), 130)]
)
def test_other_endings_say_what_is_spent(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BaseException) as caught, guarded(), spending(None, ApproxDP(1, "1e-6"), what="x"):  # noqa: PT011
        raise error
    assert getattr(caught.value, "exit_code", None) == code
    line = capsys.readouterr().err
    assert "budget" in line
    assert "spent" in line
    assert "if the release had begun" not in line
    assert CANARY not in line


def test_what_is_refused_before_is_not_spent(capsys: pytest.CaptureFixture[str]) -> None:
    Ledger.create("l", epsilon=1, delta="1e-5").close()
    with (
        Ledger("l") as ledger,
        pytest.raises(BudgetExceeded) as caught,
        spending(ledger, ApproxDP(2, "1e-6"), what="x"),
    ):
        pytest.fail("it is above the cap")
    assert not hasattr(caught.value, "__notes__")


# --- warnings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("debug", ["0", "1"])
def test_numerical_warnings_stay_off_the_terminal_and_accords_own_do_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], debug: str
) -> None:
    told = Verdict("charge-unconfirmed", "charge 3 is spent but could not be confirmed: the disk is full.")
    own = str(told)

    def odd(**_: object) -> None:
        warnings.warn(CANARY, RuntimeWarning, stacklevel=1)
        tell(told)

    def leaves(code: int) -> NoReturn:
        raise SystemExit(code)

    monkeypatch.setenv("ACCORD_DEBUG", debug)
    monkeypatch.setattr(accord.cli.app, "app", odd)
    monkeypatch.setattr(os, "_exit", leaves)
    monkeypatch.setattr(logging, "shutdown", lambda: None)  # it would close what the tests themselves write to
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        monkeypatch.setattr(warnings, "showwarning", lambda message, *_: sys.stderr.write(f"shown: {message}\n"))
        with pytest.raises(SystemExit) as caught:
            accord.cli.app.main()
    assert caught.value.code == 0
    said = f"shown: {CANARY}\nshown: {own}\n" if debug == "1" else f"accord: warning: {own}\n"
    assert capsys.readouterr().err == said


# --- neighbours with the same released values -------------------------------------------------------------------------

MIXED = """
version = 2
[[columns]]
name = "sex"
kind = "category"
categories = ["f", "m"]
unreadable = "missing"
[[columns]]
name = "height"
kind = "number"
decimals = 1
bounds = [100, 220]
unreadable = "missing"
[[columns]]
name = "seen"
kind = "datetime"
bounds = ["1950-01-01 00:00:00", "2030-01-01 00:00:00"]
unreadable = "missing"
"""
PLAIN = [("f", 171.5, 0), ("m", 180.0, 10**9)]
ODD: list[list[tuple[Any, ...]]] = [
    [("f", 165.0, 5)],
    [(CANARY, float("nan"), None)],
    [(None, -1e308, -(2**62))],
    [(f"{CANARY}{number}", float("inf"), number) for number in range(70)],
]
"""What the first unit holds: a record, an odd one, an odder one, or many."""


def neighbour(first: list[tuple[Any, ...]], *, units: int = 60) -> pa.Table:
    """A Parquet file with a dictionary, statistics and metadata of its own."""
    records = [*((0, *record) for record in first), *((unit, *PLAIN[unit % 2]) for unit in range(1, units))]
    who, sex, height, seen = zip(*records, strict=True)
    table = pa.table(
        {
            "who": pa.array([f"{CANARY}-{one}" for one in who]),
            "sex": pa.array(sex, pa.string()).dictionary_encode(),
            "height": pa.array(height, pa.float64()),
            "seen": pa.array(seen, pa.timestamp("us")),
        }
    )
    return table.replace_schema_metadata({"note": f"{CANARY} {len(first)}"})


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Keep the first values that are released, and give them again whatever the records are; counts the releases."""
    calls: list[int] = []
    kept: dict[str, Any] = {}
    release = MarginalLearner.release_counted

    def same(name: str, run: Callable[[], Any]) -> Any:
        with composing("basic", apart=True) as ran:
            value = run()
        first, stages = kept.setdefault(name, (value, ran.composed))
        note(stages)  # what ran the first time is what is said to have run
        return first

    def same_tables(learner: MarginalLearner, counting: CountingEngine, **options: Any) -> Any:
        calls.append(sum(part.codes().size for part in counting.parts))
        return same("tables", lambda: release(learner, counting, **options))

    monkeypatch.setattr(MarginalLearner, "release_counted", same_tables)
    return calls


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("more", [["--json"], []])
def test_E81_E86_neighbours_of_the_real_learner_give_equal_bytes(
    frozen: list[int], monkeypatch: pytest.MonkeyPatch, ending: str, more: list[str]
) -> None:
    Path("s.toml").write_text(MIXED, encoding="utf-8")
    names = {"--out": f"o.{ending}", "--report": "r.html", "--release": "r.json", "--model": "m.json"}
    unit = ["--unit", "who", "--ledger", "l", "--who", "me", "--force"]
    seen = []
    for first in ODD:
        pq.write_table(neighbour(first), "d.parquet", row_group_size=7 * len(first))
        Path("l").unlink(missing_ok=True)
        Ledger.create("l", epsilon=3, delta="1e-4", unit="who").close()
        words = [word for option, name in names.items() for word in (option, name)]
        fixed = ["--epsilon", "2", "--delta", "1e-5", "--rows", "300", "--seed-for-tests", "3", *unit, *more]
        result = call("synth", "d.parquet", "--schema", "s.toml", *fixed, *words)
        assert result.exit_code == 0, result.stderr
        with Ledger("l") as ledger:
            spent = ledger.statement()
        head = re.sub(r'"head": "[0-9a-f:]+"', "", result.stdout)  # it covers the time of the charge
        files = tuple(Path(name).read_bytes() for name in names.values())
        assert all(CANARY.encode() not in one for one in (*files, result.output.encode()))
        seen.append((head, result.stderr, spent.spent, spent.charges, *files))
    assert len(set(frozen)) == 2, "the number of records of a unit is no public fact"
    assert all(outcome == seen[0] for outcome in seen)


RARE_LABEL = """version = 2
[[columns]]
name = "x"
kind = "category"
categories = ["a", "b", "c"]
[[columns]]
name = "y"
kind = "category"
categories = ["p", "q"]
"""
RARE_NUMBER = """version = 2
[[columns]]
name = "y"
kind = "category"
categories = ["p", "q"]
[[columns]]
name = "z"
kind = "number"
bounds = [0, 100]
mostly_missing = true
"""


def published(schema: str, rows: Sequence[str], *more: str) -> tuple[int, str, list[str]]:
    """Exit code, stderr and the files of a run that also makes a page for the curator."""
    Path("s.toml").write_text(schema, encoding="utf-8")
    Path("d.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    fixed = ["--epsilon", "2", "--delta", "1e-6", "--rows", "11000", "--out", "o.csv", "--force", "--release", "r.json"]
    result = call("synth", "d.csv", "--schema", "s.toml", *fixed, "--curator-report", "c.html", *more)
    return result.exit_code, result.stderr, sorted(path.name for path in Path().iterdir())


def test_A12_one_record_with_a_rare_label_does_not_show_by_the_curators_page() -> None:
    """Its page was fitted with rows held back, which a label with a single row broke: exit 1, and no row was left."""
    usual = [f"{'ab'[place % 2]},{'pq'[place % 3 > 0]}" for place in range(23_999)]
    learnt = SharedRandomness(0).stream("split").permutation(24_000)[0]  # a row that the page's model is fitted to
    tables = [["x,y", *usual[:learnt], one, *usual[learnt:]] for one in ("a,p", "c,p")]
    found = [published(RARE_LABEL, table) for table in tables]
    assert found[0] == found[1]
    assert found[0][0] == 0
    assert found[0][1] == ""


def test_A12_one_record_with_the_only_number_does_not_show_by_the_curators_page() -> None:
    usual = [f"{'pq'[place % 2]}," for place in range(399)]
    found = [published(RARE_NUMBER, ["y,z", *usual, last]) for last in ("p,", "p,77")]
    assert [code for code, _, _ in found] == [0, 0]
    assert found[0] == found[1]


@pytest.mark.parametrize("raised", [ValueError(CANARY), SystemExit(7), KeyboardInterrupt(CANARY)])
def test_a_curators_page_that_cannot_be_made_says_so_on_the_page_alone(
    raised: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ["y,z", *(f"{'pq'[place % 2]},{place % 7}" for place in range(400))]
    expected = published(RARE_NUMBER, rows, "--seed-for-tests", "1")
    first = Path("c.html").read_text("utf-8")

    def fails(*_: Any, **__: Any) -> NoReturn:
        warnings.warn(CANARY, stacklevel=1)
        raise raised

    monkeypatch.setattr(accord.synthesis.curator, "evaluate", fails)
    assert published(RARE_NUMBER, rows, "--seed-for-tests", "1") == expected
    page = Path("c.html").read_text("utf-8")
    assert "could not be compared" in page
    assert "could not be compared" not in first
    assert CANARY not in page
    assert "NOT FOR RELEASE" in page


def test_the_world_has_its_files_before_the_curators_page_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed over the real rows, by its memory, must not take the release with it."""
    there: list[bool] = []

    def page(*_: Any) -> str:
        there.append(Path("o.csv").exists() and Path("r.json").exists())
        return "page"

    monkeypatch.setattr(accord.cli.job, "curator_account", page)
    published(RARE_NUMBER, ["y,z", *["p,1"] * 400])
    assert there == [True]


COMMAS = 'version = 2\n[csv]\nquote = ""\n[[columns]]\n'


@pytest.mark.parametrize(
    "column",
    [
        'name = "x,1"\nkind = "integer"\nbounds = [0, 9]',
        'name = "x"\nkind = "category"\ncategories = ["a", "b,c"]',
        'name = "x"\nkind = "category"\ncategories = ["a", "b "]',
        'name = "x"\nkind = "date"\nformat = "%d,%m,%Y"',
        'name = "x"\nkind = "integer"\nbounds = [0, 9]\n[[columns]]\nname = "k"\nkind = "constant"\nvalue = "a,b"',
        'name = "x"\nkind = "integer"\nbounds = [0, 9]\n[[columns]]\nname = "k"\nkind = "id"\nprefix = "n,"',
    ],
)
def test_texts_that_csv_without_quotation_marks_cannot_hold_are_refused_before_the_charge(column: str) -> None:
    Path("s.toml").write_text(COMMAS + column + "\n", encoding="utf-8")
    pq.write_table(pa.table({name: ["a", "b"] * 200 for name in ("x", "x,1")}), "d.parquet")
    fixed = ["--epsilon", "1", "--delta", "1e-6", "--rows", "50", "--ledger", "l.db"]
    assert call("ledger", "create", "l.db", "--epsilon", "9", "--delta", "1e-2").exit_code == 0
    result = call("synth", "d.parquet", "--schema", "s.toml", *fixed, "--out", "o.csv")
    assert (result.exit_code, "quotation marks" in result.stderr) == (2, True), result.stderr
    with Ledger("l.db") as ledger:
        assert ledger.statement().spent.epsilon == 0


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("place", ["unit", "column"])
def test_bytes_that_are_no_text_are_no_fault_of_accord(place: str, *, dictionary: bool) -> None:
    stored = pa.array([b"a", b"b", b"\xff\xfe\x80"] * 200, pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(stored), stored.buffers())
    if dictionary:
        letters = pa.array([b"a", b"b", b"\xff\xfe\x80"], pa.binary())
        values = pa.Array.from_buffers(pa.string(), 3, letters.buffers())
        texts = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 200, pa.int32()), values)
    other = pa.array(["a", "b", "a"] * 200)
    pq.write_table(pa.table({"x": other if place == "unit" else texts, "who": texts}), "d.parquet")
    Path("s.toml").write_text(
        'version = 2\n[[columns]]\nname = "x"\nkind = "category"\ncategories = ["a", "b"]\nunreadable = "missing"\n',
        encoding="utf-8",
    )
    unit = ["--unit", "who"] if place == "unit" else []
    fixed = ["--epsilon", "1", "--delta", "1e-6", "--rows", "50", "--out", "o.csv", *unit]
    result = call("synth", "d.parquet", "--schema", "s.toml", *fixed)
    assert result.exit_code == (2 if unit else 0), result.stderr
    assert not unit or "no text" in result.stderr


def test_tiny_bounds_overflow_nowhere() -> None:
    result = synth([f"{place % 7}e-301" for place in range(3000)], keys="bounds = [0, 1e-300]")
    assert (result.exit_code, result.stderr) == (0, "")
    written = [float(line) for line in Path("o.csv").read_text("utf-8").splitlines()[1:] if line.strip('"')]
    assert len(written) > 40
    assert all(0 <= value <= 1e-300 for value in written)


def test_the_curators_page_is_its_owners_alone() -> None:
    result = synth(["1", "2"] * 40, "--curator-report", "c.html", "--report", "r.html", keys="bounds = [0, 3]")
    assert result.exit_code == 0, result.stderr
    assert stat.S_IMODE(Path("c.html").stat().st_mode) == 0o600
    assert stat.S_IMODE(Path("r.html").stat().st_mode) != 0o600


# --- discovery --------------------------------------------------------------------------------------------------------


def broken_texts(count: int) -> pa.Array:
    """Texts of which each second one is no UTF-8, as a Parquet file can hold them."""
    stored = pa.array([b"plain", b"\xff\xfe"] * count)
    return pa.Array.from_buffers(pa.string(), 2 * count, stored.buffers())


@pytest.mark.parametrize(
    "cells",
    [
        broken_texts(300),
        broken_texts(300).dictionary_encode(),
        pa.array([b"ab", b"\xff\xfe"] * 300, pa.binary(2)),
        pa.array([b"a", b"\xff"] * 300, pa.binary_view()),
        pa.array([0, 2**62] * 300, pa.timestamp("us", tz="Mars/Olympus")),
        pa.array([0, -(2**31)] * 300, pa.date32()),
    ],
    ids=["texts", "dictionary", "fixed size", "views", "no such zone", "far dates"],
)
def test_no_stored_cell_stops_a_discovery(cells: pa.Array) -> None:
    """Some stopped it with exit code 1 after all was spent, depending on a single cell."""
    pq.write_table(pa.table({"x": cells}), "d.parquet")
    result = call("schema", "d.parquet", "--discover", "--epsilon", "1", "--delta", "1e-6")
    assert result.exit_code == 0, result.stderr
    assert "value out of range" not in result.stdout


def test_cells_of_parquet_as_texts_each_by_itself() -> None:
    stamps = pa.array([-1, 10**18 + 1, None], pa.timestamp("ns", tz="Europe/Paris"))
    texts = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a", b"\xff", b"b"]).buffers())
    pq.write_table(pa.table({"t": stamps, "x": texts, "d": pa.array([0, None, 1], pa.date32())}), "d.parquet")
    _, (times, labels, days) = read_texts(Path("d.parquet"))
    assert times.to_pylist() == ["1969-12-31 23:59:59", "2001-09-09 01:46:40", None]
    assert labels.to_pylist() == ["a", None, "b"]
    assert days.to_pylist() == ["1970-01-01", None, "1970-01-02"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_part_of_a_second_before_1970_stays_on_its_day(unit: str) -> None:
    """It was moved to the next second, and so to the next day."""
    pq.write_table(pa.table({"t": pa.array([-1, 0, None], pa.timestamp(unit))}), "d.parquet")
    seconds = read_table(Path("d.parquet"), schema=parse_schema(TIME.format("datetime"))).columns[0]
    days = read_table(Path("d.parquet"), schema=parse_schema(TIME.format("date"))).columns[0]
    assert seconds[:2].tolist() == [-1.0, 0.0]
    assert days[:2].tolist() == [-1.0, 0.0]
    assert np.isnan([seconds[2], days[2]]).all()


@pytest.mark.parametrize("units", [False, True])
def test_every_column_of_a_discovery_spends_its_part_at_most(monkeypatch: pytest.MonkeyPatch, *, units: bool) -> None:
    """Counted at the mechanisms themselves, on tables that lead down every path."""
    generator = np.random.default_rng(2)
    count = 4000
    columns = {
        "few": generator.integers(0, 3, count).astype(str),
        "many": generator.integers(0, 10**6, count).astype(str),
        "real": np.array([f"{one:.3f}" for one in generator.normal(5, 2, count)]),
        "label": generator.choice(["a", "b", "c"], count),
        "text": np.array([f"text {one}" for one in range(count)]),
        "truth": generator.choice(["true", "false"], count),
        "day": np.array([str(np.datetime64("2000-01-01") + int(one)) for one in generator.integers(0, 999, count)]),
        "nothing": np.array([""] * count),
    }
    spent: list[tuple[Fraction, Fraction]] = []
    histogram, counts, locating = (
        DiscreteLaplace.release,
        ThresholdedCounts.release,
        accord.location.locate.locate,
    )

    def by_histogram(mechanism: DiscreteLaplace, *words: Any, **options: Any) -> Any:
        spent.append((mechanism.guarantee.epsilon, Fraction(0)))
        return histogram(mechanism, *words, **options)

    def by_counts(mechanism: ThresholdedCounts, values: Any, **options: Any) -> Any:
        spent.append((mechanism.guarantee.epsilon, mechanism.guarantee.delta))
        assert len(values) == (count // 4 if units else count), "one record of each unit"
        return counts(mechanism, values, **options)

    def by_place(values: Any, plan: Any, **options: Any) -> Any:
        spent.append((plan.budget.epsilon, plan.budget.delta))
        assert len(values) == (count // 4 if units else count), "one record of each unit"
        return locating(values, plan, **options)

    monkeypatch.setattr(DiscreteLaplace, "release", by_histogram)
    monkeypatch.setattr(ThresholdedCounts, "release", by_counts)
    monkeypatch.setattr(accord.synthesis.discovery, "locate", by_place)
    for name, cells in columns.items():
        spent.clear()
        given = pa.array([cell or None for cell in cells.tolist()], pa.large_string())
        owners = np.arange(count) // 4 if units else None
        discover([given], names=[name], epsilon=8, delta="1e-4", units=owners, unit="who" if units else None)
        assert spent, "something is released of every column"
        assert sum(epsilon for epsilon, _ in spent) <= 8
        assert sum(delta for _, delta in spent) <= Fraction(1, 10**4)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (pa.array([1.5, 2.5] * 1500), "number"),
        (pa.array([1.0, 2.0] * 1500), "number"),
        (pa.array([1, 2] * 1500).cast(pa.decimal128(21, 2)), "number"),
        (pa.array([1, 2] * 1500), "category"),
        (pa.array([True, False] * 1500), "category"),
        (pa.array(["f", "m"] * 1500).dictionary_encode(), "category"),
        (pa.array([0, 86_400_000_000] * 1500, pa.timestamp("us", tz="UTC")), "datetime"),
        (pa.array([0, 1] * 1500, pa.date32()), "date"),
        (pa.array([str(one) for one in range(3000)]), "drop"),
    ],
    ids=["halves", "whole floats", "decimals", "whole", "truth", "labels", "times", "days", "written numbers"],
)
def test_a_discovered_draft_reads_the_file_that_it_is_of(cells: pa.Array, kind: str) -> None:
    """Floats with few values became a category, timestamps texts with microseconds: both refused by their type."""
    pq.write_table(pa.table({"x": cells, "y": pa.array([3] * len(cells))}), "d.parquet")
    result = call("schema", "d.parquet", "--discover", "--epsilon", "10", "--delta", "1e-4", "--out", "s.toml")
    assert result.exit_code == 0, result.stderr
    column = parse_schema(Path("s.toml").read_text(encoding="utf-8")).columns[0]
    assert column.kind == kind
    fixed = ["--epsilon", "10", "--delta", "1e-4", "--rows", "20", "--out", "o.csv"]
    assert call("synth", "d.parquet", "--schema", "s.toml", *fixed).exit_code in {0, 3}


def test_a_folder_that_cannot_be_written_shows_before_a_discovery_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("d.csv").write_text("x\n" + "1\n" * 50, encoding="utf-8")

    def cannot(*_: object, **__: object) -> NoReturn:
        raise PermissionError(13, "denied")

    monkeypatch.setattr(accord.cli.schema, "discovered_draft", lambda *_, **__: pytest.fail("it would be paid for"))
    monkeypatch.setattr(Path, "touch", cannot)
    result = call("schema", "d.csv", "--discover", "--epsilon", "1", "--delta", "1e-6", "--out", "draft.toml")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_a_draft_that_was_paid_for_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("d.csv").write_text("x\n" + "1\n" * 50, encoding="utf-8")

    def full(*_: object, **__: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    result = call("schema", "d.csv", "--discover", "--epsilon", "1", "--delta", "1e-6", "--out", "draft.toml")
    assert result.exit_code == 1
    assert "printed instead" in result.stderr
    assert 'name = "x"' in result.stdout


# --- the command itself -----------------------------------------------------------------------------------------------


def test_shell_completion_is_offered() -> None:
    assert "--show-completion" in call("--help").stdout
