"""A release source that can be played again. For tests only: whoever knows the key can remove the noise."""

import hashlib
from typing import Any, final

from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness

__all__ = ["ReplayRandomness"]


@final
class ReplayRandomness(PrivateRandomness):
    """Stand in for `PrivateRandomness` with bytes that depend on a key alone.

    Not private: never release anything with it. It makes tests on neighbours comparable (same noise, other data) and
    runs repeatable: it fixes the blocks of a release, too. Copies and pickles start again from the beginning.

    Formal guarantees
    -----------------
    - Equal keys give equal bytes to equal sequences of calls.
    - Not promised: any privacy whatsoever.

    Parameters
    ----------
    key
        An int, text or bytes.

    Source
    ------
    SHAKE-256 of the key and a counter (FIPS 202).

    Examples
    --------
    >>> ReplayRandomness("a test").bits(64) == ReplayRandomness("a test").bits(64)
    True

    """

    __slots__ = ("_blocks", "_key")

    def __init__(self, key: int | str | bytes) -> None:
        SharedRandomness(key)  # refuses what is no key
        super().__init__()
        self._key = key
        self._blocks = 0

    def _source(self, count: int) -> bytes:
        label = f"accord replay|{type(self._key).__name__}|{self._blocks}|".encode()
        body = self._key if isinstance(self._key, bytes) else str(self._key).encode("utf-8", "surrogatepass")
        self._blocks += 1
        return hashlib.shake_256(label + body).digest(count)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return (type(self), (self._key,))

    def __repr__(self) -> str:
        return "ReplayRandomness(...)  # not private"
