"""Couple I: one Poisson process over a public reference law gives every law its own tuple."""

import struct
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.coupling import ABSTAIN, Abstain, Coupled, Premises
from accord.core.errors import InvalidParameter
from accord.core.shared import SharedRandomness, require_shared
from accord.couplings._earliest_point import LAYER_BITS, earliest_point
from accord.couplings._iid_reference import IidReference
from accord.couplings._point_race import NONE, point_race
from accord.couplings._rows import Rows
from accord.couplings.reference import BATCH, TupleReference
from accord.distributions import Categorical, Distribution, Uniform

__all__ = ["PoissonCoupling"]

_MOST_POINTS = 1 << 14
_RULES = {"race": point_race, "earliest": earliest_point}


@final
@dataclass(frozen=True, slots=True, init=False)
class PoissonCoupling:
    """Couple tuples along the points of a shared Poisson process, drawn from a public reference law nu.

    Points ``Y_1, Y_2, ...`` are independent tuples from nu, with arrival times ``T_1 < T_2 < ...`` of a process of unit
    rate. By the rule ``"race"`` a law with density f takes the point with the least ``T_j / f(Y_j)``. By the rule
    ``"earliest"`` each point also has a height s, and a law takes the earliest point with ``s <= f(y)``.

    Formal guarantees
    -----------------
    - Marginal: a block's tuple has law ``q^l``, if ``q^l`` has a bounded density with respect to nu and the bound is
      known; up to the rounding of floats. A part of q where nu has nothing is never taken: then it is q given the rest.
    - Agreement of the race: with probability ``int nu(dy) / int max(p(x)/p(y), q(x)/q(y)) nu(dx)``, at least
      ``(1 - TV) / (1 + TV)`` of the laws of tuples. Of the earliest point: ``(1 - TV) / (1 + TV)`` if nu has no atoms.
    - Isolation: a block's key is a function of its own law and place, the public parameters and the shared key.
    - Cost: a law reads ``M = sup f`` points on average; it abstains if it has not finished after ``most_points``, which
      has probability about ``exp(-most_points / M)``. Points are drawn once for all laws.
    - Where no bound of f is known, the race takes the best of exactly ``most_points`` points: its law is then that of
      self-normalised importance sampling, off by about ``E[f^2] / most_points`` in total variation (f^2 under nu), and
      nothing is promised where that is infinite. The earliest point abstains.
    - Not promised: any privacy; a bound of M for tuples, which is the power l of that of one record: for long tuples
      take a reference on a statistic, or close to the laws.

    Parameters
    ----------
    reference
        A `Distribution`, public, that is a probability: then a tuple is l independent records of it. Or any
        `TupleReference`. Uniform laws on boxes and on lists serve for Lebesgue and counting measure (`lebesgue`,
        `counting`).
    rule
        The race agrees more often and does not mind a density that is off by a factor. The earliest point is the
        original rule.
    most_points
        The most points that a law reads in a draw; for the earliest point, that it looks at. At most 2^40.

    Raises
    ------
    InvalidParameter
        If the reference is neither, or a parameter is out of its range.

    Source
    ------
    theory 4 (L1, L3, L4), 8 (S1, S2); Li and El Gamal (arXiv:1701.02827), Angel and Spinka (arXiv:1903.00632); proof
    page ``docs/proofs/poisson.md``.

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> coupling = PoissonCoupling(Normal(0, 9))
    >>> laws = [Normal(0, 1), Normal(0.01, 1), ABSTAIN]
    >>> coupled = coupling.couple(laws, records=1, draws=4, shared=SharedRandomness(1))
    >>> coupled.keys.shape, coupled.keys[0, 2], len(coupled.keys[0, 0])
    ((4, 3), ABSTAIN, 8)
    >>> [bool(a == b) for a, b, _ in coupled.keys]
    [True, True, True, True]
    >>> coupled.decode(0, coupled.keys[0, 0]).shape
    (1, 1)

    """

    reference: TupleReference
    rule: Literal["race", "earliest"]
    most_points: int

    def __init__(
        self,
        reference: Distribution | TupleReference,
        *,
        rule: Literal["race", "earliest"] = "race",
        most_points: int = _MOST_POINTS,
    ) -> None:
        if isinstance(reference, Distribution):
            reference = IidReference(reference)
        if not isinstance(reference, TupleReference):
            raise InvalidParameter("reference must be a public distribution, such as Normal, or a reference on tuples.")
        if not isinstance(rule, str) or rule not in _RULES:
            raise InvalidParameter("rule must be 'race' or 'earliest'.")
        object.__setattr__(self, "reference", reference)
        object.__setattr__(self, "rule", rule)
        most = _check.integer("most_points", most_points, least=1, most=1 << LAYER_BITS)
        object.__setattr__(self, "most_points", most)

    @classmethod
    def lebesgue(
        cls,
        low: ArrayLike,
        high: ArrayLike,
        *,
        rule: Literal["race", "earliest"] = "race",
        most_points: int = _MOST_POINTS,
    ) -> Self:
        """Return the coupling over Lebesgue measure on a public box; what a law has outside is never taken."""
        return cls(Uniform(low, high), rule=rule, most_points=most_points)

    @classmethod
    def counting(
        cls,
        categories: Iterable[Hashable],
        *,
        rule: Literal["race", "earliest"] = "race",
        most_points: int = _MOST_POINTS,
    ) -> Self:
        """Return the coupling over counting measure on a public list of labels."""
        labels = tuple(categories)
        return cls(Categorical(labels, np.ones(len(labels))), rule=rule, most_points=most_points)

    @property
    def isolated(self) -> bool:
        """True: block i's key is a function of law i, public values and the shared key alone."""
        return True

    def premises(self, *, records: int) -> Premises:  # noqa: ARG002 - the same for all
        """Return marginals, and agreement by the total variation of tuples."""
        return Premises(marginals=True, agreement="tuples")

    def couple(
        self, laws: Sequence[Distribution | Abstain], *, records: int, draws: int, shared: SharedRandomness
    ) -> Coupled:
        """Couple the tuples of all laws, ``draws`` times independently.

        Parameters
        ----------
        laws
            Laws that the reference can read. A law of which it sees nothing, `ABSTAIN`, and whatever raises or is NaN,
            is `ABSTAIN` for that block and changes nothing for others.
        records
            Length l of a tuple, at least 1.
        draws
            At least 1.
        shared
            The key that all blocks share.

        """
        size = _check.integer("records", records, least=1)
        rounds = _check.integer("draws", draws, least=1)
        shared = require_shared(shared)
        taken, _ = self._taken(laws, records=size, draws=rounds, shared=shared)
        keys = np.full(taken.shape, ABSTAIN, dtype=object)
        for place in zip(*np.nonzero(taken != NONE), strict=True):
            keys[place] = struct.pack("<q", taken[place])
        return Coupled(keys=keys, decode=_Decoder(self.reference, size, shared))

    def points_read(
        self, laws: Sequence[Distribution | Abstain], *, records: int, draws: int, shared: SharedRandomness
    ) -> NDArray[np.int64]:
        """Return how many points each law reads in each draw, shape (draws, k): its cost, which tells of the data."""
        size = _check.integer("records", records, least=1)
        rounds = _check.integer("draws", draws, least=1)
        return self._taken(laws, records=size, draws=rounds, shared=require_shared(shared))[1]

    def _taken(
        self, laws: Sequence[Distribution | Abstain], *, records: int, draws: int, shared: SharedRandomness
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if len(laws) == 0:
            return np.empty((draws, 0), dtype=np.int64), np.empty((draws, 0), dtype=np.int64)
        with np.errstate(all="ignore"):
            return _RULES[self.rule](
                Rows(laws, reference=self.reference, records=records),
                reference=self.reference,
                records=records,
                draws=draws,
                most_points=self.most_points,
                shared=shared,
            )


@final
@dataclass(frozen=True, slots=True)
class _Decoder:
    """Return the records of the point with a number: its batch is drawn again."""

    reference: TupleReference
    records: int
    shared: SharedRandomness

    def __call__(self, draw: int, key: bytes) -> NDArray[Any]:
        """Return the records, shape (l, d)."""
        (number,) = struct.unpack("<q", key)
        batch = self.reference.points(int(draw), number // BATCH, records=self.records, shared=self.shared)
        point = batch[number % BATCH]
        return np.asarray(
            self.reference.decode(point, draw=int(draw), number=number, records=self.records, shared=self.shared)
        )
