"""The private learners, end to end and to the letter, on instances that are small enough to be run (theory L9 to L11).

Two atoms, alpha = beta = 1/2, epsilon = 1, delta = 1e-6. What makes them small is a tight sample complexity: binomial
tails in place of McDiarmid's inequality (`AnyBernoulli`, all laws on two atoms), or a class of few laws (`Listed`). All
sizes are those of the theorems at that sample complexity; nothing is rounded down.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta as beta_law
from scipy.stats import binom

from accord.couplings import Coupling, RaceCoupling
from accord.distributions import Categorical, Mixture, Normal
from accord.laws import total_variation
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.learning import PrivateLearner
from accord.privacy import NoAnswerType, Release
from accord.randomness import SharedRandomness
from accord.theory import AgnosticPrivateLearner, BlackBoxPrivateLearner, BoostedPrivateLearner, MinimumDistanceLearner
from accord.theory.planning import agnostic_sizes, boosted_sizes, theorem_sizes

ASKED: dict[str, Any] = {"alpha": "0.5", "beta": "0.5", "epsilon": 1, "delta": "1e-6"}
LABELS = (0, 1)
RACE: Coupling = RaceCoupling(LABELS)
SURE = 1e-6


class Releases(Protocol):
    @property
    def required_records(self) -> int: ...

    def release(self, data: Any, *, shared: SharedRandomness) -> Release[Any]: ...


def bernoulli(p: float) -> Categorical:
    return Categorical(LABELS, [1 - p, p])


@dataclass(frozen=True)
class Listed:
    """Choose the nearest of a few listed chances; m is exact, by binomial probabilities at each of them."""

    chances: tuple[float, ...]
    agnostic_factor: int = 3

    def fit(self, records: NDArray[Any], *, seed: int) -> Categorical:
        share = float(np.asarray(records, dtype=np.float64).mean())
        return bernoulli(self.chances[int(np.argmin(np.abs(np.array(self.chances) - share)))])

    def sample_complexity(self, alpha: float, beta: float) -> int:
        """From this many records on the choice is less than alpha off, but for beta (looked at up to 3000)."""
        gaps = {round(abs(p - q), 9) for p in self.chances for q in self.chances if abs(p - q) >= alpha - 1e-9}
        least = min(gaps, default=2.0)
        bad = [size for size, worst in enumerate(worst_of_listed(self.chances, least), start=1) if worst > beta]
        return 1 if not bad else bad[-1] + 1


@lru_cache(maxsize=64)
def worst_of_listed(chances: tuple[float, ...], gap: float) -> tuple[float, ...]:
    """Largest probability over the class of a choice that is ``gap`` or more off, for 1, 2, .. 3000 records."""
    values = np.array(chances)
    result = []
    for size in range(1, 3001):
        counts = np.arange(size + 1)
        chosen = values[np.argmin(np.abs(values[None, :] - (counts / size)[:, None]), axis=1)]
        result.append(max(float(binom.pmf(counts[abs(chosen - p) >= gap - 1e-9], size, p).sum()) for p in chances))
        if size > 200 and max(result[-100:]) < 1e-3:
            break
    return tuple(result)


@dataclass(frozen=True)
class AnyBernoulli:
    """Frequencies of two atoms; m is the binomial tail's, the worst of all p."""

    def fit(self, records: NDArray[Any], *, seed: int) -> Categorical:
        return bernoulli(float(np.count_nonzero(records)) / len(records))

    def sample_complexity(self, alpha: float, beta: float) -> int:
        return tight_complexity(float(alpha), float(beta))


@lru_cache(maxsize=64)
def tight_complexity(alpha: float, beta: float) -> int:
    """A b, the least one to half a per cent, with P[|X / b - p| >= alpha] <= beta for every p."""
    low, high = 0, math.ceil(math.log(2 / beta) / (2 * alpha**2)) + 1  # Hoeffding's is enough
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if worst_of_all(middle, alpha) <= beta else (middle, high)
    return high


def worst_of_all(size: int, radius: float) -> float:
    """On an interval of p both tails are bounded by their values at its ends, as in the planner's method B."""
    ends = np.linspace(0.0, 1.0, max(4001, math.ceil(40 / radius)))
    first, last = ends[:-1], ends[1:]
    above = binom.sf(np.ceil(size * (first + radius) - 1e-9) - 1, size, last)
    below = binom.cdf(np.floor(size * (last - radius) + 1e-9), size, first)
    return float(np.max(above + below))


def interval(hits: int, runs: int, *, failure: float = SURE) -> tuple[float, float]:
    """Clopper and Pearson, each side with this failure."""
    low = float(beta_law.ppf(failure, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta_law.ppf(1 - failure, hits + 1, runs - hits)) if hits < runs else 1.0
    return low, high


def count(
    learner: Releases, truth: Callable[[np.random.Generator], float], *, runs: int, seed: int, error: float = 0.5
) -> int:
    """Run releases on fresh data of fresh truths; return how many were within ``error``, and print it."""
    generator = np.random.default_rng(seed)
    hits = 0
    for run in range(runs):
        p = truth(generator)
        data = (generator.random(learner.required_records, dtype=np.float32) < p).astype(np.int8)
        value = learner.release(data, shared=SharedRandomness(f"{seed}/{run}")).value
        hits += not isinstance(value, NoAnswerType) and total_variation(value, bernoulli(p)) < error
    low, high = interval(hits, runs)
    print(  # noqa: T201 - the figures asked for
        f"{type(learner).__name__}, n = {learner.required_records}, data seed {seed}: {hits} of {runs} within {error}, "
        f"interval {low:.3f} to {high:.3f} (failure 1e-6 a side)"
    )
    return hits


TENTHS = Listed(tuple(j / 10 for j in range(1, 10)))
TWO_LAWS = Listed((0.02, 0.98))


def one_of(chances: tuple[float, ...]) -> Callable[[np.random.Generator], float]:
    return lambda generator: float(generator.choice(np.array(chances)))


def anywhere(generator: np.random.Generator) -> float:
    return float(generator.random())


# --- L9 ---------------------------------------------------------------------------------------------------------------


def nine_laws() -> BlackBoxPrivateLearner:
    learner = BlackBoxPrivateLearner(TENTHS, **ASKED, coupling=RACE)
    sizes = theorem_sizes(TENTHS, **ASKED)
    assert (learner.sampler.blocks, learner.sampler.records) == (sizes.blocks, sizes.records)
    assert learner.required_records == sizes.required_records == sizes.blocks * sizes.block_size
    return learner


def test_L9_to_the_letter_on_nine_laws_in_short() -> None:
    hits = count(nine_laws(), one_of(TENTHS.chances), runs=15, seed=9101)
    # Learning again fails with probability at most 1/8, no answer is rarer: fewer than 6 of 15 have probability 1e-7.
    assert hits >= 6


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_L9_to_the_letter_on_nine_laws() -> None:
    hits = count(nine_laws(), one_of(TENTHS.chances), runs=120, seed=9104)
    assert interval(hits, 120)[0] >= 0.5  # from 85 on; at 0.93 fewer have probability 1e-12


def test_L9_needs_its_records() -> None:
    """The other side: with blocks of 3 records no law has a majority, and there is no answer."""
    sizes = theorem_sizes(TENTHS, **ASKED)
    starved = PrivateLearner(TENTHS, epsilon=1, delta=sizes.delta, blocks=sizes.blocks, records=200, coupling=RACE)
    generator = np.random.default_rng(9102)
    hits = sum(
        not isinstance(
            starved.release(generator.integers(0, 2, size=3 * sizes.blocks), shared=SharedRandomness(run)).value,
            NoAnswerType,
        )
        for run in range(20)
    )
    assert interval(hits, 20)[1] < 0.5  # 0 of 20 give 0.499


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_L9_to_the_letter_on_all_laws_on_two_atoms() -> None:
    """A hundred million records a run; learning again from 5 of them is half off now and then, so 80 runs are made."""
    learner = BlackBoxPrivateLearner(AnyBernoulli(), **ASKED, coupling=RACE)
    hits = count(learner, anywhere, runs=80, seed=9105)
    assert interval(hits, 80)[0] >= 0.5  # from 62 on; at the measured 0.95 fewer have probability 1e-8


# --- L10 --------------------------------------------------------------------------------------------------------------


def boosted(learner: Listed, *, beta: str) -> BoostedPrivateLearner:
    asked = ASKED | {"beta": beta}
    found = BoostedPrivateLearner(learner, **asked, margin=0, coupling=RACE)
    sizes = boosted_sizes(learner, **asked)
    assert found.parts == sizes.parts == math.ceil(128 * math.log(1 / float(beta)))
    assert found.required_records == sizes.required_records
    assert found.guarantee.delta == sizes.delta
    return found


def test_L10_to_the_letter_in_short() -> None:
    hits = count(boosted(TENTHS, beta="0.9"), one_of(TENTHS.chances), runs=1, seed=9201)
    assert hits == 1  # 14 parts: half of them fail, at 1/30 each as measured, with probability 2e-7


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("learner", [TWO_LAWS, TENTHS])
def test_L10_to_the_letter(learner: Listed) -> None:
    hits = count(boosted(learner, beta="0.5"), one_of(learner.chances), runs=20, seed=9202)
    assert interval(hits, 20)[0] >= 0.5  # half of 89 parts fail, at 1/8 each, with probability 2e-17


# --- L11 --------------------------------------------------------------------------------------------------------------


def all_laws(**asked: Any) -> AgnosticPrivateLearner:
    """The class of all laws on two atoms: C = 1 and OPT = 0."""
    learner = AgnosticPrivateLearner(AnyBernoulli(), **asked, agnostic_factor=1, coupling=RACE)
    sizes = agnostic_sizes(AnyBernoulli(), **asked, agnostic_factor=1)
    assert (learner.parts, learner.sampler.blocks, learner.sampler.records) == (sizes.parts, sizes.blocks, 1)
    assert learner.required_records == sizes.required_records
    return learner


def test_L11_to_the_letter_in_short() -> None:
    hits = count(all_laws(**ASKED | {"alpha": "0.9"}), anywhere, runs=2, seed=9301, error=0.9)
    assert hits >= 1  # learning again from 2 records is 0.9 off with probability 7e-4 over p: twice in two runs 5e-7


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_L11_to_the_letter() -> None:
    hits = count(all_laws(**ASKED), anywhere, runs=60, seed=9302)
    assert interval(hits, 60)[0] >= 0.5


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("share", "least"), [(0.05, 0.05), (0.003, 0.003)])
def test_L11_L12_contaminated_normal_against_a_list_of_normal_laws(share: float, least: float) -> None:
    """At sizes that can be run (8e5 records; the benchmark prints L11's own), and within what L11 promises even so.

    99 OPT says nothing at 5 %; at 0.3 % it is 0.3, with no alpha added. Three steps of the list are 0.29 away.
    """
    places, scales = range(-4, 5), (0.7, 1.0, 1.4)
    learner = MinimumDistanceLearner([Normal(place / 4, scale**2) for place in places for scale in scales])
    law = Mixture([Normal(0.25, 1.0), Normal(6.25, 0.01)], [1 - share, share])
    private = AgnosticPrivateLearner(learner, epsilon=1, delta="1e-6", parts=400, blocks=40)
    best = min(total_variation(law, one) for one in learner.candidates)
    assert abs(best - least) < 1e-3
    errors = []
    for run in range(3):
        key = SharedRandomness(f"9303/{share}/{run}")
        value = private.release(law.sample(400 * 40 * 50, key.stream("data")), shared=key).value
        assert not isinstance(value, NoAnswerType)
        errors.append(float(total_variation(value, law)))
    print(f"{share}: OPT {best:.4f}, errors {np.round(errors, 4)}")  # noqa: T201 - the figures asked for
    # A law three steps off is chosen only if one of 351 sets has a frequency that is 0.145 off. 400 records of the law
    # do that with probability 4e-5 (Hoeffding, and a union); two of three runs with 5e-9.
    assert np.median(errors) <= min(99 * best, 0.25)


# --- certified --------------------------------------------------------------------------------------------------------

CERTIFIED: dict[str, Any] = {"alpha": "0.1", "beta": "0.1", "epsilon": 1, "delta": "1e-6", "method": "certified"}


def certified_hits(learner: EmpiricalLearner | GaussianLearner, truth: Any, *, runs: int, seed: int) -> int:
    private = BlackBoxPrivateLearner(learner, **CERTIFIED)
    generator = np.random.default_rng(seed)
    hits = 0
    for run in range(runs):
        data = truth.sample(private.required_records, generator)
        value = private.release(data, shared=SharedRandomness(f"{seed}/{run}")).value
        hits += not isinstance(value, NoAnswerType) and total_variation(value, truth) < 0.1
    print(f"n = {private.required_records}, data seed {seed}: {hits} of {runs}")  # noqa: T201 - the figures asked for
    return hits


TRUTHS = [
    (EmpiricalLearner(["no", "yes"]), Categorical(["no", "yes"], [0.5, 0.5])),
    (EmpiricalLearner(["no", "yes"]), Categorical(["no", "yes"], [0.97, 0.03])),
    (GaussianLearner(dimension=1), Normal(-7.0, math.pi)),
]


@pytest.mark.parametrize(("learner", "truth"), TRUTHS)
def test_S9_S11_certified_sizes_are_enough_in_short(learner: Any, truth: Any) -> None:
    hits = certified_hits(learner, truth, runs=20, seed=9401)
    assert hits >= 10  # at the promised 0.9 fewer have probability 7e-7


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("learner", "truth"), TRUTHS)
def test_S9_S11_certified_sizes_are_enough(learner: Any, truth: Any) -> None:
    hits = certified_hits(learner, truth, runs=1000, seed=9402)
    assert hits >= 852  # at the promised 0.9 fewer have probability 7e-7; right in 80 % of runs passes with 1e-5


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("dimension", "runs", "least"), [(2, 100, 73), (3, 60, 41), (5, 20, 10)])
def test_S11_certified_normal_laws(dimension: int, runs: int, least: int) -> None:
    factor = np.tril(np.arange(1.0, 1 + dimension**2).reshape(dimension, dimension))
    truth = Normal(100.0 * np.ones(dimension), factor @ factor.T)
    hits = certified_hits(GaussianLearner(dimension=dimension), truth, runs=runs, seed=9403)
    assert hits >= least  # at 0.9 fewer have probability below 1e-6
