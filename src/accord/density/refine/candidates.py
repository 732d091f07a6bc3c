"""Refine any model: choose among refitted samples of it, round by round, by the exponential mechanism."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from accord.accounting.accountant import PrivacyAccountant
from accord.accounting.losses import ExponentialLoss
from accord.core import check as _check
from accord.core.alone import alone
from accord.core.blocks import Progress
from accord.core.coupling import Distribution, Learner
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP
from accord.core.isolation import Isolation
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import Generator, SharedRandomness, require_shared
from accord.density.refine.projections import UnitRecords
from accord.density.refine.statistics import RefinedModel
from accord.noise.exponential import Exponential

__all__ = [
    "GROWTH",
    "STEPS",
    "CandidateRefiner",
    "bootstrap",
    "clip_shifts",
    "epsilons_of",
    "log_density_rows",
    "ratio_steps",
    "total_of",
]


GROWTH = Fraction(3, 2)
"""A round's epsilon over that of the round before: later candidates are nearer to each other."""

_LEAST_EPSILON = Fraction(1, 2**30)
_COARSE_STEPS, _FINE_STEPS = 40, 8
_GAP = Fraction(6, 5)


@lru_cache(maxsize=256)
def epsilons_of(epsilon: Fraction, delta: Fraction, rounds: int) -> tuple[Fraction, ...]:
    """Return the epsilon of each round, growing by `GROWTH`, nearly the largest with an (epsilon, delta)-DP total.

    The total is the least of all valid bounds: sums, advanced composition, and the law of the loss of mechanisms of
    bounded range. With delta 0 it is the sum.

    Raises
    ------
    InvalidParameter
        If the first would be below 2^-30.

    """
    weights = [GROWTH**number for number in range(rounds)]
    low = epsilon / sum(weights)
    if delta > 0 and rounds > 1 and epsilon >= _LEAST_EPSILON:
        low = _largest(low, epsilon / weights[-1], weights, epsilon, delta, steps=_COARSE_STEPS, fine=False)
        low = _largest(
            low, min(_GAP * low, epsilon / weights[-1]), weights, epsilon, delta, steps=_FINE_STEPS, fine=True
        )
    if low < _LEAST_EPSILON:
        raise InvalidParameter("epsilon is too small for so many rounds.")
    return tuple(low * weight for weight in weights)


def total_of(epsilons: tuple[Fraction, ...], *, delta: Fraction, fine: bool = True) -> Fraction | float:
    """Return an upper bound of the total epsilon of selections with these epsilons."""
    accountant = PrivacyAccountant()
    for each in epsilons:
        accountant.charge(ExponentialLoss(each))
    return (accountant.total if fine else accountant.bound)(delta=delta).epsilon


def _largest(
    low: Fraction,
    high: Fraction,
    weights: list[Fraction],
    epsilon: Fraction,
    delta: Fraction,
    *,
    steps: int,
    fine: bool,
) -> Fraction:
    """Return the largest factor of the weights found by bisection between one that is allowed and another."""
    for _ in range(steps):
        middle = Fraction(float(low + high) / 2)
        if not low < middle < high:
            break
        if total_of(tuple(middle * weight for weight in weights), delta=delta, fine=fine) <= epsilon:
            low = middle
        else:
            high = middle
    return low


Floats = NDArray[np.float64]
STEPS = 1 << 36
"""Steps in a clipped log ratio of full size."""


def log_density_rows(law: Distribution, records: Floats) -> Floats:
    """Return the log density of each record, shape (n,); NaN where the law fails on that record.

    Where a law raises, or answers in another shape, the records are halved until the failing ones stand alone: a
    record on which it fails takes no other with it.
    """

    def ask() -> Floats:
        return np.array(law.log_density(records.copy()), dtype=np.float64)

    found = alone(ask, failed=None)
    if found is not None and found.shape == (len(records),):
        return found
    if len(records) == 1:
        return np.full(1, np.nan)
    middle = len(records) // 2
    return np.concatenate([log_density_rows(law, records[:middle]), log_density_rows(law, records[middle:])])


def ratio_steps(ratios: Floats, starts: NDArray[np.int64], *, clip: float) -> NDArray[np.int64]:
    """Return for each unit the mean clipped ratio in whole steps, from -`STEPS` to `STEPS`, shape (u,).

    A ratio that is no number counts as 0; an infinite one is clipped.
    """
    with np.errstate(all="ignore"):
        scaled = np.clip(np.where(np.isnan(ratios), 0.0, ratios / clip), -1.0, 1.0)
    sizes = np.diff(starts)
    means = scaled if len(scaled) == len(sizes) else np.add.reduceat(scaled, starts[:-1]) / sizes
    whole: NDArray[np.int64] = np.clip(np.rint(means * STEPS), -STEPS, STEPS).astype(np.int64)
    return whole


_SAMPLE = 16_384
_WIDE = 8.0
_LARGEST = 2.0**61


def clip_shifts(
    current: Distribution, near: Sequence[Distribution], *, clip: float, units: int, generator: Generator
) -> list[int]:
    """Return what is to be added to the score of each candidate, in steps, for what the clip takes from it.

    A clip takes more from the losses of a candidate than from its gains, the more so the further it is from the current
    model. How much is found on records of the current model: it is public.
    """
    records = np.asarray(current.sample(_SAMPLE, generator), dtype=np.float64)
    base = log_density_rows(current, records)
    shifts = []
    for law in near:
        with np.errstate(invalid="ignore"):
            ratios = np.nan_to_num((log_density_rows(law, records) - base) / clip, posinf=_WIDE, neginf=-_WIDE)
        shift = float((np.clip(ratios, -_WIDE, _WIDE) - np.clip(ratios, -1, 1)).mean())
        shifts.append(int(max(min(shift * units * STEPS, _LARGEST), -_LARGEST)))
    return shifts


def bootstrap(
    model: Distribution,
    learner: Learner,
    *,
    size: int,
    candidates: int,
    isolation: Isolation,
    shared: SharedRandomness,
) -> list[Distribution]:
    """Return at most so many laws, each fitted to ``size`` records of the model; failed fits are left out.

    Everything here is public: whether a fit fails is a function of the model and the key.
    """
    found = []
    for number in range(candidates):
        records = np.asarray(model.sample(size, shared.stream("records", number)), dtype=np.float64)
        law = isolation.fit(learner, records, seed=shared.seed("fit", number))
        usable = alone(partial(_usable, law, like=model), failed=None)
        if usable is not None:
            found.append(usable)
    return found


def _usable(law: object, *, like: Distribution) -> Distribution | None:
    return law if isinstance(law, Distribution) and law.dimension == like.dimension else None


_CLIP = 8.0
_FIRST_SIZE = 40.0
_FASTEST = 4.0
_NOISE = 64.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRefiner:
    """Draw l records from the current model, refit the learner, many times; choose one by likelihood; repeat.

    A candidate's score is the sum over units of the mean log-likelihood ratio to the current model, clipped at about
    ``8 sqrt(p / l)``, so that it stays of the size that such candidates differ by. What the clip would take on records
    of the current model is added, which is public. The current model is a candidate.
    l grows each round, twice as fast after a round in which no candidate was better, up to where the noise would hide
    what l can show.

    Formal guarantees
    -----------------
    - Privacy: `refine` has the guarantee `guarantee` for one unit under "replace one": each round is one exponential
      mechanism on whole scores that one unit moves by at most ``2 STEPS``; the total is the best valid composition.
    - One record's failure (NaN, an exception of a law) counts 0 for that record and changes nothing else.
    - Assumed of the learner's laws: a record's log density does not depend on the records beside it, up to half a
      step (2^-37 of the clip), which is charged.
    - Not promised: that the model gets better; that it is the best candidate.

    Parameters
    ----------
    learner
        Any learner.
    epsilon, delta
        The guarantee of one call of `refine`; with delta 0 it is pure.
    rounds
        1 to 30.
    candidates
        In each round, 1 to 100,000.
    parameters
        p, about the number of parameters of the learner's laws; that of a normal law unless given.
    isolation
        How fits are kept from doing harm to each other.
    unit
        What a unit of privacy is, for people who read the guarantee.

    Raises
    ------
    InvalidParameter
        Outside these ranges.

    Source
    ------
    Theory 7 (couple, then refine), M3, C4; docs/proofs/refine.md.

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> from accord.learners import GaussianLearner
    >>> records = SharedRandomness(1).stream("data").standard_normal((5000, 1))
    >>> refiner = CandidateRefiner(learner=GaussianLearner(), epsilon=1, delta="1e-6", candidates=50, rounds=6)
    >>> found = refiner.refine(Normal(0.5, 1.5), records, units=5000)
    >>> found.public["rounds"][0]["size"]
    40

    """

    learner: Learner
    epsilon: Fraction
    delta: Fraction
    rounds: int
    candidates: int
    parameters: int | None
    isolation: Isolation
    unit: str

    def __init__(
        self,
        learner: Learner,
        *,
        epsilon: Number,
        delta: Number,
        rounds: int = 6,
        candidates: int = 200,
        parameters: int | None = None,
        isolation: Isolation | None = None,
        unit: str = "record",
    ) -> None:
        if not isinstance(learner, Learner):
            raise InvalidParameter("learner must have a method fit(records, *, seed).")
        slack = _check.exact("delta", delta)
        object.__setattr__(self, "learner", learner)
        object.__setattr__(self, "epsilon", _check.epsilon(epsilon))
        object.__setattr__(self, "delta", _check.delta(slack) if slack else slack)
        object.__setattr__(self, "rounds", _check.integer("rounds", rounds, least=1, most=30))
        object.__setattr__(self, "candidates", _check.integer("candidates", candidates, least=1, most=100_000))
        if parameters is not None:
            parameters = _check.integer("parameters", parameters, least=1)
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "isolation", Isolation() if isolation is None else isolation)
        object.__setattr__(self, "unit", PureDP(1, unit=unit).unit)
        epsilons_of(self.epsilon, self.delta, self.rounds)  # refuses what is too little

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """The guarantee of one call of `refine`."""
        if self.delta == 0:
            return PureDP(self.epsilon, Neighbouring.REPLACE_ONE, self.unit)
        return ApproxDP(self.epsilon, self.delta, Neighbouring.REPLACE_ONE, self.unit)

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        """The epsilon of each selection, growing from round to round."""
        return epsilons_of(self.epsilon, self.delta, self.rounds)

    def refine(
        self,
        model: Distribution,
        records: NDArray[np.float64],
        *,
        units: NDArray[np.int64] | int,
        shared: SharedRandomness | None = None,
        randomness: PrivateRandomness | None = None,
        progress: Progress | None = None,
    ) -> RefinedModel:
        """Return the model chosen in the last round.

        Parameters
        ----------
        model
            Any public law.
        records, units, shared, randomness, progress
            See `Refiner`.

        Raises
        ------
        InvalidParameter
            If the model is no law, or records and units do not fit. Nothing has been released then.

        """
        if not isinstance(model, Distribution):
            raise InvalidParameter("model must be a distribution.")
        source, key = require_private(randomness), require_shared(shared)
        data = UnitRecords(records, units=units, dimension=model.dimension)
        dimension = model.dimension
        parameters = self.parameters or dimension * (dimension + 3) // 2
        most = self._largest_size(parameters, units=data.count)
        growth = min((most / _FIRST_SIZE) ** (1 / max(self.rounds - 1, 1)), _FASTEST)
        current, size = model, _FIRST_SIZE
        facts: list[dict[str, Any]] = []
        for number in range(self.rounds):
            clip = _CLIP * math.sqrt(parameters / size)
            near = bootstrap(
                current,
                self.learner,
                size=int(size),
                candidates=self.candidates,
                isolation=self.isolation,
                shared=key.child("refine", number),
            )
            shifts = clip_shifts(
                current, near, clip=clip, units=data.count, generator=key.stream("refine", "clip", number)
            )
            chosen = self._choose(
                current, near, data, clip=clip, shifts=shifts, epsilon=self.epsilons[number], randomness=source
            )
            facts.append({"size": int(size), "clip": clip, "candidates": len(near) + 1, "chosen": chosen})
            current = near[chosen - 1] if chosen else current
            size = min(size * (growth if chosen else growth**2), most)
            if progress is not None:
                progress(number + 1, self.rounds, "refining")
        return RefinedModel(model=current, public={"units": data.count, "rounds": tuple(facts)})

    def _largest_size(self, parameters: int, *, units: int) -> float:
        """Return the l beyond which noise, or the records' own errors, are more than what candidates differ by."""
        hidden = parameters * (units * float(self.epsilons[-1]) / _NOISE) ** 2
        return max(_FIRST_SIZE, min(hidden, float(units)))

    def _choose(
        self,
        current: Distribution,
        near: Sequence[Distribution],
        data: UnitRecords,
        *,
        clip: float,
        shifts: Sequence[int],
        epsilon: Fraction,
        randomness: PrivateRandomness,
    ) -> int:
        """Return 0 for the current model, j for candidate j - 1."""
        scores = self._scores(current, near, data, clip=clip) + np.array([0, *shifts], dtype=np.int64)
        # A unit moves a score by its mean, so its number of records is of no importance; one step for each other unit:
        # roundings, which may depend on where its records stand.
        sensitivity = 2 * STEPS + data.count
        mechanism = Exponential(sensitivity=sensitivity, epsilon=epsilon)
        return cast("int", mechanism.select(scores, randomness=randomness).value)

    def _scores(
        self, current: Distribution, near: Sequence[Distribution], data: UnitRecords, *, clip: float
    ) -> NDArray[np.int64]:
        """Look at the data: the only place where it is done."""
        scores = [0] * (len(near) + 1)
        for records, starts in data.pieces():
            finite = np.asarray(np.isfinite(records).all(axis=1), dtype=np.bool_)
            usable = np.where(finite[:, None], records, 0.0)
            base = log_density_rows(current, usable)
            base[~finite] = np.nan
            for place, law in enumerate(near):
                with np.errstate(invalid="ignore"):
                    ratios = log_density_rows(law, usable) - base
                scores[place + 1] += int(ratio_steps(ratios, starts, clip=clip).sum())
        return np.array(scores, dtype=np.int64)
