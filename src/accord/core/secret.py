"""Secret randomness from the operating system, and what is exact of it: coins, whole numbers, orders."""

import os
import threading
import warnings
import weakref
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import AccordError, InvalidParameter, NotPrivateWarning, WrongRandomness

__all__ = [
    "PrivateRandomness",
    "bernoulli",
    "geometric",
    "require_private",
    "two_sided_geometric",
    "uniform_below",
    "uniform_order",
]


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


_BLOCK = 64


def uniform_below(bound: int, *, randomness: PrivateRandomness) -> int:
    """Return a uniform integer from 0 to ``bound - 1``, exactly.

    A draw of ``bit_length(bound - 1)`` bits is rejected until it falls below ``bound``: fewer than two tries on
    average.

    Raises
    ------
    InvalidParameter
        If ``bound`` is below 1.

    """
    if bound < 1:
        message = "bound must be at least 1."
        raise InvalidParameter(message)
    width = (bound - 1).bit_length()
    while True:
        draw = randomness.bits(width)
        if draw < bound:
            return draw


def bernoulli(probability: Fraction, *, randomness: PrivateRandomness) -> bool:
    """Return True with exactly this rational probability.

    A uniform real U is read 64 bits at a time and compared with the binary expansion of ``probability``; on a tie the
    next 64 bits are read, so the answer is that of the exact comparison ``U < probability``.

    Raises
    ------
    InvalidParameter
        If ``probability`` is outside [0, 1].

    """
    if not 0 <= probability <= 1:
        message = "probability must be from 0 to 1."
        raise InvalidParameter(message)
    rest, denominator = probability.numerator, probability.denominator
    while True:
        digit, rest = divmod(rest << _BLOCK, denominator)
        draw = randomness.bits(_BLOCK)
        if draw != digit:
            return draw < digit
        if rest == 0:
            return False


def geometric(ratio: Fraction, *, randomness: PrivateRandomness) -> int:
    """Return z >= 0 with probability exactly ``(1 - ratio) ratio^z``.

    One coin a step, so about ``ratio / (1 - ratio)`` coins: meant for ratios such as exp(-epsilon) at usual epsilons.

    Raises
    ------
    InvalidParameter
        If ``ratio`` is outside [0, 1).

    """
    if not 0 <= ratio < 1:
        message = "ratio must be at least 0 and below 1."
        raise InvalidParameter(message)
    count = 0
    while bernoulli(ratio, randomness=randomness):
        count += 1
    return count


def two_sided_geometric(ratio: Fraction, *, randomness: PrivateRandomness) -> int:
    """Return an integer z with probability exactly ``(1 - ratio) / (1 + ratio) * ratio^|z|``."""
    while True:
        size = geometric(ratio, randomness=randomness)
        negative = randomness.bits(1) == 1
        if size > 0 or not negative:
            return -size if negative else size


_MOST_ROUNDS = 64


def uniform_order(count: int, *, randomness: PrivateRandomness) -> NDArray[np.int64]:
    """Return the numbers 0 .. count - 1 in a uniformly random order, shape (count,).

    Each number gets a secret 64-bit key and all are sorted by it. If two keys are equal, all are drawn again: given
    that they differ, every order of independent keys with one law is equally likely.

    Formal guarantees
    -----------------
    - Law: uniform on all orders, exactly; no float and no pseudo-random generator occurs.
    - How much is read depends on ``count`` and on the source alone: once more with a chance below
      ``count^2 / 2^65`` each time.

    Parameters
    ----------
    count
        At least 0.
    randomness
        The secret source.

    Source
    ------
    docs/proofs/partition.md.

    Examples
    --------
    >>> sorted(uniform_order(4, randomness=PrivateRandomness()).tolist())
    [0, 1, 2, 3]

    """
    for _ in range(_MOST_ROUNDS):
        keys = randomness.words(count)
        order = np.argsort(keys).astype(np.int64, copy=False)
        arranged = keys[order]
        if (arranged[1:] != arranged[:-1]).all():
            break
    else:
        stuck()
    return order


def stuck() -> NoReturn:
    """Refuse a source that gives the same for ever. A true source meets this with a chance below 2^-8000."""
    message = "the source of randomness repeats itself: nothing was released."
    raise AccordError(message)
