"""Tables in several files: which files, in which order, and that they read as one."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accord.errors import DataError, SchemaMismatch
from accord.tables import Table, parse_schema, read_batches, read_header, read_table, read_texts
from accord.tables.files import files_of

SCHEMA = """
version = 2
unit = "who"
[[columns]]
name = "x"
kind = "number"
[[columns]]
name = "c"
kind = "category"
categories = ["a", "b"]
"""
X = [1.5, 2.0, None, 4.0, 5.0, 6.0, 7.0]
C = ["a", "b", "a", None, "b", "b", "a"]
WHO = ["p", "q", "p", "r", "q", "s", "p"]


def whole(folder: Path) -> Table:
    path = folder / "whole.parquet"
    pq.write_table(pa.table({"x": X, "c": C, "who": WHO}), path)
    return read_table(path, schema=parse_schema(SCHEMA))


def same(one: Table, other: Table) -> bool:
    assert one.units is not None
    assert other.units is not None
    columns = zip(one.columns, other.columns, strict=True)
    return all(np.array_equal(*pair, equal_nan=True) for pair in columns) and np.array_equal(one.units, other.units)


def parts(folder: Path, cuts: list[int], *, ending: str = ".parquet") -> Path:
    """Write the records cut in files, whose columns stand in changing order."""
    folder.mkdir()
    for place, (low, high) in enumerate(zip([0, *cuts], [*cuts, len(X)], strict=True)):
        columns = {"x": X[low:high], "c": C[low:high], "who": WHO[low:high]}
        if place % 2:
            columns = dict(reversed(columns.items()))
        path = folder / f"part-{place:02}{ending}"
        if ending == ".parquet":
            types = {"x": pa.float64(), "c": pa.string(), "who": pa.string()}
            pq.write_table(pa.table(columns, schema=pa.schema([(name, types[name]) for name in columns])), path)
            continue
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join("" if cell is None else str(cell) for cell in row) for row in rows)]
        text = "".join(line + "\n" for line in lines)
        path.write_bytes(gzip.compress(text.encode()) if ending == ".csv.gz" else text.encode())
    return folder


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
@pytest.mark.parametrize("cuts", [[], [3], [0, 2, 2, 6], list(range(1, 7))])
def test_a_folder_of_files_reads_as_one_file_of_them(tmp_path: Path, ending: str, cuts: list[int]) -> None:
    folder, schema = parts(tmp_path / "cut", cuts, ending=ending), parse_schema(SCHEMA)
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").write_bytes(b"PAR1")
    one = whole(tmp_path)
    assert same(read_table(folder, schema=schema), one)
    assert same(read_table(folder / f"part-*{ending}", schema=schema), one)
    assert sum(len(batch) for batch in read_batches(folder, schema=schema)) == len(X)


def test_files_stand_in_the_order_of_their_names_part_by_part(tmp_path: Path) -> None:
    for name in ("b/1.csv", "a/2.csv", "a/10.csv", "a.csv", "c.txt", "_a/1.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x\n1\n")
    assert [str(path.relative_to(tmp_path)) for path in files_of(tmp_path)] == [
        "a/10.csv",
        "a/2.csv",
        "a.csv",
        "b/1.csv",
    ]
    assert files_of(tmp_path / "**" / "2.csv") == (tmp_path / "a" / "2.csv",)


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "x[1].csv"
    path.write_text("x\n1\n")
    (tmp_path / "x1.csv").write_text("x\n2\n")
    assert files_of(path) == (path,)


def test_folders_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no files"):
        files_of(tmp_path)
    with pytest.raises(DataError, match="names no file"):
        files_of(tmp_path / "*.parquet")
    (tmp_path / "a.csv").write_text("x\n1\n")
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"\.parquet and \.csv"):
        files_of(tmp_path)


def test_every_header_is_looked_at_before_the_first_record(tmp_path: Path) -> None:
    folder, schema = parts(tmp_path / "cut", [3]), parse_schema(SCHEMA)
    pq.write_table(pa.table({"x": [1.0], "who": ["p"]}), folder / "part-99.parquet")
    with pytest.raises(SchemaMismatch, match=r'"part-99\.parquet" has no column "c"'):
        read_batches(folder, schema=schema)


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("x,c,who\n")
    with pytest.raises(DataError, match="the table in 2 files holds no records"):
        read_table(folder, schema=parse_schema(SCHEMA))


def test_texts_of_several_files_stand_under_the_names_of_the_first(tmp_path: Path) -> None:
    folder = parts(tmp_path / "cut", [3])
    assert read_header(folder) == ("x", "c", "who")
    header, cells = read_texts(folder)
    assert header == ("x", "c", "who")
    assert cells[1].to_pylist() == C
    assert cells[2].to_pylist() == WHO


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
def test_reading_tells_how_far_it_is(tmp_path: Path, ending: str) -> None:
    folder, told = parts(tmp_path / "cut", [3, 5], ending=ending), []
    read_table(folder, schema=parse_schema(SCHEMA), told=lambda done, total: told.append((done, total)))
    total = sum(path.stat().st_size for path in folder.iterdir())
    assert told == sorted(told)
    assert told[-1] == (total, total)
