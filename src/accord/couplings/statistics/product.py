"""Tuples of laws with independent columns: a race for each factor."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import ABSTAIN, Coupling, Distribution, Premises, StatesPremises, Vote
from accord.core.errors import InvalidParameter
from accord.core.points import PointsCoupling, points_of
from accord.core.shared import SharedRandomness
from accord.couplings.atom_race import label_bytes, label_of
from accord.couplings.record_by_record import Joined
from accord.distributions import PointMass, Product
from accord.distributions.categorical import label_array

__all__ = [
    "PointValue",
    "ProductCoupling",
]


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


@final
@dataclass(frozen=True, slots=True, init=False)
class ProductCoupling(PointsCoupling):
    """Couple tuples of `Product` laws by one independent coupling for each factor.

    Formal guarantees
    -----------------
    - Marginal: the factors' tuples are independent with the factors' own laws, so the tuple has the product's law as
      far as each part has its factor's.
    - Agreement: the product over the factors of what the parts promise; at total variation t_c of the tuples of factor
      c, at least ``prod_c (1 - t_c) / (1 + t_c)``.
    - Isolation: as each part is isolated. A factor that abstains is the block's abstention.
    - Not promised: the agreement of one race on all factors at once. Small disagreements of F equally distant factors
      add up, which is worse than one race by a factor of about ``sqrt(F)``.

    Parameters
    ----------
    parts
        One isolated coupling for each factor, in order.

    Raises
    ------
    InvalidParameter
        If there is none, or one is not isolated.

    Source: theory 8 S1, S3; docs/proofs/statistics.md.

    """

    parts: tuple[Coupling, ...]

    def __init__(self, parts: Iterable[Coupling]) -> None:
        found = tuple(parts)
        _check.at_least_one("parts", found)
        if not all(getattr(part, "isolated", None) is True for part in found):
            raise InvalidParameter("parts must be isolated couplings, one for each factor.")
        _check.store(self, parts=found)

    @property
    def isolated(self) -> bool:
        """True while each part is: block i's key is a function of law i, public values and the shared key alone."""
        return all(part.isolated is True for part in self.parts)

    def premises(self, *, records: int) -> Premises:
        """Return the parts' marginals; agreement where there is one part, as those of several multiply."""
        stated = [part.premises(records=records) for part in self.parts if isinstance(part, StatesPremises)]
        if len(stated) < len(self.parts):
            return Premises(marginals=False, agreement=None)
        alone = stated[0].agreement if len(stated) == 1 else None
        return Premises(marginals=all(one.marginals for one in stated), agreement=alone)

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> Joined:
        """Return the points of all parts; laws are `Product` ones with as many factors as there are parts."""
        parts = [
            points_of(part, records=records, draws=draws, shared=shared.child("factor", place))
            for place, part in enumerate(self.parts)
        ]
        return Joined(tuple(parts), ask=_factors, put=_side_by_side)


def _side_by_side(tables: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the columns of all tables: floats, or Python objects where there are labels."""
    kinds = {table.dtype for table in tables}
    kind = kinds.pop() if len(kinds) == 1 else np.dtype(object)
    return np.concatenate([table.astype(kind) for table in tables], axis=1)


def _factors(law: object) -> tuple[Distribution, ...]:
    """Return a law's factors; none of a law that is no product."""
    return law.factors if type(law) is Product else ()
