"""The partition: exact sizes, whole units, and nothing about the records."""

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import accord
from accord.core import Records
from accord.couplings import RaceCoupling, ShiftRounding
from accord.density.estimator import PrivateDensity
from accord.distributions import Categorical, Distribution
from accord.errors import DataError, InvalidParameter, NotEnoughRecords
from accord.learners import GaussianLearner
from accord.learning import CoarseVotes, PrivateLearner, PrivateSampler, TwoStageSampler, partition
from accord.ledger import Ledger
from accord.location.rounding import ColumnLocation
from accord.privacy import Neighbouring
from accord.randomness import SharedRandomness, uniform_order
from accord.synthesis.by_votes import synthesise
from accord.testing import ReplayRandomness
from accord.theory import AgnosticPrivateLearner, BoostedPrivateLearner

SHARED = SharedRandomness("partition tests")


def named(names: Any) -> Records:
    return Records.of(np.zeros(len(names)), units=names)


@given(units=st.integers(1, 300), blocks=st.integers(1, 40), key=st.integers())
def test_sizes_are_exact_and_no_row_is_in_two_blocks(units: int, blocks: int, key: int) -> None:
    if units < blocks:
        with pytest.raises(NotEnoughRecords) as caught:
            partition(units, blocks=blocks, in_place_key=SharedRandomness(key))
        assert f"at most {units} blocks" in str(caught.value)
        assert (caught.value.needed, caught.value.present) == (blocks, units)
        return
    parts = partition(units, blocks=blocks, in_place_key=SharedRandomness(key))
    rows = np.concatenate(parts)
    assert [len(part) for part in parts] == [units // blocks] * blocks
    assert len(set(rows.tolist())) == len(rows)
    assert rows.min() >= 0
    assert rows.max() < units


@given(
    names=st.lists(st.sampled_from("abcdefgh"), min_size=8, max_size=60), blocks=st.integers(1, 3), key=st.integers()
)
def test_a_unit_is_wholly_in_one_block(names: list[str], blocks: int, key: int) -> None:
    names = [*names, *"abcdefgh"]
    parts = partition(named(np.array(names)), blocks=blocks, in_place_key=SharedRandomness(key))
    owners = [{names[row] for row in part} for part in parts]
    assert [len(owner) for owner in owners] == [8 // blocks] * blocks
    assert sum(map(len, owners)) == len(set().union(*owners))
    for part, owner in zip(parts, owners, strict=True):
        assert set(part.tolist()) == {row for row, name in enumerate(names) if name in owner}


def test_replacing_the_rows_of_one_unit_moves_no_other_unit() -> None:
    before = np.array(["a", "b", "a", "c", "d", "a", "e", "f"])
    after = np.array(["Z", "b", "c", "d", "Z", "e", "f"])  # a's three rows became two rows of another person
    for key in range(30):
        first = partition(named(before), blocks=3, in_place_key=SharedRandomness(key))
        second = partition(named(after), blocks=3, in_place_key=SharedRandomness(key))
        for old, new in zip(first, second, strict=True):
            assert {str(before[row]) for row in old} - {"a"} == {str(after[row]) for row in new} - {"Z"}
            assert ("a" in before[old]) == ("Z" in after[new])


def test_units_of_one_record_each_are_the_plain_partition() -> None:
    plain = partition(50, blocks=7, in_place_key=SHARED)
    with_names = partition(named([f"person {i}" for i in range(50)]), blocks=7, in_place_key=SHARED)
    assert all(np.array_equal(a, b) for a, b in zip(plain, with_names, strict=True))


def test_every_row_is_equally_likely_to_be_left_out() -> None:
    left_out = np.zeros(11)
    for key in range(4000):
        used = np.concatenate(partition(11, blocks=5, in_place_key=SharedRandomness(key)))
        left_out[np.setdiff1d(np.arange(11), used)] += 1
    # Binomial(4000, 1/11): 6 standard deviations is a failure rate below 1e-7 for all eleven together; 10 % off is 2 sd
    # per row, and the shares of a partition that always drops the last row are 19 sd away.
    sd = np.sqrt(4000 / 11 * (10 / 11))
    assert np.abs(left_out - 4000 / 11).max() < 6 * sd


def test_the_key_decides_and_a_secret_order_is_the_default() -> None:
    assert all(
        np.array_equal(a, b)
        for a, b in zip(
            partition(99, blocks=9, in_place_key=SHARED), partition(99, blocks=9, in_place_key=SHARED), strict=True
        )
    )
    assert not all(np.array_equal(a, b) for a, b in zip(partition(99, blocks=9), partition(99, blocks=9), strict=True))


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_unit_is_refused(missing: Any) -> None:
    with pytest.raises(DataError, match="no unit of privacy"):
        partition(named(["a", missing, "b"]), blocks=2)


@pytest.mark.parametrize("blocks", [0, -1, 2.5, "many", True, None])
def test_silly_block_numbers_are_refused(blocks: object) -> None:
    with pytest.raises(InvalidParameter, match="blocks"):
        partition(10, blocks=blocks)  # type: ignore[arg-type]


def test_no_records_and_odd_shapes_are_refused() -> None:
    with pytest.raises(NotEnoughRecords, match="no records"):
        partition(0, blocks=1)
    with pytest.raises(InvalidParameter, match="one unit a record"):
        partition(named(np.zeros((3, 2))), blocks=1)
    with pytest.raises(InvalidParameter):
        partition(-1, blocks=1)
    for names in (["a", "b"], np.arange(5), "ab"):  # names alone are no records, and no number of them
        with pytest.raises(InvalidParameter, match="number of records"):
            partition(names, blocks=1)  # type: ignore[arg-type]


# --- no key that a caller gives reaches the blocks --------------------------------------------------------------------

ROWS = np.arange(4000, dtype=np.float64)
NAMES = np.repeat(np.arange(2000), 2)


class Witness:
    """Note the first cell of every block that is fitted."""

    def __init__(self, seen: list[float]) -> None:
        self.seen = seen

    def __deepcopy__(self, memo: object) -> "Witness":
        return self

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        self.seen.append(float(records[0, 0]))
        return Categorical(["no", "yes"], [0.5, 0.5])


def watched(patched: pytest.MonkeyPatch, kind: type) -> list[float]:
    """Return the list to which fits of this kind add what they see first."""
    seen: list[float] = []
    real = kind.fit  # type: ignore[attr-defined]

    def fit(self: Any, records: NDArray[Any], *, seed: int) -> Any:
        seen.append(float(records[0, 0]))
        return real(self, records, seed=seed)

    patched.setattr(kind, "fit", fit)
    return seen


def sampler_blocks(patched: pytest.MonkeyPatch) -> list[float]:
    seen: list[float] = []
    coupling = RaceCoupling(["no", "yes"])
    sampler = PrivateSampler(Witness(seen), epsilon=1, delta="1e-3", blocks=40, records=3, coupling=coupling)
    sampler.release(ROWS, units=NAMES, shared=SharedRandomness(1))
    return seen[1:]  # the first table was made up


def learner_blocks(patched: pytest.MonkeyPatch) -> list[float]:
    seen = watched(patched, GaussianLearner)
    learner = PrivateLearner(GaussianLearner(), epsilon=1, delta="1e-3", blocks=40, records=20)
    learner.release(ROWS, shared=SharedRandomness(1))
    return seen[:40]


def agnostic_blocks(patched: pytest.MonkeyPatch) -> list[float]:
    seen: list[float] = []
    coupling = RaceCoupling(["no", "yes"])
    learner = AgnosticPrivateLearner(Witness(seen), epsilon=1, delta="1e-3", parts=2, blocks=20, coupling=coupling)
    learner.release(ROWS, shared=SharedRandomness(1))
    return seen[1:41]  # the first table was made up


def two_stage_blocks(patched: pytest.MonkeyPatch) -> list[float]:
    seen = watched(patched, GaussianLearner)
    first = CoarseVotes(coupling=ShiftRounding(dimension=1), records=20, draws=4)
    sampler = TwoStageSampler(GaussianLearner(), epsilon=2, delta="1e-3", blocks=40, records=20, first=first)
    sampler.release(ROWS, shared=SharedRandomness(1))
    return seen[:40]


def density_blocks(patched: pytest.MonkeyPatch) -> list[float]:
    seen = watched(patched, ColumnLocation)
    PrivateDensity(GaussianLearner(), epsilon=8, delta="1e-3", random_state=1).fit(ROWS[:, None])
    return seen


def synthesis_blocks(patched: pytest.MonkeyPatch) -> list[float]:
    seen = watched(patched, GaussianLearner)
    plan = synthesise(ROWS, learner=GaussianLearner(), epsilon=1, delta="1e-3", seed=1).plan
    return seen[: plan.blocks]


@pytest.mark.parametrize(
    "blocks",
    [sampler_blocks, learner_blocks, agnostic_blocks, two_stage_blocks, density_blocks, synthesis_blocks],
)
def test_A6_two_runs_with_one_public_key_have_other_blocks(
    blocks: Callable[[pytest.MonkeyPatch], list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 first cells that agree by chance are rarer than 1e-6 by far: a block begins anywhere in the file."""
    with monkeypatch.context() as one:
        first = blocks(one)
    with monkeypatch.context() as other:
        second = blocks(other)
    assert len(first) == len(second) >= 20
    assert first != second


# --- a key that fixes the blocks, and what it gives up ----------------------------------------------------------------

KEY = SharedRandomness("in place")
IN_PLACE = Neighbouring.REPLACE_ONE_IN_PLACE


def releases(key: SharedRandomness | None) -> list[tuple[str, list[float], Neighbouring]]:
    """Return what the learner of each release saw, and under which relation it says it holds."""
    coupling = RaceCoupling(["no", "yes"])
    sizes: dict[str, Any] = {"epsilon": 1, "delta": "1e-3"}
    seen: dict[str, list[float]] = {name: [] for name in ("sampler", "learner", "agnostic", "boosted")}
    witness = {name: Stated(cells) for name, cells in seen.items()}
    made: dict[str, Any] = {
        "sampler": PrivateSampler(witness["sampler"], **sizes, blocks=40, records=3, coupling=coupling),
        "learner": PrivateLearner(witness["learner"], **sizes, blocks=40, records=3, coupling=coupling),
        "agnostic": AgnosticPrivateLearner(witness["agnostic"], **sizes, parts=2, blocks=20, coupling=coupling),
        "boosted": BoostedPrivateLearner(witness["boosted"], **sizes, alpha="0.5", beta="0.98", coupling=coupling),
    }
    found = []
    for name, maker in made.items():
        rows = np.arange(float(getattr(maker, "required_records", 400) + 7))
        release = maker.release(rows, shared=SharedRandomness(1), in_place_key=key)  # one table is made up first
        found.append((name, seen[name][1:41], release.guarantee.neighbouring))
    return found


class Stated(Witness):
    def sample_complexity(self, alpha: Any, beta: Any) -> int:
        return 2


def test_A6_a_key_that_fixes_the_blocks_is_said_in_the_guarantee() -> None:
    secret, first, second = releases(None), releases(KEY), releases(KEY)
    assert [relation for _, _, relation in secret] == [Neighbouring.REPLACE_ONE] * 4
    assert [relation for _, _, relation in first] == [IN_PLACE] * 4
    assert first == second
    for (_, hidden, _), (_, known, _) in zip(secret, first, strict=True):
        assert len(hidden) == len(known) > 20
        assert hidden != known


def test_A6_two_stages_under_a_key_are_in_place_and_a_ledger_of_anywhere_refuses_them(tmp_path: Path) -> None:
    first = CoarseVotes(coupling=ShiftRounding(dimension=1), records=20, draws=4)
    sampler = TwoStageSampler(GaussianLearner(), epsilon=2, delta="1e-3", blocks=40, records=20, first=first)
    assert sampler.release(ROWS, in_place_key=KEY).guarantee.neighbouring is IN_PLACE
    with Ledger.create(tmp_path / "l.db", epsilon=9, delta="0.1") as ledger:
        with pytest.raises(InvalidParameter, match="records that stand elsewhere"):
            sampler.release(ROWS, in_place_key=KEY, ledger=ledger)
        assert ledger.spent.epsilon == 0
        sampler.release(ROWS, ledger=ledger)
        assert ledger.spent.epsilon == 2


def test_A6_the_order_of_blocks_is_in_no_pickle_and_no_repr() -> None:
    """Nothing that a release keeps or returns holds the order: there is no key of it, only the source."""
    learner = PrivateLearner(GaussianLearner(), epsilon=8, delta="1e-3", blocks=40, records=20, draws=8)
    release = learner.release(ROWS, shared=SharedRandomness(1), randomness=ReplayRandomness(1))
    order = uniform_order(len(ROWS), randomness=ReplayRandomness(1))
    texts = pickle.dumps((learner, release)), repr((learner, release)).encode()
    for text in texts:
        assert len(text) < 8 * len(ROWS)
        assert order[:4].tobytes() not in text
        assert repr(order[:4].tolist()).encode() not in text


ROOMS = ("core", "learning", "density", "location", "synthesis", "theory")


def test_A6_units_are_put_in_an_order_in_one_place_only() -> None:
    """Whatever else arranges things arranges what was released: points of a sketch, synthetic rows."""
    room = Path(accord.__file__).parent
    arranging = re.compile(r"\.(permutation|permuted|shuffle)\(")
    inside = [path for name in ROOMS for path in (room / name).rglob("*.py")]
    found = {path.relative_to(room).as_posix() for path in inside if arranging.search(path.read_text("utf-8"))}
    assert found == {"core/blocks.py", "density/sketch.py", "synthesis/model.py"}
