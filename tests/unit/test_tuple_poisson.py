"""Couple II from outside, the secret stream, and what a coupling that is not isolated pays."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from accord.core import aggregate
from accord.core.coupling import ABSTAIN, Abstain
from accord.core.exact import exp_upper
from accord.couplings import Coupled, Coupling, RaceCoupling
from accord.distributions import (
    Atoms,
    Categorical,
    Distribution,
    Mixture,
    Normal,
    PointMass,
    Product,
    ScipyLaw,
    Uniform,
)
from accord.errors import InvalidParameter, WrongRandomness
from accord.laws import FiniteLaw
from accord.learners import EmpiricalLearner
from accord.learning import PrivateSampler
from accord.ledger import Ledger
from accord.mechanisms import BestOfDraws, StableMode
from accord.randomness import SharedRandomness
from accord.theory import TuplePoissonCoupling
from accord.theory.couplings.grid import _uniform
from accord.theory.couplings.secret_stream import SecretStream

SHARED = SharedRandomness("unit")


def couple(laws: Sequence[Any], *, step: Any = 0.25, records: int = 2, draws: int = 30, **more: Any) -> Coupled:
    return TuplePoissonCoupling(step=step, **more).couple(laws, records=records, draws=draws, shared=SHARED)


# --- what goes in -----------------------------------------------------------------------------------------------------


class Hostile:
    """Answers like a law on a line, but for one thing."""

    dimension = 1
    measure = None

    def __init__(self, how: str) -> None:
        self.how = how

    def sample(self, size: int, generator: Any) -> Any:
        raise AssertionError("never asked")

    log_density = sample

    def cdf(self, x: Any) -> Any:
        match self.how:
            case "raises":
                raise MemoryError
            case "nan":
                return np.where(np.abs(x) > 3, Normal(0, 1).cdf(x), np.nan)
            case "never one":
                return 0.5 * Normal(0, 1).cdf(x)
            case "shape":
                return np.zeros(len(x) + 1)
        waves = 0.1 * np.sin(20 * np.clip(x, -1, 1)) * (np.abs(x) < 1)
        return np.round(Normal(0, 1).cdf(x) + waves, 3).clip(0, 1)

    def interval(self, low: Any, high: Any) -> Any:
        return self.cdf(high) - self.cdf(low)


FAILING: dict[str, Any] = {
    "abstains": ABSTAIN,
    "no law": object(),
    "none": None,
    "raises": Hostile("raises"),
    "nan": Hostile("nan"),
    "never one": Hostile("never one"),
    "shape": Hostile("shape"),
    "too wide": Normal(0.0, 1e30),
    "too far": Normal(1e20, 1.0),
    "point too far": PointMass(1e20),
    "cauchy": ScipyLaw(scipy.stats.cauchy, loc=0.0, scale=1e9),
    "odd label": Categorical([frozenset("a")], [1]),
    "mixed kinds": Mixture([PointMass("a"), PointMass(1.0)], [1, 1]),
    "mixture in a product": Product(
        [Mixture([Normal([0, 0], np.eye(2)), Normal([1, 1], np.eye(2))], [1, 1]), Normal(0, 1)]
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_law_that_cannot_be_read_abstains_and_changes_nothing(name: str) -> None:
    others = [Normal(0.0, 1.0), PointMass("a"), Normal(0.5, 1.0)]
    alone = couple(others).keys
    joined = couple([others[0], FAILING[name], *others[1:]]).keys
    assert (joined[:, 1] == ABSTAIN).all()
    assert (joined[:, [0, 2, 3]] == alone).all()
    assert not (alone == ABSTAIN).any()


def test_a_cdf_that_falls_is_made_to_rise_and_nothing_else() -> None:
    coupled = couple([Hostile("wavy"), Hostile("wavy"), Normal(0, 1)])
    assert (coupled.keys[:, 0] == coupled.keys[:, 1]).all()
    assert not (coupled.keys == ABSTAIN).any()


def test_no_law_at_all_is_no_votes() -> None:
    assert couple([]).keys.shape == (30, 0)
    assert (couple([ABSTAIN, ABSTAIN]).keys == ABSTAIN).all()
    assert couple([ABSTAIN]).values.shape == (30, 1, 0, 0)


def test_numbers_without_a_step_abstain_and_labels_need_none() -> None:
    keys = couple([Normal(0, 1), PointMass("a"), FiniteLaw({"a": 1})], step=None).keys
    assert (keys[:, 0] == ABSTAIN).all()
    assert (keys[:, 1] == keys[:, 2]).all()
    assert not (keys[:, 1] == ABSTAIN).any()


def test_one_step_a_column() -> None:
    law = Product([Uniform(0.0, 1.0), PointMass("x"), Normal(0, 100)])
    records = couple([law], step=[0.25, 1, 10]).values
    assert set(np.unique(records[:, 0, :, 0].astype(float) % 0.25)) == {0.0}
    assert set(np.unique(records[:, 0, :, 2].astype(float) % 10)) == {0.0}
    assert set(records[:, 0, :, 1].ravel()) == {"x"}
    assert (couple([law], step=[0.25, 1]).keys == ABSTAIN).all()


@pytest.mark.parametrize("step", [0, -1.0, float("nan"), float("inf"), "1", [], [[1.0]], [1.0, 0.0], 1e-300, True, 1j])
def test_impossible_steps_are_refused(step: Any) -> None:
    with pytest.raises(InvalidParameter, match="step"):
        TuplePoissonCoupling(step=step)


def test_other_arguments_are_checked() -> None:
    coupling = TuplePoissonCoupling(step=1)
    for wrong in ({"records": 0}, {"draws": 0}, {"records": 1.5}):
        with pytest.raises(InvalidParameter):
            coupling.couple([PointMass(0.0)], **{"records": 1, "draws": 1, "shared": SHARED, **wrong})  # type: ignore[arg-type]
    with pytest.raises(WrongRandomness):
        coupling.couple([PointMass(0.0)], records=1, draws=1, shared=7)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="most_cells"):
        TuplePoissonCoupling(most_cells=0)


# --- what comes out ---------------------------------------------------------------------------------------------------


def test_supports_that_do_not_meet_end_and_agree_nowhere() -> None:
    laws = [Normal(-1e3, 1e-4), Normal(1e3, 1e-4), PointMass("a"), PointMass([0.0, 0.0]), Uniform(5, 6)]
    coupled = couple(laws, records=50)
    assert not (coupled.keys == ABSTAIN).any()
    assert all(len(set(row)) == len(laws) for row in coupled.keys)


def test_equal_laws_on_lists_of_another_order_meet_in_the_same_bytes() -> None:
    first = Categorical(["a", 1, True], [0.25, 0.25, 0.5])
    second = FiniteLaw.of([True, "a", 1.0, "never"], weights=[2, 1, 1, 0])
    coupled = couple([first, second], step=None, records=5)
    assert (coupled.keys[:, 0] == coupled.keys[:, 1]).all()
    seen = {(type(x), x) for x in coupled.values.ravel()}
    assert seen == {(str, "a"), (int, 1), (bool, True)}


def test_decode_reads_the_key_and_no_secret() -> None:
    law = Product([Normal(0, 1), Categorical(["a", "b"], [1, 2])])
    one = couple([law])
    other = TuplePoissonCoupling(step=0.25).couple([PointMass(3.0)], records=1, draws=1, shared=SharedRandomness(9))
    for draw, key in enumerate(one.keys[:, 0]):
        assert one.decode(draw, key).tolist() == other.decode(0, key).tolist()
        assert one.decode(draw, key).shape == (2, 2)
    numbers = couple([Normal(0, 1)])
    assert numbers.decode(0, numbers.keys[0, 0]).dtype == np.float64
    assert not np.signbit(numbers.values[numbers.values == 0]).any()


def test_the_same_votes_for_the_same_key_and_others_for_another() -> None:
    laws = [Normal(0, 1), Normal(0.1, 1)]
    assert (couple(laws).keys == couple(laws).keys).all()
    other = TuplePoissonCoupling(step=0.25).couple(laws, records=2, draws=30, shared=SharedRandomness(2)).keys
    assert (other != couple(laws).keys).mean() > 0.9


# --- the secret stream ------------------------------------------------------------------------------------------------


def test_words_depend_on_key_and_every_label() -> None:
    stream = SecretStream(SHARED)
    names = [(), (0,), (0, 0), (1,), (0, 1), (1, 0), (2**64 - 1,)]
    firsts = [int(stream.words(1, *name)[0]) for name in names]
    firsts += [int(SecretStream(SharedRandomness(key)).words(1)[0]) for key in (1, 2, "2")]
    assert len(set(firsts)) == len(firsts)
    assert (SecretStream(SHARED).words(9, 4)[:5] == stream.words(5, 4)).all()
    assert "unit" not in repr(stream)
    assert stream.words(0).shape == (0,)


def test_words_are_not_those_of_the_fast_streams() -> None:
    fast = {int(SHARED.word("secret stream")), int(SHARED.child("secret stream").word(0))}
    assert fast.isdisjoint(SecretStream(SHARED).words(1000).tolist())


@pytest.mark.parametrize("label", [-1, 2**64])
def test_labels_outside_64_bits_are_refused(label: int) -> None:
    with pytest.raises(InvalidParameter):
        SecretStream(SHARED).words(1, label)


def test_a_number_below_k_is_cut_from_a_word_without_remainder() -> None:
    stream = SecretStream(SHARED)
    for count in (1, 2, 3, 7, 100):
        share = 2**64 // count
        for number in range(count):
            for word in (number * share, (number + 1) * share - 1):
                assert _uniform(word, count, stream=stream, labels=(0, 0, 0)) == number
    rejected = [_uniform(2**64 - 1, 3, stream=stream, labels=(0, 0, place)) for place in range(3000)]
    assert min(Counter(rejected).values()) > 800  # 1000 expected: 7.7 standard deviations


# --- what the learning layer charges ----------------------------------------------------------------------------------


class Stated:
    """A race that says what the test wants it to say, and remembers its keys."""

    def __init__(self, *, isolated: Any = False, slack: Any = Fraction(1, 10**9)) -> None:
        self.isolated = isolated
        self.stated = slack
        self.keys: list[SharedRandomness] = []
        self.asked: list[tuple[int, int, int]] = []

    def slack(self, *, laws: int, records: int, draws: int) -> Any:
        self.asked.append((laws, records, draws))
        return self.stated

    def couple(
        self, laws: Sequence[Distribution | Abstain], *, records: int, draws: int, shared: SharedRandomness
    ) -> Coupled:
        self.keys.append(shared)
        return RaceCoupling(["a", "b"]).couple(laws, records=records, draws=draws, shared=shared)


LAWS = [Categorical(["a", "b"], [0.5, 0.5])] * 60
EPSILON = Fraction(1)


def sampler(coupling: Any, *, delta: Any = "1e-6", draws: int = 1) -> PrivateSampler:
    learner = EmpiricalLearner(["a", "b"])
    return PrivateSampler(learner, epsilon=1, delta=delta, blocks=60, records=2, draws=draws, coupling=coupling)


@pytest.mark.parametrize("mode", [StableMode(epsilon=1, delta="1e-6"), BestOfDraws(epsilon=1, delta="1e-6", draws=4)])
def test_aggregate_adds_the_charge_to_delta(mode: Any) -> None:
    coupling = Stated()
    release = aggregate(LAWS, records=2, coupling=coupling, mode=mode)
    assert coupling.asked == [(60, 2, getattr(mode, "draws", 1))]
    assert release.guarantee.delta == mode.delta + (1 + exp_upper(EPSILON)) * Fraction(1, 10**9)
    assert release.guarantee.epsilon == 1
    assert release.guarantee.unit == mode.guarantee.unit
    isolated = aggregate(LAWS, records=2, coupling=RaceCoupling(["a", "b"]), mode=mode)
    assert isolated.guarantee == mode.guarantee


@pytest.mark.parametrize("draws", [1, 8])
def test_sampler_takes_the_charge_out_of_delta(draws: int) -> None:
    charged = sampler(Stated(), draws=draws)
    charge = (1 + exp_upper(EPSILON)) * Fraction(1, 10**9)
    assert charged.coupling_charge == charge > Fraction("3.718e-9")
    assert charged.mode.delta == Fraction("1e-6") - charge
    assert charged.guarantee.delta == Fraction("1e-6")
    assert charged.release(["a", "b"] * 600).guarantee.delta == Fraction("1e-6")
    free = sampler(None, draws=draws)
    assert free.coupling_charge == 0
    assert free.mode.delta == Fraction("1e-6")


def test_a_charge_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="charge"):
        sampler(Stated(slack=Fraction(1, 10**6)))
    with pytest.raises(InvalidParameter, match="charge"):
        aggregate(LAWS, records=2, coupling=Stated(slack=1), mode=StableMode(epsilon=1, delta="1e-6"))
    exact = Fraction("1e-6") / (1 + exp_upper(EPSILON))
    with pytest.raises(InvalidParameter, match="charge"):
        sampler(Stated(slack=exact))


@pytest.mark.parametrize("isolated", [1, 0, None, "yes", np.True_, np.False_, Fraction(1)])
def test_isolated_must_be_true_or_false(isolated: Any) -> None:
    with pytest.raises(InvalidParameter, match="exactly True or False"):
        sampler(Stated(isolated=isolated))
    with pytest.raises(InvalidParameter, match="exactly True or False"):
        aggregate(LAWS, records=2, coupling=Stated(isolated=isolated), mode=StableMode(epsilon=1, delta="1e-6"))


@pytest.mark.parametrize("slack", [1e-9, float("nan"), -1, Fraction(-1, 9), 2, True, None, "0"])
def test_a_slack_that_is_no_proved_bound_is_refused(slack: Any) -> None:
    with pytest.raises(InvalidParameter, match="slack"):
        sampler(Stated(slack=slack))


def test_a_coupling_without_a_slack_is_refused() -> None:
    class Sociable:
        isolated = False
        couple = Stated.couple

    with pytest.raises(InvalidParameter, match="isolated"):
        sampler(Sociable())


def test_the_key_of_such_a_coupling_is_always_fresh() -> None:
    mode = StableMode(epsilon=1, delta="1e-6")
    shared = SharedRandomness(5)
    guessable = {shared, shared.child("coupling")}
    secret, open_ = Stated(), Stated(isolated=True)
    for coupling in (secret, open_):
        made = sampler(coupling)
        made.rehearse(1200, columns=1)  # on tables that are made up, with a key of its own
        assert guessable.isdisjoint(coupling.keys)
        coupling.keys.clear()
        for _ in range(3):
            made.release(["a", "b"] * 600, shared=shared)
            aggregate(LAWS, records=2, coupling=coupling, mode=mode, shared=shared)
    assert len(set(secret.keys)) == 6
    assert guessable.isdisjoint(secret.keys)
    assert set(open_.keys) == guessable


def test_the_ledger_names_coupling_and_charge(tmp_path: Path) -> None:
    def words(coupling: Coupling) -> str:
        path = tmp_path / f"{type(coupling).__name__}.sqlite"
        with Ledger.create(path, epsilon=5, delta="1e-5") as ledger:
            sampler(coupling).release(["a", "b"] * 600, ledger=ledger)
            return " ".join(str(entry.what) for entry in ledger.entries())

    assert "Stated (3.71828182846e-09 of delta pays for it)" in words(Stated())
    assert "TuplePoissonCoupling (0 of delta pays for it)" in words(TuplePoissonCoupling())
    assert "delta" not in words(RaceCoupling(["a", "b"]))


def test_end_to_end_with_atoms_and_a_density() -> None:
    class HalfZero:
        def fit(self, records: Any, *, seed: int) -> Distribution:
            rest = records[records != 0]
            return Atoms([0.0], [float((records == 0).mean())], rest=Normal(float(rest.mean()), float(rest.var())))

    generator = SharedRandomness(3).stream("data")
    data = np.where(generator.random(60_000) < 0.5, 0.0, generator.normal(4.0, 1.0, size=60_000))
    # Blocks of 1000, 40 records: many blocks agree in one of 8 draws.
    release = PrivateSampler(
        HalfZero(),
        epsilon=2,
        delta="1e-6",
        blocks=60,
        records=40,
        draws=8,
        coupling=TuplePoissonCoupling(step=0.125),
    ).release(data)
    records = np.asarray(release.value)
    assert records.shape == (40, 1)
    assert ((records % 0.125) == 0).all()
    assert 5 <= (records == 0).sum() <= 35
