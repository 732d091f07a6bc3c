"""Read the declared columns of CSV and Parquet files, row by row as the files have them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from accord.core.errors import DataError, SchemaMismatch
from accord.tables.cells import (
    as_stored,
    as_text,
    labels_from_text,
    labels_from_typed,
    numbers_from_text,
    numbers_from_typed,
    unit_names,
    units_by_name,
)
from accord.tables.column import Column, refuse_data_as_labels
from accord.tables.csv_file import CsvFormat, Format, csv_batches, csv_header, data_format
from accord.tables.files import files_of
from accord.tables.names import listed, normal_form, shown
from accord.tables.schema import Schema

__all__ = [
    "Batch",
    "Convert",
    "Table",
    "Told",
    "assembled",
    "converted",
    "from_text",
    "from_typed",
    "positions",
    "read_batches",
    "read_header",
    "read_table",
    "read_texts",
    "units_in",
    "what_is_read",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The columns of a file that are read, one entry for each of its records, in the file's order.

    Formal guarantees
    -----------------
    - Alignment: entry i depends on record i and on the schema alone, and n is the number of records whatever they hold;
      so replacing one record of the file replaces one row.
    - Not promised: that reading succeeds for both of two neighbouring files. With ``unreadable = "refuse"`` a refusal
      depends on the records, and is meant for the eyes of their curator.

    Parameters
    ----------
    columns
        One array of shape (n,) for each of ``schema.read``: float64 with NaN for a missing cell, or int32 positions in
        ``categories`` with -1 for a missing cell.
    units
        For each record the number of its unit, counted in order of first appearance, shape (n,); None without a unit.
    schema
        What was declared.

    """

    columns: tuple[NDArray[Any], ...]
    units: NDArray[np.int64] | None
    schema: Schema

    def __len__(self) -> int:
        """Return n, the number of records."""
        return len(self.columns[0])

    @property
    def records(self) -> NDArray[Any]:
        """The records as one array, shape (n, d), made anew at each call.

        float64 with NaN for a missing cell if all columns are numbers; else objects, with a label's text, a float, or
        None for a missing cell.
        """
        declared = self.schema.read
        if all(column.is_number for column in declared):
            return np.column_stack(self.columns)
        records = np.empty((len(self), len(declared)), dtype=object)
        for place, (column, values) in enumerate(zip(declared, self.columns, strict=True)):
            if column.is_label:
                records[:, place] = np.array([*column.categories, None], dtype=object)[values]
            else:
                records[:, place] = values
                records[np.isnan(values), place] = None
        return records


Told = Callable[[int, int], None]
"""Called with how much has been read and how much there is: bytes of the files."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Some records in a row, read: the columns as in `Table`, and the names of their units.

    Parameters
    ----------
    columns
        As `Table.columns`.
    units
        The name of each record's unit, an array of pyarrow with a dictionary of texts; None without a unit.

    """

    columns: tuple[NDArray[Any], ...]
    units: pa.Array | None

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.columns[0])


_RECORDS = 1 << 16
_FAULTS = (pa.ArrowException, OSError, ValueError, RuntimeError)


def _parquet_header(path: Path) -> tuple[str, ...]:
    """Return the names of the columns.

    Raises
    ------
    DataError
        If the file is damaged.

    """
    try:
        with path.open("rb") as handle, pq.ParquetFile(handle) as file:
            return tuple(file.schema_arrow.names)
    except _FAULTS:
        raise _damaged(path) from None


def _parquet_batches(
    path: Path, *, wanted: Sequence[str], told: Callable[[int], None] | None
) -> Iterator[list[pa.Array]]:
    """Yield the wanted columns as they are stored, a batch of records at a time.

    Raises
    ------
    DataError
        If the file is damaged.

    """
    try:
        with path.open("rb") as handle, pq.ParquetFile(handle) as file:
            size, count, done = path.stat().st_size, max(1, file.metadata.num_rows), 0
            for batch in file.iter_batches(batch_size=_RECORDS, columns=list(wanted)):
                # pyarrow also reads columns whose name only begins like a wanted one
                yield [batch.column(batch.schema.names.index(name)) for name in wanted]
                done += batch.num_rows
                if told is not None:
                    told(size * done // count)
    except _FAULTS:
        raise _damaged(path) from None


def _damaged(path: Path) -> DataError:
    return DataError(f"the data file {shown(path.name)} is a damaged or incomplete Parquet file.")


_MOST_NAMES = 12
_PLAIN = CsvFormat()

Convert = Callable[..., NDArray[Any]]


def read_header(path: Path, *, csv: CsvFormat = _PLAIN) -> tuple[str, ...]:
    """Return the names of the columns of a table, those of its first file, without looking at a row.

    Parameters
    ----------
    path
        As in `read_table`.
    csv
        How CSV is written.

    Raises
    ------
    DataError
        If a file is missing, empty, damaged, or has no header.

    """
    first = files_of(path)[0]
    return _header(first, data_format(first, encoding=csv.encoding), csv=csv)


def read_table(path: Path, *, schema: Schema, told: Told | None = None) -> Table:
    """Read the declared columns, and the unit column if the schema names one.

    Formal guarantees
    -----------------
    - Alignment: as `Table`; no type is guessed, no row is dropped, and no other column is read.
    - Order: that of the files' names, and in a file that of the file.
    - Silence: the text of an error holds names of columns and files, counts and positions, never a cell.
    - Not promised: that a refusal does not depend on the records; it does with ``unreadable = "refuse"``.

    Parameters
    ----------
    path
        A CSV file (UTF-8, commas, a header; gzip or not) or a Parquet file, told apart by its first bytes; or several
        of them that are one table, in a folder or named by a pattern: see `accord.tables.files.files_of`.
    schema
        What to read, and how.
    told
        Called as the reading goes on.

    Raises
    ------
    DataError
        If a file is missing, empty, damaged, or there are no records.
    SchemaMismatch
        If a declared column is not there, its cells are not as declared, or a file is also a list of labels.

    """
    return assembled(read_batches(path, schema=schema, told=told), schema=schema, what=what_is_read(path))


def units_in(table: Table) -> int:
    """Return the number of units of privacy, public."""
    return len(table) if table.units is None else int(table.units.max()) + 1


def what_is_read(path: Path) -> str:
    """Return what a refusal calls the data in a file, a folder or the files that a pattern names."""
    return _what(files_of(path))


def assembled(batches: Iterable[Batch], *, schema: Schema, what: str) -> Table:
    """Return the table that is in these batches.

    Parameters
    ----------
    batches
        In their order.
    schema
        What was declared.
    what
        What a refusal calls the data.

    Raises
    ------
    DataError
        If there are no records.
    SchemaMismatch
        If cells are not as declared.

    """
    columns: list[list[NDArray[Any]]] = [[] for _ in schema.read]
    units: list[pa.Array] = []
    for batch in batches:
        for part, values in zip(columns, batch.columns, strict=True):
            part.append(values)
        if batch.units is not None:
            units.append(batch.units)
    if sum(len(part) for part in columns[0]) == 0:
        raise DataError(f"{what} holds no records, only a header.")
    whole: list[NDArray[Any]] = []
    while columns:  # the parts of a column go as soon as it is put together
        whole.append(np.concatenate(columns.pop(0)))
    return Table(columns=tuple(whole), units=units_by_name(units) if schema.unit is not None else None, schema=schema)


def converted(batches: Iterable[list[pa.Array]], convert: Convert, *, schema: Schema) -> Iterator[Batch]:
    """Yield batches as they are read from cells by column: those that are read, then that of units if there is one.

    Parameters
    ----------
    batches
        Cells by column.
    convert
        What turns the cells of a column that is read into numbers.
    schema
        What was declared.

    Raises
    ------
    SchemaMismatch
        If cells are not as declared.

    """
    for cells in batches:
        columns = tuple(convert(one, column=column) for column, one in zip(schema.read, cells, strict=False))
        units = None if schema.unit is None else unit_names(cells[len(schema.read)], name=schema.unit)
        yield Batch(columns=columns, units=units)


def read_batches(path: Path, *, schema: Schema, told: Told | None = None) -> Iterator[Batch]:
    """Yield the declared columns a batch of records at a time, for tables that do not fit into memory.

    The guarantees are those of `read_table`. A batch holds some ten thousand records; what can be refused by the
    headers of the files is refused before the first.

    Raises
    ------
    DataError, SchemaMismatch
        As `read_table`, when the batch that shows it is reached; but for a table without records.

    """
    files = files_of(path)
    opened = [_opened(file, schema=schema) for file in files]
    sizes = [file.stat().st_size for file in files]
    return _one_after_the_other(opened, sizes, schema=schema, told=told)


def _one_after_the_other(
    opened: "Sequence[_Opened]", sizes: Sequence[int], *, schema: Schema, told: Told | None
) -> Iterator[Batch]:
    total, before = sum(sizes), 0
    for one, size in zip(opened, sizes, strict=True):

        def tell(place: int, *, before: int = before) -> None:
            if told is not None:
                told(min(before + place, total), total)

        yield from converted(one.batches(tell), one.convert, schema=schema)
        before += size


def read_texts(
    path: Path, *, csv: CsvFormat = _PLAIN, unit: int | None = None
) -> tuple[tuple[str, ...], list[pa.Array]]:
    """Return the names of all columns, and their cells as texts, null for missing; nothing is declared yet.

    Parameters
    ----------
    path
        As in `read_table`. Nested columns of Parquet are all missing.
    csv
        How it is written, if it is CSV.
    unit
        The position of the column that names units: its cells stay as they are stored, for `units_from_cells`.

    Raises
    ------
    DataError
        If the file is missing, empty, damaged, or holds no records.

    """
    files = files_of(path)
    header = read_header(files[0], csv=csv)
    parts: list[list[pa.Array]] = [[] for _ in header]
    for file in files:
        form = data_format(file, encoding=csv.encoding)
        own = _header(file, form, csv=csv)
        wanted: Sequence[int] = range(len(header))
        if file is not files[0]:
            wanted = positions(own, names=header, what=_what([file]), separator=csv.separator)
        for batch in _batches(file, form, header=own, wanted=wanted, csv=csv, told=None):
            for place, (part, cells) in enumerate(zip(parts, batch, strict=True)):
                part.append(as_stored(cells) if place == unit else as_text(cells))
    columns = [pa.chunked_array(part).combine_chunks() for part in parts if part]
    if not columns or len(columns[0]) == 0:
        raise DataError(f"{_what(files)} holds no records, only a header.")
    return header, columns


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A file whose header fits the schema: the cells that are read, then those of the unit, and what converts them."""

    batches: Callable[[Callable[[int], None]], Iterator[list[pa.Array]]]
    convert: Convert


def _opened(path: Path, *, schema: Schema) -> _Opened:
    refuse_data_as_labels(path, files=schema.label_files)
    form = data_format(path, encoding=schema.csv.encoding)
    header = _header(path, form, csv=schema.csv)
    names = [column.name for column in schema.read] + ([schema.unit] if schema.unit is not None else [])
    wanted = positions(header, names=names, what=_what([path]), separator=schema.csv.separator)

    def batches(told: Callable[[int], None]) -> Iterator[list[pa.Array]]:
        return _batches(path, form, header=header, wanted=wanted, csv=schema.csv, told=told)

    convert = from_typed if form == "parquet" else partial(from_text, decimal=schema.csv.decimal)
    return _Opened(batches=batches, convert=convert)


def _what(files: Sequence[Path]) -> str:
    """Return what a refusal calls the data."""
    if len(files) == 1:
        return f"the data file {shown(files[0].name)}"
    return f"the table in {len(files)} files"


def _header(path: Path, form: Format, *, csv: CsvFormat) -> tuple[str, ...]:
    return _parquet_header(path) if form == "parquet" else csv_header(path, compressed=form == "csv.gz", form=csv)


def _batches(
    path: Path,
    form: Format,
    *,
    header: Sequence[str],
    wanted: Sequence[int],
    csv: CsvFormat,
    told: Callable[[int], None] | None,
) -> Iterator[list[pa.Array]]:
    if form == "parquet":
        return _parquet_batches(path, wanted=[header[position] for position in wanted], told=told)
    return csv_batches(path, compressed=form == "csv.gz", width=len(header), wanted=wanted, form=csv, told=told)


def positions(header: Sequence[str], *, names: Sequence[str], what: str, separator: str | None = None) -> list[int]:
    """Return where each name stands in the header.

    Parameters
    ----------
    header
        The names of the data's columns.
    names
        Those that are wanted.
    what
        What a refusal calls the data.
    separator
        What separates the cells of a file.

    Raises
    ------
    SchemaMismatch
        If a name is not there, or twice.

    """
    forms = [normal_form(name) for name in header]
    found = []
    for name in names:
        count = forms.count(normal_form(name))
        if count > 1:
            raise SchemaMismatch(f"{what} has {count} columns named {shown(name)}: rename them.")
        if count == 0:
            raise SchemaMismatch(_not_there(name, header=header, names=names, what=what, separator=separator))
        found.append(forms.index(normal_form(name)))
    return found


def _not_there(name: str, *, header: Sequence[str], names: Sequence[str], what: str, separator: str | None) -> str:
    """Say that a column is missing. The first line is only repeated if it is plainly a header, and not a record."""
    text = f"{what} has no column {shown(name)}"
    close = [other for other in header if other.strip().casefold() == name.strip().casefold()]
    if close:
        return f"{text}, but one named {shown(close[0])}: names must be equal, spaces and capitals included."
    if separator is not None and len(header) == 1 and any(mark in header[0] for mark in ",;\t|"):
        comma = "comma" if separator == "," else shown(separator)
        return (
            f"{text}: its first line has no {comma}, which is what separates cells unless the schema says otherwise: "
            f'[csv] separator = ";".'
        )
    known = {normal_form(other) for other in names} & {normal_form(other) for other in header}
    if known and len(header) <= _MOST_NAMES:
        return f"{text}; its columns are {listed(header)}."
    if separator is None:
        return f"{text}: its {len(header)} names must include the schema's."
    return f"{text}: the first line must name the columns, and its {len(header)} names must include the schema's."


def from_text(cells: pa.Array, *, column: Column, decimal: str) -> NDArray[Any]:
    """Return float64 with NaN, or positions of labels with -1, for missing."""
    if column.is_number:
        return numbers_from_text(cells, column=column, decimal=decimal)
    return labels_from_text(cells, column=column)


def from_typed(cells: pa.Array, *, column: Column) -> NDArray[Any]:
    """Return the same of cells that are stored with a type."""
    return numbers_from_typed(cells, column=column) if column.is_number else labels_from_typed(cells, column=column)
