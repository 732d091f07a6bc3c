"""Broken readers of records and of units, each caught by a check that the true one passes."""

import math
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accord.core import Records, containers, records, unit_names
from accord.core.cells import as_label, is_missing
from accord.errors import AccordError

Patch = pytest.MonkeyPatch
PAIRS: list[tuple[Any, Any]] = [
    (1, "1"),
    ("a", "a\0"),
    (2**53, 2**53 + 1),
    (1, True),
    ((1,), 1),
    (("a", 1), ("a", "1")),
    (np.datetime64(1, "ns"), "datetime64[ns] 1"),
    (uuid.UUID(int=5), ("uuid", 5)),
]
MISSING: list[Any] = [None, math.nan, ("p", None), ("p", ("q", math.nan))]


def merged() -> bool:
    """Whether two persons become one unit."""
    for one, other in PAIRS:
        try:
            found = Records.of(np.zeros(4), units=[one, other, one, "z"]).owners
        except (AccordError, ValueError, TypeError):
            return True
        if found is None or found.tolist() != [0, 1, 0, 2]:
            return True
    return False


def passed() -> bool:
    """Whether a missing name makes a unit."""
    for name in MISSING:
        try:
            Records.of(np.zeros(2), units=["a", name])
        except AccordError:
            continue
        return True
    return False


def number_taken() -> bool:
    """Whether a number is taken for names."""
    try:
        Records.of(np.zeros(4), units=3, unit="person")
    except AccordError:
        return False
    return True


def moved() -> bool:
    """Whether one cell changes the cells or the type of the others' rows, or a gap in the container does."""
    tables: list[tuple[Any, Any]] = [
        (np.arange(6), np.array([0, 1, math.nan, 3, 4, 5])),
        ([0, 1, 2, 3, 4, 5], [0, 1, "x", 3, 4, 5]),
        (np.arange(6), np.ma.array(np.arange(6), mask=np.arange(6) == 2)),
    ]
    for before, after in tables:
        for cells in ("numbers", "labels"):
            try:
                one, two = (Records.of(data, cells=cells).rows for data in (before, after))
            except (ValueError, TypeError):
                return True
            types = [[type(cell) for cell in np.delete(rows, 2)] for rows in (one, two)]
            if (
                one.dtype != two.dtype
                or types[0] != types[1]
                or np.delete(one, 2).tolist() != np.delete(two, 2).tolist()
            ):
                return True
    return False


def by_numpy(units: Any, *, records: int) -> Any:
    """One type for all names."""
    del records
    return np.unique(np.asarray(units), return_inverse=True)[1].astype(np.int64)


def by_text(units: Any, *, records: int) -> Any:
    return true_owners([str(name) for name in units], records=records)


def by_equality(units: Any, *, records: int) -> Any:
    """Python's dict alone: True is 1."""
    del records
    known: dict[Any, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in units], dtype=np.int64)


def of_count(units: Any, *, records: int) -> Any:
    """A number of units is enough."""
    return np.arange(records) % units if isinstance(units, int) else true_owners(units, records=records)


def outer_only(name: Any) -> Any:
    """What is inside a tuple is not looked at."""
    if is_missing(name):
        raise AccordError
    return (type(name), as_label(name))


def tagged_in_words(name: Any) -> Any:
    """Kind and content are written into one text, or one tuple."""
    if is_missing(name):
        raise AccordError
    return as_label(name)


def untagged_tuples(name: Any) -> Any:
    """A tuple is its own key, beside those that tag other kinds."""
    return tuple(map(true_key, name)) if isinstance(name, tuple) else true_key(name)


true_owners, true_key = unit_names.owners_named, unit_names._key


@pytest.mark.parametrize("broken", [by_numpy, by_text, by_equality])
def test_A4_names_read_together_or_as_texts(broken: Callable[..., Any], monkeypatch: Patch) -> None:
    assert not merged()
    monkeypatch.setattr(records, "owners_named", broken)
    assert merged()


@pytest.mark.parametrize("broken", [tagged_in_words, untagged_tuples])
def test_A4_a_kind_that_is_written_into_the_content(broken: Callable[..., Any], monkeypatch: Patch) -> None:
    assert not merged()
    monkeypatch.setattr(unit_names, "_key", broken)
    assert merged()


def test_A5_a_number_for_names(monkeypatch: Patch) -> None:
    assert not number_taken()
    monkeypatch.setattr(records, "owners_named", of_count)
    assert number_taken()


@pytest.mark.parametrize("broken", [by_text, by_equality])
def test_A7_names_that_nobody_looks_at(broken: Callable[..., Any], monkeypatch: Patch) -> None:
    assert not passed()
    monkeypatch.setattr(records, "owners_named", broken)
    assert passed()


def test_A7_a_look_at_the_outer_name_only(monkeypatch: Patch) -> None:
    assert not passed()
    monkeypatch.setattr(unit_names, "_key", outer_only)
    assert passed()


def as_it_comes(cells: Any) -> Any:
    """The container's type reaches the rows."""
    return np.asarray(cells)


def one_type(cells: Any) -> Any:
    """A common type for all cells."""
    return np.array(np.asarray(cells).tolist())


@pytest.mark.parametrize("reader", ["numbers_in", "labels_in"])
@pytest.mark.parametrize("broken", [as_it_comes, one_type])
def test_A15_types_that_the_container_decides(reader: str, broken: Callable[..., Any], monkeypatch: Patch) -> None:
    assert not moved()
    monkeypatch.setattr(records, reader, broken)
    assert moved()


ROWS: list[tuple[list[Any], list[Any]]] = [
    ([[1, 2], [1, 2], [3], [4], [3, 4], [5]], [[1, 2], [1, 2], [3], [4], [3, 4], [5, 6]]),
    ([[1, 2]] * 6, [[9], *[[1, 2]] * 5]),
    ([[1, 2]] * 6, [[9, 9, 9], *[[1, 2]] * 5]),
]


def decided(columns: int | None) -> bool:
    """Whether one entry of a list decides how many cells are read of the others."""
    for before, after in ROWS:
        try:
            one, two = (Records.of(data, columns=columns).rows for data in (before, after))
        except AccordError:
            continue
        others = [place for place in range(6) if before[place] == after[place]]
        if one.shape != two.shape or not np.array_equal(one[others], two[others], equal_nan=True):
            return True
    return False


def most_common(entries: Any, rows: Any) -> int:
    del entries
    lengths = Counter(map(len, rows))
    return min(lengths, key=lambda length: (-lengths[length], length))


def first(entries: Any, rows: Any) -> int:
    del entries
    return len(rows[0])


def longest(entries: Any, rows: Any) -> int:
    del entries
    return max(map(len, rows))


@pytest.mark.parametrize("broken", [most_common, first, longest])
def test_A15_widths_that_one_entry_decides(broken: Callable[..., Any], monkeypatch: Patch) -> None:
    assert not decided(None)
    assert not decided(2)
    monkeypatch.setattr(containers, "_claimed_width", broken)
    assert decided(None)
    assert not decided(2)  # what is declared is not asked of the entries
