"""Write released rows and models: whole files or nothing."""

import io
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from accord.errors import InvalidParameter
from accord.tables.names import shown
from accord.tables.schema import Column, Schema

__all__ = ["Outputs", "check_output", "outputs", "rows_as_bytes"]

_INT64 = 2.0**63
_NEEDS_QUOTES = re.compile(r"[,\"\r\n]|^\s|\s$")


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

    def write(self, target: Path, content: bytes) -> None:
        """Fill the temporary file of ``target``, and wait until the disk has it."""
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


def rows_as_bytes(rows: NDArray[Any], *, schema: Schema, parquet: bool) -> bytes:
    """Return a file with one line for each row: CSV with a header, or Parquet.

    Numbers have the declared decimals, or else as many digits as give the same float again; there is no minus zero. A
    missing cell stays empty. Texts are written as declared, whatever a spreadsheet makes of them.

    Parameters
    ----------
    rows
        Shape (n, d), a column for each column of the schema.
    schema
        Names, kinds and decimals.
    parquet
        Whether to write Parquet: texts, float64, and int64 for numbers without decimals.

    """
    cells = [_cells(rows[:, place], column=column) for place, column in enumerate(schema.columns)]
    names = [column.name for column in schema.columns]
    if parquet:
        arrays = [_array(values, column=column) for values, column in zip(cells, schema.columns, strict=True)]
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(arrays, names=names), sink)
        return sink.getvalue()
    lines = [",".join(_quoted(name) for name in names)]
    lines.extend(",".join("" if cell is None else _quoted(cell) for cell in row) for row in zip(*cells, strict=True))
    return "".join(line + "\n" for line in lines).encode("utf-8")


def _cells(values: NDArray[Any], *, column: Column) -> list[str | None]:
    if column.kind == "category":
        return [None if value is None else str(value) for value in values.tolist()]
    return [_number(float(value), decimals=column.decimals) for value in values.tolist()]


def _number(value: float, *, decimals: int | None) -> str | None:
    if np.isnan(value):
        return None
    text = repr(value) if decimals is None else f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _quoted(cell: str) -> str:
    """Return a CSV cell; the csv module leaves a carriage return bare if lines end in a newline alone."""
    return '"' + cell.replace('"', '""') + '"' if not cell or _NEEDS_QUOTES.search(cell) else cell


def _array(cells: Sequence[str | None], *, column: Column) -> pa.Array:
    if column.kind == "category":
        return pa.array(cells, pa.string())
    values = [None if cell is None else float(cell) for cell in cells]
    if column.decimals == 0 and all(value is None or abs(value) < _INT64 for value in values):
        return pa.array([None if cell is None else int(cell) for cell in cells], pa.int64())
    return pa.array(values, pa.float64())


def _same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return one.samefile(other)
    return False


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
