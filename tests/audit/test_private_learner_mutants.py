"""Replay of the boosted and the agnostic learner on neighbours, noise frozen; and broken variants, which it catches.

Neighbours differ in all records of one unit. With the shared key fixed, the votes of all parts are compared: those of
one block of one part may differ, no others. From the votes the exact law of each part's selection follows, and with it
the exact divergence of the whole: all other parts have the same law. What is made of the released values must not read
the data: it is run again on other data with the same releases.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core import Records
from accord.core.exact import exp_lower
from accord.couplings import Coupled, Coupling, Premises, RaceCoupling
from accord.distributions import Categorical, Distribution
from accord.learners import EmpiricalLearner
from accord.learning import PrivateLearner, PrivateSampler
from accord.ledger import Ledger
from accord.mechanisms import BestOfDraws, StableMode
from accord.privacy import ApproxDP, NoAnswer, Release
from accord.randomness import PrivateRandomness, SharedRandomness, uniform_order
from accord.testing import ReplayRandomness
from accord.theory import AgnosticPrivateLearner, BlackBoxPrivateLearner, BoostedPrivateLearner
from accord.theory.parts import leave_out

agnostic: Any = sys.modules["accord.theory.agnostic"]
black_box: Any = sys.modules["accord.theory.black_box"]
boosted: Any = sys.modules["accord.theory.boosted"]
sampler: Any = sys.modules["accord.learning.sampler"]

LABELS = (0, 1)
PARTS, BLOCKS, SIZE = 4, 14, 4
Table = NDArray[Any]


@dataclass(frozen=True)
class Counting:
    """Frequencies, and a sample complexity that makes the instance small; it is not true, and privacy does not care."""

    agnostic_factor: int = 1

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        return EmpiricalLearner(LABELS).fit(records, seed=seed)

    def sample_complexity(self, alpha: float, beta: float) -> int:
        return SIZE


Learners = BoostedPrivateLearner | AgnosticPrivateLearner | BlackBoxPrivateLearner


class Revealing:
    """A vote says all that its block's law does, so that nothing of a change is hidden."""

    isolated = True

    def premises(self, *, records: int) -> Premises:
        return Premises(marginals=True, agreement="tuples")

    def couple(self, laws: Any, *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
        keys = np.array([[repr(law).encode() for law in laws]] * draws, dtype=object)
        return Coupled(keys=keys, decode=lambda _draw, _key: np.zeros((records, 1), dtype=np.int64))


RACE: Coupling = RaceCoupling(LABELS)


def small_boosted(coupling: Coupling = RACE) -> BoostedPrivateLearner:
    """The real class with fewer and smaller parts than any theorem has: what is tested does not depend on sizes."""
    learner = BoostedPrivateLearner(
        Counting(), alpha="0.5", beta="0.9", epsilon=1, delta="1e-3", coupling=coupling, margin=0
    )
    private = PrivateLearner(Counting(), epsilon=1, delta="1e-3", blocks=BLOCKS, records=SIZE, coupling=coupling)
    object.__setattr__(learner, "parts", PARTS)
    object.__setattr__(learner.part, "private", private)
    object.__setattr__(learner.part, "plan", replace(learner.part.plan, records=BLOCKS, blocks=BLOCKS))
    return learner


def small_agnostic(coupling: Coupling = RACE) -> AgnosticPrivateLearner:
    return AgnosticPrivateLearner(Counting(), epsilon=1, delta="1e-3", parts=PARTS, blocks=BLOCKS, coupling=coupling)


CASES: dict[str, Callable[..., Learners]] = {"boosted": small_boosted, "agnostic": small_agnostic}


def units_of(learner: Learners) -> int:
    return SIZE * learner.required_records + 13


def make(learner: Learners, generator: np.random.Generator, *, skew: float = 0.97) -> tuple[Table, Table]:
    """Records and the unit of each: one to three records a unit, not side by side."""
    units = units_of(learner)
    names = np.concatenate([np.arange(units), generator.integers(0, units, size=units)])
    return (generator.random(len(names)) < skew).astype(np.int64), names


@dataclass
class Votes:
    """What the selections of one run were given."""

    kept: list[NDArray[np.object_]]
    modes: list[Any]


def votes(
    learner: Learners, data: Table, names: Table, *, key: int, patched: pytest.MonkeyPatch, ledger: Ledger | None = None
) -> Votes:
    """Run a release and return the votes of every part, in order."""
    seen = Votes([], [])
    aggregate = sampler.aggregate

    def spy(laws: Any, *, coupling: Any, mode: Any, **rest: Any) -> Any:
        class Spy:
            isolated = True

            def couple(self, laws: Any, **arguments: Any) -> Coupled:
                coupled: Coupled = coupling.couple(laws, **arguments)
                seen.kept.append(coupled.keys)
                seen.modes.append(mode)
                return coupled

        return aggregate(laws, coupling=Spy(), mode=mode, **rest)

    with patched.context() as context:
        context.setattr(sampler, "aggregate", spy)
        learner.release(
            data, units=names, shared=SharedRandomness(key), randomness=ReplayRandomness(key), ledger=ledger
        )
    return seen


def neighbours(
    learner: Learners, *, count: int, seed: int, patched: pytest.MonkeyPatch, skew: float = 0.97
) -> Iterator[tuple[Votes, Votes]]:
    generator = np.random.default_rng(seed)
    for key in range(count):
        data, names = make(learner, generator, skew=skew)
        other = data.copy()
        mine = names == generator.integers(0, units_of(learner))
        other[mine] = np.where(generator.random() < 0.5, 1 - data[mine], 7)  # the other label, or none of the list
        yield tuple(votes(learner, table, names, key=key, patched=patched) for table in (data, other))  # type: ignore[misc]


def changed(before: Votes, after: Votes) -> list[tuple[int, int]]:
    """Return the (part, block) whose vote differs."""
    assert len(before.kept) == len(after.kept)
    return [
        (part, int(block))
        for part, (one, two) in enumerate(zip(before.kept, after.kept, strict=True))
        for block in np.nonzero((one != two).any(axis=0))[0]
    ]


def divergence(before: Votes, after: Votes, *, epsilon: Fraction) -> Fraction:
    """Return the larger hockey-stick divergence of all released values, exactly; one part at most may differ."""
    parts = {part for part, _ in changed(before, after)}
    assert len(parts) <= 1
    worst = Fraction(0)
    for part in parts:
        laws = []
        for run in (before, after):
            mode, keys = run.modes[part], run.kept[part]
            laws.append(mode.law(keys if isinstance(mode, BestOfDraws) else keys[0]))
        ratio = exp_lower(epsilon)
        for p, q in (laws, laws[::-1]):
            excess = (max(p[value] - ratio * q.get(value, Fraction(0)), Fraction(0)) for value in p)
            worst = max(worst, sum(excess, Fraction(0)))
    return worst


# --- the real ones ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_C1_one_unit_moves_one_block_of_one_part(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = 0
    for before, after in neighbours(CASES[name](Revealing()), count=30, seed=600, patched=monkeypatch):
        different = changed(before, after)
        assert len(different) <= 1
        moved += len(different)
    assert moved > 20


@pytest.mark.parametrize("name", CASES)
def test_C1_the_divergence_of_neighbours(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = CASES[name]()
    assert learner.guarantee == ApproxDP(1, "1e-3")
    found = [
        divergence(*pair, epsilon=learner.guarantee.epsilon)
        for pair in neighbours(learner, count=12, seed=601, patched=monkeypatch)
    ]
    assert 0 < max(found) <= learner.guarantee.delta


def test_the_divergence_would_be_noticed() -> None:
    """At half of epsilon the votes of neighbours are further apart than delta: the bound above is no empty one."""
    mode = StableMode(epsilon=1, delta="1e-3")
    worst = Fraction(0)
    for count in range(1, BLOCKS):
        keys = [np.array([[b"a"] * n + [b"b"] * (BLOCKS - n)], dtype=object) for n in (count, count + 1)]
        runs = [Votes([table], [mode]) for table in keys]
        assert divergence(*runs, epsilon=Fraction(1)) <= mode.delta
        worst = max(worst, divergence(*runs, epsilon=Fraction(1, 2)))
    assert worst > 2 * mode.delta


# --- mutants of the parts ---------------------------------------------------------------------------------------------


def caught(learner: Learners, patched: pytest.MonkeyPatch) -> bool:
    """Whether some neighbours have votes of more than one block changed."""
    pairs = neighbours(learner, count=20, seed=602, patched=patched)
    return any(len(changed(before, after)) > 1 for before, after in pairs)


def rewire(patched: pytest.MonkeyPatch, cut: Callable[..., Iterator[Records]]) -> None:
    patched.setattr(boosted, "cut_into_parts", cut)
    patched.setattr(agnostic, "cut_into_parts", cut)


def owned(given: Records) -> NDArray[np.int64]:
    return np.arange(given.size) if given.owners is None else given.owners


def overlapping(given: Records, *, parts: int, randomness: PrivateRandomness, **_: Any) -> Iterator[Records]:
    """Each part has half of the next one as well."""
    order = uniform_order(given.units, randomness=randomness)
    size = given.units // parts
    for part in range(parts):
        mine = np.take(order, np.arange(part * size, part * size + size + size // 2), mode="wrap")
        yield given.of_rows(np.nonzero(np.isin(owned(given), mine))[0])


def torn(given: Records, *, parts: int, randomness: PrivateRandomness, **_: Any) -> Iterator[Records]:
    """Rows are dealt out, and a unit is in several parts: the charge for one part is then too small."""
    order = uniform_order(len(given.rows), randomness=randomness)
    size = len(order) // parts
    for part in range(parts):
        yield given.of_rows(np.sort(order[part * size : (part + 1) * size]))


def by_value(given: Records, *, parts: int, randomness: PrivateRandomness, **_: Any) -> Iterator[Records]:
    """Parts after sorting by what the records hold."""
    first = np.full(given.units, 99.0)
    np.minimum.at(first, owned(given), given.rows[:, 0])
    order = np.lexsort((uniform_order(given.units, randomness=randomness), first))
    size = given.units // parts
    for part in range(parts):
        yield given.of_rows(np.nonzero(np.isin(owned(given), order[part * size : (part + 1) * size]))[0])


@pytest.mark.parametrize("cut", [overlapping, torn, by_value])
@pytest.mark.parametrize("name", CASES)
def test_wrong_parts(name: str, cut: Callable[..., Iterator[Records]], monkeypatch: pytest.MonkeyPatch) -> None:
    learner = CASES[name](Revealing())
    assert not caught(learner, monkeypatch)
    rewire(monkeypatch, cut)
    if cut is torn:  # rows have fewer units a part than the blocks ask for; the sizes are not what is tested here
        monkeypatch.setattr(BlackBoxPrivateLearner, "check", lambda *_args, **_named: None)
    assert caught(learner, monkeypatch)


# --- mutants of the surplus -------------------------------------------------------------------------------------------


def with_surplus() -> BlackBoxPrivateLearner:
    from accord.learners import GaussianLearner

    settings: dict[str, Any] = {"alpha": "0.2", "beta": "0.1", "epsilon": 1, "delta": "1e-6"}
    return BlackBoxPrivateLearner(GaussianLearner(dimension=1), method="certified", **settings)


def surplus_moves(patched: pytest.MonkeyPatch) -> bool:
    """Whether one replaced record moves the votes of more than one block, in a release that leaves records out."""
    learner, generator = with_surplus(), np.random.default_rng(603)
    for key in range(4):
        data = generator.normal(size=3 * learner.required_records)
        other = data.copy()
        other[int(generator.integers(len(data)))] = 1e6
        names = np.arange(len(data))
        runs = [votes(learner, table, names, key=key, patched=patched) for table in (data, other)]
        if len(changed(*runs)) > 1:
            return True
    return False


def test_surplus_is_left_out_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not surplus_moves(monkeypatch)

    def smallest(given: Records, *, keep: int, **_: Any) -> Records:
        rows = np.sort(np.argsort(np.abs(given.rows[:, 0]))[:keep])
        return Records(rows=given.rows[rows], owners=np.arange(keep), units=keep, word=given.word)

    monkeypatch.setattr(black_box, "leave_out", smallest)
    assert surplus_moves(monkeypatch)


def test_units_are_left_out_whole() -> None:
    generator = np.random.default_rng(604)
    numbers = np.concatenate([np.arange(50), generator.integers(0, 50, size=90)])
    given = Records(rows=np.arange(140)[:, None], owners=numbers, units=50, word="person")
    kept = leave_out(given, keep=20, in_place_key=None, randomness=ReplayRandomness(3))
    names = numbers[kept.rows[:, 0]]
    assert len(np.unique(names)) == kept.units == 20
    assert len(names) == np.isin(numbers, names).sum()
    again = leave_out(
        Records(rows=-given.rows, owners=numbers, units=50, word="person"),
        keep=20,
        in_place_key=None,
        randomness=ReplayRandomness(3),
    )
    assert np.array_equal(again.rows, -kept.rows)


# --- mutants of what is made of the released values -------------------------------------------------------------------

MODELS = [Categorical(LABELS, [1 - p, p]) for p in (0.1, 0.12, 0.9, 0.5)]


def fixed_parts(patched: pytest.MonkeyPatch) -> None:
    """Let the parts release the same values whatever the data are."""
    counter = [0]

    def model(self: BlackBoxPrivateLearner, data: Any, **_: Any) -> Release[Any]:
        counter[0] += 1
        number = counter[0] % (len(MODELS) + 1)
        return Release(NoAnswer if number == 0 else MODELS[number - 1], self.guarantee)

    def record(self: PrivateSampler, data: Any, **_: Any) -> Release[Any]:
        counter[0] += 1
        return Release(NoAnswer if counter[0] % 2 else np.array([[1]]), self.guarantee)

    patched.setattr(BlackBoxPrivateLearner, "release", model)
    patched.setattr(PrivateSampler, "release", record)


def follows_data(learner: Learners, patched: pytest.MonkeyPatch) -> bool:
    """Whether the result is another one on other data, all releases of the parts being the same."""
    results = []
    for value in (0, 1):
        with patched.context() as context:
            fixed_parts(context)
            table = np.full(learner.required_records, value)
            results.append(repr(learner.release(table, shared=SharedRandomness(1)).value))
    return results[0] != results[1]


def test_M6_the_choice_among_models_reads_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not follows_data(small_boosted(), monkeypatch)
    real = boosted.cut_into_parts
    seen: list[Records] = []

    def spying(given: Records, **rest: Any) -> Iterator[Records]:
        seen.append(given)
        found: Iterator[Records] = real(given, **rest)
        return found

    def likeliest(models: list[Any], **_: Any) -> int:
        records = seen[-1].rows
        scores = [-np.inf if model is None else float(model.log_density(records).sum()) for model in models]
        return int(np.argmax(scores))

    monkeypatch.setattr(boosted, "cut_into_parts", spying)
    monkeypatch.setattr(boosted, "most_neighbours", likeliest)
    assert follows_data(small_boosted(), monkeypatch)


def test_M6_the_stand_in_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not follows_data(small_agnostic(), monkeypatch)
    real = AgnosticPrivateLearner._singles

    def from_data(self: AgnosticPrivateLearner, given: Records, **rest: Any) -> Iterator[Any]:
        for record in real(self, given, **rest):
            yield given.rows[:1] if record is None else record

    monkeypatch.setattr(AgnosticPrivateLearner, "_singles", from_data)
    assert follows_data(small_agnostic(), monkeypatch)


# --- the charge -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_C1_one_charge_for_all_parts(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = CASES[name]()
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1, delta="1e-3", unit="person")
    data, names = make(learner, np.random.default_rng(605))
    release = learner.release(data, units=names, unit="person", ledger=ledger)
    assert release.guarantee == ApproxDP(1, learner.guarantee.delta, unit="person")
    entries = ledger.entries()
    assert [entry.kind for entry in entries] == ["create", "charge", "confirm"]
    assert (entries[1].epsilon, entries[1].delta) == (release.guarantee.epsilon, release.guarantee.delta)


@pytest.mark.parametrize("name", CASES)
def test_a_run_that_breaks_stays_charged(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = CASES[name]()
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1, delta="1e-3", unit="person")
    data, names = make(learner, np.random.default_rng(606))

    def breaks(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(sampler, "aggregate", breaks)
    with pytest.raises(MemoryError):
        learner.release(data, units=names, unit="person", ledger=ledger)
    assert [entry.kind for entry in ledger.entries()] == ["create", "charge", "abandon"]


@pytest.mark.parametrize("name", CASES)
def test_no_answer_is_spent_all_the_same(name: str, freeze_secrets: Callable[[int], None]) -> None:
    """Whether blocks agree on nothing is a matter of the secret cut and of noise: both are fixed here."""
    freeze_secrets(1)
    learner = CASES[name](Revealing())
    data = np.random.default_rng(607).integers(0, 2, size=60 * learner.required_records)
    release = learner.release(data, shared=SharedRandomness(1))
    assert release.value is NoAnswer
    assert release.guarantee == learner.guarantee
