"""The file of a ledger: what must hold of it before SQLite may use it.

SQLite keeps its log beside the name by which a file was opened. Two names of one file are two logs, each of which knows
nothing of the charges in the other, so a ledger must have one name only.
"""

import os
import re
from pathlib import Path
from typing import Final

from accord.core.errors import LedgerError

__all__ = [
    "COMPANIONS",
    "beside",
    "identity",
    "named",
    "refuse_impossible",
    "refuse_leftovers",
    "refuse_mounted",
    "refuse_second_name",
    "still",
    "write_through",
]

COMPANIONS: Final = ("wal", "shm", "journal")
_MOUNTS = Path("/proc/self/mountinfo")


def refuse_impossible(path: Path) -> None:
    """Refuse what is plainly no ledger, before SQLite would make one of it."""
    name = named(path)
    if path.is_dir():
        raise LedgerError(f"{name} is a folder, not a ledger.")
    if not path.exists():
        raise LedgerError(
            f"there is no ledger at {name}: create one first, with `accord ledger create FILE --epsilon E --delta D`."
        )
    if path.stat().st_size == 0:
        raise LedgerError(f"{name} is empty, so it is no ledger: delete it and create one.")


def refuse_leftovers(path: Path) -> None:
    """Refuse to create a ledger where a part of another one is left."""
    for companion in (beside(path, kind) for kind in COMPANIONS):
        if companion.exists():  # SQLite would take another ledger's log for this one's
            raise LedgerError(f"a part of another ledger, {named(companion)}, is left there: move it away first.")


def refuse_second_name(path: Path) -> None:
    """Refuse a file with a second hard link."""
    name = named(path)
    if path.stat().st_nlink != 1:
        raise LedgerError(
            f"the ledger {name} has a second name (a hard link), by which it could be spent twice: keep one name and "
            f"delete the other. One like .{name}.0123456789abcdef beside it is left of a creation that was killed."
        )


def refuse_mounted(path: Path) -> None:
    """Refuse a file that is mounted by itself: it has another name elsewhere. A mounted folder brings the log along."""
    if os.fsencode(os.path.realpath(path)) in _mount_points():
        raise LedgerError(
            f"the ledger {named(path)} is mounted as a single file, so it has a second name, by which it could be "
            f"spent twice: mount its folder instead."
        )


def _mount_points() -> frozenset[bytes]:
    """Return where something is mounted, as Linux lists it; nothing on systems without such a list.

    ``os.path.ismount`` does not see a file that is mounted from the same file system.
    """
    try:
        lines = _MOUNTS.read_bytes().split(b"\n")
    except OSError:
        return frozenset()
    fields = [line.split(b" ") for line in lines]
    return frozenset(_unescaped(field[4]) for field in fields if len(field) > 4)


def _unescaped(field: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8) & 255]), field)


def write_through(path: Path) -> None:
    """Write a file or folder through to the disk."""
    if os.name == "nt":  # no folder can be opened there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one under the same name."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def still(path: Path) -> bool:
    """Return whether nobody can write here: the file, without a log, in a read-only folder, is read as it stands."""
    return not _writable(path) and not _writable(path.parent) and not beside(path, "wal").exists()


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def beside(path: Path, kind: str) -> Path:
    """Return the path of one of the files that SQLite keeps beside a file that is open."""
    return Path(f"{path.resolve()}-{kind}")


def named(path: Path) -> str:
    """Return the name of a file for a message."""
    return "".join(letter if letter.isprintable() else "?" for letter in path.name)
