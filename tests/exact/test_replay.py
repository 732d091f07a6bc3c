"""Replay on neighbours: same shared keys, one record replaced, at most one block's votes differ (theory 7, 9)."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core import aggregate
from accord.core.blocks import fit_blocks
from accord.core.exact import exp_lower
from accord.couplings import Coupling, NormalLattice, RaceCoupling
from accord.distributions import Distribution, Normal
from accord.errors import InvalidParameter
from accord.learners import EmpiricalLearner, GaussianLearner, Learner
from accord.learning import PrivateLearner, PrivateSampler, partition
from accord.mechanisms import BestOfDraws, StableMode
from accord.randomness import SharedRandomness
from accord.testing import ReplayRandomness

BLOCKS, DRAWS = 12, 6


@dataclass(frozen=True)
class Fussy:
    """Fails on some blocks, in a way that depends on their records; reads global generators; warns; edits its input."""

    inner: Learner

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        import random

        reads = zlib.crc32(records[0].tobytes()) % 7
        _ = [random.random() for _ in range(reads)], np.random.random(reads)  # noqa: NPY002 - what others do
        if float(np.float64(records[0, 0])) > 1.2:
            raise SystemExit("records made me quit")
        if float(np.float64(records[1, 0])) > 1.2:
            raise ValueError("too large")
        law = self.inner.fit(records, seed=seed)
        records[:] = 0
        shift = np.random.random() * 1e-3  # noqa: NPY002
        assert isinstance(law, Normal)
        return Normal(np.asarray(law.mean) + shift, np.asarray(law.covariance))


class Hoarder:
    """Remembers earlier fits and lets them leak into later ones, if the library lets it."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        self.seen.append(float(records.mean()))
        return Normal(sum(self.seen), 1.0)


def numbers(columns: int) -> Callable[[np.random.Generator], NDArray[Any]]:
    return lambda generator: generator.normal(size=(BLOCKS * 10 + 5, columns))


def letters(generator: np.random.Generator) -> NDArray[Any]:
    return generator.choice(np.array(list("abc"), dtype=object), size=(BLOCKS * 10 + 5, 1))


TEN = list("abcdefghij")
CASES: dict[str, tuple[Learner, Coupling, Callable[[np.random.Generator], NDArray[Any]], list[Any]]] = {
    "normal d=1": (GaussianLearner(), NormalLattice(dimension=1), numbers(1), [0.0, 1e9, -1e300, np.nan, np.inf]),
    "normal d=2": (GaussianLearner(), NormalLattice(dimension=2), numbers(2), [0.0, 1e9, -1e300, np.nan, np.inf]),
    "failing fits": (Fussy(GaussianLearner()), NormalLattice(dimension=1), numbers(1), [5.0, 1e9, np.nan]),
    "with a memory": (Hoarder(), NormalLattice(dimension=1), numbers(1), [5.0, 1e9, np.nan]),
    "categories, joint": (EmpiricalLearner(list("abc")), RaceCoupling(list("abc")), letters, ["a", "c", "zzz", None]),
    "categories, tree": (
        EmpiricalLearner(list("abcdefghij")),
        RaceCoupling(list("abcdefghij")),
        letters,
        ["a", "j", "zzz", None],
    ),
}


def votes(learner: Learner, coupling: Coupling, data: NDArray[Any], *, key: int) -> NDArray[np.object_]:
    shared = SharedRandomness(key)
    parts = partition(len(data), blocks=BLOCKS, in_place_key=shared.child("partition"))
    laws: list[Any] = fit_blocks(learner, data, blocks=parts, shared=shared.child("learner"))
    return coupling.couple(laws, records=40, draws=DRAWS, shared=shared.child("coupling")).keys


@pytest.mark.parametrize("name", CASES)
def test_one_record_moves_the_votes_of_its_own_block_only(name: str) -> None:
    learner, coupling, make, replacements = CASES[name]
    generator = np.random.default_rng(20260101)
    moved = abstained = 0
    for key, replacement in enumerate(replacements * 3):
        data = make(generator)
        neighbour = data.copy()
        row = int(generator.integers(len(data)))
        neighbour[row] = replacement
        before = votes(learner, coupling, data.copy(), key=key)
        after = votes(learner, coupling, neighbour.copy(), key=key)
        changed = set(np.nonzero((before != after).any(axis=0))[0].tolist())
        parts = partition(len(data), blocks=BLOCKS, in_place_key=SharedRandomness(key).child("partition"))
        home = {block for block, part in enumerate(parts) if row in part}
        assert changed <= home
        moved += len(changed)
        abstained += sum(not isinstance(vote, bytes) for vote in before.flat)
    assert moved > 0
    assert (abstained > 0) == (name == "failing fits")


def test_replay_would_catch_a_learner_whose_memory_survives() -> None:
    """The mutant: blocks fitted without a copy of the learner."""
    data = np.random.default_rng(3).normal(size=(BLOCKS * 10, 1))
    neighbour = data.copy()
    parts = partition(len(data), blocks=BLOCKS, in_place_key=SharedRandomness(0))
    neighbour[parts[0][0]] = 1e3

    def leaky(table: NDArray[Any]) -> NDArray[np.object_]:
        learner = Hoarder()
        laws = [learner.fit(table[part], seed=0) for part in parts]
        return NormalLattice(dimension=1).couple(laws, records=24, draws=1, shared=SharedRandomness(0)).keys

    assert (leaky(data) != leaky(neighbour)).sum() > 1


def test_the_selection_of_neighbouring_votes_is_private_exactly() -> None:
    """From data to law of the output: the exact hockey-stick divergence of two neighbouring runs is at most delta."""
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    generator = np.random.default_rng(11)
    for mode in (StableMode(epsilon=epsilon, delta=delta), BestOfDraws(epsilon=epsilon, delta=delta, draws=DRAWS)):
        worst = Fraction(0)
        for key in range(6):
            data = np.tile(generator.normal(size=(10, 1)), (BLOCKS, 1)) + 0.02 * generator.normal(size=(BLOCKS * 10, 1))
            neighbour = data.copy()
            neighbour[int(generator.integers(len(data)))] = 40.0
            laws = []
            for table in (data, neighbour):
                keys = votes(GaussianLearner(), NormalLattice(dimension=1), table, key=key)
                laws.append(mode.law(keys if isinstance(mode, BestOfDraws) else keys[0]))
            for p, q in (laws, laws[::-1]):
                bound = exp_lower(epsilon)
                excess = (max(p[value] - bound * q.get(value, Fraction(0)), Fraction(0)) for value in p)
                worst = max(worst, sum(excess, Fraction(0)))
        assert worst <= delta


def test_equal_noise_and_keys_give_the_equal_release_and_fresh_noise_does_not_follow_a_seed() -> None:
    learner = PrivateLearner(GaussianLearner(), epsilon="0.5", delta="1e-3", blocks=40, records=30, draws=8)
    data = np.tile(np.random.default_rng(1).normal(size=1000), 4)
    shared = SharedRandomness(5)
    first, second = (learner.release(data, shared=shared, randomness=ReplayRandomness(1)) for _ in range(2))
    assert first == second
    # Several draws have nearly as many votes as the best one: 30 equal outcomes in a row are rarer than 1e-6.
    outcomes = [repr(learner.release(data, shared=shared).value) for _ in range(30)]
    assert len(set(outcomes)) > 1, outcomes[0]


def test_aggregate_refuses_a_coupling_that_is_not_isolated() -> None:
    class Sociable:
        isolated = False

        def couple(self, laws: Any, *, records: int, draws: int, shared: SharedRandomness) -> Any:
            raise AssertionError("never reached")

    with pytest.raises(InvalidParameter, match="isolated"):
        aggregate([Normal(0.0, 1.0)], records=20, coupling=Sociable(), mode=StableMode(epsilon=1, delta="1e-6"))


def test_each_learner_sees_its_own_block_and_every_block_is_seen_once() -> None:
    seen: list[set[float]] = []

    class Witness:
        def __deepcopy__(self, memo: object) -> "Witness":
            return self

        def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
            seen.append(set(records[:, 0].tolist()))
            return GaussianLearner().fit(records, seed=seed)

    sampler = PrivateSampler(
        Witness(), epsilon=1, delta="1e-3", blocks=30, records=24, draws=8, coupling=NormalLattice(dimension=1)
    )
    data = np.arange(30 * 7 + 4, dtype=float)
    sampler.rehearse(len(data), columns=1)  # on tables that are made up
    seen.clear()
    sampler.release(data)
    assert [len(rows) for rows in seen] == [7] * 30
    assert len(set().union(*seen)) == 210
