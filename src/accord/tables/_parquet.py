"""Parquet through pyarrow, a batch at a time. The file's own metadata is not used beyond names and types."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from accord.core.errors import DataError
from accord.tables.names import shown

__all__ = ["parquet_batches", "parquet_header"]

_RECORDS = 1 << 16
_FAULTS = (pa.ArrowException, OSError, ValueError, RuntimeError)


def parquet_header(path: Path) -> tuple[str, ...]:
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


def parquet_batches(path: Path, *, wanted: Sequence[str]) -> Iterator[list[pa.Array]]:
    """Yield the wanted columns as they are stored, a batch of records at a time.

    Raises
    ------
    DataError
        If the file is damaged.

    """
    try:
        with path.open("rb") as handle, pq.ParquetFile(handle) as file:
            for batch in file.iter_batches(batch_size=_RECORDS, columns=list(wanted)):
                # pyarrow also reads columns whose name only begins like a wanted one
                yield [batch.column(batch.schema.names.index(name)) for name in wanted]
    except _FAULTS:
        raise _damaged(path) from None


def _damaged(path: Path) -> DataError:
    return DataError(f"the data file {shown(path.name)} is a damaged or incomplete Parquet file.")
