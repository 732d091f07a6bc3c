"""Votes put together from votes on parts of a tuple."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.coupling import ABSTAIN, Coupled
from accord.couplings._label_bytes import split

__all__ = ["joined"]

Tables = list[NDArray[Any]]


def joined(parts: Sequence[Coupled], *, put: Callable[[Tables], NDArray[Any]]) -> Coupled:
    """Return votes that stand for all parts, each after its length; a block abstains where it does for one of them.

    Parameters
    ----------
    parts
        At least one, each of shape (draws, k).
    put
        Makes the records of a tuple from those of its parts.

    """
    keys = np.full(parts[0].keys.shape, ABSTAIN, dtype=object)
    for place in np.ndindex(*keys.shape):
        found = [part.keys[place] for part in parts]
        if all(isinstance(key, bytes) for key in found):
            keys[place] = b"".join(struct.pack("<Q", len(key)) + key for key in found)
    return Coupled(keys=keys, decode=_Decoder(tuple(part.decode for part in parts), put))


@final
@dataclass(frozen=True, slots=True)
class _Decoder:
    parts: tuple[Callable[[int, bytes], NDArray[Any]], ...]
    put: Callable[[Tables], NDArray[Any]]

    def __call__(self, draw: int, key: bytes) -> NDArray[Any]:
        """Return the records, shape (l, d)."""
        return self.put([part(draw, piece) for part, piece in zip(self.parts, split(key), strict=True)])
