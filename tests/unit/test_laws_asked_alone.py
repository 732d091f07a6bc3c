"""What the code of one law raises, warns of or leaves behind, and the votes of the others."""

import contextlib
import logging
import pickle
import random
import signal
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core.coupling import ABSTAIN
from accord.couplings import (
    AtomRace,
    Coupling,
    DyadicCoupling,
    HashedLattice,
    ModelReference,
    ParameterRounding,
    RaceCoupling,
    TwoStageCoupling,
)
from accord.distributions import Categorical, Distribution, Measure, Mixture, Normal, PointMass, Uniform, log_densities
from accord.distributions.protocol import bounded, on_a_line
from accord.randomness import Generator, SharedRandomness, ambient_seed
from accord.theory import PoissonCoupling, TuplePoissonCoupling
from accord.theory.boosted import Nearness, most_neighbours
from accord.theory.grand import ListedLaws

legacy: Any = np.random


class Foreign:
    """A normal law of somebody else's class, which does something first whenever it is asked."""

    dimension = 1
    measure = Measure.LEBESGUE

    def __init__(self, mean: float, act: Callable[[Any], object] = lambda _: None) -> None:
        self.law = Normal(mean, 1.0)
        self.act = act

    def sample(self, size: int, generator: Generator) -> Any:
        return self.law.sample(size, generator)

    def log_density(self, x: Any) -> NDArray[np.float64]:
        self.act(x)
        return self.law.log_density(x)

    def log_density_bound(self, low: Any, high: Any) -> NDArray[np.float64]:
        self.act(low)
        return self.law.log_density_bound(low, high)

    def reach(self) -> tuple[Any, Any]:
        self.act(np.zeros(1))
        return np.array([-9.0]), np.array([9.0])

    def cdf(self, x: Any) -> NDArray[np.float64]:
        self.act(x)
        return self.law.cdf(x)

    def interval(self, low: Any, high: Any) -> NDArray[np.float64]:
        self.act(low)
        return self.law.interval(low, high)


def noise(_: Any) -> None:
    """Use global generators, as a law with Monte Carlo inside does; see `Random`."""
    legacy.random_sample(3)
    random.random()


class Random(Foreign):
    """Reads the global generators for its density."""

    def log_density(self, x: Any) -> NDArray[np.float64]:
        noisy: NDArray[np.float64] = self.law.log_density(x) + legacy.random_sample(len(x)) + random.random()
        return noisy


def leaves(code: BaseException) -> Callable[[Any], object]:
    def act(_: Any) -> object:
        raise code

    return act


def overwrite(x: Any) -> None:
    """Write to what was given, and to the arrays that it is a view of."""
    while isinstance(x, np.ndarray):
        x.flags.writeable = True
        x[...] = 0.0
        x = x.base


def cautious(_: Any) -> None:
    warnings.warn("the density is rough", UserWarning, stacklevel=1)


ACTS: dict[str, Callable[[Any], object]] = {
    "exit": leaves(SystemExit(3)),
    "panic": leaves(BaseException("a compiled extension panics")),
    "generator exit": leaves(GeneratorExit()),
    "interrupt of its own": leaves(KeyboardInterrupt()),
    "consume": noise,
    "seed": lambda _: (legacy.seed(5), random.seed(5)),
    "raise on overflow": lambda _: np.seterr(all="raise"),
    "warnings are errors": lambda _: warnings.simplefilter("error"),
    "write": overwrite,
}
MODELS: list[Distribution] = [Foreign(mean) for mean in (-0.5, 0.0, 0.5)]
COUPLINGS: dict[str, Coupling] = {
    "race": PoissonCoupling(Normal(0.0, 9.0), most_points=400),
    "earliest": PoissonCoupling(Uniform(-9.0, 9.0), rule="earliest"),
    "hashed lattice": HashedLattice(dimension=1),
    "dyadic": DyadicCoupling(),
    "two stages": TwoStageCoupling(ModelReference(MODELS), candidates=200),
    "two stages, compiled": TwoStageCoupling(ModelReference([Normal(-0.5, 1.0), Normal(0.5, 1.0)]), candidates=200),
}


def good() -> list[Distribution]:
    cautiously: Distribution = Foreign(0.3, cautious)
    return [
        Normal(0.1, 1.0),
        Foreign(0.2),
        Random(0.0),
        cautiously,
        Mixture([Normal(0.0, 1.0), cautiously], [0.5, 0.5]),
    ]


def votes(coupling: Coupling, laws: list[Any]) -> NDArray[np.object_]:
    return coupling.couple(laws, records=1, draws=6, shared=SharedRandomness(7)).keys


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("name", COUPLINGS)
def test_L3_what_a_law_does_when_asked_reaches_no_other(name: str, act: str) -> None:
    coupling, bad = COUPLINGS[name], Foreign(0.0, ACTS[act])
    alone = np.column_stack([votes(coupling, [law])[:, 0] for law in good()])
    before = np.geterr(), legacy.get_state()[1].tolist(), random.getstate(), list(warnings.filters)
    first, last, inside = (
        votes(coupling, [bad, *good()])[:, 1:],
        votes(coupling, [*good(), bad])[:, :-1],
        votes(coupling, [Mixture([Normal(0.0, 1.0), bad], [0.5, 0.5]), *good()])[:, 1:],
    )
    assert before == (np.geterr(), legacy.get_state()[1].tolist(), random.getstate(), list(warnings.filters))
    assert (alone == first).all()
    assert (alone == last).all()
    assert (alone == inside).all()
    assert any(vote is not ABSTAIN for vote in alone[:, 1])


@pytest.mark.parametrize("error", [SystemExit(3), BaseException("panic")])
def test_a_label_or_a_list_that_ends_the_run_abstains_alone(error: BaseException) -> None:
    class Lists(Foreign):
        def support_atoms(self, mass: float) -> Any:
            raise error

    class Names(Categorical):  # type: ignore[misc]
        @property
        def dimension(self) -> int:
            raise error

        @property
        def probabilities(self) -> Any:
            raise error

    fine = Categorical(["a", "b"], [0.5, 0.5])
    strange = object.__new__(Names)
    couplings: list[Coupling] = [
        AtomRace(),
        RaceCoupling(["a", "b"]),
        PoissonCoupling.counting(["a", "b"]),
        TuplePoissonCoupling(step=0.1),
    ]
    for coupling in couplings:
        for bad in (strange, Lists(0.0, leaves(error))):
            keys = votes(coupling, [bad, fine])
            assert all(key is ABSTAIN for key in keys[:, 0])
            assert all(type(key) is bytes for key in keys[:, 1])


def test_a_point_mass_that_was_never_made_abstains_alone() -> None:
    coupling = ParameterRounding(widths=[1.0])
    keys = votes(coupling, [object.__new__(PointMass), PointMass(0.3), PointMass("label")])
    assert [key is ABSTAIN for key in keys[0]] == [True, False, True]


def interrupt(_: Any) -> None:
    """Do what Ctrl-C does."""
    signal.raise_signal(signal.SIGINT)


def swallow(_: Any) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("act", [interrupt, swallow])
def test_A10_interrupts_of_a_person_end_the_run_even_where_a_law_catches_them(act: Callable[[Any], object]) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore the signal
    try:
        with pytest.raises(KeyboardInterrupt):
            votes(HashedLattice(dimension=1), [Foreign(0.0, act)])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert votes(HashedLattice(dimension=1), [Foreign(0.0)])[0, 0] is not ABSTAIN  # and the turn was given back


def test_A10_an_interrupt_that_a_law_raises_itself_is_its_abstention() -> None:
    keys = votes(HashedLattice(dimension=1), [Foreign(0.0, leaves(KeyboardInterrupt())), Foreign(0.2)])
    assert all(key is ABSTAIN for key in keys[:, 0])
    assert all(key is not ABSTAIN for key in keys[:, 1])


class Leaves(Foreign):
    """Ends the run when it is compared or hashed."""

    def __eq__(self, other: object) -> bool:
        raise SystemExit(3)

    def __hash__(self) -> int:
        raise SystemExit(3)


def test_A10_a_law_that_leaves_when_it_is_compared_abstains_alone() -> None:
    listed = ListedLaws(inner=HashedLattice(dimension=1), candidates=(Normal(0.0, 1.0), Normal(1.0, 1.0)))
    keys = votes(listed, [Leaves(0.0), Normal(1.0, 1.0)])
    assert all(key is ABSTAIN for key in keys[:, 0])
    assert (keys[:, 1] == votes(listed, [Normal(1.0, 1.0)])[:, 0]).all()


def test_A10_a_released_model_that_leaves_when_it_is_asked_loses_no_other() -> None:
    def leave(_: Any) -> None:
        raise SystemExit(3)

    nearness = Nearness(near=Fraction(1, 10), far=Fraction(1, 5), failure=1e-6)
    models: list[Distribution] = [Leaves(0.0, leave), Normal(1.0, 1.0), Normal(1.0, 1.0), Foreign(0.5, leave)]
    assert most_neighbours(models, nearness=nearness, shared=SharedRandomness(1)) == 1
    assert on_a_line(Foreign(0.0, leave)) is None
    assert bounded(Mixture([Normal(0.0, 1.0), Foreign(0.0, leave)], [0.5, 0.5])) is None


def chatter(_: Any) -> None:
    print("CANARY")  # noqa: T201
    sys.stderr.write("CANARY")
    logging.getLogger("somebody").critical("CANARY")
    warnings.warn("CANARY", stacklevel=1)


@pytest.mark.parametrize("name", COUPLINGS)
def test_A10_what_a_law_prints_or_logs_is_dropped(name: str, capfd: Any, caplog: Any) -> None:
    votes(COUPLINGS[name], [Foreign(0.0, chatter)])
    assert "CANARY" not in "".join(capfd.readouterr())
    assert "CANARY" not in caplog.text


def test_a_law_gets_records_of_its_own() -> None:
    records = np.array([[0.5], [1.5]])
    table = log_densities([Foreign(0.0, overwrite), Normal(0.0, 1.0)], records, reference=Normal(0.0, 1.0))
    assert records.tolist() == [[0.5], [1.5]]
    assert (table[1] == Normal(0.0, 1.0).log_density(records)).all()


def test_ambient_seed_gives_back_the_normal_number_that_numpy_keeps() -> None:
    with ambient_seed(1):
        legacy.standard_normal()
        second = legacy.standard_normal()
    with ambient_seed(1):
        legacy.standard_normal()
        with ambient_seed(2):
            legacy.standard_normal(3)
        assert legacy.standard_normal() == second


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_ambient_seed_gives_numpys_own_generator_of_the_seed_each_time(seed: int) -> None:
    expected = np.random.MT19937(seed)
    numbers, children = expected.random_raw(2000).tolist(), [child.random_raw() for child in expected.spawn(2)]
    for _ in range(2):
        with ambient_seed(seed):
            given = legacy.get_bit_generator()
            assert given.random_raw(2000).tolist() == numbers
            assert [child.random_raw() for child in given.spawn(2)] == children
            given.seed_seq.generate_state(624)[:] = 7  # what one block does to it reaches no other
            assert pickle.loads(pickle.dumps(given)).random_raw() == given.random_raw()  # noqa: S301 - our own


class RaisesForAll:
    """Somebody's reference: it reads what it is given, and fails as a whole if one law is not what it expects."""

    def __init__(self, *, late: bool) -> None:
        self.inner = ModelReference([Normal(-0.5, 1.0), Normal(0.5, 1.0)])
        self.late = late

    def points(self, draw: int, batch: int, *, records: int, shared: SharedRandomness) -> Any:
        return self.inner.points(draw, batch, records=records, shared=shared)

    def log_ratios(self, laws: Any, points: Any, *, records: int) -> Any:
        return self.evaluator(laws, records=records)(points)

    def log_bounds(self, laws: Any, *, records: int) -> Any:
        return self.inner.log_bounds(laws, records=records)

    def decode(self, point: Any, **how: Any) -> Any:
        return self.inner.decode(point, **how)

    def drawn(self, size: int, stream: Generator, *, records: int) -> Any:
        return self.inner.drawn(size, stream, records=records)

    def points_of(self, law: Any, size: int, stream: Generator, *, records: int) -> Any:
        return self.inner.points_of(law, size, stream, records=records)

    def least_records(self) -> int:
        return 1

    def usual_candidates(self, records: int) -> int:
        return self.inner.usual_candidates(records)

    def evaluator(self, laws: Any, *, records: int) -> Callable[[Any], Any]:
        if not self.late:
            assert all(law is ABSTAIN or type(law) is Normal for law in laws)

        def evaluate(points: Any) -> Any:
            for law in laws:
                if law is not ABSTAIN:
                    law.log_density(points[:1, 0])
            return self.inner.evaluator(laws, records=records)(points)

        return evaluate


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("bad", [3, Foreign(0.0, leaves(RuntimeError()))], ids=["number", "raises"])
def test_L3_a_reference_that_raises_for_all_is_asked_for_each_law(bad: Any, *, late: bool) -> None:
    reference: Any = RaisesForAll(late=late)
    coupling: Coupling = TwoStageCoupling(reference, candidates=3000)
    fine = [Normal(0.1, 1.0), ABSTAIN, Normal(0.0, 1.1)]
    alone = votes(coupling, fine)
    mixed = votes(coupling, [fine[0], bad, fine[2]])
    assert all(key is ABSTAIN for key in mixed[:, 1])
    assert (alone == mixed).all()


class LooksAcross(RaisesForAll):
    """A reference whose rows depend on each other: it scales by the best law at each point."""

    def __init__(self) -> None:
        super().__init__(late=False)

    def evaluator(self, laws: Any, *, records: int) -> Callable[[Any], Any]:
        evaluate = self.inner.evaluator(laws, records=records)

        def across(points: Any) -> Any:
            rows = evaluate(points)
            return rows - np.where(rows.max(axis=0) > -np.inf, rows.max(axis=0), 0.0)

        return across


@pytest.mark.parametrize("kind", [TwoStageCoupling, PoissonCoupling])
def test_L3_a_reference_that_looks_across_laws_cannot_break_isolation(kind: Any) -> None:
    reference: Any = LooksAcross()
    coupling = kind(reference, candidates=200) if kind is TwoStageCoupling else kind(reference, most_points=200)
    laws: list[Any] = [Normal(0.1, 1.0), Normal(0.0, 1.1), Normal(-0.1, 1.0)]
    base = votes(coupling, laws)
    for other in (Normal(3.0, 0.1), ABSTAIN, "no law"):
        assert (votes(coupling, [other, *laws[1:]])[:, 1:] == base[:, 1:]).all()


class Secretive(Foreign):
    """Samples by numpy's global generator and not by the one that it is given."""

    def sample(self, size: int, generator: Generator) -> Any:
        return legacy.standard_normal((size, 1)) + random.random() + self.law.mean[0]


SECRETIVE: list[Distribution] = [Secretive(-0.5), Secretive(0.5)]


@pytest.mark.parametrize(
    "coupling",
    [
        PoissonCoupling(Secretive(0.0), most_points=300),
        PoissonCoupling(Mixture(SECRETIVE, [0.5, 0.5]), most_points=300),
        TwoStageCoupling(ModelReference(SECRETIVE), candidates=300),
    ],
    ids=["reference", "part of a reference", "models"],
)
def test_a_public_law_that_reads_global_generators_gives_the_same_points_when_decoded(coupling: Coupling) -> None:
    laws = [Normal(0.3, 0.01), Normal(5.0, 0.01)]
    keys = []
    for seed in (1, 2):
        with ambient_seed(seed):
            coupled = coupling.couple(laws, records=1, draws=8, shared=SharedRandomness(7))
            keys.append(coupled.keys[:, 0].tolist())
            legacy.standard_normal(3)
            found = [coupled.decode(draw, key).item() for draw, key in enumerate(coupled.keys[:, 0])]
            assert max(abs(value - 0.3) for value in found) < 0.5
    assert keys[0] == keys[1]
