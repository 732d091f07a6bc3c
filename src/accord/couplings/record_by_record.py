"""Record by record, on request only: l separate couplings of single records."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import ABSTAIN, Abstain, Coupled, Coupling, Distribution, Premises, StatesPremises
from accord.core.errors import InvalidParameter
from accord.core.shared import SharedRandomness, require_shared
from accord.couplings.atom_race import split

__all__ = [
    "RecordByRecord",
    "joined",
]


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


@final
@dataclass(frozen=True, slots=True)
class RecordByRecord:
    """Couple the l records of a tuple one by one, each with a shared key of its own.

    This throws agreement away: it is here to compare with, and for laws that nothing couples jointly.

    Formal guarantees
    -----------------
    - Marginal: independent records with the law that ``single`` gives to one.
    - Agreement: ``J^l``, J being the agreement of ``single`` on one record: for close laws a loss of l times ``1 - J``,
      where a joint coupling of the tuple loses of the order of ``sqrt(l)`` times (theory L5).
    - Isolation: that of ``single``; a block abstains in a draw if it does for one of the records.
    - Not promised: the agreement of a joint coupling.

    Parameters
    ----------
    single
        A coupling that takes tuples of one record.

    Source: theory 4 L5, 9; docs/proofs/record-by-record.md.

    Examples
    --------
    >>> from accord.core.coupling import ABSTAIN
    >>> from accord.couplings import StatisticCoupling
    >>> from accord.distributions import Poisson
    >>> coupling = RecordByRecord(StatisticCoupling(Poisson))
    >>> coupled = coupling.couple([Poisson(2.0), ABSTAIN], records=3, draws=2, shared=SharedRandomness(1))
    >>> coupled.decode(0, coupled.keys[0, 0]).shape, coupled.keys[0, 1]
    ((3, 1), ABSTAIN)

    """

    single: Coupling

    def __post_init__(self) -> None:
        if not isinstance(getattr(self.single, "isolated", None), bool) or not hasattr(self.single, "couple"):
            raise InvalidParameter("single must be a coupling that says whether it is isolated.")

    @property
    def isolated(self) -> bool:
        """That of ``single``."""
        return self.single.isolated

    def slack(self, *, laws: int, records: int, draws: int) -> Fraction:
        """Return a bound on the total variation between all votes and those of the ideal coupling: l times that of one.

        Parameters
        ----------
        laws, records, draws
            At least 1.

        """
        size = _check.integer("records", records, least=1)
        if self.single.isolated:
            return Fraction(0)
        slack: Fraction = self.single.slack(laws=laws, records=1, draws=draws)  # type: ignore[attr-defined]
        return size * slack

    def premises(self, *, records: int) -> Premises:
        """Return what ``single`` states of one record; l of them part l times as often at most."""
        if not isinstance(self.single, StatesPremises):
            return Premises(marginals=False, agreement=None)
        one = self.single.premises(records=1)
        agreement = one.agreement if records == 1 or one.agreement is None else "records"
        return Premises(marginals=one.marginals, agreement=agreement)

    def couple(
        self, laws: Sequence[Distribution | Abstain], *, records: int, draws: int, shared: SharedRandomness
    ) -> Coupled:
        """Couple the tuples of all laws, ``draws`` times independently.

        Parameters
        ----------
        laws
            What ``single`` takes.
        records, draws
            At least 1.
        shared
            The key that all blocks share; secret and fresh where ``single`` wants it so.

        """
        size = _check.integer("records", records, least=1)
        shared = require_shared(shared)
        coupled = [
            self.single.couple(laws, records=1, draws=draws, shared=shared.child("record", place))
            for place in range(size)
        ]
        return joined(coupled, put=_one_below_another)


def _one_below_another(rows: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(rows, axis=0)
