"""CSV: the header by Python's csv module, the records by pyarrow, a batch at a time and every cell as text."""

import csv
import io
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from accord.core.errors import DataError
from accord.tables._source import CheckedText, open_text
from accord.tables.csv_format import SEPARATORS, CsvFormat
from accord.tables.names import shown

__all__ = ["BLOCK", "csv_batches", "csv_header"]

BLOCK = 4 << 20
"""Bytes that pyarrow parses at a time; no record may be longer."""

_LONGEST_LINE = 1 << 20
_TAIL = "\x03"
_PLAIN = CsvFormat()


def csv_header(path: Path, *, compressed: bool, form: CsvFormat = _PLAIN) -> tuple[str, ...]:
    """Return the names in the first record; what stands behind it is not looked at.

    Raises
    ------
    DataError
        If there is no header, or it is not well-formed text in the format's encoding.

    """
    name = shown(path.name)
    header: list[str] | None = None
    first = ""
    try:
        with io.TextIOWrapper(
            open_text(path, compressed=compressed),
            encoding="utf-8-sig" if form.encoding == "utf-8" else form.encoding,
            errors="surrogateescape",
            newline="",
        ) as text:
            first = text.readline(_LONGEST_LINE)
            lines = chain([first] if first else [], iter(lambda: text.readline(_LONGEST_LINE), ""))
            reader = csv.reader(
                lines,
                strict=True,
                delimiter=form.separator,
                quotechar=form.quote or None,
                quoting=csv.QUOTE_MINIMAL if form.quote else csv.QUOTE_NONE,
            )
            header = next(reader, [])
    except (csv.Error, UnicodeError):
        header = None
    except (OSError, EOFError, zlib.error):
        raise DataError(f"the data file {name} is damaged or cut short: it cannot be read.") from None
    if header is None:
        raise DataError(f"the first line of the data file {name} is not a well-formed header.")
    if not any(header):
        raise DataError(f"the first line of the data file {name} is blank: it must name the columns.")
    joined = "".join(header)
    if form.encoding != "utf-8":
        header[0] = header[0].removeprefix("\ufeff")
    if "\0" in joined:
        raise DataError(f"the data file {name} holds NUL bytes: it is not a CSV or Parquet file.")
    if len(header) == 1 and not (form.quote and first.lstrip("\ufeff").startswith(form.quote)):
        _refuse_other_separators(header[0], name=name, form=form)
    if any("\ud800" <= letter <= "\udfff" for letter in joined):
        raise DataError(
            f"the header of the data file {name} is not {_shown_encoding(form)} text: say its encoding, or convert it "
            f"first, for example with iconv."
        )
    return tuple(header)


def _refuse_other_separators(only: str, *, name: str, form: CsvFormat) -> None:
    """Refuse a header of one bare name that another separator would cut: the table is not one of one column."""
    counts = {mark: only.count(mark) for mark in SEPARATORS if mark != form.separator}
    mark = max(counts, key=lambda one: counts[one])
    if counts[mark] == 0:
        return
    asked = "comma" if form.separator == "," else shown(form.separator)
    word = {"\t": "\\t"}.get(mark, mark)
    option = "tab" if mark == "\t" else mark
    own = "put its name in quotation marks" if form.quote else "rename it"
    raise DataError(
        f'the first line of the data file {name} has no {asked}, but "{word}": if that separates its cells, say '
        f'[csv] separator = "{word}" in the schema, or --separator "{option}" to accord schema; if the file has one '
        f"column, {own}."
    )


def _shown_encoding(form: CsvFormat) -> str:
    return "UTF-8" if form.encoding == "utf-8" else form.encoding


def csv_batches(
    path: Path, *, compressed: bool, width: int, wanted: Sequence[int], form: CsvFormat = _PLAIN
) -> Iterator[list[pa.Array]]:
    """Yield the wanted columns as texts, null for an empty cell without quotes, a batch of records at a time.

    Every record counts, a blank line too: all its cells are missing.

    Parameters
    ----------
    path, compressed
        The file.
    width
        Number of columns in the header.
    wanted
        Positions of the columns to read, at least one.
    form
        How it is written.

    Raises
    ------
    DataError
        If a record has more or fewer cells than the header, a quoted cell is not closed, or the bytes are not text.

    """
    ragged: list[int] = []
    name = shown(path.name)
    with open_text(path, compressed=compressed) as raw:
        tail = (form.separator.join([_TAIL] * width) + "\n").encode()
        source = CheckedText(raw, name=path.name, tail=tail, encoding=form.encoding)
        last = None
        try:
            for columns, more in _marked(_parsed(source, width=width, wanted=wanted, ragged=ragged, form=form)):
                if more:
                    yield columns
                else:
                    last = columns
        except pa.ArrowException:
            fault = source.fault or DataError(
                f"the data file {name} cannot be read as CSV: a record is longer than {BLOCK >> 20} MiB, "
                f"or a quoted cell is not closed."
            )
            raise fault from None
    # The tail is the last record, unless it was swallowed by a cell that is still open.
    if last is None or any(column[-1].as_py() != _TAIL for column in last):
        raise DataError(f"the data file {name} ends within a quoted cell: a closing quotation mark is missing.")
    if ragged:
        count = "1 record has" if len(ragged) == 1 else f"{len(ragged)} records have"
        raise DataError(f"the data file {name} is not a table: {count} more or fewer cells than the header ({width}).")
    yield [column.slice(0, len(column) - 1) for column in last]


def _parsed(
    source: CheckedText, *, width: int, wanted: Sequence[int], ragged: list[int], form: CsvFormat
) -> Iterator[list[pa.Array]]:
    names = [str(position) for position in range(width)]

    def note(row: Any) -> str:  # noqa: ANN401 - pyarrow's row, whose text must not be used
        ragged.append(row.expected_columns)
        return "skip"

    reader = pacsv.open_csv(
        pa.PythonFile(source, mode="r"),
        read_options=pacsv.ReadOptions(use_threads=True, block_size=BLOCK, column_names=names, skip_rows_after_names=1),
        parse_options=pacsv.ParseOptions(
            delimiter=form.separator,
            quote_char=form.quote or False,
            newlines_in_values=bool(form.quote),
            ignore_empty_lines=False,
            invalid_row_handler=note,
        ),
        convert_options=pacsv.ConvertOptions(
            check_utf8=False,  # checked with the bytes
            column_types={names[position]: pa.string() for position in wanted},
            include_columns=[names[position] for position in wanted],
            strings_can_be_null=True,
            null_values=[""],
            quoted_strings_can_be_null=False,
        ),
    )
    for batch in reader:
        yield list(batch.columns)


def _marked(batches: Iterator[list[pa.Array]]) -> Iterator[tuple[list[pa.Array], bool]]:
    """Yield each batch that has records, and whether there are more."""
    held: list[pa.Array] | None = None
    for columns in batches:
        if len(columns[0]) == 0:
            continue
        if held is not None:
            yield held, True
        held = columns
    if held is not None:
        yield held, False
