"""Tuples by sufficient statistics: couple a sum, a scatter or counts once, and draw the records afterwards."""

from dataclasses import dataclass
from typing import Any, Final, final

from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import Coupling, Distribution, Premises, Vote
from accord.core.errors import InvalidParameter
from accord.core.points import PointsCoupling
from accord.core.shared import SharedRandomness
from accord.couplings.lattice.cells import CellRace
from accord.couplings.lattice.normal import NormalLattice
from accord.couplings.race import RaceCoupling
from accord.couplings.statistics.gamma import GammaStatistic
from accord.couplings.statistics.product import PointValue, ProductCoupling
from accord.couplings.statistics.sums import ExponentialSum, PoissonSum
from accord.distributions import Categorical, Exponential, Gamma, Normal, PointMass, Poisson, Product

__all__ = ["ProductCoupling", "StatisticCoupling", "coupling_for"]

_Statistic = PoissonSum | ExponentialSum | GammaStatistic

_STATISTICS: Final[dict[type, type[_Statistic | PointValue]]] = {
    Poisson: PoissonSum,
    Exponential: ExponentialSum,
    Gamma: GammaStatistic,
    PointMass: PointValue,
}


@final
@dataclass(frozen=True, slots=True)
class StatisticCoupling(PointsCoupling):
    """Couple tuples of l records from one family by one race on their sufficient statistic, with no bounds on the data.

    Given the statistic, the records have the same law for every member of the family, so agreement on the statistic is
    agreement on the tuple, at the total variation distance of the *tuples*: l enters by about its square root, where a
    coupling record by record loses l times (theory L5). The statistic is

    - `Poisson`: the sum; its events are then thrown on the records, uniformly;
    - `Exponential`: the sum; the records are then uniform shares of it;
    - `Gamma`: the sum and the proportions (that is, the sum and the sum of logarithms), shape and scale both unknown;
    - `PointMass`: the value.

    Shared points live in public cells and are made by counter from the shared key when a law asks for them. A law takes
    the point with the least arrival time divided by its own density there.

    Formal guarantees
    -----------------
    - Marginal: a block's tuple has the law of l independent records, up to 1e-11 in total variation (tails that are
      left out; 1e-9 for gamma laws) and double precision.
    - Agreement: that of theory S1 for the laws of the tuples, at least ``(1 - t) / (1 + t)`` where t is their total
      variation; for point masses 1 or 0.
    - Isolation: by its form (`accord.core.PointsCoupling`).
    - Equivariance: one factor in all scales of exponential or gamma laws leaves the law of the votes as it is.
    - Cost: a few points a law and draw; for gamma laws some dozens, hundreds below 30 records, each of l numbers (laws
      that reach the same points share them).
    - Not promised: any privacy by itself; a running time that is independent of the laws; gamma laws of a shape outside
      1e-3 to 1e6 (they abstain) or tuples of fewer than 12 of them; Poisson sums above 2^50.

    Parameters
    ----------
    family
        `Poisson`, `Exponential`, `Gamma` or `PointMass`: the class. A law of another class abstains.

    Raises
    ------
    InvalidParameter
        For another family.

    Source: theory 4 L4, L5, 8 S1, S3, S4; docs/proofs/statistics.md.

    Examples
    --------
    >>> from accord.core.coupling import ABSTAIN
    >>> coupling = StatisticCoupling(Poisson)
    >>> laws = [Poisson(4.0), Poisson(4.01), ABSTAIN]
    >>> coupled = coupling.couple(laws, records=100, draws=5, shared=SharedRandomness(1))
    >>> coupled.keys.shape, coupled.keys[0, 2], coupled.decode(0, coupled.keys[0, 0]).shape
    ((5, 3), ABSTAIN, (100, 1))

    """

    family: type[Distribution]

    def __post_init__(self) -> None:
        if not isinstance(self.family, type) or self.family not in _STATISTICS:
            raise InvalidParameter("family must be Poisson, Exponential, Gamma or PointMass, the class itself.")

    @property
    def least_records(self) -> int:
        """Smaller tuples are refused: 12 for gamma laws, whose shape one record does not show, 1 for the others."""
        return _STATISTICS[self.family].least_records

    def premises(self, *, records: int) -> Premises:  # noqa: ARG002 - the same for all
        """Return marginals, and agreement by the total variation of tuples."""
        return Premises(marginals=True, agreement="tuples")

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> "_Raced | _Constant":
        """Return the points of all draws; laws are of the family, by exact type, tuples of at least `least_records`."""
        size = _check.integer("records", records, least=self.least_records)
        statistic = _STATISTICS[self.family](size)
        if isinstance(statistic, PointValue):
            return _Constant(statistic, draws)
        key = shared.child("statistic", statistic.name)
        return _Raced(statistic, CellRace(key, draws=draws, uniforms=statistic.uniforms), key)


def coupling_for(law: Distribution | type[Distribution], *, records: int) -> Coupling:
    """Return the joint coupling of tuples for laws of this kind, where there is one that is isolated.

    Parameters
    ----------
    law
        A public example: its class, and for `Categorical`, `Normal` and `Product` its public parts (the list of
        categories, the dimension, the kinds of the factors). For the other families the class will do. Never a law that
        was fitted to data, unless these parts are public.
    records
        Length l of the tuples that will be coupled.

    Raises
    ------
    InvalidParameter
        If there is none: other families, normal laws in more than two columns, tuples that are too short.

    Source: theory 8 S3; docs/proofs/statistics.md.

    Examples
    --------
    >>> coupling_for(Poisson, records=50)
    StatisticCoupling(family=<class 'accord.distributions.poisson.Poisson'>)
    >>> coupling_for(Normal([0, 0], [[1, 0], [0, 1]]), records=50)
    NormalLattice(dimension=2)

    """
    size = _check.integer("records", records, least=1)
    if type(law) is Product:
        return ProductCoupling([coupling_for(factor, records=size) for factor in law.factors])
    if type(law) is Categorical:
        return RaceCoupling(law.categories)
    family = law if isinstance(law, type) else type(law)
    found: StatisticCoupling | NormalLattice | None = None
    if family in _STATISTICS:
        found = StatisticCoupling(family)
    elif isinstance(law, Normal) and law.dimension <= 2:
        found = NormalLattice(dimension=law.dimension)
    if found is None:
        raise InvalidParameter(
            "law must be Poisson, Exponential, Gamma or PointMass, or an example of Categorical, Normal (one or two "
            "columns) or Product of these: there is no sufficient statistic of other families here."
        )
    if size < found.least_records:
        raise InvalidParameter(f"records must be at least {found.least_records} for tuples of this family.")
    return found


@final
@dataclass(frozen=True, slots=True)
class _Raced:
    statistic: _Statistic
    race: CellRace
    shared: SharedRandomness

    def votes(self, law: object) -> list[Vote]:
        """Return the point that one law takes in each draw."""
        return self.race.votes(self.statistic.reach(law))

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        """Return the records, shape (l, 1)."""
        return self.statistic.decode(self.race, self.shared, int(draw), key)


@final
@dataclass(frozen=True, slots=True)
class _Constant:
    statistic: PointValue
    draws: int

    def votes(self, law: object) -> list[Vote]:
        """Return one law's value in each draw."""
        return [self.statistic.vote(law)] * self.draws

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:  # noqa: ARG002 - the same in every draw
        """Return the records, shape (l, d)."""
        return self.statistic.decode(key)
