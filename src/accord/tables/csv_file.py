"""CSV: the header by Python's csv module, the records by pyarrow, a batch at a time and every cell as text."""

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, final

import pyarrow as pa
import pyarrow.csv as pacsv

from accord.core import check as _check
from accord.core.errors import DataError, SchemaMismatch
from accord.tables.names import listed, shown

__all__ = [
    "BLOCK",
    "SEPARATORS",
    "CheckedText",
    "CsvFormat",
    "Format",
    "csv_batches",
    "csv_header",
    "data_format",
    "open_text",
    "parse_csv_format",
]


SEPARATORS = (",", ";", "\t", "|")
_QUOTES = ('"', "'", "")
_MARKS = (".", ",")
_KEYS = ("encoding", "separator", "quote", "decimal")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFormat:
    """Encoding, separator, quotation mark and decimal mark of a CSV file.

    Parameters
    ----------
    encoding
        A codec of Python, such as "utf-8", "latin-1" or "utf-16"; of the input. The output is UTF-8.
    separator
        A comma, semicolon, tab or bar.
    quote
        The double or the single quotation mark, or "" if there is none.
    decimal
        The decimal mark of numbers, a point or a comma.

    Raises
    ------
    SchemaMismatch
        If one is not accepted.

    """

    encoding: str = "utf-8"
    separator: str = ","
    quote: str = '"'
    decimal: str = "."

    def __post_init__(self) -> None:
        _check.store(self, encoding=_codec(self.encoding))
        for key, accepted in (("separator", SEPARATORS), ("quote", _QUOTES), ("decimal", _MARKS)):
            if getattr(self, key) not in accepted:
                raise SchemaMismatch(f"{key} must be one of {listed(accepted)}.")
        if self.separator == self.decimal:
            raise SchemaMismatch("separator and decimal must differ.")


def parse_csv_format(entry: object) -> CsvFormat:
    """Return what the [csv] table of a schema says.

    Raises
    ------
    SchemaMismatch
        If it is no table, or has a key or value that is not accepted.

    """
    if not isinstance(entry, Mapping):
        raise SchemaMismatch("csv of the schema must be a table: [csv].")
    unknown = [key for key in entry if key not in _KEYS]
    if unknown:
        raise SchemaMismatch(f"[csv] has an unknown key {shown(str(unknown[0]))}: accepted are {listed(_KEYS)}.")
    given: dict[str, Any] = dict(entry)
    if not all(isinstance(value, str) for value in given.values()):
        raise SchemaMismatch("the values in [csv] must be texts.")
    return CsvFormat(**given)


def _codec(name: str) -> str:
    """Return the codec's own name; refuse what is no encoding of text."""
    found = None
    try:
        found = codecs.lookup(name).name
        known = b"a\n".decode(found) is not None if not found.startswith(("utf-16", "utf-32")) else True
    except (LookupError, ValueError, TypeError):
        known = False
    if found is None or not known:
        raise SchemaMismatch(
            f"encoding {shown(name)} is not known: write it as in Python, such as utf-8, latin-1, cp1252 or utf-16."
        )
    return found


Format = Literal["csv", "csv.gz", "parquet"]

_GZIP = b"\x1f\x8b"
_BOM = codecs.BOM_UTF8
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ZIP = b"PK\x03\x04"
_PARQUET = b"PAR1"


def data_format(path: Path, *, encoding: str = "utf-8") -> Format:
    """Return what the file is; text in another declared ``encoding`` may begin with its byte-order mark.

    Raises
    ------
    DataError
        If it is not there, not a file, cannot be opened, is empty, or is plainly something else.

    """
    name = shown(path.name)
    if not path.exists():
        raise DataError(f"the data file {name} does not exist.")
    if not path.is_file():
        raise DataError(f"the data file {name} is not a file.")
    start = None
    with suppress(OSError), path.open("rb") as handle:
        start = handle.read(4)
    if start is None:
        raise DataError(f"the data file {name} cannot be opened: check its permissions.")
    if not start:
        raise DataError(f"the data file {name} is empty.")
    if start.startswith(_UTF16) and encoding == "utf-8":
        raise DataError(f'the data file {name} is UTF-16 text: say encoding = "utf-16", or convert it to UTF-8 first.')
    if start == _ZIP:
        raise DataError(f"the data file {name} is a zip archive or a spreadsheet: save it as CSV or Parquet first.")
    if start == _PARQUET:
        return "parquet"
    return "csv.gz" if start.startswith(_GZIP) else "csv"


def open_text(path: Path, *, compressed: bool) -> gzip.GzipFile | io.BufferedReader:
    """Open the bytes of a CSV file."""
    return gzip.open(path, "rb") if compressed else path.open("rb")


class CheckedText(io.RawIOBase):
    """The bytes of a text file, checked on the way, with a tail put behind them on a line of its own.

    A byte-order mark is left out. Bytes that are not text in the encoding, NUL characters, and damaged compression
    raise `DataError`; the first one also stays in ``fault``. Text in another encoding comes out as UTF-8.
    """

    def __init__(self, raw: io.BufferedIOBase, *, name: str, tail: bytes = b"", encoding: str = "utf-8") -> None:
        super().__init__()
        self._raw = raw
        self._name = shown(name)
        self._end = b"\n" + tail
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._position = 0
        self._ahead: bytes | None = None
        self.fault: DataError | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, none at the end."""
        # One step ahead, so that the tail comes with the last bytes: pyarrow wants the end of a record in every piece.
        room = size - len(self._end) if size > len(self._end) else size
        chunk = self._next(room).removeprefix(_BOM) if self._ahead is None else self._ahead
        if not chunk:
            return b""
        self._ahead = self._next(room)
        if self._ahead:
            return chunk
        return chunk + (self._end[1:] if chunk[-1:] in {b"\r", b"\n"} else self._end)

    def _next(self, size: int) -> bytes:
        chunk = b""
        # another encoding may keep a few bytes back, and then has nothing to show for them yet
        while not chunk:
            given = self._raw_bytes(size if self._encoding == "utf-8" else max(1, size // 4))
            chunk = self._checked(given, final=not given)
            self._position += len(given)
            if not given:
                break
        return chunk

    def _raw_bytes(self, size: int) -> bytes:
        try:
            return self._raw.read(size)
        except (OSError, EOFError, zlib.error):
            fault = DataError(f"the data file {self._name} is damaged or cut short: it cannot be read to its end.")
        self._refuse(fault)
        return b""

    def _checked(self, chunk: bytes, *, final: bool) -> bytes:
        """Return the bytes as UTF-8; refuse what is not text."""
        pending = len(self._decoder.getstate()[0])
        text = ""
        try:
            text = self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            place = self._position - pending + error.start
            name = "UTF-8" if self._encoding == "utf-8" else self._encoding
            self._refuse(
                DataError(
                    f"the data file {self._name} is not {name} text (the byte at position {place} shows it): "
                    f"convert it first, for example with iconv, or say another encoding in the schema."
                )
            )
        if self._encoding == "utf-8":
            if b"\0" in chunk:
                self._refuse(self._nul())
            return chunk
        if "\0" in text:
            self._refuse(self._nul())
        return text.encode("utf-8", "surrogatepass")

    def _nul(self) -> DataError:
        return DataError(f"the data file {self._name} holds NUL bytes: it is not a CSV or Parquet file.")

    def _refuse(self, fault: DataError) -> None:
        self.fault = fault
        raise fault from None


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
    path: Path,
    *,
    compressed: bool,
    width: int,
    wanted: Sequence[int],
    form: CsvFormat = _PLAIN,
    told: Callable[[int], None] | None = None,
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
    told
        Called after each batch with the place in the file.

    Raises
    ------
    DataError
        If a record has more or fewer cells than the header, a quoted cell is not closed, or the bytes are not text.

    """
    ragged: list[int] = []
    name = shown(path.name)
    with path.open("rb") as stored, gzip.open(stored, "rb") if compressed else stored as raw:
        tail = (form.separator.join([_TAIL] * width) + "\n").encode()
        source = CheckedText(raw, name=path.name, tail=tail, encoding=form.encoding)
        last = None
        try:
            for columns, more in _marked(_parsed(source, width=width, wanted=wanted, ragged=ragged, form=form)):
                if told is not None:
                    told(stored.tell())
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
