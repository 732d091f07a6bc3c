"""Secret randomness from the operating system, for release noise and nothing else."""

import os
import threading
import warnings
import weakref
from typing import NoReturn

import numpy as np

from accord.errors import NotPrivateWarning, WrongRandomness

__all__ = ["PrivateRandomness", "require_private"]

_BUFFER_BYTES = 1 << 16
_alive: "weakref.WeakSet[PrivateRandomness]" = weakref.WeakSet()


class PrivateRandomness:
    """Bits from the operating system's cryptographic source, read in large pieces.

    It takes no seed and has no state to save. Copying or pickling one gives a new source; a forked child drops what its
    parent had buffered, so that no bit is ever used twice.

    Formal guarantees
    -----------------
    - Every bit is used once, also across threads and forks.
    - Not promised: protection against a broken or observed operating system, or a virtual machine that is snapshotted
      and resumed twice.

    Examples
    --------
    >>> randomness = PrivateRandomness()
    >>> 0 <= randomness.bits(128) < 2**128
    True

    """

    __slots__ = ("__weakref__", "_buffer", "_lock", "_pid", "_position")

    def __init__(self) -> None:
        self._forget()
        _alive.add(self)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._buffer = b""
        self._position = 0
        self._pid = os.getpid()

    def _source(self, count: int) -> bytes:
        """Return fresh bytes; the one place where they come from."""
        return os.urandom(count)

    def bytes(self, count: int) -> bytes:
        """Return ``count`` bytes that were never returned before."""
        if self._pid != os.getpid():
            self._forget()
        with self._lock:
            if count > _BUFFER_BYTES:
                return self._source(count)
            if self._position + count > len(self._buffer):
                self._buffer = self._source(_BUFFER_BYTES)
                self._position = 0
            start = self._position
            self._position = start + count
            return self._buffer[start : self._position]

    def bits(self, count: int) -> int:
        """Return a uniform integer of ``count`` bits (0 for ``count`` 0)."""
        whole = (count + 7) // 8
        return int.from_bytes(self.bytes(whole), "little") >> (8 * whole - count)

    def words(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """Return ``count`` uniform 64-bit words, shape (count,)."""
        return np.frombuffer(self.bytes(8 * count), dtype="<u8").astype(np.uint64)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return (type(self), ())

    def __repr__(self) -> str:
        return "PrivateRandomness()"


def _after_fork_in_child() -> None:
    for source in list(_alive):
        source._forget()  # noqa: SLF001 - this module owns the buffer


if hasattr(os, "register_at_fork"):  # absent on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork_in_child)


def require_private(randomness: object) -> PrivateRandomness:
    """Return ``randomness`` if it is secret; ``None`` stands for a new source.

    A subclass, which only tests need, is let through with a `NotPrivateWarning`.

    Raises
    ------
    WrongRandomness
        For anything else: a seed, a numpy Generator, a shared key.

    """
    if randomness is None:
        return PrivateRandomness()
    if not isinstance(randomness, PrivateRandomness):
        _refuse(randomness)
    if type(randomness) is not PrivateRandomness:
        warnings.warn(
            f"noise from {type(randomness).__name__}, not from the operating system: this is not private.",
            NotPrivateWarning,
            stacklevel=3,
        )
    return randomness


def _refuse(randomness: object) -> NoReturn:
    message = (
        f"release noise comes from PrivateRandomness only, not from {type(randomness).__name__}: "
        f"leave 'randomness' out to use the operating system's source."
    )
    raise WrongRandomness(message)
