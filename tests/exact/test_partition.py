"""The partition under both relations: every order counted out, and rows that stand elsewhere played again."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from accord.core import Records
from accord.errors import AccordError
from accord.learning import partition
from accord.randomness import PrivateRandomness, SharedRandomness, uniform_order
from accord.theory.parts import cut_into_parts, leave_out

Table = list[tuple[str, str]]
"""Rows of (unit, cell)."""
BLOCKS = 2


class Rigged(PrivateRandomness):
    """A source that gives these words first."""

    def __init__(self, words: Sequence[int]) -> None:
        super().__init__()
        self.given = list(words)

    def words(self, count: int) -> Any:
        found, self.given = self.given[:count], self.given[count:]
        return np.array(found, dtype=np.uint64)


def units_of(table: Table) -> list[str]:
    return list(dict.fromkeys(unit for unit, _ in table))


def keyed(table: Table, keys: dict[str, int]) -> Rigged:
    """Give every unit its own key: the order of the units is then the same whatever their numbers are."""
    return Rigged([keys[unit] for unit in units_of(table)])


def contents(table: Table, parts: Sequence[NDArray[np.int64]]) -> list[Table]:
    return [[table[row] for row in part] for part in parts]


def without(blocks: list[Table], unit: str) -> tuple[Any, ...]:
    """Return what the blocks that do not hold the unit look like, and where it is."""
    return tuple(None if any(name == unit for name, _ in block) else tuple(block) for block in blocks)


def merged(others: Table, rows: Table, places: Sequence[int]) -> Table:
    """Put rows among the others, which keep their relative order."""
    marked = [(float(place), 0, row) for place, row in enumerate(others)]
    marked += [(place - 0.5, 1, row) for place, row in zip(sorted(places), rows, strict=True)]
    return [row for _, _, row in sorted(marked, key=lambda one: one[:2])]


OTHERS: Table = [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("d", "5"), ("b", "6")]
TABLES = {
    "one row at the front": merged(OTHERS, [("x", "!")], [0]),
    "one row at the end": merged(OTHERS, [("x", "?")], [6]),
    "three rows": merged(OTHERS, [("x", "7"), ("x", "8"), ("x", "9")], [0, 3, 6]),
    "two rows in the middle": merged(OTHERS, [("x", "0"), ("x", "0")], [3, 4]),
}


def law(table: Table, cut: Callable[[Table, tuple[int, ...]], list[Table]]) -> dict[Any, Fraction]:
    """Return the law of all blocks but the one of x, over all orders of the units, each with the same chance."""
    orders = list(permutations(range(len(units_of(table)))))
    counted = Counter(without(cut(table, order), "x") for order in orders)
    return {found: Fraction(times, len(orders)) for found, times in counted.items()}


def secret_cut(table: Table, order: tuple[int, ...]) -> list[Table]:
    return contents(table, partition(read(table), blocks=BLOCKS, randomness=Rigged(order)))


def public_cut(table: Table, order: tuple[int, ...]) -> list[Table]:
    """The mutant: one key for all, so one order of the numbers whatever is drawn."""
    key = SharedRandomness(1)
    return contents(table, partition(read(table), blocks=BLOCKS, in_place_key=key))


def cut_of_rows(table: Table, order: tuple[int, ...]) -> list[Table]:
    """The mutant: runs of the file, which a unit with more rows shifts."""
    runs = np.array_split(np.arange(len(table)), BLOCKS)
    return contents(table, [runs[place] for place in np.argsort(order[:BLOCKS])])


def same_laws(cut: Callable[[Table, tuple[int, ...]], list[Table]]) -> bool:
    laws = [law(table, cut) for table in TABLES.values()]
    return all(found == laws[0] for found in laws)


def test_A6_the_law_of_all_other_blocks_is_the_same_wherever_the_unit_stands() -> None:
    assert same_laws(secret_cut)
    assert len(law(TABLES["three rows"], secret_cut)) > 10


@pytest.mark.parametrize("mutant", [public_cut, cut_of_rows])
def test_A6_a_public_key_is_caught(mutant: Callable[[Table, tuple[int, ...]], list[Table]]) -> None:
    assert not same_laws(mutant)


@given(
    names=st.lists(st.sampled_from("abcdefgh"), min_size=3, max_size=30),
    before=st.lists(st.integers(0, 30), min_size=1, max_size=4),
    after=st.lists(st.integers(0, 30), min_size=1, max_size=4),
    blocks=st.integers(1, 4),
    seed=st.integers(0, 10**6),
)
def test_A6_rows_elsewhere_change_one_block_when_the_orders_are_coupled(
    names: list[str], before: list[int], after: list[int], blocks: int, seed: int
) -> None:
    others = [(name, f"cell {row}") for row, name in enumerate(names)]
    tables = [
        merged(others, [("x", f"{tag} {row}") for row in places], places)
        for tag, places in (("old", before), ("new", after))
    ]
    blocks = min(blocks, len(set(names)) + 1)
    drawn = np.random.default_rng(seed).permutation(9)
    keys = {unit: int(drawn[place]) for place, unit in enumerate("abcdefghx")}
    first, second = (
        contents(table, partition(read(table), blocks=blocks, randomness=keyed(table, keys))) for table in tables
    )
    assert without(first, "x") == without(second, "x")
    assert sum(one != other for one, other in zip(first, second, strict=True)) <= 1


def read(table: Table) -> Records:
    cells = [f"{unit}:{cell}" for unit, cell in table]
    return Records.of(cells, units=[unit for unit, _ in table], unit="person", cells="labels")


def test_A6_parts_and_what_is_left_out_follow_the_unit_too() -> None:
    keys = {"a": 4, "b": 1, "c": 3, "d": 5, "x": 2}
    kept, cut = [], []
    for table in TABLES.values():
        left = leave_out(read(table), keep=3, in_place_key=None, randomness=keyed(table, keys))
        kept.append([cell for cell in left.rows[:, 0] if not cell.startswith("x")])
        parts = cut_into_parts(read(table), parts=2, in_place_key=None, randomness=keyed(table, keys))
        cut.append([[cell for cell in part.rows[:, 0] if not cell.startswith("x")] for part in parts])
    assert all(found == kept[0] for found in kept)
    assert all(found == cut[0] for found in cut)


def test_uniform_order_gives_every_order_once_to_all_orders_of_the_keys() -> None:
    """Sorting keys is one to one from the orders of different keys to the orders of the numbers."""
    found = {tuple(uniform_order(5, randomness=Rigged(keys)).tolist()) for keys in permutations(range(5))}
    assert len(found) == math.factorial(5)


def test_uniform_order_draws_all_keys_again_if_two_are_equal() -> None:
    """Keys of two values for two things: the four draws, and the law is exactly one half each."""
    weights = Counter[tuple[int, ...]]()
    for first in ((0, 0), (0, 1), (1, 0), (1, 1)):
        for second in ((0, 1), (1, 0)):
            weights[tuple(uniform_order(2, randomness=Rigged([*first, *second])).tolist())] += 1
    assert weights[0, 1] == weights[1, 0] == 4
    # Keeping the order of equal keys, as a stable sort would, favours the order of the file: 6 to 2.


def test_uniform_order_stops_for_a_source_that_repeats_itself() -> None:
    assert uniform_order(1, randomness=Rigged([7])).tolist() == [0]
    assert uniform_order(0, randomness=PrivateRandomness()).tolist() == []

    class Stuck(PrivateRandomness):
        def _source(self, count: int) -> bytes:
            return bytes(count)

    with pytest.raises(AccordError, match="repeats itself"):
        uniform_order(2, randomness=Stuck())
