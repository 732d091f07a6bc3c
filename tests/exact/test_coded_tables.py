"""Declared tables as codes: their counts are those of plain Python, whatever the kinds, units, batches and places."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pytest

from accord.marginals import engine as _engine
from accord.marginals import parts as _parts
from accord.marginals.engine import WHOLE, Codes, CountingEngine
from accord.synthesis import coded as _coded
from accord.synthesis.coded import CodedTable, coded_batches, coded_of
from accord.tables import Column, Schema, Table
from accord.tables.reader import Batch

COUNT = 700
LABELS = tuple(f"label {place}" for place in range(300))
KINDS = {
    "few labels": Column(name="few labels", kind="category", categories=("a", "b", "c")),
    "256 codes": Column(name="256 codes", kind="category", categories=LABELS[:255]),
    "257 codes": Column(name="257 codes", kind="ordinal", categories=LABELS[:256]),
    "a flag": Column(name="a flag", kind="boolean", categories=("false", "true")),
    "edges": Column(name="edges", kind="number", edges=(0.0, 1.0, 2.5, 100.0)),
    "money": Column(name="money", kind="number", decimals=2, bounds=(0.0, 900.0)),
    "bounds": Column(name="bounds", kind="number", bounds=(-3.0, 1e6)),
    "close bounds": Column(name="close bounds", kind="number", bounds=(1e6, 1e6 + 1)),
    "no bounds": Column(name="no bounds", kind="number"),
    "whole": Column(name="whole", kind="integer", bounds=(0.0, 20.0)),
    "day": Column(name="day", kind="date", format="%Y-%m-%d", bounds=(1.5e9, 1.6e9)),
}


def cells(column: Column, generator: np.random.Generator) -> np.ndarray:
    """Cells as they are read: a fifth is missing, and bounds and edges occur."""
    if column.is_label:
        found = generator.integers(-1, len(column.categories), COUNT).astype(np.int32)
        return np.where(generator.random(COUNT) < 0.2, -1, found).astype(np.int32)
    low, high = column.bounds or ((column.edges[0], column.edges[-1]) if column.edges else (-1e5, 1e5))
    values = generator.choice([low, high, 0.5 * (low + high)], COUNT)
    drawn = generator.uniform(low, high, COUNT) if column.bounds or column.edges else generator.standard_cauchy(COUNT)
    values = np.where(generator.random(COUNT) < 0.8, drawn, values)
    if column.name == "money":
        values = np.round(values, 2)
    if column.kind in {"integer", "date"}:
        values = np.floor(values)
    values = np.clip(values, low, high) if column.bounds else values
    return np.where(generator.random(COUNT) < 0.2, np.nan, values)


@dataclass(frozen=True)
class Case:
    """A table, and the tables that are counted of it."""

    schema: Schema
    columns: tuple[np.ndarray, ...]
    names: list[str] | None
    asked: list[tuple[int, ...]]

    def units(self) -> np.ndarray | None:
        """Return the number of each record's unit in order of first appearance."""
        if self.names is None:
            return None
        places = {name: place for place, name in enumerate(dict.fromkeys(self.names))}
        return np.array([places[name] for name in self.names], dtype=np.int64)

    def batches(self, ends: Sequence[int]) -> Iterator[Batch]:
        for low, high in pairwise(ends):
            names = None if self.names is None else pa.array(self.names[low:high], pa.large_string())
            yield Batch(
                columns=tuple(column[low:high] for column in self.columns),
                units=None if names is None else names.dictionary_encode(),
            )

    def weights(self) -> list[int]:
        """Return the weight of each record, one after the other."""
        if self.names is None:
            return [1] * COUNT
        sizes, seen, found = Counter(self.names), Counter[str](), []
        for name in self.names:
            before, seen[name] = seen[name], seen[name] + 1
            found.append(
                math.floor(Fraction(seen[name] * WHOLE, sizes[name]))
                - math.floor(Fraction(before * WHOLE, sizes[name]))
            )
        return found


def case_of(seed: int) -> Case:
    generator = np.random.default_rng(seed)
    kinds = [KINDS[name] for name in generator.choice(list(KINDS), size=4, replace=False).tolist()]
    units = seed % 2 == 1
    columns = tuple(cells(column, generator) for column in kinds)
    names = [f"u{one}" for one in generator.zipf(1.4, COUNT) % 150] if units else None
    asked = [*((place,) for place in range(4)), *combinations(range(4), 2), (3, 0, 2)]
    declared = Schema(columns=tuple(kinds), unit="who" if units else None)
    return Case(declared, columns, names, asked)


def starts_of(case: Case) -> dict[int, np.ndarray]:
    """Return the first codes of cells of each column of a grid, with that of missing cells."""
    found = {}
    for place, column in enumerate(case.schema.read):
        grid = _coded.coding_of(column).column.grid
        if grid is not None:
            found[place] = np.append(grid.first_cells(), grid.size)
    return found


def plain_cells(case: Case) -> tuple[list[list[int]], list[int]]:
    """Return the cell of each record in each column, cell by cell, and how many cells there are."""
    rows, shape = [], []
    for column, values in zip(case.schema.read, case.columns, strict=True):
        if column.is_label:
            shape.append(len(column.categories) + 1)
            rows.append([shape[-1] - 1 if value < 0 else int(value) for value in values])
            continue
        grid = _coded.coding_of(column).column.grid
        first = list(column.edges)[:-1] if grid is None else grid.ends(grid.first_cells()).tolist()
        shape.append(len(first) + 1)
        rows.append(
            [shape[-1] - 1 if math.isnan(value) else max(0, bisect_right(first, value) - 1) for value in values]
        )
    return rows, shape


def plainly(case: Case, weights: Sequence[int]) -> list[list[int]]:
    rows, shape = plain_cells(case)
    found = []
    for table in case.asked:
        counts = np.zeros([shape[column] for column in table], dtype=np.int64)
        for record, weight in enumerate(weights):
            counts[tuple(rows[column][record] for column in table)] += weight
        found.append(counts.ravel().tolist())
    return found


def in_memory(case: Case) -> CodedTable:
    return coded_of(Table(columns=case.columns, units=case.units(), schema=case.schema))


def one_batch(case: Case) -> CodedTable:
    return coded_batches(case.batches([0, COUNT]), schema=case.schema, what="it")


def many_batches_in_a_file(case: Case) -> CodedTable:
    cuts = np.random.default_rng(1).integers(0, COUNT, 16)
    ends = [0, *np.sort(cuts).tolist(), COUNT]  # some are empty
    return coded_batches(case.batches(ends), schema=case.schema, what="it", memory=0)


def half_in_memory(case: Case) -> CodedTable:
    return coded_batches(case.batches([0, 1, 99, COUNT]), schema=case.schema, what="it", memory=2500)


ROADS = [in_memory, one_batch, many_batches_in_a_file, half_in_memory]
# rows of a part, rows that are looked up at once, threads
PLACES = [(1 << 19, 1 << 14, 1), (97, 13, 1), (97, 1, 3), (1 << 19, 256, 3)]


@pytest.fixture(params=PLACES, ids=["large", "small", "single rows, threads", "threads"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, chunk, threads = request.param
    monkeypatch.setattr(_parts, "_ROWS", rows)
    monkeypatch.setattr(_coded, "_ROWS", 3 * rows // 2)
    monkeypatch.setattr(_engine, "_CHUNK", chunk)
    monkeypatch.setattr(_engine, "_FEW", 0)
    monkeypatch.setattr(_engine, "_threads", lambda: threads)


def counted(engine: CountingEngine, asked: Sequence[tuple[int, ...]]) -> list[list[int]]:
    return [counts.tolist() for counts in engine.count(asked)]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("road", ROADS)
def test_counts_are_those_of_plain_python(road: Callable[[Case], CodedTable], seed: int) -> None:
    case = case_of(seed)
    expected = plainly(case, case.weights())
    table = road(case)
    engine = table.engine()
    assert engine.total == sum(case.weights()) == sum(expected[0])
    looked_up = engine.in_runs(starts_of(case))
    assert counted(looked_up, case.asked) == expected
    kept = looked_up.recoded()
    assert counted(kept, case.asked) == expected
    assert counted(kept, case.asked) == expected  # of what is kept from the first look


def test_the_trials_hold_what_they_are_for() -> None:
    """Every kind occurs, in a file and in memory, with several bytes a code, and uneven weights."""
    cases = [case_of(seed) for seed in range(8)]
    assert {column.name for case in cases for column in case.schema.read} == KINDS.keys()
    assert {weight for case in cases for weight in case.weights()} > {1, WHOLE, WHOLE // 2}
    assert all(any(weight not in {1, WHOLE} for weight in case.weights()) for case in cases[1::2])
    types = {coding.type.itemsize for coding in map(_coded.coding_of, KINDS.values())}
    assert types == {1, 2, 4}
    assert not any(isinstance(part, Codes) for part in many_batches_in_a_file(cases[0]).parts)
