"""Coded records in parts: in memory up to a cap, in a temporary file beyond it."""

import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import DataError
from accord.marginals.engine import Codes, Part, Recode

__all__ = ["CodeStore", "usual_memory"]

_ROWS = 1 << 19
_LEAST, _MOST_SHARE = 256 << 20, 4
_FULL = "there is no room for a temporary file of codes: free some, or name another folder in the variable TMPDIR."


def usual_memory() -> int:
    """Return how many bytes of codes are kept in memory unless something else is said: a quarter of the machine's."""
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return _LEAST
    return max(_LEAST, pages * size // _MOST_SHARE)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _FilePart:
    """Records whose codes are in a file, one column behind the other; read anew at each look."""

    file: "_Unnamed"
    start: int
    size: int
    types: tuple[np.dtype[Any], ...]

    def codes(self) -> Codes:
        columns: list[NDArray[Any]] = []
        place = self.start
        for kind in self.types:
            length = self.size * kind.itemsize
            stored = os.pread(self.file.handle, length, place)
            columns.append(np.frombuffer(stored, dtype=kind))
            place += length
        return Codes(tuple(columns))

    def recoded(self, recode: Recode) -> Part:
        return _Rewritten(self, recode, self.file)


@final
class _Rewritten:
    """Records whose codes are the groups of another part's, written to a file when they are first looked up."""

    __slots__ = ("_file", "_kept", "_part", "_recode")

    def __init__(self, part: Part, recode: Recode, file: "_Unnamed") -> None:
        self._part, self._recode, self._file = part, recode, file
        self._kept: _FilePart | None = None

    def codes(self) -> Codes:
        if self._kept is not None:
            return self._kept.codes()
        found = self._recode(self._part.codes())
        with suppress(OSError):  # with a full disk they are looked up each time
            self._kept = self._file.beside().part(found.columns)
        return found

    def recoded(self, recode: Recode) -> Part:
        return _Rewritten(self, recode, self._file)


@final
class _Unnamed:
    """A temporary file that its owner alone can read and that no folder shows: gone when nobody holds it any more."""

    def __init__(self) -> None:
        self.handle, path = tempfile.mkstemp(prefix="accord-")  # mode 0600
        weakref.finalize(self, os.close, self.handle)
        Path(path).unlink()
        self._end = 0
        self._beside: weakref.ref[_Unnamed] | None = None
        self._lock = threading.Lock()

    def part(self, columns: Sequence[NDArray[Any]]) -> _FilePart:
        """Put columns behind what is there; threads may do so at once."""
        with self._lock:
            start = place = self._end
            self._end += sum(column.nbytes for column in columns)
        for column in columns:
            left = memoryview(column.tobytes())
            while left:
                written = os.pwrite(self.handle, left, place)
                left, place = left[written:], place + written
        return _FilePart(self, start, len(columns[0]), tuple(column.dtype for column in columns))

    def beside(self) -> "_Unnamed":
        """Return a second file, the same one as long as somebody holds it."""
        with self._lock:
            found = None if self._beside is None else self._beside()
            if found is None:
                found = _Unnamed()
                self._beside = weakref.ref(found)
            return found


@final
class CodeStore:
    """Takes codes a batch of records at a time and gives them back in parts.

    Formal guarantees
    -----------------
    - Order: records stand in the order in which they were added, whatever the batches were.
    - Memory: at most ``memory`` bytes of codes, and a part for each thread that counts. What is beyond stands in one
      temporary file, which loses its name as soon as it is made, which its owner alone can read, and which is
      gone with this process, however it ends. So do the groups of its codes, once they are looked up, in a second one.
    - Not promised: that the disk forgets. Codes tell cells up to what the schema tells apart.

    Parameters
    ----------
    types
        Of the codes of each column.
    memory
        Bytes of codes that stay in memory; by default `usual_memory`.

    Examples
    --------
    >>> store = CodeStore([np.dtype(np.uint8)], memory=0)
    >>> for batch in ([1, 2], [3]):
    ...     store.add([np.array(batch)], count=len(batch))
    >>> [(part.codes().columns[0].tolist(), size) for part, size in store.parts()]
    [([1, 2, 3], 3)]

    """

    def __init__(self, types: Sequence[np.dtype[Any]], *, memory: int | None = None) -> None:
        self._types = tuple(types)
        self._memory = usual_memory() if memory is None else memory
        self._waiting: list[list[NDArray[Any]]] = []
        self._parts: list[tuple[Part, int]] = []
        self._rows = 0
        self._held = 0
        self._file: _Unnamed | None = None

    def add(self, columns: Sequence[NDArray[Any]], *, count: int) -> None:
        """Add so many records; each code must fit the type of its column.

        Raises
        ------
        DataError
            If the disk is full.

        """
        own = [np.ascontiguousarray(column, dtype=kind) for column, kind in zip(columns, self._types, strict=True)]
        while self._rows + count >= _ROWS:
            room = _ROWS - self._rows
            self._keep([column[:room] for column in own], room)
            own, count = [column[room:] for column in own], count - room
            self._flush()
        self._keep(own, count)

    def parts(self) -> tuple[tuple[Part, int], ...]:
        """Return all records that were added, in parts, and how many are in each."""
        self._flush()
        return tuple(self._parts)

    def _keep(self, columns: list[NDArray[Any]], count: int) -> None:
        if count:
            self._waiting.append(columns)
            self._rows += count

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = [np.concatenate([batch[place] for batch in self._waiting]) for place in range(len(self._types))]
        length = sum(column.nbytes for column in columns)
        if self._held + length <= self._memory:
            self._parts.append((Codes(tuple(columns)), self._rows))
            self._held += length
        else:
            self._parts.append((self._written(columns), self._rows))
        self._waiting, self._rows = [], 0

    def _written(self, columns: list[NDArray[Any]]) -> _FilePart:
        with suppress(OSError):
            self._file = self._file or _Unnamed()
            return self._file.part(columns)
        raise DataError(_FULL)
