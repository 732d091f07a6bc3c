"""Tuples of grid records as bytes and back: equal bytes are equal tuples, and need no secret to be read."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.couplings._grid_law import Integers
from accord.couplings._label_bytes import label_of, split
from accord.distributions.categorical import label_array

__all__ = ["Decoder", "tuple_key"]


def tuple_key(kinds: str, cells: Integers, *, names: Sequence[bytes]) -> bytes:
    """Return the canonical bytes of a tuple.

    Parameters
    ----------
    kinds
        One letter a column.
    cells
        Shape (at least d, l).
    names
        The bytes of each label, by its number.

    """
    columns = []
    for kind, column in zip(kinds, cells, strict=False):
        parts = [column.astype("<i8").tobytes()] if kind == "n" else [names[number] for number in column.tolist()]
        columns.append(b"".join(struct.pack("<Q", len(part)) + part for part in parts))
    return kinds.encode() + b":" + b"".join(struct.pack("<Q", len(column)) + column for column in columns)


@final
@dataclass(frozen=True, slots=True)
class Decoder:
    """Give the records of a key; draw and key are all it reads, besides the public widths."""

    steps: tuple[float, ...]

    def __call__(self, draw: int, key: bytes) -> NDArray[Any]:  # noqa: ARG002 - the same in every draw
        """Return the records, shape (l, d): floats, or Python objects where there are labels."""
        kinds, _, body = key.partition(b":")
        columns = [self._column(place, kind, split(part)) for place, (kind, part) in enumerate(_columns(kinds, body))]
        kind = columns[0].dtype if len({column.dtype for column in columns}) == 1 else np.dtype(object)
        records = np.empty((len(columns[0]), len(columns)), dtype=kind)
        for place, column in enumerate(columns):
            records[:, place] = column
        return records

    def _column(self, place: int, kind: str, parts: Sequence[bytes]) -> NDArray[Any]:
        if kind == "l":
            return label_array([label_of(part) for part in parts])
        step = self.steps[0] if len(self.steps) == 1 else self.steps[place]
        values: NDArray[Any] = np.frombuffer(parts[0], dtype="<i8") * step + 0.0  # -0.0 is 0.0
        return values


def _columns(kinds: bytes, body: bytes) -> list[tuple[str, bytes]]:
    return list(zip(kinds.decode(), split(body), strict=True))
