"""The total of the stages of a release, worked out from what ran."""

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from math import floor, isqrt
from typing import Any

from accord import mechanisms
from accord.accounting.accountant import PrivacyAccountant
from accord.accounting.gaussian import gaussian_composition
from accord.accounting.losses import PrivacyLoss
from accord.accounting.noise_losses import ConcentratedLoss, DiscreteGaussianLoss, GaussianLoss
from accord.accounting.of_mechanisms import loss_of
from accord.core.errors import InvalidParameter
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP, Sensitivity
from accord.core.release import Composed, Composing, Parameter, Stage
from accord.noise.discrete_gaussian import DiscreteGaussian

__all__ = [
    "CONTINUOUS_PART",
    "GRAIN",
    "KNOWN",
    "LARGEST_EXACT",
    "LEAST_SIGMA",
    "Losses",
    "composed_epsilon",
    "losses_of",
    "rebuilt",
    "settled",
    "total_of",
    "vectors_epsilon",
]

LARGEST_EXACT = 20_000
"""Up to this standard deviation discrete Gaussian noise is composed by its own law."""

LEAST_SIGMA = 1 << 10
CONTINUOUS_PART = 16
"""s^2: noise of parameter sigma^2 is continuous Gaussian noise of variance sigma^2 - s^2, rounded at random."""

GRAIN = Fraction(1, 1 << 46)
"""The surplus of choices side by side: what the rounding of their weights adds for each."""

_MARGIN = Fraction(1, 2**100)
_MOST_ENTRIES = 10**10
KNOWN = frozenset(
    {
        "AboveThreshold",
        "BestOfDraws",
        "DiscreteGaussian",
        "DiscreteLaplace",
        "Exponential",
        "Laplace",
        "LevelSelection",
        "PermuteAndFlip",
        "StableMode",
        "ThresholdedCounts",
        "TopK",
    }
)
"""Mechanisms that are built again from the parameters of a stage."""

Total = tuple[Fraction, Fraction]
Losses = frozenset[tuple[PrivacyLoss, int]]


def settled(
    run: Composing, promise: PureDP | ApproxDP, *, planned: tuple[Losses, bool] | None = None
) -> tuple[Composed]:
    """Return what ran as the stages of a release, after making sure that it composes to at most what is promised.

    Parameters
    ----------
    run
        What was taken down.
    promise
        Of the whole release.
    planned
        Losses that were planned for a numeric composition, see `losses_of`: fewer of them spend no more, so that a
        total that is known is not worked out again.

    Raises
    ------
    AssertionError
        If it does not: a fault of ours. It cannot depend on the data, as what may run is planned before.

    """
    composed = run.composed
    epsilon, delta = _planned_total(composed, planned) or total_of(composed)
    if epsilon > promise.epsilon or delta > promise.delta:
        raise AssertionError("the mechanisms that ran spend more than is promised: a fault of accord.")
    return (composed,)


def _planned_total(composed: Composed, planned: tuple[Losses, bool] | None) -> Total | None:
    if planned is None or composed.how != "numeric" or composed.delta is None:
        return None
    losses, exact = planned
    found, found_exact = losses_of(_one_by_one(composed))
    most = dict(losses)
    if found_exact != exact or any(times > most.get(loss, 0) for loss, times in found):
        return None
    epsilon = composed_epsilon(losses, delta=composed.delta, exact=exact)
    return None if epsilon is None else (epsilon, composed.delta)


def total_of(node: Stage | Composed) -> Total:
    """Return an epsilon and a delta that what ran has for certain.

    Raises
    ------
    InvalidParameter
        If none is known.

    """
    if isinstance(node, Stage):
        return _alone(node)
    if not node.stages:
        return Fraction(0), Fraction(0)
    if node.how == "numeric":
        return _numeric(node)
    parts = [total_of(inner) for inner in node.stages]
    if node.how == "parallel":
        surplus = node.surplus * len(parts)
        return max(epsilon for epsilon, _ in parts) + surplus, max(delta for _, delta in parts)
    return sum((epsilon for epsilon, _ in parts), Fraction(0)), sum((delta for _, delta in parts), Fraction(0))


def _alone(stage: Stage) -> Total:
    if stage.guarantee is not None:
        return stage.guarantee.epsilon, stage.guarantee.delta
    found = rebuilt(stage)
    own = dict(stage.parameters)
    if not isinstance(found, DiscreteGaussian):
        raise InvalidParameter(f"a stage of {stage.mechanism} states no guarantee.")
    at = found.guarantee_at(Fraction(own["delta"]), dimension=int(own["entries"]))
    return at.epsilon, at.delta


def _numeric(node: Composed) -> Total:
    if node.delta is None:
        raise InvalidParameter("a numeric total needs its delta.")
    stages = tuple(_one_by_one(node))
    losses, exact = losses_of(stages)
    known = [composed_epsilon(losses, delta=node.delta, exact=exact), _by_vectors(stages, delta=node.delta)]
    epsilons = [epsilon for epsilon in known if epsilon is not None] or _sum(stages, delta=node.delta)
    if not epsilons:
        raise InvalidParameter("no total is known for these stages.")
    return min(epsilons), node.delta


def _sum(stages: tuple[Stage, ...], *, delta: Fraction) -> list[Fraction]:
    """Return the plain sum of epsilons, where each stage has one and their deltas are within this one."""
    known = [(stage.guarantee.epsilon, stage.guarantee.delta) for stage in stages if stage.guarantee is not None]
    whole = len(known) == len(stages) and sum((part for _, part in known), Fraction(0)) <= delta
    return [sum((epsilon for epsilon, _ in known), Fraction(0))] if whole else []


def _one_by_one(node: Composed) -> Iterator[Stage]:
    """Return what a numeric total is made of; a group inside that is no mere sum is one stage with its own total."""
    for inner in node.stages:
        if isinstance(inner, Stage):
            yield inner
        elif inner.how == "basic":
            yield from _one_by_one(inner)
        else:
            yield Stage(mechanism=inner.how, parameters=(), guarantee=ApproxDP(*total_of(inner)), claimed=True)


# --- losses -----------------------------------------------------------------------------------------------------------


def losses_of(stages: Iterable[Stage]) -> tuple[Losses, bool]:
    """Return the losses of stages with how often each occurs, and whether each is the mechanism's own.

    Discrete Gaussian noise on several integers whose squares move by less than 4 in all moves each by at most 1: as
    many one-integer losses. With noise on more, of all such losses the moments alone are taken.
    """
    ran = tuple(stages)
    exact = all(_cells(stage) is not None for stage in ran if stage.mechanism == "DiscreteGaussian")
    found: Counter[PrivacyLoss] = Counter()
    for stage in ran:
        loss, times = _loss(stage, exact=exact)
        found[loss] += times
    return frozenset(found.items()), exact


def _loss(stage: Stage, *, exact: bool) -> tuple[PrivacyLoss, int]:
    mechanism = loss = rebuilt(stage)
    if not isinstance(mechanism, DiscreteGaussian):
        loss = mechanism if stage.claimed or mechanism is None else loss_of(mechanism)
        return (loss_of(stage.guarantee) if loss is None else loss), 1
    if not exact:
        return ConcentratedLoss(mechanism.zcdp), 1
    cells, shift = _cells(stage) or (0, 0)
    return DiscreteGaussianLoss(sigma=mechanism.sigma, shift=shift), cells


def _cells(stage: Stage) -> tuple[int, int] | None:
    """Return how many integers move at most, each by how much; None where the law of the loss is not known so."""
    own = dict(stage.parameters)
    bound, sigma = Fraction(own["sensitivity"]), Fraction(own["sigma"])
    if not bound >= 1 or sigma > LARGEST_EXACT or bound > 100 * sigma:
        return None
    if own["entries"] == 1:
        return 1, floor(bound)
    return (floor(bound**2), 1) if bound**2 < 4 else None


@lru_cache(maxsize=256)
def composed_epsilon(losses: Losses, *, delta: Fraction, exact: bool) -> Fraction | None:
    """Return an epsilon that all losses together have at this delta, adaptively; None where none is known.

    With ``exact`` the least that is known; otherwise by moments alone.
    """
    accountant = PrivacyAccountant()
    try:
        for loss, times in sorted(losses, key=repr):  # sets have no order, and floats are summed
            accountant.charge(loss, times=times)
        total = accountant.total(delta=delta) if exact else accountant.bound(delta=delta)
    except InvalidParameter:
        return None
    return total.epsilon if isinstance(total, PureDP | ApproxDP) else None


def vectors_epsilon(squared: Fraction, *, delta: Fraction) -> Fraction:
    """Return an upper bound of the total epsilon at ``delta`` for rounds whose ``(S / tau)^2`` add up to ``squared``.

    ``tau^2 = sigma^2 - s^2``. Up to 10^10 noisy integers in all rounds, each with sigma at least `LEAST_SIGMA`.
    Proof page refine, "Vectors of integers": the discrete law is within a factor exp(+-2^-200) of a function of the
    continuous one for each integer, which the margins cover.
    """
    tightened = delta * (1 - _MARGIN)
    # GaussianLoss takes ratios; one Gaussian stands for all rounds, as their squares add.
    ratio = _root_above(squared)
    loss = GaussianLoss(sigma=1, sensitivity=ratio, neighbouring=Neighbouring.REPLACE_ONE)
    return gaussian_composition([loss], delta=tightened).epsilon + _MARGIN


def _by_vectors(stages: tuple[Stage, ...], *, delta: Fraction) -> Fraction | None:
    """Return a total by `vectors_epsilon`, None where it does not hold."""
    squared, entries = Fraction(0), 0
    for stage in stages:
        own = dict(stage.parameters)
        if stage.mechanism != "DiscreteGaussian" or Fraction(own["sigma"]) < LEAST_SIGMA:
            return None
        squared += Fraction(own["sensitivity"]) ** 2 / (Fraction(own["sigma"]) ** 2 - CONTINUOUS_PART)
        entries += int(own["entries"])
    if entries > _MOST_ENTRIES:
        return None
    try:
        return vectors_epsilon(squared, delta=delta)
    except InvalidParameter:
        return None


def _root_above(value: Fraction) -> Fraction:
    """Return a fraction at least the square root, and very near to it."""
    scale = 1 << 120
    return Fraction(isqrt(value.numerator * scale * scale // value.denominator) + 1, scale)


# --- mechanisms -------------------------------------------------------------------------------------------------------


def rebuilt(stage: Stage) -> Any:  # noqa: ANN401 - any mechanism of accord
    """Return the mechanism of a stage, built from its parameters; None if it is not one of accord's, or is claimed.

    Raises
    ------
    InvalidParameter
        If the mechanism does not take these parameters.

    """
    if stage.claimed or stage.mechanism not in KNOWN:
        return None
    kind = getattr(mechanisms, stage.mechanism)
    names = set(kind.__dataclass_fields__)
    own: dict[str, Parameter] = dict(stage.parameters)
    try:
        relation = Neighbouring(own.get("neighbouring", Neighbouring.REPLACE_ONE.value))
        given: dict[str, Any] = {name: own[name] for name in names if name in own}
        if "sensitivity" in names:
            given["sensitivity"] = Sensitivity(Fraction(own["sensitivity"]), relation)
        elif "neighbouring" in names:
            given["neighbouring"] = relation
        return kind(**given)
    except InvalidParameter:
        raise
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InvalidParameter(f"{stage.mechanism} does not take the parameters of its stage.") from None
