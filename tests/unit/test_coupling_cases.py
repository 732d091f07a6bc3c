"""Faults that others had (E38 to E48), as cases of blocks and couplings together."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core.blocks import fit_blocks
from accord.core.coupling import ABSTAIN
from accord.couplings import (
    AtomRace,
    Coupling,
    DyadicCoupling,
    HashedLattice,
    NormalLattice,
    RaceCoupling,
    StatisticCoupling,
)
from accord.distributions import (
    Categorical,
    Distribution,
    Exponential,
    Gamma,
    Measure,
    Mixture,
    Normal,
    PointMass,
    Poisson,
    Uniform,
)
from accord.learning import PrivateSampler, partition
from accord.randomness import Generator, SharedRandomness
from accord.theory import PoissonCoupling, TuplePoissonCoupling

SEEN: list[frozenset[int]] = []
"""Row numbers of every fit; a learner itself is copied for each block."""


class Remembers:
    """Fits a normal law to the second column, and keeps the row numbers (first column) of every fit."""

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        SEEN.append(frozenset(int(row) for row in records[:, 0]))
        return Normal(float(records[:, 1].mean()), 1.0)


def table(rows: int) -> NDArray[Any]:
    values = np.random.default_rng(0).normal(size=rows)
    return np.column_stack([np.arange(rows), values])


def test_E38_one_partition_serves_all_draws() -> None:
    SEEN.clear()
    learner = Remembers()
    sampler = PrivateSampler(
        learner, epsilon=1, delta="1e-6", blocks=40, records=20, draws=100, coupling=NormalLattice(dimension=1)
    )
    sampler.rehearse(400, columns=2)  # on tables that are made up
    SEEN.clear()
    sampler.release(table(400))
    assert len(SEEN) == 40
    assert all(len(rows) == 10 for rows in SEEN)
    assert frozenset().union(*SEEN) == frozenset(range(400))


def test_E39_every_learner_gets_its_own_block() -> None:
    SEEN.clear()
    learner = Remembers()
    data = table(40)
    data[:, 1] = data[:, 0] // 10 * 1_000
    rows = partition(40, blocks=4, in_place_key=SharedRandomness(3))
    laws = fit_blocks(learner, data, blocks=rows, shared=SharedRandomness(3))
    assert sorted(map(sorted, SEEN)) == sorted(sorted(block.tolist()) for block in rows)
    assert frozenset().union(*SEEN) == frozenset(range(40))
    for law, block in zip(laws, rows, strict=True):
        assert isinstance(law, Normal)
        assert law.mean[0] == data[block, 1].mean()


@dataclass(frozen=True)
class FixedState:
    """A law that seeds its own sampler, so that each call gives the same records."""

    mean: float

    dimension = 1
    measure = Measure.LEBESGUE

    def sample(self, size: int, generator: Generator) -> Any:
        return np.random.default_rng(7).normal(self.mean, 1.0, size=(size, 1))

    def log_density(self, x: Any) -> Any:
        return Normal(self.mean, 1.0).log_density(x)

    def cdf(self, x: Any) -> Any:
        return Normal(self.mean, 1.0).cdf(x)

    def interval(self, low: Any, high: Any) -> Any:
        return Normal(self.mean, 1.0).interval(low, high)

    def reach(self) -> tuple[Any, Any]:
        return np.array([self.mean - 7.0]), np.array([self.mean + 7.0])

    def log_density_bound(self, low: Any, high: Any) -> Any:
        return Normal(self.mean, 1.0).log_density_bound(low, high)


FOREIGN: dict[str, Coupling] = {
    "Poisson": PoissonCoupling(Normal(0.0, 9.0)),
    "dyadic": DyadicCoupling(),
    "hashed lattice": HashedLattice(dimension=1),
    "tuple Poisson": TuplePoissonCoupling(step=2.0**-13),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_E40_a_law_with_a_fixed_state_gives_different_draws(name: str) -> None:
    coupled = FOREIGN[name].couple([FixedState(0.0), FixedState(0.1)], records=1, draws=100, shared=SharedRandomness(1))
    votes = [coupled.decode(draw, key).item() for draw, key in enumerate(coupled.keys[:, 0])]
    assert len(set(votes)) > 90
    assert 50 < sum(a == b for a, b in coupled.keys) < 100


LABELS = ["a", "b", "c"]
TUPLES: dict[str, tuple[Coupling, Distribution, int]] = {
    "race": (RaceCoupling(LABELS), Categorical(LABELS, [1, 1, 2]), 17),
    "atoms": (AtomRace(record_by_record=True), Categorical(LABELS, [1, 1, 2]), 17),
    "normal": (NormalLattice(dimension=1), Normal(0.0, 1.0), 17),
    "counts": (StatisticCoupling(Poisson), Poisson(0.1), 17),
    "waits": (StatisticCoupling(Exponential), Exponential(2.0), 17),
    "shapes": (StatisticCoupling(Gamma), Gamma(0.2, 1.0), 17),
    "mixture": (
        TuplePoissonCoupling(step=0.01),
        Mixture([Normal(-9.0, 1.0), Normal(0.0, 1.0), Normal(9.0, 1.0)], [0.33, 0.33, 0.34]),
        17,
    ),
}


def decoded(name: str, *, draws: int, key: int) -> Any:
    coupling, law, records = TUPLES[name]
    coupled = coupling.couple([law], records=records, draws=draws, shared=SharedRandomness(key))
    return np.stack([coupled.decode(draw, vote)[:, 0] for draw, vote in enumerate(coupled.keys[:, 0])])


@pytest.mark.parametrize("name", TUPLES)
def test_E42_a_tuple_has_exactly_as_many_records_as_asked_for(name: str) -> None:
    assert decoded(name, draws=50, key=2).shape == (50, 17)


@pytest.mark.parametrize("name", TUPLES)
def test_E41_records_are_not_grouped(name: str) -> None:
    """First half against second half of each tuple: exchangeable, so their difference has mean 0 (line: 5.5 errors).

    Sorted tuples, which a grouped sampler gives, lie far beyond the line.
    """
    found = decoded(name, draws=400, key=3)
    numbers = np.searchsorted(np.unique(found), found)

    def z(table: Any) -> float:
        difference = table[:, :8].mean(axis=1) - table[:, 9:].mean(axis=1)
        return abs(float(difference.mean() / (difference.std() / 20)))

    assert z(numbers) < 5.5
    assert z(np.sort(numbers, axis=1)) > 5.5


@pytest.mark.parametrize(
    "coupling", [AtomRace(), StatisticCoupling(PointMass), TuplePoissonCoupling(step=1.0)], ids=["atoms", "point", "II"]
)
def test_E43_equal_values_have_equal_keys_and_others_do_not(coupling: Coupling) -> None:
    values: list[Any] = ["1", 1, 1.0, True, "", "0", False]
    keys = coupling.couple([PointMass(value) for value in values], records=1, draws=1, shared=SharedRandomness(1)).keys[
        0
    ]
    groups = [[place for place, other in enumerate(keys) if other == key] for key in keys]
    assert groups == [[0], [1, 2], [1, 2], [3], [4], [5], [6]]
    zeros = coupling.couple([PointMass(-0.0), PointMass(0.0)], records=1, draws=1, shared=SharedRandomness(1)).keys[0]
    assert zeros[0] == zeros[1]


def test_E43_sums_that_differ_in_the_last_bit_are_different_values_unless_a_grid_says_otherwise() -> None:
    laws: list[Any] = [PointMass(0.1 + 0.2), PointMass(0.3)]
    exact = StatisticCoupling(PointMass).couple(laws, records=1, draws=1, shared=SharedRandomness(1)).keys[0]
    grid = TuplePoissonCoupling(step=0.001).couple(laws, records=1, draws=1, shared=SharedRandomness.fresh()).keys[0]
    assert exact[0] != exact[1]
    assert grid[0] == grid[1]


PROGRAM = """
import hashlib
from accord.couplings import *
from accord.distributions import *
from accord.theory import PoissonCoupling, TuplePoissonCoupling
labels = ["a", "b", "c", 1, (2, "x")]
cases = [
    (RaceCoupling(labels), [Categorical(labels, [1, 2, 3, 4, w]) for w in (5, 6)], 9),
    (AtomRace(record_by_record=True), [Categorical(labels, [1, 2, 3, 4, w]) for w in (5, 6)], 3),
    (TuplePoissonCoupling(), [Categorical(labels, [1, 2, 3, 4, w]) for w in (5, 6)], 9),
    (NormalLattice(dimension=2), [Normal([0, m], [[1, 0], [0, 1]]) for m in (0, 0.1)], 20),
    (StatisticCoupling(Poisson), [Poisson(3.0), Poisson(3.1)], 9),
    (StatisticCoupling(Gamma), [Gamma(3.0, 1.0), Gamma(3.1, 1.0)], 20),
    (PoissonCoupling(Normal(0, 4)), [Normal(0, 1), Normal(0.1, 1)], 1),
    (DyadicCoupling(), [Normal(0, 1), Normal(0.1, 1)], 1),
    (HashedLattice(dimension=1), [Normal(0, 1), Normal(0.1, 1)], 1),
]
digest = hashlib.sha256()
for coupling, laws, records in cases:
    coupled = coupling.couple(laws, records=records, draws=5, shared=SharedRandomness("E44"))
    for draw in range(5):
        for key in coupled.keys[draw]:
            digest.update(key + repr(coupled.decode(draw, key).tolist()).encode())
print(digest.hexdigest())
"""


def test_E44_E45_votes_and_records_are_the_same_in_every_process_and_under_every_hash_seed() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, threads in (("1", "1"), ("2", "2"))
    }
    assert len(found) == 1


def test_E44_the_order_of_blocks_is_the_order_of_votes_and_nothing_else() -> None:
    for coupling, law, records in TUPLES.values():
        if not coupling.isolated:
            continue
        laws: list[Any] = [law, ABSTAIN, law, PointMass("odd")]
        keys = coupling.couple(laws, records=records, draws=4, shared=SharedRandomness(6)).keys
        turned = coupling.couple(laws[::-1], records=records, draws=4, shared=SharedRandomness(6)).keys
        assert (turned == keys[:, ::-1]).all()


@pytest.mark.parametrize("name", FOREIGN)
def test_E46_laws_that_never_meet_take_their_own_values_and_no_nan(name: str) -> None:
    laws = [Uniform(0.0, 1.0), Uniform(2.0, 3.0)]
    coupled = FOREIGN[name].couple(laws, records=1, draws=40, shared=SharedRandomness(9))
    assert not any(a == b for a, b in coupled.keys)
    for draw, pair in enumerate(coupled.keys):
        values = [coupled.decode(draw, key).item() for key in pair]
        assert -1e-3 < values[0] < 1 + 1e-3 < 2 - 1e-3 < values[1] < 3 + 1e-3


def share_of_agreement(coupling: Coupling, laws: list[Any], *, records: int) -> float:
    keys = coupling.couple(laws, records=records, draws=3_000, shared=SharedRandomness(4)).keys
    return float(np.mean([a == b for a, b in keys]))


NARROW: dict[str, tuple[Callable[[float], Coupling], int]] = {
    "Poisson": (lambda scale: PoissonCoupling(Normal(0.0, 4 * scale**2)), 1),
    "hashed lattice": (lambda _: HashedLattice(dimension=1), 1),
    "normal lattice": (lambda _: NormalLattice(dimension=1), 30),
}


@pytest.mark.parametrize("name", NARROW)
def test_E47_E48_densities_far_above_one_or_far_below_change_nothing(name: str) -> None:
    """One pair of laws at the scales 1e-9, 1 and 1e9: agreement differs by less than 5.5 errors, and not by a tenth."""
    make, records = NARROW[name]
    found = []
    for scale in (1e-9, 1.0, 1e9):
        laws = [Normal(0.0, scale**2), Normal(0.1 * scale, scale**2)]
        found.append(share_of_agreement(make(scale), laws, records=records))
    error = (2 * found[1] * (1 - found[1]) / 3_000) ** 0.5
    assert max(found) - min(found) < 5.5 * error
    assert 0.1 * found[1] > 5.5 * error


def test_E48_laws_far_from_everything_and_from_each_other_vote_for_themselves() -> None:
    pairs: list[tuple[Coupling, list[Distribution], int]] = [
        (NormalLattice(dimension=1), [Normal(1e12, 1.0), Normal(-1e12, 1.0)], 20),
        (StatisticCoupling(Exponential), [Exponential(1e300), Exponential(1e-300)], 5),
        (StatisticCoupling(Gamma), [Gamma(900.0, 1e200), Gamma(900.0, 1e-200)], 20),
        (StatisticCoupling(Poisson), [Poisson(1e12), Poisson(1e-12)], 20),
    ]
    for coupling, laws, records in pairs:
        coupled = coupling.couple(laws, records=records, draws=10, shared=SharedRandomness(0))
        assert not any(a == b for a, b in coupled.keys)
        for block, law in enumerate(laws):
            for draw, key in enumerate(coupled.keys[:, block]):
                logs = law.log_density(coupled.decode(draw, key))
                assert np.isfinite(logs).all(), (law, draw)
