"""Record by record, on request only: l separate couplings of single records."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import ABSTAIN, Abstain, Coupling, Premises, StatesPremises, Vote
from accord.core.errors import InvalidParameter
from accord.core.points import Ballots, PointsCoupling, Votes, points_of
from accord.core.shared import SharedRandomness
from accord.couplings.atom_race import split

__all__ = [
    "Joined",
    "RecordByRecord",
]


Tables = list[NDArray[Any]]


@final
@dataclass(frozen=True, slots=True)
class Joined:
    """Points of several parts: a vote stands for all of them, each after its length.

    A law abstains in a draw where it does for one of the parts.

    Parameters
    ----------
    parts
        At least one.
    ask
        What each part is shown of a law, in order.
    put
        Makes the records of a tuple from those of its parts.

    """

    parts: tuple[Ballots, ...]
    ask: Callable[[Any], Sequence[Any]]
    put: Callable[[Tables], NDArray[Any]]

    def prepare(self, law: object) -> list[Any] | Abstain:
        """Return what the parts prepare of one law."""
        found = [
            own if part.prepare is None else part.prepare(own)
            for part, own in zip(self.parts, self.ask(law), strict=True)
        ]
        return ABSTAIN if any(one is ABSTAIN for one in found) else found

    def votes_of(self, prepared: Sequence[Sequence[Any] | Abstain]) -> list[Votes]:
        """Return the parts' votes, joined law by law."""
        columns = [
            part.votes_of([law if law is ABSTAIN else law[place] for law in prepared])
            for place, part in enumerate(self.parts)
        ]
        return [_joined(own) for own in zip(*columns, strict=True)]

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        """Return the records, shape (l, d)."""
        return self.put([part.decode(draw, piece) for part, piece in zip(self.parts, split(key), strict=True)])


def _joined(votes: Sequence[Votes]) -> Votes:
    """Return one law's votes from those of its parts."""
    given = [own for own in votes if own is not ABSTAIN]
    if len(given) < len(votes):
        return ABSTAIN
    found: list[Vote] = []
    for pieces in zip(*given, strict=True):
        whole = [struct.pack("<Q", len(key)) + key for key in pieces if isinstance(key, bytes)]
        found.append(b"".join(whole) if len(whole) == len(pieces) else ABSTAIN)
    return found


@final
@dataclass(frozen=True, slots=True)
class RecordByRecord(PointsCoupling):
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

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> Joined:
        """Return the points of ``single``, under a key of its own for each record."""
        size = _check.integer("records", records, least=1)
        parts = [
            points_of(self.single, records=1, draws=draws, shared=shared.child("record", place))
            for place in range(size)
        ]
        return Joined(tuple(parts), ask=lambda law: [law] * size, put=_one_below_another)


def _one_below_another(rows: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(rows, axis=0)
