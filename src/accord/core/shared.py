"""Shared randomness: a key from which every block reads the same stream.

Everything is a function of the key and of labels (draw, cell, block ...), never of what was read before, so the
number of workers and the order of reading change nothing.
"""

import hashlib
import os
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter, WrongRandomness

__all__ = ["Generator", "SharedRandomness", "mix", "require_shared", "uniform_open", "word_at"]

Generator = np.random.Generator
Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@final
class SharedRandomness:
    """A key, and the streams that hang from it by label.

    Parameters
    ----------
    key
        An int, text or bytes. Equal keys give equal streams. `SharedRandomness.fresh` takes one from the operating
        system.

    Formal guarantees
    -----------------
    - A stream is a function of the key and its labels alone: the same in every process, in any order of reading.
    - Different labels give streams that are independent as far as statistical tests can tell.
    - Not promised: secrecy. No privacy rests on this class, and it cannot serve as release noise.

    Examples
    --------
    >>> shared = SharedRandomness("a public key")
    >>> shared.seed("block", 3) == SharedRandomness("a public key").seed("block", 3)
    True
    >>> shared.seed("block", 3) == shared.seed("block", 4)
    False

    """

    __slots__ = ("_digest",)

    def __init__(self, key: int | str | bytes) -> None:
        if isinstance(key, bool) or not isinstance(key, (int, str, bytes)):
            message = f"a shared key is an int, text or bytes, not {type(key).__name__}."
            raise InvalidParameter(message)
        self._digest = hashlib.blake2b(_encode((key,)), digest_size=32, person=b"accord-shared").digest()

    @classmethod
    def fresh(cls) -> "SharedRandomness":
        """Return a key that nobody chose, from the operating system."""
        return cls(os.urandom(32))

    def child(self, *labels: int | str) -> "SharedRandomness":
        """Return the key that hangs from this one by ``labels``."""
        return SharedRandomness(self._derive(labels, 32))

    def stream(self, *labels: int | str) -> Generator:
        """Return a numpy Generator (Philox, counter-based) for these labels, always from its start."""
        key = np.frombuffer(self._derive(labels, 16), dtype="<u8").astype(np.uint64)
        return np.random.Generator(np.random.Philox(key=key))

    def seed(self, *labels: int | str) -> int:
        """Return a uniform integer below 2^32 for these labels, for learners that want an int seed."""
        return int.from_bytes(self._derive(labels, 4), "little")

    def word(self, *labels: int | str) -> np.uint64:
        """Return one uniform 64-bit word for these labels."""
        return np.uint64(int.from_bytes(self._derive(labels, 8), "little"))

    def hash_rows(self, rows: NDArray[np.int64], *labels: int | str) -> Words:
        """Return one 64-bit word for every row of integers, shape (n,) from shape (n, m).

        Row by row a function of (key, labels, row); equal rows give equal words.
        """
        state = np.full(len(rows), self.word(*labels), dtype=np.uint64)
        for column in rows.T:
            state = mix((state + _GOLDEN) ^ mix(column.astype(np.int64).view(np.uint64)))
        return state

    def _derive(self, labels: tuple[int | str, ...], size: int) -> bytes:
        return hashlib.blake2b(_encode(labels), key=self._digest, digest_size=size, person=b"accord-label").digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedRandomness) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return "SharedRandomness(...)"


def _encode(labels: tuple[Any, ...]) -> bytes:
    """Encode labels so that different tuples never collide: a type, a length, then the bytes."""
    parts = []
    for label in labels:
        if isinstance(label, bytes):
            kind, body = b"b", label
        elif isinstance(label, str):
            kind, body = b"s", label.encode("utf-8", "surrogatepass")
        else:
            kind, body = b"i", str(int(label)).encode()
        parts.append(kind + len(body).to_bytes(8, "little") + body)
    return b"".join(parts)


def mix(words: Words) -> Words:
    """Scramble 64-bit words, one to one (the SplitMix64 finaliser of Steele, Lea and Flood 2014)."""
    words = words ^ (words >> np.uint64(30))
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def word_at(streams: Words, counter: NDArray[np.int64]) -> Words:
    """Return word number ``counter`` of each stream, as SplitMix64 gives it when started at the stream's state."""
    return mix(streams + (counter.astype(np.uint64) + np.uint64(1)) * _GOLDEN)


def uniform_open(words: Words) -> NDArray[np.float64]:
    """Return floats uniform on the open interval (0, 1): the midpoints of 2^52 equal cells, never 0 or 1."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def require_shared(shared: object) -> SharedRandomness:
    """Return ``shared`` if it is a shared key; ``None`` stands for a fresh one.

    Raises
    ------
    WrongRandomness
        For anything else, a secret source above all.

    """
    if shared is None:
        return SharedRandomness.fresh()
    if not isinstance(shared, SharedRandomness):
        message = f"blocks read SharedRandomness only, not {type(shared).__name__}: pass SharedRandomness(key)."
        raise WrongRandomness(message)
    return shared
