"""Which files a table is in: one, those of a folder, or those that a pattern names, always in one order."""

import glob
from pathlib import Path

from accord.core.errors import DataError
from accord.tables.names import shown

__all__ = ["files_of"]

_ENDINGS = (".parquet", ".csv", ".csv.gz")
_MARKS = "*?["


def files_of(data: Path) -> tuple[Path, ...]:
    """Return the files that hold the records of a table, in the order in which they stand: by name, part by part.

    The order is a function of the names, which are public, so that the records have one order on every machine.

    Parameters
    ----------
    data
        A file; a folder, whose files and those in folders inside it are meant, if their names end in .parquet, .csv or
        .csv.gz, all of one such ending, and no part of the name begins with a point or an underscore; or a pattern with
        ``*``, ``?``, ``[...]`` or ``**``, as a shell has them.

    Raises
    ------
    DataError
        If a folder or a pattern has no such file, or a folder has files of two kinds.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv", "_done", "notes.txt"):
    ...         _ = Path(folder, name).write_text("x")
    ...     [path.name for path in files_of(Path(folder))], [path.name for path in files_of(Path(folder, "b*"))]
    (['a.csv', 'b.csv'], ['b.csv'])

    """
    if data.is_dir():
        return _of_folder(data)
    if data.exists() or not any(mark in str(data) for mark in _MARKS):
        return (data,)
    found = _in_order([Path(name) for name in glob.glob(str(data), recursive=True)])  # noqa: PTH207 - absolute or not
    files = tuple(path for path in found if path.is_file())
    if not files:
        raise DataError(f"the pattern {shown(data.name)} names no file.")
    return files


def _of_folder(folder: Path) -> tuple[Path, ...]:
    found: dict[str, list[Path]] = {}
    for path in folder.rglob("*"):
        hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        ending = next((ending for ending in _ENDINGS if path.name.lower().endswith(ending)), None)
        if ending is not None and not hidden and path.is_file():
            found.setdefault(ending, []).append(path)
    if not found:
        raise DataError(f"the folder {shown(folder.name)} has no files that end in .parquet, .csv or .csv.gz.")
    if len(found) > 1:
        kinds = " and ".join(ending for ending in _ENDINGS if ending in found)
        raise DataError(
            f"the folder {shown(folder.name)} has files that end in {kinds}: say which are meant by a pattern, such as "
            f"'{shown(folder.name)[1:-1]}/*{next(iter(found))}'."
        )
    (files,) = found.values()
    return tuple(_in_order(files))


def _in_order(paths: list[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.parts)
