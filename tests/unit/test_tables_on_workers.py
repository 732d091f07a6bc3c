"""Declared tables on a cluster: equal releases with frozen noise, however records are cut and whatever workers do."""

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from accord import synthesise_table
from accord.cli.app import app
from accord.errors import InvalidParameter, SchemaMismatch
from accord.ledger import Ledger
from accord.marginals.engine import WHOLE, Codes
from accord.synthesis.coded import CodedTable, coded_batches, coded_of
from accord.synthesis.learner import TableLearner
from accord.synthesis.on_workers import coded_on_workers
from accord.tables import Schema, parse_schema, read_batches, read_table
from accord.tables.frames import read_data
from accord.testing import ReplayRandomness
from accord.workers import DaskWorkers

pytest.importorskip("distributed", reason="dask is not installed (the extra 'dask')")
pytestmark = pytest.mark.filterwarnings("ignore")  # of dask and tornado

SCHEMA = """
version = 2
[[columns]]
name = "age"
kind = "integer"
bounds = [0, 40]
[[columns]]
name = "town"
kind = "category"
categories = ["a", "b", "c"]
[[columns]]
name = "member"
kind = "boolean"
[[columns]]
name = "income"
kind = "number"
edges = [0, 10, 100, 1000]
"""
WITHOUT_EDGES = SCHEMA.replace("edges = [0, 10, 100, 1000]", "")
COUNT = 3000


@pytest.fixture(scope="module")
def workers() -> Iterator[DaskWorkers]:
    with DaskWorkers.local(2) as found:
        yield found


def schema_of(text: str = SCHEMA, *, units: bool) -> Schema:
    return parse_schema(text.replace("version = 2", 'version = 2\nunit = "who"') if units else text)


def columns() -> dict[str, Any]:
    generator = np.random.default_rng(5)
    income = generator.lognormal(3, 1, COUNT)
    return {
        "age": generator.integers(-3, 50, COUNT),
        "town": [("a", "b", "c", None)[one] for one in generator.integers(0, 4, COUNT)],
        "member": generator.random(COUNT) < 0.3,
        "income": pa.array(income, mask=income > 60),
        "who": [f"p{one}" for one in generator.zipf(1.5, COUNT) % 700],
    }


def folder_of(place: Path, parts: int) -> Path:
    table, folder = pa.table(columns()), place / f"in-{parts}"
    folder.mkdir()
    ends = np.unique([0, *np.random.default_rng(parts).integers(0, COUNT, parts - 1), COUNT])
    for number, (low, high) in enumerate(pairwise(ends.tolist())):
        pq.write_table(table.slice(low, high - low), folder / f"part-{number:03}.parquet")
    if parts > 1:
        pq.write_table(table.slice(0, 0), folder / "part-999.parquet")
    return folder


def released(table: CodedTable, schema: Schema) -> list[Any]:
    learner = TableLearner(schema, epsilon=2, delta="1e-6")
    model: Any = learner.release(table, randomness=ReplayRandomness("frozen")).value
    return [np.asarray(model.shares([one, other])).tolist() for one, other in (("age", "town"), ("member", "income"))]


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("declared", [SCHEMA, WITHOUT_EDGES], ids=["edges", "no edges"])
def test_equal_noise_gives_equal_releases_whatever_the_partitions(
    tmp_path: Path, workers: DaskWorkers, declared: str, *, units: bool
) -> None:
    frames = pytest.importorskip("dask.dataframe")
    schema = schema_of(declared, units=units)
    here = coded_of(read_table(folder_of(tmp_path, 1), schema=schema))
    expected = released(here, schema)
    told: list[tuple[int, int]] = []
    for parts in (3, 17):
        told.clear()
        folder = folder_of(tmp_path, parts)
        streamed = coded_batches(read_batches(folder, schema=schema), schema=schema, what="it", memory=0)
        assert not any(isinstance(part, Codes) for part in streamed.parts)
        assert released(streamed, schema) == expected
        with coded_on_workers(folder, schema=schema, workers=workers, told=lambda *one: told.append(one)) as far:
            files = len(list(folder.iterdir()))
            assert told == [(done, files) for done in range(1, files + 1)]
            assert far.units == here.units
            assert released(far, schema) == expected
    frame = frames.from_pandas(pa.table(columns()).to_pandas(), npartitions=17, sort=False)
    with coded_on_workers(frame, schema=schema, workers=workers) as far:
        assert released(far, schema) == expected


@pytest.mark.parametrize("parts", [1, 3, 17])
def test_a_frame_of_dask_counts_as_the_table(workers: DaskWorkers, parts: int) -> None:
    frames = pytest.importorskip("dask.dataframe")
    schema = schema_of(units=True)
    pandas = pa.table(columns()).to_pandas()
    frame = frames.from_pandas(pandas, npartitions=parts, sort=False)
    here = coded_of(read_data(pandas, schema=schema))
    with coded_on_workers(frame, schema=schema, workers=workers) as far:
        assert far.units == here.units
        tables = [(0, 1), (2, 3), (0, 1, 2, 3)]
        counts = far.engine().count(tables)
        for one, other in zip(counts, here.engine().count(tables), strict=True):
            assert np.array_equal(one, other)
            assert one.sum() == here.units * WHOLE


def test_the_front_door_takes_frames_of_dask_and_charges_once(tmp_path: Path, workers: DaskWorkers) -> None:
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(pa.table(columns()).to_pandas(), npartitions=3, sort=False)
    with Ledger.create(tmp_path / "l.db", epsilon=3, delta="1e-5", who="a test") as ledger:
        found = synthesise_table(
            frame, schema_of(units=False), epsilon=2, delta="1e-6", workers=workers, ledger=ledger, seed=1
        )
        assert ledger.statement().charges == 1
    rows = found.sample(100, seed=1)
    assert list(rows.columns) == ["age", "town", "member", "income"]
    with pytest.raises(InvalidParameter, match="needs workers"):
        synthesise_table(frame, schema_of(units=False), epsilon=2, delta="1e-6")


def test_a_worker_that_is_killed_is_replaced_and_the_release_stays(tmp_path: Path) -> None:
    schema = schema_of(units=True)
    folder = folder_of(tmp_path, 3)
    expected = released(coded_of(read_table(folder, schema=schema)), schema)
    with DaskWorkers.local(2) as own, coded_on_workers(folder, schema=schema, workers=own) as far:
        with own.client() as client:
            pids = list(client.run(os.getpid).values())
        os.kill(pids[0], 9)
        assert released(far, schema) == expected


def test_what_a_worker_finds_wrong_comes_as_the_error_of_a_file(tmp_path: Path, workers: DaskWorkers) -> None:
    folder = folder_of(tmp_path, 3)
    pq.write_table(pa.table({**columns(), "town": ["CANARY7301"] * COUNT}), folder / "part-500.parquet")
    with (
        pytest.raises(SchemaMismatch, match="none of its 3 declared categories") as caught,
        coded_on_workers(folder, schema=schema_of(units=False), workers=workers),
    ):
        pass
    assert "CANARY" not in str(caught.value)


def test_the_command_line_starts_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path, 3)
    Path("s.toml").write_text(SCHEMA, encoding="utf-8")
    words = ["synth", "in-3/*.parquet", "--schema", "s.toml", "--epsilon", "2", "--delta", "1e-6", "--rows", "50"]
    result = CliRunner().invoke(app, [*words, "--out", "o.csv", "--workers", "2"])
    assert result.exit_code == 0, result.stderr
    assert len(Path("o.csv").read_text(encoding="utf-8").splitlines()) == 51
    both = CliRunner().invoke(app, [*words, "--out", "p.csv", "--workers", "2", "--scheduler", "tcp://x:1"])
    assert both.exit_code == 2
