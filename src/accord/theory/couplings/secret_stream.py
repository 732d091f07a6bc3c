"""Words that nobody can foresee without the key, for couplings whose points must stay secret."""

import hashlib
import struct
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter
from accord.core.shared import SharedRandomness, require_shared

__all__ = ["SecretStream"]

_WORD = 8


@final
class SecretStream:
    """Uniform 64-bit words by number, from SHAKE-256 of a key and labels.

    The streams of `SharedRandomness` pass statistical tests and are fast, but who sees enough of them can compute the
    rest. Here the words of one label tell nothing about those of another to anybody without the key.

    Formal guarantees
    -----------------
    - A word is a function of the key, its labels and its place: the same in every process, in any order of reading.
    - Words with different labels or places are independent and uniform for every observer who does not know the key
      and cannot tell SHAKE-256 with a secret prefix from a random function.
    - Not promised: anything if the key was chosen by a person, is known or was used before. `SharedRandomness.fresh`
      gives a key of 256 bits from the operating system.

    Parameters
    ----------
    shared
        The key.

    Examples
    --------
    >>> stream = SecretStream(SharedRandomness("not a secret"))
    >>> stream.words(3, 5, 0).shape
    (3,)
    >>> bool((stream.words(3, 5, 0) == stream.words(4, 5, 0)[:3]).all())
    True

    """

    __slots__ = ("_key",)

    def __init__(self, shared: SharedRandomness) -> None:
        key = require_shared(shared).child("secret stream")
        # Four words of a keyed hash each: 256 bits.
        self._key = b"".join(int(key.word(part)).to_bytes(_WORD, "little") for part in range(4))

    def words(self, count: int, *labels: int) -> NDArray[np.uint64]:
        """Return ``count`` words for these labels, shape (count,); more words begin with the same ones.

        Parameters
        ----------
        count
            At least 0.
        *labels
            Whole numbers, from 0 to 2^64 - 1.

        """
        if count < 0 or any(not 0 <= label < 2**64 for label in labels):
            raise InvalidParameter("count and labels must be whole numbers from 0 to 2^64 - 1.")
        name = struct.pack(f"<{len(labels) + 1}Q", len(labels), *labels)
        data = hashlib.shake_256(self._key + name).digest(count * _WORD)
        return np.frombuffer(data, dtype="<u8").astype(np.uint64)

    def __repr__(self) -> str:
        return "SecretStream(...)"
