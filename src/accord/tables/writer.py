"""Write released rows and models: whole files or nothing."""

import io
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter
from accord.tables.column import Column
from accord.tables.csv_file import CsvFormat
from accord.tables.dates import DAY, stamps_of_dates, texts_of_dates
from accord.tables.names import shown
from accord.tables.schema import Schema

__all__ = ["Outputs", "check_csv", "check_output", "columns_as_bytes", "columns_as_table", "outputs"]

_INT64 = 2.0**63


def check_output(path: Path, *, option: str, force: bool, inputs: Sequence[Path]) -> Path:
    """Return the place to write to, with links followed; nothing is written yet.

    Parameters
    ----------
    path
        The file to be written.
    option
        Its name in a message.
    force
        Whether a file that is already there may be replaced.
    inputs
        Files that must not be replaced whatever ``force`` says.

    Raises
    ------
    InvalidParameter
        If the folder is not there, or the path is a folder, a special file, one of ``inputs``, or already there.

    """
    target = Path(os.path.realpath(path))
    if any(target == Path(os.path.realpath(other)) or _same(target, other) for other in inputs):
        raise InvalidParameter(
            f"{option} must not be a file that is also read or written otherwise: {shown(path.name)}."
        )
    if not target.parent.is_dir():
        raise InvalidParameter(f"{option} names a folder that does not exist: make it first.")
    if target.exists() and not target.is_file():
        raise InvalidParameter(f"{option} must name a file, and {shown(path.name)} is something else.")
    if target.exists() and not force:
        raise InvalidParameter(f"{option} {shown(path.name)} already exists: choose another name, or add --force.")
    return target


@final
@dataclass(frozen=True, slots=True)
class Outputs:
    """Files under temporary names, each in the folder where it will stay."""

    temporary: Mapping[Path, Path]

    def write(self, target: Path, content: bytes, *, secret: bool = False) -> None:
        """Fill the temporary file of ``target``, and wait until the disk has it; a secret one is its owner's alone."""
        if secret:
            self.temporary[target].chmod(0o600)
        with self.temporary[target].open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())

    def commit(self) -> None:
        """Put all files in place; if one step fails, take away those that were put there."""
        with ExitStack() as undo:
            for target, temporary in self.temporary.items():
                temporary.replace(target)
                undo.callback(_remove, target)
            undo.pop_all()


@contextmanager
def outputs(targets: Sequence[Path]) -> Iterator[Outputs]:
    """Give temporary files for all targets; what is not committed is gone at the end.

    They are made at once, so that a folder that cannot be written to shows before anything is spent.

    Raises
    ------
    InvalidParameter
        If a temporary file cannot be made.

    """
    files = {target: target.with_name(f".accord-{secrets.token_hex(8)}.part") for target in targets}
    with ExitStack() as cleanup:
        for target, temporary in files.items():
            cleanup.callback(_remove, temporary)
            with suppress(OSError):
                temporary.touch(exist_ok=False)
                continue
            raise InvalidParameter(f"{shown(target.name)} cannot be written: its folder does not allow it.")
        yield Outputs(files)


def write_file(target: Path, content: bytes) -> None:
    """Put one file in place, all of it or nothing; ``target`` is from `check_output`.

    Raises
    ------
    InvalidParameter
        If its folder cannot be written to.

    """
    with outputs([target]) as files:
        files.write(target, content)
        files.commit()


def check_csv(schema: Schema) -> None:
    """Refuse a schema whose rows could not be written as CSV, whatever they are: nothing else decides it.

    Raises
    ------
    InvalidParameter
        If a name, a label or another text needs quotation marks, and the schema has none.

    """
    if schema.csv.quote:
        return
    for column in schema.columns:
        if column.is_written:
            for text in (column.name, *_texts_that_may_be(column, form=schema.csv)):
                _quoted(text, form=schema.csv)


def _texts_that_may_be(column: Column, *, form: CsvFormat) -> list[str]:
    """Return texts that need quotation marks if any cell of the column may."""
    if column.kind == "id":
        return [f"{column.prefix}{column.start}"]
    if column.kind == "constant":
        return [str(column.value)]
    if column.is_label:
        return list(column.categories)
    if column.format is not None:
        days = np.arange(0.0, 366.0)  # every month, every day of a week
        times = days if column.kind == "date" else days * DAY + 3 * days * 3600
        return [str(text) for text in texts_of_dates(times, pattern=column.format, kind=column.kind).to_pylist()]
    return [str(_number(-1.5, decimals=column.decimals, mark=form.decimal))]


def columns_as_bytes(columns: Sequence[NDArray[Any]], *, schema: Schema, parquet: bool) -> bytes:
    """Return a file with one line for each row: CSV in UTF-8 with a header, or Parquet.

    Numbers have the declared decimals, or else as many digits as give the same float again; there is no minus zero.
    Dates are written in their format. A missing cell stays empty. Texts are written as declared, whatever a spreadsheet
    makes of them. Constants and made-up ids are filled in; dropped columns are left out.

    Parameters
    ----------
    columns
        One array of shape (n,) for each of ``schema.read``: float64 with NaN, or positions of labels with -1, for a
        missing cell.
    schema
        Names, kinds, decimals, formats, and how CSV is written.
    parquet
        Whether to write Parquet: texts, booleans, dates, timestamps, float64, and int64 for numbers without decimals.

    """
    if parquet:
        sink = io.BytesIO()
        pq.write_table(columns_as_table(columns, schema=schema), sink)
        return sink.getvalue()
    form, count = schema.csv, len(columns[0])
    written = _with_values(columns, schema=schema)
    cells = [_written(column, values, count=count, form=form) for column, values in written]
    header = form.separator.join(_quoted(column.name, form=form) for column, _ in written) + "\n"
    lines = pc.binary_join_element_wise(*cells, form.separator)
    body = "\n".join(lines.to_pylist())
    return (header + body + "\n").encode("utf-8") if count else header.encode("utf-8")


def columns_as_table(columns: Sequence[NDArray[Any]], *, schema: Schema) -> pa.Table:
    """Return what `columns_as_bytes` writes as Parquet, as a table of pyarrow."""
    written, count = _with_values(columns, schema=schema), len(columns[0])
    arrays = [_stored(column, values, count=count) for column, values in written]
    return pa.Table.from_arrays(arrays, names=[column.name for column, _ in written])


def _with_values(columns: Sequence[NDArray[Any]], *, schema: Schema) -> list[tuple[Column, NDArray[Any] | None]]:
    """Return the columns that are written, each with its cells; None where they are made up."""
    given = iter(columns)
    return [(column, next(given) if column.is_read else None) for column in schema.columns if column.is_written]


def _written(column: Column, values: NDArray[Any] | None, *, count: int, form: CsvFormat) -> pa.Array:
    """Return the cells of a column as texts, ready to be joined."""
    texts = _texts(column, values, count=count, form=form)
    known = pc.unique(texts)
    quoted = pa.array([None if text is None else _quoted(text, form=form) for text in known.to_pylist()], pa.string())
    return pc.fill_null(pc.take(quoted, pc.index_in(texts, value_set=known, skip_nulls=False)), "")


def _texts(column: Column, values: NDArray[Any] | None, *, count: int, form: CsvFormat) -> pa.Array:
    """Return the cells of a column as texts, null for missing."""
    if values is None:
        if column.kind == "id":
            numbers = range(column.start, column.start + count)
            return pa.array([f"{column.prefix}{number}" for number in numbers], pa.string())
        return pa.array([column.value], pa.string()).take(pa.array(np.zeros(count, dtype=np.int64)))
    if column.is_label:
        labels = pa.array([*column.categories, None], pa.string())
        return labels.take(pa.array(np.where(values < 0, len(column.categories), values).astype(np.int64)))
    if column.format is not None:
        return texts_of_dates(values, pattern=column.format, kind=column.kind)
    distinct, places = np.unique(values, return_inverse=True)
    texts = [_number(float(value), decimals=column.decimals, mark=form.decimal) for value in distinct]
    return pa.array(texts, pa.string()).take(pa.array(places.ravel()))


def _number(value: float, *, decimals: int | None, mark: str = ".") -> str | None:
    if np.isnan(value):
        return None
    text = repr(value) if decimals is None else f"{value:.{decimals}f}"
    text = text.removeprefix("-") if float(text) == 0 else text
    return text if mark == "." else text.replace(".", mark)


def _quoted(cell: str, *, form: CsvFormat) -> str:
    """Return a CSV cell; the csv module leaves a carriage return bare if lines end in a newline alone."""
    special = {form.separator, '"', "\r", "\n", form.quote} - {""}
    if cell and cell == cell.strip() and not any(mark in cell for mark in special):
        return cell
    if not form.quote:
        raise InvalidParameter(
            'a text of the schema needs quotation marks in CSV, and the schema says quote = "": write Parquet instead.'
        )
    return form.quote + cell.replace(form.quote, form.quote * 2) + form.quote


def _stored(column: Column, values: NDArray[Any] | None, *, count: int) -> pa.Array:
    """Return a column as Parquet stores it."""
    if column.format is not None and values is not None:
        stamps = stamps_of_dates(values, kind=column.kind)
        return pc.cast(stamps, pa.date32()) if column.kind == "date" else stamps
    if column.kind == "boolean" and values is not None:
        return pa.array(values > 0, pa.bool_(), mask=values < 0)
    texts = _texts(column, values, count=count, form=CsvFormat())
    if not column.is_number or values is None:
        return texts
    exact = np.array([np.nan if cell is None else float(cell) for cell in texts.to_pylist()], dtype=np.float64)
    missing = np.isnan(exact)
    if column.decimals == 0 and (np.abs(exact[~missing]) < _INT64).all():
        return pa.array(np.where(missing, 0, exact).astype(np.int64), mask=missing)
    return pa.array(exact, pa.float64(), mask=missing)


def _same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return one.samefile(other)
    return False


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
