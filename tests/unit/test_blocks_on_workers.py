"""Blocks of data frames of dask: the same as of the table in memory, whatever the partitions, and never two at once."""

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from accord import PrivateDensity
from accord.core import Isolation, SharedRandomness, fit_blocks, isolation
from accord.core.blocks import cut
from accord.core.budget import Budget
from accord.core.records import Records
from accord.core.unit_names import keys_named
from accord.density.family import BlackBox, NormalMixtures
from accord.density.plan import density_plan
from accord.density.release import release_density
from accord.errors import InvalidParameter, NotEnoughRecords, SchemaMismatch, WorkersLost
from accord.learners import EmpiricalLearner, GaussianLearner, ScipyLearner
from accord.learning import PrivateLearner, PrivateSampler
from accord.learning import on_workers as _far
from accord.learning.on_workers import reading
from accord.ledger import Ledger
from accord.testing import ReplayRandomness
from accord.workers import DaskWorkers

pd: Any = pytest.importorskip("pandas")
frames: Any = pytest.importorskip("dask.dataframe", reason="dask is not installed (the extra 'dask')")
pytest.importorskip("distributed", reason="dask is not installed (the extra 'dask')")
pytestmark = pytest.mark.filterwarnings("ignore")  # of dask and tornado
COUNT = 900


@pytest.fixture(scope="module")
def workers() -> Iterator[DaskWorkers]:
    with DaskWorkers.local(2) as found:
        yield found


def table(*, names: str = "text") -> Any:
    generator = np.random.default_rng(6)
    who = generator.zipf(1.3, COUNT) % 400
    units = {"text": [f"p{one}" for one in who], "numbers": who, "floats": who.astype(float)}[names]
    return pd.DataFrame(
        {
            "x": np.where(generator.random(COUNT) < 0.02, np.nan, generator.normal(5, 2, COUNT)),
            "y": generator.integers(0, 90, COUNT),
            "who": units,
        }
    )


def apart(frame: Any, parts: int) -> Any:
    """A frame of dask with one partition that is empty, if there are several."""
    if parts == 1:
        return frames.from_pandas(frame, npartitions=1, sort=False)
    ends = np.sort(np.random.default_rng(parts).integers(0, COUNT, parts - 2)).tolist()
    cuts = [0, *ends, COUNT // 2, COUNT // 2, COUNT]
    cuts = sorted(cuts)
    return frames.concat(
        [frames.from_pandas(frame.iloc[low:high], npartitions=1, sort=False) for low, high in pairwise(cuts)]
    )


class Here:
    """What the code for workers uses of a client of dask, done at once."""

    @staticmethod
    def compute(given: Sequence[Any]) -> list[Any]:
        return [one.compute(scheduler="synchronous") for one in given]

    @staticmethod
    def submit(task: Callable[..., Any], *given: Any, pure: bool) -> Any:
        assert not pure
        return task(*given)

    @staticmethod
    def gather(answers: list[Any]) -> list[Any]:
        return answers


def far(frame: Any, parts: int, *, units: bool, cells: Any = "numbers") -> Any:
    given = apart(frame, parts)
    return _far._far(
        Here(), given[["x", "y"]], units=given["who"] if units else None, word="unit", cells=cells, columns=None
    )


def tables_of(records: Any, *, blocks: int) -> list[str]:
    found: Any = cut(records, blocks=blocks, randomness=ReplayRandomness("blocks"))
    if isinstance(records, Records):
        return [repr(records.rows[rows].tolist()) for rows in found]
    ways = len(found.groups)
    return [repr(found.groups[block % ways][block // ways].tolist()) for block in range(blocks)]


@pytest.mark.parametrize("parts", [1, 3, 17])
@pytest.mark.parametrize("blocks", [1, 7, 100])
@pytest.mark.parametrize("names", ["", "text", "numbers", "floats"])
def test_blocks_are_those_of_the_table(parts: int, blocks: int, names: str) -> None:
    frame = table(names=names or "text")
    here = Records.of(frame[["x", "y"]], units=frame["who"] if names else None)
    there = far(frame, parts, units=bool(names))
    assert (there.units, there.dimension, there.several_records) == (here.units, 2, bool(names))
    assert tables_of(there, blocks=blocks) == tables_of(here, blocks=blocks)


def test_labels_stay_plain_values() -> None:
    frame = table()
    here = Records.of(frame[["x", "y"]], units=frame["who"], cells="labels")
    assert tables_of(far(frame, 5, units=True, cells="labels"), blocks=9) == tables_of(here, blocks=9)


def test_names_of_any_type_meet_where_they_are_one_unit() -> None:
    names: list[Any] = [
        "1",
        1,
        True,
        (1,),
        ("1", 2.0),
        frozenset({1, "a"}),
        b"1",
        np.float64(2.5),
        pd.Timestamp("2020"),
    ]
    keys, owners = keys_named(names, records=len(names))
    assert owners.tolist() == list(range(len(names)))
    again, _ = keys_named([1.0, np.int8(1), ("1", 2), frozenset({"a", 1.0})], records=4)
    assert again == [1, ("tuple", ("1", 2)), ("set", frozenset({1, "a"}))]
    for one in again:
        assert _far._digest(one) == _far._digest(keys[keys.index(one)])


def sampler(workers: DaskWorkers | None = None, learner: Any = None) -> PrivateSampler:
    isolation = None if workers is None else Isolation(kind="process", workers=workers)
    return PrivateSampler(
        learner or GaussianLearner(), epsilon=3, delta="1e-3", blocks=25, records=20, draws=8, isolation=isolation
    )


FROZEN: dict[str, Any] = {"shared": SharedRandomness(5)}


@pytest.mark.parametrize("units", [False, True])
def test_releases_are_those_of_the_table(tmp_path: Any, workers: DaskWorkers, *, units: bool) -> None:
    frame = table()
    options = FROZEN | {"unit": "person" if units else None}
    here = sampler().release(
        frame[["x", "y"]].fillna(5.0),
        units=frame["who"] if units else None,
        randomness=ReplayRandomness("far"),
        **options,
    )
    given = apart(frame.fillna({"x": 5.0}), 4)
    word = "person" if units else "record"
    with Ledger.create(tmp_path / "l.db", epsilon=5, delta="1e-2", unit=word, who="a test") as ledger:
        there = sampler(workers).release(
            given[["x", "y"]],
            units=given["who"] if units else None,
            randomness=ReplayRandomness("far"),
            ledger=ledger,
            **options,
        )
        assert ledger.statement().charges == 1
    assert np.array_equal(np.asarray(here.value), np.asarray(there.value))
    assert here.guarantee == there.guarantee
    assert (here.guarantee.unit == "person") is units


def test_a_learner_learns_again_what_workers_agreed_on(workers: DaskWorkers) -> None:
    frame = pd.DataFrame({"label": np.where(np.arange(COUNT) % 3 == 0, "a", "b")})
    given = frames.from_pandas(frame, npartitions=3, sort=False)

    def released(data: Any, isolation: Isolation) -> str:
        labels = EmpiricalLearner(["a", "b"])
        options: dict[str, Any] = {"epsilon": 3, "delta": "1e-3", "blocks": 25, "records": 20, "draws": 8}
        learner = PrivateLearner(labels, isolation=isolation, **options)
        return repr(learner.release(data, randomness=ReplayRandomness("far"), **FROZEN).value)

    assert released(given, Isolation(kind="process", workers=workers)) == released(frame, Isolation())


def test_a_worker_that_is_killed_is_replaced_and_blocks_stay() -> None:
    def as_bytes(rows: Any, given: bytes) -> bytes:  # inside, so that it travels: workers cannot import this file
        return repr(rows.tolist()).encode() + given

    cloudpickle: Any = pytest.importorskip("cloudpickle")
    frame = table()
    here = Records.of(frame[["x", "y"]], units=frame["who"])
    expected = [f"{rows}!".encode() for rows in tables_of(here, blocks=5)]
    given = apart(frame, 4)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        with (
            DaskWorkers.local(2) as own,
            _far.far_records(
                given[["x", "y"]], units=given["who"], unit=None, cells="numbers", columns=None, workers=own
            ) as records,
        ):
            for _ in range(2):  # once as parts are known, once as blocks are gathered
                blocks: Any = cut(records, blocks=5, randomness=ReplayRandomness("blocks"))
                with own.client() as client:
                    os.kill(next(iter(client.run(os.getpid).values())), 9)
                found = dict(blocks.answers(as_bytes, [b"!"] * 5))
                assert [found[block] for block in range(5)] == expected
            assert records.units == here.units
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_what_cannot_be_read_is_refused_before_anything_is_spent(workers: DaskWorkers) -> None:
    frame = table()
    given = apart(frame, 3)
    with pytest.raises(InvalidParameter, match="isolation=Isolation"):
        sampler().release(given[["x", "y"]])
    with pytest.raises(InvalidParameter, match="compute"):
        Records.of(given[["x", "y"]])  # what no workers are named for is not brought here in silence
    with pytest.raises(InvalidParameter, match="same partitions"):
        sampler(workers).release(given[["x", "y"]], units=frame["who"])
    with pytest.raises(InvalidParameter, match="needs units="):
        sampler(workers).release(given[["x", "y"]], unit="person")
    with pytest.raises(SchemaMismatch, match="columns without numbers"):
        sampler(workers).release(given)
    with pytest.raises(NotEnoughRecords, match="no records"):
        sampler(workers).release(frames.from_pandas(frame.iloc[:0][["x", "y"]], npartitions=1))
    with pytest.raises(InvalidParameter, match="other types"):
        _far._held(frame[["x"]], None, cells="numbers", columns=None, types=["int64"])


# --- densities: columns are located by blocks, and counts are added up where whole units are --------------------------


class Packing:
    """Workers that are this process."""

    @staticmethod
    def packed(value: object) -> bytes:
        return pickle.dumps(value)

    @staticmethod
    def answers(task: Any, given: Any) -> Any:
        return ((place, task(one)) for place, one in enumerate(given))


def people(count: int = 6000) -> Any:
    generator = np.random.default_rng(9)
    who = np.sort(generator.integers(0, 3 * count // 4, count))
    who[generator.random(count) < 0.02] = 3  # one with many
    rows = generator.normal([100.0, -3.0, 7.0], [9.0, 0.5, 0.0], size=(count, 3))
    rows[generator.random((count, 3)) < 0.01] = np.nan
    return pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "c": rows[:, 2], "who": [f"p{one}" for one in who]})


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("columns", [["a"], ["a", "b", "c"]])
def test_densities_are_those_of_the_table(monkeypatch: pytest.MonkeyPatch, columns: list[str], *, units: bool) -> None:
    monkeypatch.setattr(_far, "answers_by", lambda _, task, given: Packing.answers(task, given))
    monkeypatch.setattr(isolation, "in_child", lambda task, **_: task())
    frame = people()
    family: Any = NormalMixtures(components=2) if len(columns) > 1 else BlackBox(learner=ScipyLearner("norm"))
    here = Records.of(frame[columns], units=frame["who"] if units else None)
    plan = density_plan(units=here.units, columns=len(columns), budget=Budget(8, "1e-4"))

    def released(records: Any, numbers: Any, apart: Isolation | None) -> str:
        options: dict[str, Any] = {"shared": SharedRandomness(4), "randomness": ReplayRandomness("density")}
        found = release_density(records, plan, family, numbers=numbers, word="unit", isolation=apart, **options)
        assert found.law is not None
        return repr((found.law, found.public))

    expected = released(here.rows, here.owners if units else here.units, None)
    far_fits = Isolation(kind="process", workers=Packing())
    for parts in (1, 7):
        given = frames.from_pandas(frame, npartitions=parts, sort=False)
        names = given["who"] if units else None
        there = _far._far(Here(), given[columns], units=names, word="unit", cells="numbers", columns=None)
        assert released(there, 0, far_fits) == expected


def test_an_estimator_takes_a_frame_of_dask(workers: DaskWorkers) -> None:
    frame = people(4000)
    given = frames.from_pandas(frame, npartitions=3, sort=False)
    density = PrivateDensity(
        GaussianMixture(1), epsilon=8, delta="1e-6", unit="person", workers=workers, random_state=1
    )
    density.fit(given[["a"]], groups=given["who"])
    assert list(density.feature_names_in_) == ["a"]
    assert density.guarantee_.unit == "person"
    assert abs(density.sample(5000).mean() - 100) < 4
    with pytest.raises(InvalidParameter, match="needs workers"):
        PrivateDensity(GaussianMixture(1), epsilon=8, delta="1e-6").fit(given[["a"]])


def test_a_part_that_comes_out_otherwise_ends_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    for units, name in ((False, "_of_part"), (True, "_cut")):
        true = getattr(_far, name)
        with monkeypatch.context() as patch:

            def again(*given: Any, true: Any = true, place: int = 0 if units else 1) -> Any:
                part = replace(given[place], check=b"another order")
                return true(*given[:place], part, *given[place + 1 :])

            patch.setattr(_far, name, again)
            with pytest.raises(WorkersLost, match="computed it again"):
                far(table(), 4, units=units).sums(lambda rows, _: np.array([len(rows)]))
        records = far(table(), 4, units=units)
        assert records.sums(_rows_and_units).tolist() == [COUNT, records.units]


def _rows_and_units(rows: Any, units: Any) -> Any:
    return np.array([len(rows), units if isinstance(units, int) else units.max() + 1])


# --- mutants: a record in two blocks, a person in two, an order that workers decide -----------------------------------


def same(patch: pytest.MonkeyPatch, mutant: Callable[[pytest.MonkeyPatch], None], *, units: bool) -> bool:
    frame = table()
    here = Records.of(frame[["x", "y"]], units=frame["who"] if units else None)
    expected = tables_of(here, blocks=12)
    mutant(patch)
    return tables_of(far(frame, 6, units=units), blocks=12) == expected


def nothing(_: pytest.MonkeyPatch) -> None:
    """No mutant."""


def partitions_as_blocks(patch: pytest.MonkeyPatch) -> None:
    true = _far._Far.cut

    def by_partition(self: Any, block_of_unit: Any, *, blocks: int) -> Any:
        return true(self, np.sort(block_of_unit), blocks=blocks)

    patch.setattr(_far._Far, "cut", by_partition)


def parts_as_they_come(patch: pytest.MonkeyPatch) -> None:
    true: Any = _far._together
    patch.setattr(_far, "_together", lambda pieces, *given: true(pieces[::-1], *given))


def units_numbered_by_name(patch: pytest.MonkeyPatch) -> None:
    true: Any = _far._met

    def sorted_names(found: Any) -> Any:
        numbers: Any = true(found)[0]
        return numbers, np.argsort(np.argsort(np.array(list(numbers)))).astype(np.int64)

    patch.setattr(_far, "_met", sorted_names)


def units_of_each_part_alone(patch: pytest.MonkeyPatch) -> None:
    """A person who is in two parts gets a block in each."""
    true: Any = _far._in_buckets

    def own(part: Any, start: int, buckets: int, check: bytes) -> Any:
        return [
            ([f"{key} of {start}" for key in keys], ours, rows)
            for keys, ours, rows in true(part, start, buckets, check)
        ]

    patch.setattr(_far, "_in_buckets", own)


def texts_by_the_hash_of_each_process(patch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def salted(key: Any) -> int:
        calls.append(1)
        return int(key[1:]) + len(calls) % 3

    patch.setattr(_far, "_digest", salted)


def the_rest_in_a_block_too(patch: pytest.MonkeyPatch) -> None:
    true = _far._cut

    def full(part: Any, blocks_of: Any, groups: int, blocks: int, check: bytes) -> Any:
        return true(part, np.minimum(blocks_of, blocks - 1), groups, blocks, check)

    patch.setattr(_far, "_cut", full)


@pytest.mark.parametrize("units", [False, True])
def test_the_true_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch, *, units: bool) -> None:
    assert same(monkeypatch, nothing, units=units)


@pytest.mark.parametrize(
    ("mutant", "units"),
    [
        (partitions_as_blocks, False),
        (partitions_as_blocks, True),
        (parts_as_they_come, False),
        (parts_as_they_come, True),
        (units_numbered_by_name, True),
        (units_of_each_part_alone, True),
        (texts_by_the_hash_of_each_process, True),
        (the_rest_in_a_block_too, True),
    ],
)
def test_a_mutant_cuts_otherwise(
    monkeypatch: pytest.MonkeyPatch, mutant: Callable[[pytest.MonkeyPatch], None], *, units: bool
) -> None:
    assert not same(monkeypatch, mutant, units=units)


@pytest.mark.parametrize(("when", "units"), [("rows", False), ("rows", True), ("names", True)])
def test_a_part_that_comes_out_otherwise_ends_the_release(
    monkeypatch: pytest.MonkeyPatch, when: str, *, units: bool
) -> None:
    """As if a worker was lost, and dask read its part again in another order."""
    name = "_in_buckets" if when == "names" else "_cut"
    true = getattr(_far, name)

    def again(part: Any, *given: Any) -> Any:
        frame = pd.DataFrame(part.rows[::-1], columns=["x", "y"])
        names = None if part.keys is None else [part.keys[owner] for owner in part.owners[::-1]]
        return true(_far._held(frame, names, cells="numbers", columns=None, types=["float64"] * 2), *given)

    monkeypatch.setattr(_far, name, again)
    with pytest.raises(WorkersLost, match="computed it again"):
        tables_of(far(table(), 4, units=units), blocks=5)


def test_fits_of_far_blocks_need_workers() -> None:
    frame = table()
    records = far(frame, 2, units=False)
    blocks = cut(records, blocks=3)
    with pytest.raises(InvalidParameter, match="records on workers"):
        fit_blocks(GaussianLearner(), records, blocks=blocks, shared=SharedRandomness(1))
    with reading(GaussianLearner(), records, units=None, unit=None, isolation=Isolation()) as passed:
        assert passed is records
