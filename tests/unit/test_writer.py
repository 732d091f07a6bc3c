"""Writing: whole files or nothing, and what is written reads back as it was."""

import csv
import io
import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import InvalidParameter
from accord.tables import Column, Schema, check_output, columns_as_bytes, outputs, read_table


def numbers(*decimals: int | None) -> Schema:
    return Schema(columns=tuple(Column(name=f"x{i}", kind="number", decimals=d) for i, d in enumerate(decimals)))


def labels(*categories: str) -> Schema:
    return Schema(columns=(Column(name="c", kind="category", categories=categories),))


def rows_as_bytes(rows: Any, *, schema: Schema, parquet: bool) -> bytes:
    """Return a file of rows: numbers or texts of labels, None or NaN for a missing cell."""
    columns: list[Any] = []
    for place, column in enumerate(schema.read):
        values = rows[:, place]
        if column.is_number:
            columns.append(np.array([np.nan if value is None else value for value in values], dtype=np.float64))
        else:
            codes = {label: code for code, label in enumerate(column.categories)}
            columns.append(np.array([codes.get(value, -1) for value in values.tolist()], dtype=np.int32))
    return columns_as_bytes(columns, schema=schema, parquet=parquet)


def text_of(rows: Any, schema: Schema) -> str:
    return rows_as_bytes(
        np.array(rows, dtype=object if schema.columns[0].categories else None), schema=schema, parquet=False
    ).decode()


def test_declared_decimals_and_shortest_digits() -> None:
    assert text_of([[1.26, 1.26, 0.1]], numbers(0, 1, None)) == "x0,x1,x2\n1,1.3,0.1\n"
    assert text_of([[2.0, 1e22, 1e300]], numbers(None, None, 0)).splitlines()[1].startswith("2.0,1e+22,1000000")


@pytest.mark.parametrize("value", [-0.0, -0.001, -1e-320])
@pytest.mark.parametrize("decimals", [0, 2, 12])
def test_there_is_no_minus_zero(value: float, decimals: int) -> None:
    cell = text_of([[value]], numbers(decimals)).splitlines()[1]
    assert not (cell.startswith("-") and float(cell) == 0)
    assert text_of([[-0.0]], numbers(None)) == "x0\n0.0\n"
    assert text_of([[-1.5]], numbers(1)) == "x0\n-1.5\n"


def test_missing_cells_stay_empty() -> None:
    assert text_of([[np.nan, 1.0]], numbers(0, 0)) == "x0,x1\n,1\n"
    assert text_of([[None], ["a"]], labels("a")) == "c\n\na\n"


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_read_back_exactly(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    schema = numbers(None)
    rows = np.array(values)[:, None]
    for parquet in (False, True):
        path = tmp_path_factory.mktemp("back") / "rows"
        path.write_bytes(rows_as_bytes(rows, schema=schema, parquet=parquet))
        assert np.array_equal(read_table(path, schema=schema).records, rows)


ODD = ["a,b", 'say "hi"', "two\nlines", "cr\rhere", " spaced ", "=1+1", "-7", "@cmd", "価格", "'", "\t", "NA", "1e5"]


@pytest.mark.parametrize("parquet", [False, True])
def test_texts_read_back_exactly(tmp_path: Path, *, parquet: bool) -> None:
    schema = labels(*ODD)
    rows = np.array([[text] for text in ODD], dtype=object)
    path = tmp_path / "rows"
    path.write_bytes(rows_as_bytes(rows, schema=schema, parquet=parquet))
    assert read_table(path, schema=schema).records.tolist() == rows.tolist()
    if not parquet:
        assert list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))[1:] == rows.tolist()


def test_parquet_types_come_from_the_schema() -> None:
    content = rows_as_bytes(np.array([[1.4, 2.26, 0.1], [np.nan, -0.0, 3.0]]), schema=numbers(0, 1, None), parquet=True)
    table = pq.read_table(io.BytesIO(content))
    assert [str(kind) for kind in table.schema.types] == ["int64", "double", "double"]
    assert table.to_pydict() == {"x0": [1, None], "x1": [2.3, 0.0], "x2": [0.1, 3.0]}
    huge = rows_as_bytes(np.array([[1e300]]), schema=numbers(0), parquet=True)
    assert pq.read_table(io.BytesIO(huge)).to_pydict() == {"x0": [1e300]}


# --- places -----------------------------------------------------------------------------------------------------------


def test_what_may_not_be_written_to(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("x\n1\n")
    (tmp_path / "link.csv").symlink_to(data)
    os.link(data, tmp_path / "hard.csv")
    for name in ("data.csv", "link.csv", "hard.csv", "../" + tmp_path.name + "/data.csv"):
        with pytest.raises(InvalidParameter, match="also read"):
            check_output(tmp_path / name, option="--out", force=True, inputs=[data])
    with pytest.raises(InvalidParameter, match=r"--out .* already exists.*--force"):
        check_output(data, option="--out", force=False, inputs=[])
    with pytest.raises(InvalidParameter, match="folder that does not exist"):
        check_output(tmp_path / "none" / "x.csv", option="--out", force=False, inputs=[])
    with pytest.raises(InvalidParameter, match="something else"):
        check_output(tmp_path, option="--out", force=True, inputs=[])
    assert check_output(data, option="--out", force=True, inputs=[]) == data.resolve()
    assert check_output(tmp_path / "new.csv", option="--out", force=False, inputs=[data]).name == "new.csv"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(*targets: Path, then: type[BaseException] | None = None) -> None:
    with outputs(targets) as files:
        for target in targets:
            files.write(target, b"new")
        if then is not None:
            raise then
        files.commit()


def test_all_or_nothing(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with outputs([one, two]) as files:
        files.write(one, b"1")
        files.write(two, b"2")
        assert not one.exists()
        files.commit()
    assert names_in(tmp_path) == ["one", "two"]
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")


def test_without_commit_nothing_is_left(tmp_path: Path) -> None:
    with outputs([tmp_path / "one"]) as files:
        files.write(tmp_path / "one", b"1")
    assert names_in(tmp_path) == []
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "one", then=KeyboardInterrupt)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_failing_step_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int) -> None:
    calls = []
    replace = os.replace

    def failing(source: Any, target: Any) -> None:
        calls.append(target)
        if len(calls) == fails_at:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "one", tmp_path / "two")
    assert len(calls) == fails_at
    assert names_in(tmp_path) == []


def test_an_older_file_survives_a_failing_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(handle: int) -> NoReturn:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    (tmp_path / "one").write_bytes(b"old")
    with pytest.raises(OSError, match="Input"):
        write(tmp_path / "one")
    assert names_in(tmp_path) == ["one"]
    assert (tmp_path / "one").read_bytes() == b"old"


def test_a_folder_that_cannot_be_written_to_shows_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(path: Path, **_: Any) -> NoReturn:
        raise PermissionError

    monkeypatch.setattr(Path, "touch", failing)
    with pytest.raises(InvalidParameter, match="cannot be written"), outputs([tmp_path / "one"]):
        pytest.fail("the body must not run")
