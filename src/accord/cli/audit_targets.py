"""Mechanisms and pipelines that ``accord audit`` knows, each with its worst neighbours."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from accord.core.best_of_draws import BestOfDraws
from accord.core.release import NoAnswerType
from accord.core.stable_mode import StableMode
from accord.learners import EmpiricalLearner
from accord.learning import PrivateSampler
from accord.noise.discrete_gaussian import DiscreteGaussian
from accord.noise.discrete_laplace import DiscreteLaplace
from accord.noise.exponential import Exponential
from accord.noise.laplace import Laplace
from accord.noise.permute_and_flip import PermuteAndFlip

__all__ = ["TARGETS", "Target"]

_DELTA = "1e-6"
_CANDIDATES = 20
_SMALL_FAILURE = Fraction(1, 20)
_DRAWS = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is audited: laws where they are known, otherwise something to run."""

    name: str
    delta: str
    pairs: Sequence[tuple[Any, Any]]
    law: Callable[[Any], Any] | None = None
    run: Callable[[Any], Hashable] | None = None
    score: Callable[[Any], float] | None = None


def _stable_mode(epsilon: str, delta: str | None) -> Target:
    slack = delta or _DELTA
    mode = StableMode(epsilon=epsilon, delta=slack)
    voters = mode.votes_needed(failure=_SMALL_FAILURE) + 2
    splits = [("a" * n, "b" * (voters - n)) for n in range(1, voters + 1)]
    moved = [(list(f"{a}{b}"), list(f"{a[:-1]}b{b}")) for a, b in splits]
    lonely = [([*a, *range(len(b))], [*a[:-1], "other", *range(len(b))]) for a, b in splits]
    return Target(name="stable-mode", delta=slack, pairs=[*moved, *lonely], law=mode.law)


def _best_of_draws(epsilon: str, delta: str | None) -> Target:
    slack = delta or _DELTA
    mode = BestOfDraws(epsilon=epsilon, delta=slack, draws=_DRAWS)
    voters = mode.votes_needed(failure=_SMALL_FAILURE) + 2
    rows = [(["a"] * n + ["b"] * (voters - n), ["a"] * (n - 1) + ["b"] * (voters - n + 1)) for n in range(1, voters)]
    pairs = [([one] * _DRAWS, [other] * _DRAWS) for one, other in rows]
    return Target(name="best-of-draws", delta=slack, pairs=pairs, law=mode.law)


def _scores() -> list[tuple[list[int], list[int]]]:
    """All scores move at once, one against the others."""
    best, rest = [0] * _CANDIDATES, [1] * _CANDIDATES
    best[0], rest[0] = 1, 0
    return [(best, rest)]


def _exponential(epsilon: str, delta: str | None) -> Target:
    mechanism = Exponential(sensitivity=1, epsilon=epsilon)
    return Target(name="exponential", delta=delta or "0", pairs=_scores(), law=mechanism.law)


def _permute_and_flip(epsilon: str, delta: str | None) -> Target:
    mechanism = PermuteAndFlip(sensitivity=1, epsilon=epsilon)
    return Target(name="permute-and-flip", delta=delta or "0", pairs=_scores(), law=mechanism.law)


def _laplace(epsilon: str, delta: str | None) -> Target:
    mechanism = Laplace(sensitivity=1, epsilon=epsilon)
    return Target(
        name="laplace",
        delta=delta or "0",
        pairs=[(0.0, 1.0)],
        run=lambda value: float(np.asarray(mechanism.release([value]).value)[0]),
        score=float,
    )


def _discrete_laplace(epsilon: str, delta: str | None) -> Target:
    mechanism = DiscreteLaplace(sensitivity=1, scale=1 / Fraction(epsilon))
    return Target(
        name="discrete-laplace",
        delta=delta or "0",
        pairs=[(0, 1)],
        run=lambda value: int(np.asarray(mechanism.release(value).value)),
        score=float,
    )


def _discrete_gaussian(epsilon: str, delta: str | None) -> Target:
    slack = delta or _DELTA
    low, high = Fraction(1, 1000), Fraction(1000)
    while high / low > Fraction(1001, 1000):  # the least sigma whose curve keeps the claim
        middle = Fraction(round((low + high) / 2 * 10**6), 10**6)
        kept = DiscreteGaussian(sensitivity=1, sigma=middle).guarantee_at(slack, dimension=1).epsilon <= Fraction(
            epsilon
        )
        low, high = (low, middle) if kept else (middle, high)
    mechanism = DiscreteGaussian(sensitivity=1, sigma=high)
    return Target(
        name="discrete-gaussian",
        delta=slack,
        pairs=[(0, 1)],
        run=lambda value: int(np.asarray(mechanism.release(value, delta=slack).value)),
        score=float,
    )


def _sampler(epsilon: str, delta: str | None) -> Target:
    """The whole pipeline, from records to an answer or none, where one record decides most.

    One record a block and one label: a block whose record is in no category abstains, so a record is a vote.
    """
    slack = delta or _DELTA
    needed = StableMode(epsilon=epsilon, delta=slack).votes_needed(failure=Fraction(1, 2))
    sampler = PrivateSampler(EmpiricalLearner(["yes"]), epsilon=epsilon, delta=slack, blocks=needed, records=1)
    whole = np.array([["yes"]] * needed, dtype=object)
    broken = whole.copy()
    broken[0, 0] = "not in the list"
    return Target(
        name="sampler",
        delta=slack,
        pairs=[(whole, broken)],
        run=lambda data: not isinstance(sampler.release(data).value, NoAnswerType),
    )


TARGETS: dict[str, Callable[[str, str | None], Target]] = {
    "stable-mode": _stable_mode,
    "best-of-draws": _best_of_draws,
    "exponential": _exponential,
    "permute-and-flip": _permute_and_flip,
    "laplace": _laplace,
    "discrete-laplace": _discrete_laplace,
    "discrete-gaussian": _discrete_gaussian,
    "sampler": _sampler,
}
"""Name on the command line to what is audited, given the claimed epsilon and delta as text."""
