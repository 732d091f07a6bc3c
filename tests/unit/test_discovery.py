"""Kinds, labels, locations and scales found privately."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from accord.cli.app import app
from accord.core import Records
from accord.errors import InvalidParameter
from accord.ledger import Ledger
from accord.mechanisms import DiscreteLaplace, ThresholdedCounts
from accord.privacy import ApproxDP
from accord.randomness import SharedRandomness
from accord.synthesis import discovery
from accord.synthesis.discovery import Discovered, discover
from accord.tables import parse_schema
from accord.testing import ReplayRandomness

CANARY = "CANARY7301"
ROWS = 8000


def table(seed: int = 1) -> dict[str, pa.Array]:
    generator = np.random.default_rng(seed)
    age = np.clip(generator.normal(40, 15, ROWS), 0, 99).astype(int)
    days = np.datetime64("2020-01-01") + generator.integers(0, 700, ROWS).astype("timedelta64[D]")
    columns: dict[str, list[Any]] = {
        "region": generator.choice(["north", "south", "west"], ROWS).tolist(),
        "age": [str(one) for one in age],
        "height": [f"{one:.1f}" for one in generator.normal(170, 10, ROWS)],
        "seen": [str(day) for day in days],
        "smokes": generator.choice(["true", "false"], ROWS).tolist(),
        "name": [f"person {place}" for place in range(ROWS)],
        "stars": [str(one) for one in generator.integers(1, 6, ROWS)],
    }
    columns["region"][0] = CANARY
    columns["age"][:800] = [None] * 800
    return {name: pa.array(cells, pa.large_string()) for name, cells in columns.items()}


def found_in(columns: dict[str, pa.Array], **options: Any) -> dict[str, Discovered]:
    given_options = {"epsilon": 40, "delta": "1e-5", "shared": SharedRandomness(3), **options}
    release = discover(list(columns.values()), names=list(columns), **given_options)
    assert isinstance(release.value, tuple)
    return {column.name: column for column in release.value}


def test_a_table_of_all_kinds() -> None:
    """At epsilon 40 for seven columns: each noise is a few counts; a wrong kind has a chance below 1e-9."""
    found = found_in(table())
    assert {name: column.kind for name, column in found.items()} == {
        "region": "category",
        "age": "integer",
        "height": "number",
        "seen": "date",
        "smokes": "boolean",
        "name": "text",
        "stars": "category",
    }
    assert sorted(label for label, _ in found["region"].levels) == ["north", "south", "west"]
    assert sorted(label for label, _ in found["stars"].levels) == ["1", "2", "3", "4", "5"]
    assert found["name"].levels == ()
    assert found["age"].missing == pytest.approx(0.1, abs=0.01)
    for name, centre, scale in (("age", 40, 15), ("height", 170, 10), ("seen", 18262 + 350, 200)):
        column = found[name]
        assert column.centre is not None
        assert column.scale is not None
        assert abs(column.centre - centre) < scale
        assert 0.3 < column.scale / scale < 3
    assert CANARY not in repr(found)


def test_a_constant_column_and_an_empty_one() -> None:
    columns = {"five": pa.array(["5.5"] * ROWS, pa.large_string()), "none": pa.nulls(ROWS, pa.large_string())}
    found = found_in(columns)
    assert found["five"].levels == (("5.5", found["five"].levels[0][1]),)
    assert found["none"].kind == "text"
    assert found["none"].missing == pytest.approx(1, abs=0.01)


def test_few_records_spend_nothing_on_locations() -> None:
    columns = {name: cells.slice(0, 30) for name, cells in table().items()}
    found = found_in(columns, epsilon=1)
    assert all(column.centre is None for column in found.values())


@pytest.mark.parametrize("place", range(7))
def test_C2_the_parts_of_every_path_sum_to_the_promise(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count what is really spent, by the mechanisms' own words."""
    spent: list[tuple[Fraction, Fraction]] = []
    noise, counts = DiscreteLaplace.release, ThresholdedCounts.release
    locate = discovery.__dict__["locate"]

    def note_noise(self: Any, *args: Any, **kwargs: Any) -> Any:
        spent.append((Fraction(2) / self.scale, Fraction(0)))
        return noise(self, *args, **kwargs)

    def note_counts(self: Any, *args: Any, **kwargs: Any) -> Any:
        spent.append((self.epsilon, self.delta))
        return counts(self, *args, **kwargs)

    def note_locate(records: Any, plan: Any, **kwargs: Any) -> Any:
        spent.append((plan.budget.epsilon, plan.budget.delta))
        return locate(records, plan, **kwargs)

    monkeypatch.setattr(DiscreteLaplace, "release", note_noise)
    monkeypatch.setattr(ThresholdedCounts, "release", note_counts)
    monkeypatch.setattr(discovery, "locate", note_locate)
    name, cells = list(table().items())[place]
    release = discover([cells], names=[name], epsilon=5, delta="1e-5")
    assert release.guarantee == ApproxDP(5, "1e-5")
    assert 0 < sum(epsilon for epsilon, _ in spent) <= 5
    assert sum(delta for _, delta in spent) <= Fraction(1, 10**5)
    assert len(spent) == (1 if name == "smokes" else 2 if name in {"region", "name", "seen", "stars"} else 3)


@given(
    counts=st.lists(st.integers(1, 5), min_size=2, max_size=8),
    changed=st.integers(0, 7),
    size=st.integers(1, 9),
    key=st.integers(0, 1000),
)
def test_replacing_a_unit_moves_no_other_units_record(counts: list[int], changed: int, size: int, key: int) -> None:
    changed %= len(counts)

    def chosen(sizes: list[int]) -> list[tuple[int, int]]:
        units = np.repeat(np.arange(len(sizes)), sizes)
        place = np.concatenate([np.arange(one) for one in sizes])
        rows = discovery._one_a_unit(Records.of(units, units=units), randomness=ReplayRandomness(key))
        return [(int(units[row]), int(place[row])) for row in rows]

    other = [*counts[:changed], size, *counts[changed + 1 :]]
    before, after = chosen(counts), chosen(other)
    assert [unit for unit, _ in before] == list(range(len(counts)))
    assert [pair for pair in before if pair[0] != changed] == [pair for pair in after if pair[0] != changed]


def test_units_and_a_ledger(tmp_path: Path) -> None:
    columns = {"region": table()["region"]}
    with Ledger.create(tmp_path / "l.db", epsilon=50, delta="1e-4", unit="person") as ledger:
        release = discover(
            list(columns.values()),
            names=["region"],
            epsilon=40,
            delta="1e-5",
            units=np.arange(ROWS) // 2,
            unit="person",
            ledger=ledger,
        )
        assert ledger.statement().spent.epsilon == 40
    assert release.guarantee.unit == "person"


def test_refusals() -> None:
    cells = table()["region"]
    with pytest.raises(InvalidParameter, match="cells"):
        discover([], names=[], epsilon=1, delta="1e-6")
    with pytest.raises(InvalidParameter, match="cells"):
        discover([cells], names=["a", "b"], epsilon=1, delta="1e-6")
    with pytest.raises(InvalidParameter, match="units"):
        discover([cells], names=["a"], epsilon=1, delta="1e-6", unit="person")
    with pytest.raises(InvalidParameter, match="epsilon"):
        discover([cells], names=["a"], epsilon=0, delta="1e-6")


# --- the command ------------------------------------------------------------------------------------------------------


def written(folder: Path) -> Path:
    place = folder / "t.csv"
    columns = {name: cells.to_pylist() for name, cells in table().items()}
    rows = (",".join(cell or "" for cell in row) for row in zip(*columns.values(), strict=True))
    place.write_text(",".join(columns) + "\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return place


def test_the_draft_can_be_used_at_once(tmp_path: Path) -> None:
    words = ["schema", str(written(tmp_path)), "--discover", "--epsilon", "40", "--delta", "1e-5"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.stderr
    assert CANARY not in found.output
    schema = parse_schema(found.stdout)
    kinds = {column.name: column.kind for column in schema.columns}
    assert kinds == {
        "region": "category",
        "age": "integer",
        "height": "number",
        "seen": "date",
        "smokes": "category",
        "name": "drop",
        "stars": "category",
    }
    assert schema.columns[6].categories == ("1", "2", "3", "4", "5")
    assert all(column.unreadable == "missing" for column in schema.read)
    assert "epsilon 40 and delta 1e-5 are spent" in found.stdout


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--discover"], "--epsilon and --delta"),
        (["--epsilon", "1"], "belong to --discover"),
        (["--discover", "--epsilon", "0", "--delta", "1e-6"], "--epsilon"),
        (["--discover", "--epsilon", "1", "--delta", "2"], "--delta"),
        (["--discover", "--epsilon", "1", "--delta", "1e-6", "--unit", "who"], "--unit"),
        (["--discover", "--epsilon", "1", "--delta", "1e-6", "--ledger", "none.db"], "ledger"),
    ],
)
def test_refused_before_anything_is_spent(tmp_path: Path, more: list[str], words: str) -> None:
    found = CliRunner().invoke(app, ["schema", str(written(tmp_path)), *more])
    assert found.exit_code == 2
    assert words in found.stderr
    assert found.stdout == ""


def test_a_unit_column_is_not_learnt_but_named(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    rows = "".join(f"p{number // 3},{number % 2}\n" for number in range(6000))
    place.write_text("who,x\n" + rows, encoding="utf-8")
    words = ["schema", str(place), "--discover", "--epsilon", "20", "--delta", "1e-5", "--unit", "who"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.stderr
    schema = parse_schema(found.stdout)
    assert schema.unit == "who"
    assert [column.name for column in schema.columns] == ["x"]
    place.write_text("who,x\n,1\n", encoding="utf-8")
    assert "missing cells" in CliRunner().invoke(app, words).stderr
