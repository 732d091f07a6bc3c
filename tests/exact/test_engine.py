"""The counting engine against a plain count, whatever the types, weights, groups and parts."""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.marginals import engine as _engine
from accord.marginals.engine import Codes, CountingEngine, Part, Recode, coded

Columns = tuple[int, ...]


def plainly(codes: np.ndarray, weights: np.ndarray | None, shape: Sequence[int], table: Columns) -> list[int]:
    """The weight of each cell, one record after the other."""
    counts = np.zeros([shape[column] for column in table], dtype=np.int64)
    for row in range(len(codes)):
        counts[tuple(codes[row, column] for column in table)] += 1 if weights is None else weights[row]
    return counts.ravel().tolist()


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray | None, tuple[int, ...], list[Columns], int]:
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 7, 255, 256, 257, 65_536, 65_537]), min_size=1, max_size=5)))
    size = draw(st.integers(0, 60))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = np.stack([generator.integers(0, most, size) for most in shape], axis=1).reshape(size, len(shape))
    codes[generator.random(codes.shape) < 0.2] = 0
    last = generator.random(codes.shape) < 0.2
    codes = np.where(last, np.array(shape) - 1, codes)
    weights = generator.integers(0, 2520, size) if draw(st.booleans()) else None
    columns = st.permutations(range(len(shape)))
    ways = draw(st.lists(st.tuples(columns, st.integers(1, len(shape))), min_size=1, max_size=4))
    asked = [tuple(order[:most]) for order, most in ways]
    tables = [table for table in asked if math.prod(shape[column] for column in table) <= 1 << 18] or [(0,)]
    return codes, weights, shape, tables, draw(st.sampled_from([1, 2, 3, 17]))


def in_parts(codes: np.ndarray, weights: np.ndarray | None, shape: tuple[int, ...], parts: int) -> CountingEngine:
    whole = coded(codes, shape, weights=weights)
    ends = np.linspace(0, whole.size, parts + 1).astype(int).tolist()
    total = whole.size if weights is None else int(weights.sum())
    pieces = tuple(whole.between(low, high) for low, high in pairwise(ends))
    return replace(CountingEngine.of(whole, shape, total=total), parts=pieces)


@given(case=cases())
def test_counts_are_those_of_a_plain_count(case: tuple[Any, ...]) -> None:
    codes, weights, shape, tables, parts = case
    engine = in_parts(codes, weights, shape, parts)
    assert [counts.tolist() for counts in engine.count(tables)] == [
        plainly(codes, weights, shape, table) for table in tables
    ]


@given(case=cases(), seed=st.integers(0, 2**32))
def test_groups_of_groups_are_counted_as_renamed_codes(case: tuple[Any, ...], seed: int) -> None:
    codes, weights, shape, tables, parts = case
    generator, engine, renamed = np.random.default_rng(seed), in_parts(codes, weights, shape, parts), codes
    for most in (300, 5):
        smaller = tuple(min(size, most) for size in engine.shape)
        maps = [generator.integers(0, few, size) for few, size in zip(smaller, engine.shape, strict=True)]
        engine = engine.grouped(maps, smaller)
        renamed = np.stack([one[renamed[:, place]] for place, one in enumerate(maps)], axis=1)
    assert [counts.tolist() for counts in engine.count(tables)] == [
        plainly(renamed, weights, engine.shape, table) for table in tables
    ]


@pytest.mark.parametrize("size", [0, 1, 1 << 14, (1 << 14) + 1, 200_000])
def test_many_rows_by_numpys_count(size: int) -> None:
    generator = np.random.default_rng(size)
    shape = (300, 7, 70_000)
    codes = np.stack([generator.integers(0, most, size) for most in shape], axis=1)
    engine = CountingEngine.of(coded(codes, shape), shape, total=size)
    for table, counts in zip([(0, 1), (2,), (1, 2)], engine.count([(0, 1), (2,), (1, 2)]), strict=True):
        place = np.ravel_multi_index([codes[:, column] for column in table], [shape[column] for column in table])
        assert (counts == np.bincount(place, minlength=len(counts))).all()


def test_tables_that_do_not_fit_at_once_are_counted_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.random.default_rng(2).integers(0, 5, size=(100, 4))
    engine = in_parts(codes, None, (5, 5, 5, 5), 3)
    tables = [(0, 1), (2,), (1, 2, 3), (3,), (0, 2)]
    together = [counts.tolist() for counts in engine.count(tables)]
    monkeypatch.setattr(_engine, "MOST_CELLS", 30)
    assert [counts.tolist() for counts in engine.count(tables)] == together


def test_parts_may_be_anywhere_and_are_visited_in_any_order() -> None:
    class Elsewhere:
        def __init__(self, held: Codes) -> None:
            self.held = held

        def codes(self) -> Codes:
            visits.append(1)
            return self.held

        def recoded(self, recode: Recode) -> Part:
            return Elsewhere(recode(self.held))

    def backwards(task: Callable[[Part], Any], parts: Sequence[Part]) -> Iterable[Any]:
        order = random.Random(3).sample(range(len(parts)), len(parts))
        return (task(parts[place]) for place in order)

    visits: list[int] = []
    codes = np.random.default_rng(3).integers(0, 4, size=(50, 3))
    engine = in_parts(codes, None, (4, 4, 4), 5)
    expected = engine.count([(0, 1), (2,)])
    parts = tuple(Elsewhere(part.codes()) for part in engine.parts)
    found = replace(engine, parts=parts, run=backwards).count([(0, 1), (2,)])
    assert [one.tolist() for one in found] == [one.tolist() for one in expected]
    assert len(visits) == 5


@pytest.mark.parametrize("loss", ["first row", "weights", "a part"])
def test_a_count_that_loses_records_is_caught(loss: str) -> None:
    codes = np.random.default_rng(4).integers(0, 3, size=(90, 2))
    weights = np.random.default_rng(5).integers(2, 9, size=90)
    engine = in_parts(codes, weights, (3, 3), 3)
    truth = plainly(codes, weights, (3, 3), (0, 1))
    assert engine.table((0, 1)).tolist() == truth
    match loss:
        case "first row":
            broken = replace(engine, parts=(engine.parts[0].codes().between(1, 30), *engine.parts[1:]))
        case "weights":
            broken = replace(engine, parts=tuple(Codes(part.codes().columns) for part in engine.parts))
        case _:
            broken = replace(engine, parts=engine.parts[:2])
    assert broken.table((0, 1)).tolist() != truth


def test_records_that_are_uncounted_in_a_column_add_to_no_table_of_it() -> None:
    rng = np.random.default_rng(6)
    codes = np.stack([rng.integers(0, 4, 200), rng.integers(0, 3, 200), rng.integers(0, 6, 200)], axis=1)
    weights = rng.integers(1, 9, 200)
    shape, held = (3, 2, 6), (4, 3, 6)  # the last codes of the first two columns are uncounted
    whole = CountingEngine.of(coded(codes, held, weights=weights), shape, total=0, uncounted=frozenset({0, 1}))
    names = [np.array([0, 1, 1]), np.array([1, 0]), np.array([0, 0, 0, 0, 1, 1])]
    renamed = whole.in_runs({2: np.array([0, 4])}).grouped([*names[:2], np.arange(2)], (2, 2, 2))
    for engine in (whole, renamed, renamed.recoded()):
        for table in ((0,), (1,), (2,), (0, 1), (1, 2), (2, 0), (0, 1, 2)):
            there = np.all([codes[:, column] < shape[column] for column in table], axis=0)
            mapped = codes[there]
            if engine is not whole:
                mapped = np.stack([np.append(one, 0)[mapped[:, place]] for place, one in enumerate(names)], axis=1)
            assert engine.table(table).tolist() == plainly(mapped, weights[there], engine.shape, table)


def test_replacing_a_record_by_one_that_is_uncounted_moves_its_weight_at_most() -> None:
    shape, held = (2, 2), (3, 3)
    every = [(left, right) for left in range(3) for right in range(3)]
    for old in every:
        for new in every:
            counts = [
                CountingEngine.of(coded(np.array([one, (0, 1)]), held), shape, total=2, uncounted=frozenset({0, 1}))
                for one in (old, new)
            ]
            for table in ((0,), (1,), (0, 1)):
                moved = counts[0].table(table) - counts[1].table(table)
                assert np.maximum(moved, 0).sum() <= 1 >= np.maximum(-moved, 0).sum()
