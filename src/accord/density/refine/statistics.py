"""Refine normal laws, and mixtures of them, by noisy counts of projections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from accord.accounting.of_stages import CONTINUOUS_PART, LEAST_SIGMA, settled
from accord.accounting.of_stages import vectors_epsilon as total_epsilon
from accord.core import check as _check
from accord.core.blocks import Progress
from accord.core.coupling import Distribution
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.release import composing
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import Generator, SharedRandomness, require_shared
from accord.density.refine.mixture_fit import NormalMixture, fit_mixture, root_of, units_in_bins
from accord.density.refine.projections import BinnedProjections, FarUnits, NoisyCounts, UnitRecords
from accord.noise.discrete_gaussian import DiscreteGaussian

__all__ = [
    "CONTINUOUS_PART",
    "LEAST_SIGMA",
    "RefinedModel",
    "StatisticsRefiner",
    "bins_about",
    "directions_of",
    "noise_for",
    "squared_budget",
    "total_epsilon",
    "useful_bins",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RefinedModel:
    """A model that was released, and how it came about.

    Parameters
    ----------
    model
        The law.
    public
        By name, what else was released, and parameters: all of it may be shown to anyone.

    """

    model: Distribution
    public: Mapping[str, Any] = field(default_factory=dict)


_STEPS = 48
_SMALLEST, _LARGEST = Fraction(1, 10**10), Fraction(10**3)


@lru_cache(maxsize=256)
def squared_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return nearly the largest sum of ``(S / tau)^2`` for which the total is (epsilon, delta)-DP.

    Raises
    ------
    InvalidParameter
        If the budget is too small for any useful noise.

    """
    low, high = _SMALLEST, _LARGEST
    if total_epsilon(low, delta=delta) > epsilon:
        raise InvalidParameter("epsilon is too small to refine with: give at least 0.001.")
    if total_epsilon(high, delta=delta) <= epsilon:
        return high
    for _ in range(_STEPS):
        middle = Fraction(float(low + high) / 2) if high < 4 * low else Fraction((float(low) * float(high)) ** 0.5)
        if total_epsilon(middle, delta=delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def noise_for(sensitivity: int, *, epsilon: Fraction, delta: Fraction, shares: Sequence[Fraction]) -> list[Fraction]:
    """Return the sigma of each round, for integers with this L2 sensitivity and shares of the squared budget.

    Parameters
    ----------
    sensitivity
        L2, the same in all rounds.
    shares
        Positive, adding up to at most 1.

    """
    if not all(share > 0 for share in shares) or sum(shares) > 1:
        raise InvalidParameter("shares must be positive and add up to at most 1.")
    squared = squared_budget(epsilon, delta)
    sigmas = []
    for share in shares:
        variance = Fraction(sensitivity) ** 2 / (squared * share) + CONTINUOUS_PART
        sigmas.append(Fraction(isqrt(ceil(variance)) + 1))
    if min(sigmas) < LEAST_SIGMA:
        raise InvalidParameter("the noise is too small for the grid: epsilon is too large to refine with.")
    return sigmas


Floats = NDArray[np.float64]
_SAMPLE = 20_000
_FEWEST, _MOST = 10, 160
_MOST_AROUND = 300


def useful_bins(*, units: int, variance: float, components: int) -> int:
    """Return about how many bins keep most of what the records say, given the variance of the noise of a count.

    More bins lose less by rounding (about ``c / B^2``, c of the order of ``10 K^2``) and add
    ``B variance / n`` of noise.
    """
    best = (20.0 * components**2 * units / variance) ** (1 / 3)
    return int(min(max(best, _FEWEST), _MOST))


def directions_of(model: NormalMixture, *, components: int, full: bool, angles: int, generator: Generator) -> Floats:
    """Return directions a, shape (J, d), along which the model has variance 1.

    The columns. Between each two columns so many, at equal angles once the two are uncorrelated and of variance 1. With
    more than two columns, in coordinates in which the model has covariance 1: for one component sums and differences
    of two coordinates, which tell its covariance best; for several, directions all around, which tell what belongs
    together.
    """
    covariance = model.moments()[1]
    if not full:
        covariance = np.diag(np.diag(covariance))
    d = len(covariance)
    rows = list(np.diag(1 / np.sqrt(np.diag(covariance))))
    if angles == 0:
        return np.array(rows)
    pairs = [(i, j) for i in range(d) for j in range(i)]
    if components > 1 or d == 2:
        for i, j in pairs:
            inverse = np.linalg.inv(root_of(covariance[np.ix_([i, j], [i, j])]))
            for step in range(1, angles + 1):
                turn = np.pi * step / (angles + 1)
                row = np.zeros(d)
                row[[i, j]] = np.array([np.cos(turn), np.sin(turn)]) @ inverse
                rows.append(row)
    if d > 2:
        inverse = np.linalg.inv(root_of(covariance))
        if components == 1:
            rows.extend((inverse[i] + sign * inverse[j]) / np.sqrt(2) for i, j in pairs for sign in (-1, 1))
        else:
            around = generator.standard_normal((min(2 * d * (d + 1), _MOST_AROUND), d))
            rows.extend(around / np.linalg.norm(around, axis=1)[:, None] @ inverse)
    return np.array(rows)


def bins_about(
    model: NormalMixture, directions: Floats, *, bins: int, tails: int, wide: float, generator: Generator
) -> BinnedProjections:
    """Return bins that the model, made wider, fills evenly, and ``tails`` on either side that double in width.

    Parameters
    ----------
    wide
        How much of the bins goes to the model's covariance three times as wide.

    """
    far = int(_SAMPLE * wide)
    mean, covariance = model.moments()
    near = model.draw(_SAMPLE - far, generator)
    outer = mean + 3 * generator.standard_normal((far, len(mean))) @ root_of(covariance).T
    values = directions @ np.concatenate([near, outer]).T
    levels = np.linspace(0, 1, bins + 1)
    levels[0], levels[-1] = 0.25 / bins, 1 - 0.25 / bins
    middle = np.quantile(values, levels, axis=1).T
    reach = (middle[:, -1:] - middle[:, :1]) / 4
    steps = reach * (2.0 ** np.arange(1, tails + 1) - 1)
    inner = np.concatenate([middle[:, :1] - steps[:, ::-1], middle, middle[:, -1:] + steps], axis=1)
    return BinnedProjections(directions=directions, inner=np.ascontiguousarray(inner))


_MOST_ROUNDS, _MOST_ANGLES = 16, 16
_ANGLES_IN_THE_PLANE, _ANGLES = 5, 2
_FIRST_SHARE = Fraction(1, 4)
_FAR_TAILS, _TAILS = 10, 5
_FAR_WIDE, _WIDE = 0.3, 0.1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsRefiner:
    """Count the records in bins along public directions, with noise, and fit normal laws to the counts; twice.

    The first round has bins that reach far beyond the opening model; the next ones fit bins to the model that came out.
    Everything after the noise is post-processing, so the fit may run from many starts until it stops, at no cost.

    Formal guarantees
    -----------------
    - Privacy: `refine` is (epsilon, delta)-DP for one unit under "replace one": each round is discrete Gaussian noise
      on whole numbers that one unit moves by at most ``SHARE sqrt(2 J)`` in L2. The number of units is public.
    - A unit's contribution is a function of its own records, the current model and public numbers alone, whole, and
      added exactly. A record that is not finite counts nowhere.
    - Units with several records weigh as much as others: each bin counts the part of their records in it.
    - Cost: one pass over the records a round, linear in their number, and a fit that does not depend on it: seconds up
      to five columns, minutes at fifteen, growing with the sixth power of their number.
    - Not promised: that the model gets better, or that it is the best mixture; accuracy where a law of several columns
      is not told by its projections on some hundred directions.

    Parameters
    ----------
    epsilon, delta
        The guarantee of one call of `refine`.
    components
        Number of normal laws in the mixture, 1 to 200.
    covariance
        ``"full"``, or ``"diag"`` for independent columns within a component.
    rounds
        1 to 16. The first has a quarter of the squared budget, the others share the rest.
    angles
        Directions between each two columns, besides the columns, 0 to 16; unless given, 5 in the plane and 2 beyond.
        With 0 columns are counted alone, and nothing is known of their correlation.
    starts
        Starts of each fit, 1 to 100. All are tried for a few steps, the best of them to the end; with
        many columns fewer, so that a fit stays within minutes.
    unit
        What a unit of privacy is, for people who read the guarantee.

    Raises
    ------
    InvalidParameter
        Outside these ranges.

    Source
    ------
    Theory 7 (couple, then refine), C4; Canonne, Kamath and Steinke (2020); docs/proofs/refine.md.

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> records = SharedRandomness(1).stream("data").standard_normal((20_000, 1))
    >>> refiner = StatisticsRefiner(epsilon=1, delta="1e-6")
    >>> found = refiner.refine(Normal(0.5, 2), records, units=20_000)
    >>> abs(found.model.mean[0]) < 0.1, refiner.guarantee.delta
    (True, Fraction(1, 1000000))

    """

    epsilon: Fraction
    delta: Fraction
    components: int
    covariance: Literal["full", "diag"]
    rounds: int
    angles: int | None
    starts: int
    unit: str

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        components: int = 1,
        covariance: Literal["full", "diag"] = "full",
        rounds: int = 2,
        angles: int | None = None,
        starts: int = 24,
        unit: str = "record",
    ) -> None:
        if covariance not in {"full", "diag"}:
            raise InvalidParameter("covariance must be 'full' or 'diag'.")
        _check.store(
            self,
            epsilon=_check.epsilon(epsilon),
            delta=_check.delta(delta),
            components=_check.integer("components", components, least=1, most=200),
            covariance=covariance,
            rounds=_check.integer("rounds", rounds, least=1, most=_MOST_ROUNDS),
        )
        if angles is not None:
            angles = _check.integer("angles", angles, least=0, most=_MOST_ANGLES)
        _check.store(
            self,
            angles=angles,
            starts=_check.integer("starts", starts, least=1, most=100),
            unit=ApproxDP(1, "0.5", unit=unit).unit,
        )
        squared_budget(self.epsilon, self.delta)  # refuses what is too little

    @property
    def guarantee(self) -> ApproxDP:
        """The guarantee of one call of `refine`."""
        return ApproxDP(self.epsilon, self.delta, Neighbouring.REPLACE_ONE, self.unit)

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The part of the squared budget that each round has."""
        if self.rounds == 1:
            return (Fraction(1),)
        return (_FIRST_SHARE, *[(1 - _FIRST_SHARE) / (self.rounds - 1)] * (self.rounds - 1))

    def refine(
        self,
        model: Distribution,
        records: NDArray[np.float64] | FarUnits,
        *,
        units: NDArray[np.int64] | int,
        shared: SharedRandomness | None = None,
        randomness: PrivateRandomness | None = None,
        progress: Progress | None = None,
    ) -> RefinedModel:
        """Return a mixture of `components` normal laws near to the law of the records.

        Parameters
        ----------
        model
            A public `Normal` or `Mixture` of such, of records of d columns. It may be coarse: far off by a few of its
            standard deviations, or a few times too narrow or too wide.
        records
            Shape (n, d), or on workers.
        units
            The unit of each record, shape (n,); or the number of units, which is then that of records: one each. Not
            read of records on workers, which have units.
        shared
            A public key for whatever is random in the search but hides nothing.
        randomness
            The secret source of the releases; the operating system's unless given.
        progress
            Called with rounds done, rounds in all, and a word.

        Raises
        ------
        InvalidParameter
            If the model is none of these, or records and units do not fit. Nothing has been released then.

        """
        source, key = require_private(randomness), require_shared(shared)
        current = NormalMixture.of(model)
        if isinstance(records, FarUnits):
            if records.dimension != current.dimension:
                raise InvalidParameter(f"records must have {current.dimension} columns, as the model.")
            data: UnitRecords | FarUnits = records
            count = records.units
        else:
            own = UnitRecords(records, units=units, dimension=current.dimension)
            data, count = own, own.count
        kept: list[NoisyCounts] = []
        facts: list[dict[str, Any]] = []
        with composing("numeric", what="counts along directions", delta=self.delta) as run:
            for number in range(self.rounds):
                query = self._query(current, number=number, units=count, shared=key)
                kept.append(self._release(query, data, number=number, randomness=source))
                facts.append(
                    {
                        "directions": len(query.directions),
                        "bins": query.bins,
                        "noise": kept[-1].variance ** 0.5,
                        "share": float(self.shares[number]),
                    }
                )
                current = fit_mixture(
                    current,
                    kept,
                    units=count,
                    components=self.components,
                    full=self.covariance == "full",
                    starts=self.starts,
                    generator=key.stream("refine", "starts", number),
                )
                if progress is not None:
                    progress(number + 1, self.rounds, "refining")
        settled(run, self.guarantee)
        present = units_in_bins(kept, units=count) / count
        public = {"units": count, "complete": round(present, 3), "rounds": tuple(facts)}
        return RefinedModel(model=current.law(), public=public)

    def _query(self, model: NormalMixture, *, number: int, units: int, shared: SharedRandomness) -> BinnedProjections:
        """Return what is asked in a round: a function of public values."""
        full = self.covariance == "full"
        together = full or self.components > 1
        directions = directions_of(
            model,
            components=self.components,
            full=full,
            angles=self._angles(model.dimension) if together else 0,
            generator=shared.stream("refine", "directions", number),
        )
        squared = squared_budget(self.epsilon, self.delta) * self.shares[number]
        noise = 2 * len(directions) / float(squared)
        bins = useful_bins(units=units, variance=noise, components=self.components)
        first = number == 0
        return bins_about(
            model,
            directions,
            bins=bins,
            tails=_FAR_TAILS if first else _TAILS,
            wide=_FAR_WIDE if first else _WIDE,
            generator=shared.stream("refine", "bins", number),
        )

    def _angles(self, dimension: int) -> int:
        if self.angles is not None:
            return self.angles
        return _ANGLES_IN_THE_PLANE if dimension == 2 and self.components > 1 else _ANGLES

    def _release(
        self, query: BinnedProjections, data: UnitRecords | FarUnits, *, number: int, randomness: PrivateRandomness
    ) -> NoisyCounts:
        """Look at the data: the only place where it is done."""
        sensitivity = query.sensitivity
        sigma = noise_for(sensitivity, epsilon=self.epsilon, delta=self.delta, shares=self.shares)[number]
        mechanism = DiscreteGaussian(sensitivity=sensitivity, sigma=sigma)
        released = mechanism.release(query.sums(data), delta=self.delta, randomness=randomness).value
        return NoisyCounts.of(query, np.asarray(released), sigma=float(sigma))
