"""Codes in parts, in memory and in a file: the same records in the same order, however they come."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.errors import DataError
from accord.marginals import parts as _parts
from accord.marginals.engine import Codes, CountingEngine, Groups, in_threads
from accord.marginals.parts import CodeStore, usual_memory

TYPES: list[Any] = [np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32)]
SHAPE = (5, 300, 70_000)


def records(count: int) -> list[NDArray[Any]]:
    generator = np.random.default_rng(count)
    return [generator.integers(0, size, count).astype(kind) for size, kind in zip(SHAPE, TYPES, strict=True)]


def stored(columns: list[NDArray[Any]], cuts: list[int], *, memory: int | None) -> CodeStore:
    store = CodeStore(TYPES, memory=memory)
    for low, high in zip([0, *cuts], [*cuts, len(columns[0])], strict=True):
        store.add([column[low:high] for column in columns], count=high - low)
    return store


@pytest.mark.parametrize("memory", [0, 9000, None])
@pytest.mark.parametrize("cuts", [[], [1], [500, 500, 501, 2999], list(range(100, 3000, 100))])
def test_records_come_back_in_their_order(monkeypatch: pytest.MonkeyPatch, memory: int | None, cuts: list[int]) -> None:
    monkeypatch.setattr(_parts, "_ROWS", 700)
    columns = records(3000)
    parts = stored(columns, cuts, memory=memory).parts()
    assert [size for _, size in parts] == [700, 700, 700, 700, 200]
    in_memory = [isinstance(part, Codes) for part, _ in parts]
    assert in_memory == {0: [False] * 5, 9000: [True, False, False, False, True], None: [True] * 5}[memory]
    for place, column in enumerate(columns):
        assert np.array_equal(np.concatenate([part.codes().columns[place] for part, _ in parts]), column)


@pytest.mark.parametrize("memory", [0, None])
def test_counts_do_not_depend_on_where_parts_are(monkeypatch: pytest.MonkeyPatch, memory: int | None) -> None:
    monkeypatch.setattr(_parts, "_ROWS", 450)
    columns = records(3000)
    parts = stored(columns, [10, 2000], memory=memory).parts()
    engine = CountingEngine(
        parts=tuple(part for part, _ in parts), shape=SHAPE, total=3000, groups=(Groups(),) * 3, run=in_threads
    )
    whole = CountingEngine.of(Codes(tuple(columns)), SHAPE, total=3000)
    for one, other in zip(engine.count([(0, 1), (2,)]), whole.count([(0, 1), (2,)]), strict=True):
        assert np.array_equal(one, other)


def test_the_file_is_its_owners_alone_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = stored(records(1000), [], memory=0)
    ((part, _),) = store.parts()
    handle = part.file.handle  # type: ignore[attr-defined]
    assert os.fstat(handle).st_mode & 0o777 == 0o600
    assert os.fstat(handle).st_nlink == 0
    assert list(tmp_path.iterdir()) == []
    del store, part
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(handle)


def test_groups_are_looked_up_once_and_stand_in_a_file_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []
    true = Groups.of

    def counted(self: Groups, codes: NDArray[Any]) -> NDArray[Any]:
        looked_up.append(len(codes))
        return true(self, codes)

    monkeypatch.setattr(Groups, "of", counted)
    monkeypatch.setattr(_parts, "_ROWS", 450)
    columns = records(3000)
    groups = (Groups(), Groups.runs(np.array([0, 7, 250])), Groups.runs(np.array([0, 65_000])))
    engine = CountingEngine(
        parts=tuple(part for part, _ in stored(columns, [10, 2000], memory=900 * 7).parts()),
        shape=(5, 3, 2),
        total=3000,
        groups=groups,
        run=in_threads,
    )
    expected = [counts.tolist() for counts in engine.count([(0, 1), (2, 0)])]
    kept, cells = engine.recoded(), 3 * 3000
    for looks in (2, 1):  # of fine codes once, and of what they have become at each count
        looked_up.clear()
        assert [counts.tolist() for counts in kept.count([(0, 1), (2, 0)])] == expected
        assert sum(looked_up) == looks * cells
    again = kept.grouped([np.arange(5) // 2, np.arange(3), np.arange(2)], (3, 3, 2)).recoded()
    assert again.table((0,)).tolist() == [sum(expected[0][:6]), sum(expected[0][6:12]), sum(expected[0][12:])]
    files = {part._file.beside() for part in kept.parts if not isinstance(part, Codes) and hasattr(part, "_file")}
    assert len(files) == 1


def test_a_full_disk_leaves_groups_to_be_looked_up_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    columns = records(1000)
    parts = tuple(part for part, _ in stored(columns, [], memory=0).parts())
    engine = CountingEngine(
        parts=parts,
        shape=(5, 2, 2),
        total=1000,
        groups=(Groups(), *[Groups.runs(np.array([0, 50]))] * 2),
        run=in_threads,
    )
    monkeypatch.setattr(os, "pwrite", full)
    kept = engine.recoded()
    for _ in range(2):
        assert kept.table((1, 2)).tolist() == engine.table((1, 2)).tolist()


def test_a_full_disk_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    store = stored(records(1000), [], memory=0)
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DataError, match="no room"):
        store.parts()


def test_memory_is_a_share_of_the_machine() -> None:
    assert usual_memory() >= 256 << 20
