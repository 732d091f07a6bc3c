"""Broken ways of holding and counting coded records, each caught by a check that the true ones pass.

A table has several records a unit. In every place where records may be, a cell must hold the weight of its records,
and a unit must weigh `WHOLE` whatever it holds and wherever its records stand: counts have twice that as sensitivity.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from accord.errors import AccordError, WorkersLost
from accord.marginals import engine as _engine
from accord.marginals import parts as _parts
from accord.marginals.engine import WHOLE, Codes, CountingEngine, Groups, weights_of
from accord.synthesis import coded as _coded
from accord.synthesis import on_workers as _far
from accord.synthesis.coded import CodedTable, coded_batches
from accord.tables import Column, Schema
from accord.tables.reader import Batch

Patch = pytest.MonkeyPatch
COUNT = 400
SCHEMA = Schema(
    columns=(
        Column(name="label", kind="category", categories=tuple(f"l{place}" for place in range(256))),
        Column(name="flag", kind="boolean", categories=("false", "true")),
        Column(name="age", kind="integer", bounds=(0.0, 20_000.0)),
    ),
    unit="who",
)
AGES = np.array([0, 500, 10_000, 20_001])
SHAPE = (257, 3, 4)
ASKED = [(0,), (1, 2), (2, 1, 0)]


def records() -> tuple[list[np.ndarray], np.ndarray]:
    """Cells by column, a few missing, and owners in order of first appearance."""
    generator = np.random.default_rng(8)
    label = generator.integers(0, 256, COUNT).astype(np.int32)
    label[generator.random(COUNT) < 0.1] = -1
    flag = generator.integers(-1, 2, COUNT).astype(np.int32)
    age = np.where(generator.random(COUNT) < 0.1, np.nan, generator.integers(0, 20_001, COUNT).astype(float))
    names = generator.zipf(1.4, COUNT) % 90
    _, first, owners = np.unique(names, return_index=True, return_inverse=True)
    return [label, flag, age], np.argsort(np.argsort(first))[owners]


def truth() -> list[list[int]]:
    (label, flag, age), owners = records()
    cells = [
        np.where(label < 0, 256, label),
        np.where(flag < 0, 2, flag),
        np.where(np.isnan(age), 3, np.searchsorted(AGES[1:3], np.nan_to_num(age), side="right")),
    ]
    weights, seen = [], dict.fromkeys(owners.tolist(), 0)
    for owner in owners.tolist():
        size = int((owners == owner).sum())
        weights.append((seen[owner] + 1) * WHOLE // size - seen[owner] * WHOLE // size)
        seen[owner] += 1
    found = []
    for table in ASKED:
        counts = np.zeros([SHAPE[column] for column in table], dtype=np.int64)
        np.add.at(counts, tuple(cells[column] for column in table), weights)
        found.append(counts.ravel().tolist())
    return found


def batches(ends: Iterable[int]) -> Iterator[Batch]:
    columns, owners = records()
    for low, high in pairwise(ends):
        names = pa.array([f"u{owner}" for owner in owners[low:high].tolist()], pa.large_string())
        yield Batch(columns=tuple(column[low:high] for column in columns), units=names.dictionary_encode())


class Here:
    """What the code for workers uses of a client of dask, done at once."""

    @staticmethod
    def submit(task: Callable[..., Any], *given: Any, pure: bool) -> Any:
        assert not pure
        return task(*given)

    @staticmethod
    def gather(answers: list[Any]) -> list[Any]:
        return answers


def here() -> CodedTable:
    return coded_batches(batches([0, COUNT]), schema=SCHEMA, what="it")


def in_a_file() -> CodedTable:
    return coded_batches(batches([0, 7, 200, 201, COUNT]), schema=SCHEMA, what="it", memory=0)


def on_workers() -> CodedTable:
    ends = [0, 60, 60, 130, 131, COUNT]
    held = [_far._held([batch], schema=SCHEMA) for batch in (next(batches(pair)) for pair in pairwise(ends))]
    checks = [part.check for part in held]
    parts, units = _far._with_weights(Here(), held, checks=checks)

    def run(task: Callable[[Any], Any], given: Sequence[Any]) -> Any:
        return _far._run(Here(), task, given)

    return CodedTable(
        schema=SCHEMA,
        parts=tuple(_far._Far(Here(), part, check) for part, check in zip(parts, checks, strict=True)),
        sizes=tuple(part.held.size for part in held),
        counted=units,
        run=run,
    )


def counts_of(road: Callable[[], CodedTable], *, recoded: bool) -> list[list[int]]:
    engine = road().engine().in_runs({2: AGES})
    if recoded:
        engine = engine.recoded()
    return [counts.tolist() for counts in engine.count(ASKED)]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: Patch) -> None:
    monkeypatch.setattr(_parts, "_ROWS", 90)
    monkeypatch.setattr(_engine, "_CHUNK", 32)
    monkeypatch.setattr(_engine, "_FEW", 0)
    monkeypatch.setattr(_engine, "_threads", lambda: 2)


@pytest.mark.parametrize("recoded", [False, True])
@pytest.mark.parametrize("road", [here, in_a_file, on_workers])
def test_the_true_counts_are_exact(road: Callable[[], CodedTable], *, recoded: bool) -> None:
    assert counts_of(road, recoded=recoded) == truth()


# --- mutants ----------------------------------------------------------------------------------------------------------


def a_byte_for_257_codes(patch: Patch) -> None:
    def small(size: int) -> Any:
        return np.uint8 if size <= 257 else np.uint16 if size <= 1 << 16 else np.uint32

    patch.setattr(_coded, "type_for", small)


def pieces_without_their_first_row(patch: Patch) -> None:
    true = Codes.between
    patch.setattr(Codes, "between", lambda self, low, high: true(self, low + 1, high))


def pieces_without_their_last_row(patch: Patch) -> None:
    true = Codes.between
    patch.setattr(Codes, "between", lambda self, low, high: true(self, low, min(high, self.size) - 1))


def a_run_that_ends_one_later(patch: Patch) -> None:
    def late(self: Groups, codes: Any) -> Any:
        found = codes
        if self.starts is not None:
            found = np.searchsorted(self.starts[1:], codes.astype(np.uint32), side="left")
        return found if self.group_of is None else self.group_of[found]

    patch.setattr(Groups, "of", late)


def unreadable_cells_as_the_first_label(patch: Patch) -> None:
    true = _coded.Coding.encode

    def first(self: Any, values: Any) -> Any:
        return true(self, values) if self.numbers is not None else np.maximum(values, 0).astype(self.type)

    patch.setattr(_coded.Coding, "encode", first)


def a_part_that_threads_visit_twice(patch: Patch) -> None:
    true = _engine.in_threads
    patch.setattr(_coded, "in_threads", lambda task, parts: true(task, [*parts, parts[-1]]))


def a_table_lost_between_batches(patch: Patch) -> None:
    def without_the_last(tables: Any, shape: Any, *, most: int) -> Any:
        del shape, most
        return [[*tables[:-1], tables[0]]]

    patch.setattr(_engine, "in_batches", without_the_last)


def records_without_weights(patch: Patch) -> None:
    true = CodedTable.engine

    def plain(self: CodedTable) -> CountingEngine:
        engine = true(self)
        return replace(engine, parts=tuple(Codes(part.codes().columns) for part in engine.parts))

    patch.setattr(CodedTable, "engine", plain)


def weights_by_part(patch: Patch) -> None:
    """A unit weighs `WHOLE` in each part: its count has a sensitivity of as many parts as it is in."""
    true = CodedTable.engine

    def each(self: CodedTable) -> CountingEngine:
        engine, low, parts = true(self), 0, []
        for part in engine.parts:
            codes = part.codes()
            owners = np.unique(records()[1][low : low + codes.size], return_inverse=True)[1]
            low += codes.size
            parts.append(Codes(codes.columns, weights_of(owners)))
        return replace(engine, parts=tuple(parts))

    patch.setattr(CodedTable, "engine", each)


def the_first_part_of_the_file_each_time(patch: Patch) -> None:
    true = _parts._FilePart.codes
    patch.setattr(_parts._FilePart, "codes", lambda self: true(replace(self, start=0, size=90)).between(0, self.size))


def what_does_not_fill_a_part_is_lost(patch: Patch) -> None:
    true = _parts.CodeStore._keep
    patch.setattr(
        _parts.CodeStore, "_keep", lambda self, columns, count: true(self, columns, 0 if count < 8 else count)
    )


def weights_of_the_part_before(patch: Patch) -> None:
    true = CodedTable.engine

    def late(self: CodedTable) -> CountingEngine:
        engine = true(self)
        parts = [part.codes() for part in engine.parts]
        known = np.roll(np.concatenate([part.weights for part in parts if part.weights is not None]), 90)
        ends = np.cumsum([0, *(part.size for part in parts)]).tolist()
        moved = [Codes(part.columns, known[low:high]) for part, (low, high) in zip(parts, pairwise(ends), strict=True)]
        return replace(engine, parts=tuple(moved))

    patch.setattr(CodedTable, "engine", late)


def ranks_from_zero_in_each_part(patch: Patch) -> None:
    true: Any = _far._met

    def anew(found: Any) -> Any:
        ranked, units = true(found)
        return [(np.zeros_like(before), in_all) for before, in_all in ranked], units

    patch.setattr(_far, "_met", anew)


def units_that_meet_in_no_other_part(patch: Patch) -> None:
    true = _far._met

    def alone(found: Any) -> Any:
        return [(np.zeros_like(counts), counts) for _, counts in found], true(found)[1]

    patch.setattr(_far, "_met", alone)


def names_by_a_hash_of_each_process(patch: Patch) -> None:
    """As Python's own hash: another worker looks for a name in another bucket."""
    calls: list[int] = []

    def salted(names: Sequence[str], buckets: int) -> Any:
        calls.append(1)
        return np.array([(int(name[1:]) * 7 + len(calls)) % buckets for name in names], dtype=np.int64)

    patch.setattr(_far, "_bucket_of", salted)


def a_sum_of_the_first_counts_alone(patch: Patch) -> None:
    patch.setattr(_far, "_added", lambda counts: np.sum(counts[:-1], axis=0))


EVERYWHERE: list[Callable[[Patch], None]] = [
    a_byte_for_257_codes,
    pieces_without_their_first_row,
    pieces_without_their_last_row,
    a_run_that_ends_one_later,
    unreadable_cells_as_the_first_label,
    a_table_lost_between_batches,
]
HERE: list[Callable[[Patch], None]] = [a_part_that_threads_visit_twice, records_without_weights, weights_by_part]
IN_A_FILE: list[Callable[[Patch], None]] = [
    the_first_part_of_the_file_each_time,
    what_does_not_fill_a_part_is_lost,
    weights_of_the_part_before,
]
FAR: list[Callable[[Patch], None]] = [
    ranks_from_zero_in_each_part,
    units_that_meet_in_no_other_part,
    names_by_a_hash_of_each_process,
    a_sum_of_the_first_counts_alone,
]


@pytest.mark.parametrize(
    ("road", "mutant"),
    [
        *((road, mutant) for road in (here, in_a_file, on_workers) for mutant in EVERYWHERE),
        *((road, mutant) for road in (here, in_a_file) for mutant in HERE if (road, mutant) != (here, weights_by_part)),
        *((in_a_file, mutant) for mutant in IN_A_FILE),
        *((on_workers, mutant) for mutant in FAR),
    ],
)
def test_a_mutant_counts_wrongly(
    road: Callable[[], CodedTable], mutant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    expected = truth()
    mutant(monkeypatch)
    assert counts_of(road, recoded=False) != expected


@pytest.mark.parametrize("mutant", [weights_by_part, units_that_meet_in_no_other_part])
def test_a_unit_that_weighs_more_than_its_share_is_seen(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    road = on_workers if mutant in FAR else in_a_file
    units = len(np.unique(records()[1]))
    assert sum(counts_of(road, recoded=False)[0]) == units * WHOLE == road().engine().total
    mutant(monkeypatch)
    assert sum(counts_of(road, recoded=False)[0]) > 1.2 * units * WHOLE


def test_a_part_that_could_not_be_counted_ends_the_release(monkeypatch: Patch) -> None:
    def fails(part: Any) -> Any:
        raise MemoryError(part)

    table = on_workers()
    engine = table.engine()
    assert table.run is not None
    with pytest.raises(WorkersLost):
        list(table.run(fails, engine.parts))

    def without_it(counts: Sequence[Any]) -> Any:
        known = [one for one in counts if not isinstance(one, AccordError)]
        return np.sum(known, axis=0) if known else np.zeros(1)

    monkeypatch.setattr(_far, "_added", without_it)
    assert list(table.run(fails, engine.parts))  # a count of fewer records goes through unseen


@pytest.mark.parametrize("when", ["_in_buckets", "_weighted", "_counted"])
def test_a_part_that_is_read_again_and_comes_out_otherwise_ends_the_release(monkeypatch: Patch, when: str) -> None:
    """As if a worker was lost, and a frame's rows came in another order: a unit could weigh more, a record twice."""
    true: Any = getattr(_far, when)

    def again(*given: Any) -> Any:
        place = 1 if when == "_counted" else 0
        part = replace(given[place], check=b"of another order")
        return true(*given[:place], part, *given[place + 1 :])

    monkeypatch.setattr(_far, when, again)
    with pytest.raises(WorkersLost, match="came out otherwise"):
        counts_of(on_workers, recoded=True)


def test_check_sums_tell_orders_and_names_apart() -> None:
    def check(rows: Any, *, names: Any = None) -> bytes:
        (batch,) = batches([0, COUNT])
        assert batch.units is not None
        units = batch.units.take(pa.array(rows if names is None else names))
        return _far._held([Batch(columns=tuple(c[rows] for c in batch.columns), units=units)], schema=SCHEMA).check

    order = np.arange(COUNT)
    swapped = np.array([1, 0, *order[2:]])
    assert check(order) == check(order)
    assert len({check(order), check(swapped), check(order, names=order[::-1])}) == 3
