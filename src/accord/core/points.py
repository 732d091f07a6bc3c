"""The one guarded loop over laws: what a law does when it is asked reaches its own votes only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.alone import alone
from accord.core.coupling import ABSTAIN, Abstain, Coupled, Coupling, Distribution, Vote
from accord.core.errors import InvalidParameter
from accord.core.shared import SharedRandomness, require_shared

__all__ = [
    "Ballots",
    "BatchedPoints",
    "Points",
    "PointsCoupling",
    "PreparedPoints",
    "Votes",
    "couple_all",
    "is_isolated",
    "points_of",
    "votes_on",
]


Votes = Sequence[Vote] | Abstain
"""One law's vote in each draw, or `ABSTAIN` for all of them."""


class Points(Protocol):
    """The shared points of one call of a coupling: a function of the shared key and public values."""

    def votes(self, law: Any, /) -> Votes:  # noqa: ANN401 - a law may be anybody's object
        """Return the law's vote in each draw. It may raise: then the law abstains, alone."""

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        """Return the tuple that a key names, shape (records, d): a function of draw, key and public values."""


@runtime_checkable
class BatchedPoints(Protocol):
    """Points for which it pays to work out the votes of many laws together."""

    def votes_of(self, given: Sequence[Any], /) -> Sequence[Votes]:
        """Return the votes of each, in its place: a function of that one alone, whoever else is there.

        What is given is the laws, or what `PreparedPoints.prepare` made of them. In the place of a law that abstains
        stands `ABSTAIN`, so that shapes are public; nobody reads what it votes.
        """

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        """Return the tuple that a key names, shape (records, d): a function of draw, key and public values."""


@runtime_checkable
class PreparedPoints(BatchedPoints, Protocol):
    """Batched points that need plain values of each law only. Without ``prepare`` the laws are read in the batch."""

    def prepare(self, law: Any, /) -> Any:  # noqa: ANN401 - as above; plain values, of whatever kind
        """Ask the law what its votes need, as plain values, or return `ABSTAIN`. It may raise, as `Points.votes`."""


class Ballots(Protocol):
    """The one form that the loop takes: batched, with ``prepare`` or None for it."""

    @property
    def prepare(self) -> Callable[[Any], Any] | None:
        """What asks one law."""

    def votes_of(self, given: Sequence[Any], /) -> Sequence[Votes]:
        """As `BatchedPoints.votes_of`."""

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        """As `Points.decode`."""


@runtime_checkable
class PointsCoupling(Coupling, Protocol):
    """A coupling that is isolated by its form: subclass this and write ``points``.

    Formal guarantees
    -----------------
    - Isolation: ``points`` sees no law, ``votes`` and ``prepare`` one law each time, inside the core's guard. So a
      block's votes are a function of its own law, public values and the shared key, as far as the object keeps nothing
      of a law and ``votes_of`` mixes no two. `accord.testing.check_coupling` looks for both.
    - Whatever goes wrong while one law is asked is the abstention of that law.

    Source: theory 4 L3, 9; docs/proofs/isolation.md.
    """

    __slots__ = ()

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> Points | BatchedPoints:
        """Return the points of tuples of ``records`` records, ``draws`` times independently.

        Raises
        ------
        InvalidParameter
            If the coupling does not take tuples of this length.

        """

    @property
    def isolated(self) -> bool:
        """True: block i's vote is a function of law i, public values and the shared key alone."""
        return True

    def couple(self, laws: Sequence[Any], *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
        """Couple tuples of ``records`` records of each law, ``draws`` times independently.

        Parameters
        ----------
        laws
            Those that the coupling takes. `ABSTAIN`, any other law, and whatever goes wrong with one law is `ABSTAIN`
            for that block and changes nothing for others.
        records
            Length l of a tuple, at least 1.
        draws
            At least 1.
        shared
            The key that all blocks share.

        """
        return couple_all(self, laws, records=records, draws=draws, shared=shared)


def couple_all(
    coupling: Coupling,
    laws: Sequence[Distribution | Abstain],
    *,
    records: int,
    draws: int,
    shared: SharedRandomness,
) -> Coupled:
    """Couple all laws, by a coupling of either form.

    Formal guarantees
    -----------------
    - A `PointsCoupling` is isolated as it says there.
    - Any other coupling is called once, with all laws, and its own word holds.

    Parameters
    ----------
    coupling
        A `PointsCoupling`, or any other `Coupling`.
    laws, records, draws, shared
        As in `Coupling.couple`.

    Source: theory 4 L3, 9; docs/proofs/isolation.md.
    """
    points = points_of(coupling, records=records, draws=draws, shared=shared)
    return Coupled(keys=votes_on(points, laws, draws=draws), decode=points.decode)


def is_isolated(coupling: Coupling) -> bool:
    """Return the coupling's word on whether it is isolated.

    Raises
    ------
    InvalidParameter
        If that is anything but exactly True or False.

    """
    isolated: object = coupling.isolated
    if isolated is not True and isolated is not False:
        raise InvalidParameter("a coupling's isolated must be exactly True or False.")
    return isolated


def points_of(coupling: Coupling, *, records: int, draws: int, shared: SharedRandomness) -> Ballots:
    """Return the points of one call, in the one form that the loop takes."""
    _check.integer("draws", draws, least=1)
    shared = require_shared(shared)
    if not isinstance(coupling, PointsCoupling):
        return _AllAtOnce(coupling, records, draws, shared)
    points = coupling.points(records=records, draws=draws, shared=shared)
    return _Together(points, is_isolated(coupling)) if isinstance(points, BatchedPoints) else _OneByOne(points)


def votes_on(points: Ballots, laws: Sequence[Any], *, draws: int) -> NDArray[np.object_]:
    """Return the keys of all laws, shape (draws, k): each law is asked alone, in the core's guard."""
    keys = np.full((draws, len(laws)), ABSTAIN, dtype=object)
    given, prepare = list(laws), points.prepare
    if prepare is not None:
        given = [law if law is ABSTAIN else alone(partial(prepare, law), failed=ABSTAIN) for law in laws]
    if all(own is ABSTAIN for own in given):
        return keys
    for block, (own, votes) in enumerate(zip(given, points.votes_of(given), strict=True)):
        if own is not ABSTAIN and votes is not ABSTAIN and len(votes) == draws:
            keys[:, block] = votes
    return keys


@final
@dataclass(frozen=True, slots=True)
class _OneByOne:
    """Points whose votes are worked out law by law, while the law is asked."""

    points: Points

    def prepare(self, law: object) -> Votes:
        votes = self.points.votes(law)
        return votes if votes is ABSTAIN else list(votes)

    def votes_of(self, prepared: Sequence[Votes]) -> Sequence[Votes]:
        return prepared

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        return self.points.decode(draw, key)


@final
@dataclass(frozen=True, slots=True)
class _Together:
    """Points whose votes are worked out together; if that fails and they are isolated, for each alone."""

    points: BatchedPoints
    isolated: bool

    @property
    def prepare(self) -> Callable[[Any], Any] | None:
        return self.points.prepare if isinstance(self.points, PreparedPoints) else None

    def votes_of(self, prepared: Sequence[Any]) -> Sequence[Votes]:
        def ask(chosen: Sequence[Any]) -> Sequence[Votes] | None:
            found = self.points.votes_of(chosen)
            return found if len(found) == len(chosen) else None

        def ask_one(place: int) -> Votes:
            given = [own if place == block else ABSTAIN for block, own in enumerate(prepared)]
            found = alone(partial(ask, given), failed=None)
            return ABSTAIN if found is None else found[place]

        if not self.isolated:
            return self.points.votes_of(prepared)
        together = alone(partial(ask, prepared), failed=None)
        if together is not None:
            return together
        return [ABSTAIN if own is ABSTAIN else ask_one(place) for place, own in enumerate(prepared)]

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        return self.points.decode(draw, key)


@final
@dataclass(slots=True)
class _AllAtOnce:
    """A coupling with a loop of its own over laws, such as one that is not isolated: it is called with all of them."""

    coupling: Coupling
    records: int
    draws: int
    shared: SharedRandomness
    known: Callable[[int, bytes], NDArray[Any]] | None = field(default=None, init=False)
    prepare: None = field(default=None, init=False)

    def votes_of(self, prepared: Sequence[Any]) -> Sequence[Votes]:
        coupled = self._coupled(prepared)
        return [coupled.keys[:, place].tolist() for place in range(len(prepared))]

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        known = self._coupled([ABSTAIN]).decode if self.known is None else self.known
        return known(draw, key)

    def _coupled(self, laws: Sequence[Any]) -> Coupled:
        coupled = self.coupling.couple(laws, records=self.records, draws=self.draws, shared=self.shared)
        self.known = coupled.decode
        return coupled
