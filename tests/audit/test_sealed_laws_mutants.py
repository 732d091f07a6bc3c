"""With a process a block, what a law leaves in memory when it is read or asked reaches no other block."""

import os
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core import isolation
from accord.core.blocks import fit_blocks
from accord.core.coupling import ABSTAIN
from accord.core.isolation import SealedLaw, couple_apart
from accord.couplings import Coupling
from accord.distributions import Categorical, Distribution, Measure, Mixture, Normal, PointMass
from accord.learners import GaussianLearner
from accord.learning import Isolation
from accord.randomness import Generator, SharedRandomness
from accord.theory import PoissonCoupling

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

REGISTRY: list[float] = []
BLOCKS = [np.arange(place, place + 4) for place in range(0, 16, 4)]
RACE = PoissonCoupling(Normal(0.0, 9.0), most_points=300)


class Foreign:
    """A normal law of somebody else's class."""

    dimension = 1
    measure = Measure.LEBESGUE

    def __init__(self, mean: float) -> None:
        self.mean = mean

    def sample(self, size: int, generator: Generator) -> Any:
        return Normal(self.mean, 1.0).sample(size, generator)

    def log_density(self, x: Any) -> NDArray[np.float64]:
        return Normal(self.mean, 1.0).log_density(x)


class Registered(Foreign):
    """Puts itself into a registry when it is read from a pickle."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        REGISTRY.append(self.mean)


class Memo(Foreign):
    """Keeps the mean of the first law that was asked on its class."""

    first: float | None = None

    def log_density(self, x: Any) -> NDArray[np.float64]:
        if Memo.first is None:
            Memo.first = self.mean
        return Normal(self.mean + Memo.first, 1.0).log_density(x)


class Hard(Foreign):
    def log_density(self, x: Any) -> NDArray[np.float64]:
        os._exit(3)


class Learner:
    """Makes a law of a class, and adds what the registry holds."""

    def __init__(self, kind: Callable[[float], Distribution]) -> None:
        self.kind = kind

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        return self.kind(float(records.mean()) / 10 + sum(REGISTRY))


def votes(learner: Any, *, spoilt: bool, kind: Any = "process", coupling: Coupling = RACE) -> NDArray[np.object_]:
    """Return the votes of a release from a process in which nothing has been left."""
    REGISTRY.clear()
    Memo.first = None
    table = np.arange(16.0)[:, None]
    if spoilt:
        table[1] = 40.0
    shared = SharedRandomness(5)
    laws = fit_blocks(learner, table, blocks=BLOCKS, shared=shared, isolation=Isolation(kind=kind))
    again = fit_blocks(learner, table, blocks=BLOCKS[2:], shared=shared.child(1), isolation=Isolation(kind=kind))
    first, second = (
        couple_apart(coupling, each, isolated=coupling.isolated, records=1, draws=12, shared=shared).keys
        for each in (laws, again)
    )
    return np.concatenate([first, second], axis=1)


def others_stay(learner: Any, **options: Any) -> bool:
    """Whether a record of the first block moves no vote but that block's."""
    one, other = (votes(learner, spoilt=spoilt, **options) for spoilt in (False, True))
    assert all(vote is not ABSTAIN for vote in one[:, 1])
    assert (one[:, 0] != other[:, 0]).any()
    return bool((one[:, 1:] == other[:, 1:]).all())


@pytest.mark.parametrize("kind", [Foreign, Registered, Memo])
def test_A9_what_a_law_leaves_in_memory_reaches_no_other_block(kind: Any) -> None:
    assert others_stay(Learner(kind))
    assert REGISTRY == []
    assert Memo.first is None


def test_A9_with_copies_a_memo_reaches_others_as_known_limits_says() -> None:
    assert not others_stay(Learner(Memo), kind="copy")
    assert others_stay(Learner(Foreign), kind="copy")


def test_A9_both_kinds_give_the_same_votes() -> None:
    learner = Learner(Foreign)
    assert (votes(learner, spoilt=False) == votes(learner, spoilt=False, kind="copy")).all()


def test_A9_a_law_that_ends_its_process_abstains_alone() -> None:
    def kind(mean: float) -> Distribution:
        return Hard(mean) if mean > 1 else Foreign(mean)

    clean, spoilt = (votes(Learner(kind), spoilt=spoilt) for spoilt in (False, True))
    assert [vote is ABSTAIN for vote in spoilt[0, :4]] == [True, False, False, True]
    assert (clean[:, 1:] == spoilt[:, 1:]).all()


class NotIsolated:
    """Says that it is not, so that its laws vote together."""

    isolated = False

    def slack(self, **_: int) -> Fraction:
        return Fraction(0)

    def couple(self, laws: Any, *, records: int, draws: int, shared: SharedRandomness) -> Any:
        return RACE.couple(laws, records=records, draws=draws, shared=shared)


def test_A9_where_votes_depend_on_all_laws_these_are_read_in_one_child() -> None:
    coupling: Any = NotIsolated()
    found = votes(Learner(Registered), spoilt=False, coupling=coupling)
    assert REGISTRY == []
    assert (found == votes(Learner(Registered), spoilt=False)).all()


def test_A9_laws_of_accord_with_plain_values_are_read_at_once() -> None:
    table = np.arange(16.0)[:, None]
    laws = fit_blocks(
        GaussianLearner(), table, blocks=BLOCKS, shared=SharedRandomness(1), isolation=Isolation(kind="process")
    )
    assert [type(law) for law in laws] == [Normal] * 4


PLAIN: list[Any] = [
    Normal([0.0, 1.0], [[1.0, 0.0], [0.0, 1.0]]), Mixture([Normal(0, 1), Normal(1, 2)], [0.5, 0.5]),
    Categorical(["a", 1, True, 2.5], [0.25] * 4), PointMass([1.0, 2.0]), ABSTAIN,
]  # fmt: skip


@pytest.mark.parametrize("law", PLAIN)
def test_A9_what_is_plain(law: Any) -> None:
    assert isolation._read(pickle.dumps(law)) == law


@pytest.mark.parametrize("law", [Registered(1.0), Mixture([Normal(0, 1), Registered(1.0)], [0.5, 0.5])])
def test_A9_what_is_not_plain_stays_sealed_and_runs_nothing(law: Any) -> None:
    REGISTRY.clear()
    found = isolation._read(pickle.dumps(law))
    assert type(found) is SealedLaw
    assert REGISTRY == []
    assert found.opened() is not ABSTAIN
    assert len(REGISTRY) == 1


def test_A9_mutant_laws_that_are_read_before_the_next_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_read", lambda sent: SealedLaw(sent).opened())
    assert not others_stay(Learner(Registered))
    assert not others_stay(Learner(Memo))
    assert others_stay(Learner(Foreign))
