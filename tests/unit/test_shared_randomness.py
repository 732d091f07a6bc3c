"""Streams are functions of key and labels.

The statistical tests here have fixed keys; each would fail for fewer than one key in a million.
"""

import copy
import itertools
import math
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from accord.core.shared import _encode
from accord.errors import InvalidParameter, WrongRandomness
from accord.randomness import PrivateRandomness, SharedRandomness, mix, require_shared, uniform_open

SHARED = SharedRandomness("a key")
RARE = 1e-7

Words = NDArray[np.uint64]


# --- functions of key and labels only ---------------------------------------------------------------------------------


def readings(shared: SharedRandomness) -> list[Any]:
    return [
        shared.seed("block", 3),
        int(shared.word("draw", 1, "cell")),
        shared.stream("arrange", 0).integers(0, 2**63, size=3).tolist(),
        shared.hash_rows(np.array([[1, -2], [3, 4]]), "x").tolist(),
        shared.child("part", 1).seed(),
    ]


@pytest.mark.parametrize("key", [0, -5, 2**200, "", "text", "\ud800", b"", b"bytes"])
def test_equal_keys_give_equal_streams(key: int | str | bytes) -> None:
    assert readings(SharedRandomness(key)) == readings(SharedRandomness(key))
    assert SharedRandomness(key) == SharedRandomness(key)
    assert hash(SharedRandomness(key)) == hash(SharedRandomness(key))
    assert readings(SharedRandomness(key)) != readings(SHARED)


def test_keys_of_different_types_differ() -> None:
    keys: list[int | str | bytes] = [1, "1", b"1", "", b"", 0, "0", -1, 2**64 + 1]
    assert len({SharedRandomness(key).seed() for key in keys}) == len(keys)
    assert len({SharedRandomness(key) for key in keys}) == len(keys)


@pytest.mark.parametrize("key", [None, True, 1.0, (1,), np.float64(1)])
def test_other_keys_are_refused(key: Any) -> None:
    with pytest.raises(InvalidParameter, match="key"):
        SharedRandomness(key)


def test_reading_does_not_change_what_is_read_next() -> None:
    shared = SharedRandomness(7)
    before = readings(shared)
    shared.stream("arrange", 0).random(1000)
    shared.child("part", 1).stream().random(10)
    assert readings(shared) == before
    assert readings(copy.deepcopy(shared)) == before
    assert readings(pickle.loads(pickle.dumps(shared))) == before  # noqa: S301 - our own bytes


def test_threads_read_the_same() -> None:
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(readings(SHARED))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [readings(SHARED)] * 4


@pytest.mark.parametrize("hash_seed", ["0", "12345"])
def test_another_process_reads_the_same(hash_seed: str) -> None:
    code = (
        "import numpy as np; from accord.randomness import SharedRandomness as S; s = S('a key');"
        "print(s.seed('block', 3), int(s.word('draw', 1, 'cell')), s.stream('arrange', 0).integers(0, 2**63, size=3)"
        ".tolist(), s.hash_rows(np.array([[1, -2], [3, 4]]), 'x').tolist(), s.child('part', 1).seed(), sep='|')"
    )
    output = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output.strip() == "|".join(map(str, readings(SHARED)))


label = st.one_of(st.integers(), st.text(), st.binary())


@given(st.lists(label, max_size=4), st.lists(label, max_size=4))
def test_label_encoding_is_injective(first: list[Any], second: list[Any]) -> None:
    same = first == second and list(map(type, first)) == list(map(type, second))
    assert (_encode(tuple(first)) == _encode(tuple(second))) == same


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("1",), (1,)),
        (("ab", "c"), ("a", "bc")),
        (("a",), ("a", "")),
        ((), ("",)),
        ((1, 2), (12,)),
        ((1, "2"), ("1", 2)),
        ((-1,), (1,)),
        (("a", 1), (1, "a")),
        (("i\x01",), ("i", "\x01")),
    ],
)
def test_different_labels_give_different_streams(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    assert _encode(first) != _encode(second)
    assert SHARED.seed(*first) != SHARED.seed(*second)
    assert SHARED.word(*first) != SHARED.word(*second)
    assert SHARED.stream(*first).integers(2**62) != SHARED.stream(*second).integers(2**62)
    assert SHARED.child(*first) != SHARED.child(*second)
    rows = np.zeros((1, 1), dtype=np.int64)
    assert SHARED.hash_rows(rows, *first) != SHARED.hash_rows(rows, *second)


def test_numpy_integers_are_labels_like_ints() -> None:
    number: Any = np.int64(3)
    assert SHARED.word("block", number) == SHARED.word("block", 3)


def test_children_and_streams_do_not_meet() -> None:
    assert SHARED.child("a").seed("b") != SHARED.child("a", "b").seed()
    assert SHARED.child("a").seed("b") != SHARED.seed("a", "b")


def test_fresh_keys_differ_and_nothing_shows_a_key() -> None:
    assert SharedRandomness.fresh() != SharedRandomness.fresh()
    assert repr(SharedRandomness("secret?")) == "SharedRandomness(...)"


def test_require_shared() -> None:
    assert require_shared(SHARED) is SHARED
    assert isinstance(require_shared(None), SharedRandomness)
    for other in (PrivateRandomness(), 3, np.random.default_rng(0)):
        with pytest.raises(WrongRandomness):
            require_shared(other)


# --- hashing rows -----------------------------------------------------------------------------------------------------


def lattice(dimension: int, *, side: int, start: int) -> NDArray[np.int64]:
    return np.array(list(itertools.product(range(start, start + side), repeat=dimension)), dtype=np.int64)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=20))
def test_hash_rows_is_row_wise(rows: list[tuple[int, int]]) -> None:
    table = np.array(rows, dtype=np.int64)
    words = SHARED.hash_rows(table, "cells")
    assert words.dtype == np.uint64
    assert words.tolist() == [int(SHARED.hash_rows(table[[i]], "cells")[0]) for i in range(len(rows))]
    assert words[::-1].tolist() == SHARED.hash_rows(table[::-1], "cells").tolist()
    np.testing.assert_array_equal(words, SHARED.hash_rows(np.asfortranarray(table), "cells"))
    assert len(set(words.tolist())) == len(set(rows))


def test_hash_rows_tells_lengths_and_orders_apart() -> None:
    rows = [np.zeros((1, m), dtype=np.int64) for m in range(6)]
    assert len({int(SHARED.hash_rows(row)[0]) for row in rows}) == 6
    pairs = lattice(2, side=40, start=-20)
    assert len(set(SHARED.hash_rows(pairs).tolist())) == 1600
    assert SHARED.hash_rows(np.zeros((0, 3), dtype=np.int64)).shape == (0,)


def bytes_are_uniform(words: Words) -> float:
    """Smallest p-value of a chi-square over 256 cells for each byte of the words, and for two bytes xored."""
    columns = words.astype("<u8").view(np.uint8).reshape(-1, 8)
    columns = np.column_stack((columns, columns[:, 0] ^ columns[:, 7], columns[:, 3] ^ columns[:, 4]))
    expected = len(words) / 256
    values = [((np.bincount(column, minlength=256) - expected) ** 2 / expected).sum() for column in columns.T]
    tails = np.concatenate((chi2.sf(values, 255), chi2.cdf(values, 255)))  # too even is as bad as too uneven
    return float(tails.min())


def pairs_are_uniform(words: Words) -> float:
    """p-value of a chi-square over 64 x 64 cells of the top bits of each word and the next one."""
    top = (words >> np.uint64(58)).astype(np.int64)
    cells = np.bincount(64 * top[:-1:2] + top[1::2], minlength=4096)
    expected = cells.sum() / 4096
    value = ((cells - expected) ** 2 / expected).sum()
    return float(min(chi2.sf(value, 4095), chi2.cdf(value, 4095)))


LATTICES = [
    (1, 200_000, 0),
    (1, 200_000, -100_000),
    (1, 200_000, 2**62),
    (2, 450, -225),
    (3, 60, -30),
    (5, 12, -6),
    (9, 4, -2),
]


@pytest.mark.parametrize("key", [0, 1, "another"])
@pytest.mark.parametrize(("dimension", "side", "start"), LATTICES)
def test_hash_rows_is_uniform_on_lattices(dimension: int, side: int, start: int, key: int | str) -> None:
    # 20 tests of bytes in each of 21 cases: smallest p-value 1e-7 / 20 gives each case a rate of 1e-7.
    words = SharedRandomness(key).hash_rows(lattice(dimension, side=side, start=start), "cells")
    assert bytes_are_uniform(words) > RARE / 20
    assert pairs_are_uniform(words) > RARE / 2
    assert len(set(words.tolist())) == len(words)


def weak_sum(rows: NDArray[np.int64]) -> Words:
    return mix(rows.sum(axis=1).view(np.uint64))


def weak_product(rows: NDArray[np.int64]) -> Words:
    return rows.view(np.uint64) @ np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9], dtype=np.uint64)


@pytest.mark.parametrize("weak", [weak_sum, weak_product])
def test_weak_hashes_are_caught(weak: Callable[[NDArray[np.int64]], Words]) -> None:
    words = weak(lattice(2, side=450, start=-225))
    assert (
        min(bytes_are_uniform(words) * 20, pairs_are_uniform(words) * 2, len(set(words.tolist())) - len(words) + 1)
        < RARE
    )


@pytest.mark.parametrize("start", [0, 2**32, 2**64 - 200_000])
def test_mix_streams_are_uniform_and_one_to_one(start: int) -> None:
    words = mix(np.arange(200_000, dtype=np.uint64) + np.uint64(start))
    assert len(set(words.tolist())) == 200_000
    assert bytes_are_uniform(words) > RARE / 20
    assert pairs_are_uniform(words) > RARE / 2


def test_mix_leaves_its_argument_alone() -> None:
    words = np.arange(5, dtype=np.uint64)
    mix(words)
    assert words.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("column", [0, 1, 2])
def test_avalanche(column: int) -> None:
    # 20,000 rows, 64 input bits, 64 output bits: each flips with probability 1/2, all 4096 shares within 6.5 sigma
    # (fails for 4096 * 8e-11 = 3e-7 of the keys).
    rows = np.random.default_rng(column).integers(-(2**62), 2**62, size=(20_000, 3))
    base = SHARED.hash_rows(rows, "cells")
    for bit in range(64):
        flipped = rows.copy()
        flipped[:, column] ^= np.uint64(1 << bit).astype(np.int64)
        change = base ^ SHARED.hash_rows(flipped, "cells")
        shares = np.unpackbits(change.view(np.uint8).reshape(-1, 8), axis=1).mean(axis=0)
        assert np.abs(shares - 0.5).max() < 6.5 * 0.5 / math.sqrt(20_000), bit


def test_uniform_open_never_touches_its_ends() -> None:
    words = np.array([0, 2**12 - 1, 2**12, 2**64 - 1], dtype=np.uint64)
    values = uniform_open(words)
    assert values.tolist() == [2.0**-53, 2.0**-53, 3 * 2.0**-53, 1 - 2.0**-53]


@pytest.mark.parametrize("purpose", ["block", "draw"])
def test_streams_of_consecutive_labels_look_independent(purpose: str) -> None:
    first = np.array([SHARED.stream(purpose, i).integers(0, 2**64, dtype=np.uint64) for i in range(10_240)])
    words = np.array([SHARED.word(purpose, i) for i in range(10_240)])
    for sample in (first, words):
        assert bytes_are_uniform(sample) > RARE / 20
    correlation = np.corrcoef(first[:-1].astype(float), first[1:].astype(float))[0, 1]
    assert abs(correlation) < 5.5 / math.sqrt(10_240)
