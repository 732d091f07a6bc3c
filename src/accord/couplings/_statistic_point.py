"""Point masses: the value itself is the statistic."""

import struct
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accord.core.coupling import ABSTAIN, Vote
from accord.couplings._label_bytes import label_bytes, label_of
from accord.distributions import PointMass
from accord.distributions.categorical import label_array

__all__ = ["PointValue"]


@final
@dataclass(frozen=True, slots=True)
class PointValue:
    """The constant value of l records. There is nothing to race for."""

    records: int

    name: ClassVar[str] = "point mass"
    least_records: ClassVar[int] = 1

    def vote(self, law: object) -> Vote:
        """Return the bytes of a `PointMass` law's value."""
        if type(law) is not PointMass:
            return ABSTAIN
        if law.vector is not None:
            return b"n" + struct.pack(f"<{len(law.vector)}d", *(value + 0.0 for value in law.vector))  # -0.0 is 0.0
        return b"l" + label_bytes(law.label)

    def decode(self, key: bytes) -> NDArray[Any]:
        """Return the records, shape (l, d): floats, or Python objects where it is a label."""
        kind, body = key[:1], key[1:]
        labels = label_array([label_of(body)]).astype(object) if kind == b"l" else None
        row = np.frombuffer(body, dtype="<f8").astype(np.float64) if labels is None else labels
        return np.repeat(row[None, :], self.records, axis=0)
