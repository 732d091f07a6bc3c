"""Open a data file and find out what it is from its first bytes, never from its name."""

import codecs
import gzip
import io
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Literal

from accord.core.errors import DataError
from accord.tables.names import shown

__all__ = ["CheckedText", "Format", "data_format", "open_text"]

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
