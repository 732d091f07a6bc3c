"""Which coupling the theorems use for a learner's laws, and which premises it keeps."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.coupling import (
    ABSTAIN,
    Abstain,
    Coupling,
    Distribution,
    Learner,
    Measure,
    Premises,
    StatesPremises,
    Vote,
)
from accord.core.errors import InvalidParameter
from accord.core.points import Ballots, PointsCoupling, points_of, votes_on
from accord.core.shared import SharedRandomness
from accord.couplings import AtomRace, HashedLattice, RecordByRecord
from accord.distributions import Atoms, Bounded, Categorical, Mixture, PointMass
from accord.learners.traits import listed_laws, traits_of
from accord.theory.couplings.poisson import PoissonCoupling

__all__ = [
    "ListedLaws",
    "joint_coupling",
    "require_premises",
    "single_coupling",
    "stated_premises",
    "tuple_coupling",
]


def stated_premises(coupling: Coupling, *, records: int) -> Premises:
    """Return what a coupling states; nothing for one that is silent."""
    if not isinstance(coupling, StatesPremises):
        return Premises(marginals=False, agreement=None)
    stated: object = coupling.premises(records=records)
    if not isinstance(stated, Premises):
        raise InvalidParameter("a coupling's premises(records=...) must return Premises.")
    return stated


def require_premises(coupling: Coupling, *, records: int, whole_tuples: bool = False) -> None:
    """Refuse a coupling on which a promise of accuracy cannot rest.

    Parameters
    ----------
    coupling
        That was passed for this promise.
    records
        Of a tuple.
    whole_tuples
        Whether sizes rest on the total variation of whole tuples, and not on that of one record.

    Raises
    ------
    InvalidParameter
        Naming what is missing.

    Source
    ------
    theory 4 (G1, G2), L9, L10, L12; proof page ``docs/proofs/private-learners.md``.

    """
    stated = stated_premises(coupling, records=records)
    missing = []
    if not stated.marginals:
        missing.append("that a block's tuple has the law of its own records (marginals)")
    if stated.agreement is None:
        missing.append("that two blocks part with probability at most 2 l TV (agreement)")
    elif whole_tuples and stated.agreement != "tuples":
        missing.append("that two blocks part as the total variation of whole tuples says (agreement in tuples)")
    if not missing:
        return
    message = (
        f"{type(coupling).__name__} does not state {' and '.join(missing)} for tuples of {records}, and sizes from "
        f"alpha and beta rest on it: leave coupling out, pass one whose premises(records=...) states it, or give "
        f"blocks and records, without a promise of accuracy."
    )
    raise InvalidParameter(message)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListedLaws(PointsCoupling):
    """Run an isolated coupling on the laws of a public list, one at a time.

    Formal guarantees
    -----------------
    - Marginal and agreement: those of ``inner``.
    - Isolation: by its form (`accord.core.PointsCoupling`). Which votes of the list are worked out, and when, changes
      nothing but the time that is taken.
    - A law that is not of the list is `ABSTAIN` for its block.
    - Not promised: any privacy.

    Parameters
    ----------
    inner
        An isolated coupling.
    candidates
        The public list.

    """

    inner: Coupling
    candidates: tuple[Distribution, ...]

    def premises(self, *, records: int) -> Premises:
        """Return those of ``inner``."""
        return stated_premises(self.inner, records=records)

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> "_Listed":
        """Return the points of ``inner``."""
        inner = points_of(self.inner, records=records, draws=draws, shared=shared)
        return _Listed(inner, self.candidates, {id(law): place for place, law in enumerate(self.candidates)}, draws, {})


@final
@dataclass(frozen=True, slots=True)
class _Listed:
    inner: Ballots
    candidates: tuple[Distribution, ...]
    places: dict[int, int]
    draws: int
    known: dict[int, list[Vote]]
    """Votes of the public list, as far as they have been asked for."""

    def votes(self, law: object) -> list[Vote] | Abstain:
        """Return the votes of the candidate that the law is."""
        place = self._place(law)
        if place is None:
            return ABSTAIN
        if place not in self.known:
            self.known[place] = votes_on(self.inner, [self.candidates[place]], draws=self.draws)[:, 0].tolist()
        return self.known[place]

    def _place(self, law: object) -> int | None:
        """Return the place of a law; one that equals one of the list may have come from another process."""
        if id(law) in self.places:
            return self.places[id(law)]
        return next((place for place, known in enumerate(self.candidates) if known == law), None)

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        """Return the records, shape (l, d)."""
        return self.inner.decode(draw, key)


_MOST_DIMENSION = 12
_LARGEST_LOG = math.log(1000.0)
"""A law reads as many points on average; beyond 16 times that it would abstain, with probability exp(-16)."""


def joint_coupling(learner: Learner, *, records: int) -> Coupling | None:
    """Return a coupling of whole tuples: two blocks part with probability at most ``2 t / (1 + t)``, t of tuples."""
    return traits_of(learner).joint_coupling(records)


def tuple_coupling(learner: Learner, *, records: int) -> Coupling:
    """Return a coupling of tuples in which two blocks part with probability at most ``2 l TV``, TV of one record.

    Raises
    ------
    InvalidParameter
        If none is known for this learner: pass one as ``coupling=``.

    """
    joint = joint_coupling(learner, records=records)
    return single_coupling(learner, record_by_record=records > 1) if joint is None else joint


def single_coupling(learner: Learner, *, record_by_record: bool = False) -> Coupling:
    """Return a coupling of single records in which two blocks part with probability at most ``2 TV``.

    With ``record_by_record`` tuples are as many independent copies of it, so that ``2 l TV`` bounds theirs.

    Raises
    ------
    InvalidParameter
        If none is known for this learner: pass one as ``coupling=``.

    """
    known = traits_of(learner).single_coupling(record_by_record=record_by_record)
    if known is not None:
        return known
    candidates = listed_laws(learner)
    if candidates and all(map(_lists_atoms, candidates)):
        return ListedLaws(inner=AtomRace(record_by_record=record_by_record), candidates=candidates)
    if candidates and all(map(_is_bounded, candidates)) and candidates[0].dimension <= _MOST_DIMENSION:
        lattice = HashedLattice(dimension=candidates[0].dimension, record_by_record=record_by_record)
        return ListedLaws(inner=lattice, candidates=candidates)
    points = _points_of(candidates)
    if points is not None:
        return ListedLaws(inner=RecordByRecord(points) if record_by_record else points, candidates=candidates)
    message = (
        f"no coupling with the agreement that the theorem needs is known for {type(learner).__name__}: pass one that "
        f"fits its laws as coupling=."
    )
    raise InvalidParameter(message)


def _points_of(candidates: tuple[Distribution, ...]) -> PoissonCoupling | None:
    """Return Couple I over the even mixture of a list, if each law is known to be at most a multiple of it."""
    if not candidates:
        return None
    try:
        coupling = PoissonCoupling(Mixture(candidates, np.ones(len(candidates))))
        bounds = coupling.reference.log_bounds(candidates, records=1)
    except InvalidParameter:
        return None
    return coupling if bool((np.asarray(bounds) < _LARGEST_LOG).all()) else None


def _lists_atoms(law: Distribution) -> bool:
    if law.dimension != 1:
        return False
    return isinstance(law, (Categorical, PointMass)) or (isinstance(law, Atoms) and law.rest_mass == 0)


def _is_bounded(law: Distribution) -> bool:
    return law.measure is Measure.LEBESGUE and isinstance(law, Bounded)
