"""Couplings that the theorems may rest on: those whose marginals and agreement are as theory 4 (G1, G2) asks."""

import math

import numpy as np

from accord.core.coupling import Coupling, Learner
from accord.core.errors import InvalidParameter
from accord.couplings import AtomRace, HashedLattice, NormalLattice, PoissonCoupling, RaceCoupling, RecordByRecord
from accord.distributions import Atoms, Bounded, Categorical, Distribution, Measure, Mixture, PointMass
from accord.learners import EmpiricalLearner, GaussianLearner, HistogramLearner
from accord.learning._listed import ListedLaws
from accord.learning.traits import listed_laws

__all__ = ["joint_coupling", "single_coupling", "tuple_coupling"]

_MOST_VECTORS = 200_000
_MOST_DIMENSION = 12
_LATTICE_MOST = 3
_LARGEST_LOG = math.log(1000.0)
"""A law reads as many points on average; beyond 16 times that it would abstain, with probability exp(-16)."""


def joint_coupling(learner: Learner, *, records: int) -> Coupling | None:
    """Return a coupling of whole tuples: two blocks part with probability at most ``2 t / (1 + t)``, t of tuples."""
    match learner:
        case EmpiricalLearner(categories=labels) if math.comb(records + len(labels) - 1, records) <= _MOST_VECTORS:
            return RaceCoupling(labels, most_vectors=_MOST_VECTORS)
        case GaussianLearner(dimension=int(dimension)) if dimension <= _LATTICE_MOST:
            lattice = NormalLattice(dimension=dimension)
            return lattice if records >= lattice.least_records else None
        case _:
            return None


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
    match learner:
        case EmpiricalLearner(categories=labels):
            return AtomRace(record_by_record=True) if record_by_record else RaceCoupling(labels)
        case GaussianLearner(dimension=int(dimension)) if dimension <= _MOST_DIMENSION:
            return HashedLattice(dimension=dimension, record_by_record=record_by_record)
        case HistogramLearner():
            return HashedLattice(dimension=1, record_by_record=record_by_record)
        case _:
            pass
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
