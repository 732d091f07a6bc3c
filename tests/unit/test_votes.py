"""Canonical votes: equality on bytes, one look for each value, no content in errors (E43, E44)."""

import math
import os
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np
import pytest

from accord.core.votes import canonical, encode, tally
from accord.errors import InvalidParameter
from accord.mechanisms import ABSTAIN, StableMode
from accord.privacy import NoAnswer


class Colour(Enum):
    RED = 1
    BLUE = 2
    CRIMSON = 1  # noqa: PIE796 - an alias, on purpose


class Number(IntEnum):
    ONE = 1


class Word(StrEnum):
    A = "a"


class Right(Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.0
    note: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Spot:
    x: float
    y: float = 0.0


@dataclass
class Mutable:
    x: int


class Pair(NamedTuple):
    left: Any
    right: Any


class Corner(Mutable, Enum):
    ORIGIN = 1


Other = namedtuple("Other", ["left", "right"])  # noqa: PYI024 - the old form

NOON = datetime(2024, 1, 2, 12)  # noqa: DTZ001 - without a zone, on purpose
LATER = NOON + timedelta(microseconds=1)

DIFFERENT: list[Any] = [
    None, True, False, 0, 1, -1, 127, 128, -128, -129, 255, 256, 2**64, -(2**64), 10**5000,
    0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, 0.1 + 0.2, 0.3, 0j, 1 + 0j, 1j, complex(0, math.nan),
    complex(math.nan, 0),
    "", "1", "a", "A", "é", "e\u0301", "\ud83d", "\U0001f600", "\ud83d\ude00", "None", "a\0", "a\0b", b"", b"1",
    b"a", b"a\0",
    Fraction(0), Fraction(1), Fraction(1, 2), Fraction(-1, 2), Fraction(2, 1),
    Decimal(0), Decimal(1), Decimal("0.5"), Decimal("-0.5"), Decimal(10), Decimal("Infinity"), Decimal("-Infinity"),
    Decimal("NaN"),
    date(2024, 1, 2), date(2024, 2, 1), NOON, datetime(2024, 1, 2, tzinfo=UTC),
    LATER,
    datetime(2024, 1, 2, 1, tzinfo=timezone(timedelta(hours=1))),
    (), (1,), (1.0,), (True,), ((1,),), (1, 2), (2, 1), ((1, 2),), ((1,), 2), (1, (2,)), ("a", "b"), ("ab",),
    ("a", ("b",)), (None,), ((),),
    frozenset(), frozenset({1}), frozenset({1.5}), frozenset({1, 2}), frozenset({(1, 2)}), frozenset({frozenset()}),
    Colour.RED, Colour.BLUE, Corner.ORIGIN, Number.ONE, Word.A, Right.READ, Right.WRITE, Right(3), Right(0),
    Point(1.0), Point(1.0, 2.0), Point(1.0, note="n"), Spot(1.0), Pair(1, 2), Pair(2, 1), Other(1, 2),
    np.array([1, 2]), np.array([1.0, 2.0]), np.array([1, 2], dtype=np.int32), np.array([1, 2], dtype=np.uint64),
    np.array([[1, 2]]), np.array([[1], [2]]), np.array([1]), np.array([], dtype=np.int64), np.array([True, False]),
    np.array([1j]),
    np.array(["a", "b"]), np.array(["ab"]), np.array([b"a"]), np.array([np.nan]), np.array([0.0]),
    np.array([0.0], dtype=np.float32),
    np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])[0],
    np.array([(1, 2.0)], dtype=[("a", "i4"), ("c", "f8")])[0],
    np.array([(1, 2.0)], dtype=[("a", "i8"), ("b", "f8")])[0], np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    np.datetime64("2024-01-02"), np.datetime64("2024-01-02T00"), np.datetime64("NaT", "D"), np.timedelta64(1, "D"),
    np.timedelta64(1, "s"),
]  # fmt: skip

EQUAL: list[tuple[Any, ...]] = [
    (0.0, -0.0, np.float64(-0.0), np.float32(0), np.float16(-0.0)),
    (math.nan, -math.nan, float("nan"), np.float64("nan"), np.array([0x7FF8000000000001]).view("f8")[0]),
    (1, np.int8(1), np.int64(1), np.uint64(1)),
    (True, np.True_),
    (0.5, np.float32(0.5), np.float64(0.5)),
    (1j, np.complex64(1j), complex(-0.0, 1.0)),
    ("a", np.str_("a")),
    (b"a", np.bytes_(b"a")),
    (Decimal("1.0"), Decimal(1), Decimal("1.000"), Decimal("0.1E1")),
    (Decimal("1E+2"), Decimal(100), Decimal("1.00E2")),
    (Decimal(0), Decimal("-0"), Decimal("0E-7"), Decimal("0.00")),
    (Decimal("NaN"), Decimal("-NaN"), Decimal("sNaN"), Decimal("NaN123")),
    (Fraction(2, 4), Fraction(1, 2)),
    (NOON, NOON.replace(fold=1)),
    (datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=timezone(timedelta(0), "Z"))),
    ((0.0, (math.nan,)), (-0.0, (float("nan"),))),
    (frozenset([1, 2, 3]), frozenset([3, 1, 2])),
    (frozenset([float("nan")]), frozenset([math.nan, float("nan")])),
    (Colour.RED, Colour.CRIMSON),
    (Point(0.0), Point(-0.0)),
    (Spot(0.0, math.nan), Spot(-0.0, float("nan"))),
    (Pair(0.0, Decimal(1)), Pair(-0.0, Decimal("1.0"))),
    (np.array([0.0, np.nan]), np.array([-0.0, -np.nan]), np.array([0.0, 9.0, np.nan])[::2]),
    (np.array([0.0, np.nan]), np.array([-0.0, np.nan], dtype=">f8")),
    (np.array([0j]), np.array([complex(-0.0, -0.0)])),
    (np.array(7), 7),
    (np.array([1, 2]), np.array([1, 2], dtype=">i8")),
]  # fmt: skip


def test_E43_different_votes_have_different_bytes() -> None:
    keys = [encode(vote) for vote in DIFFERENT]
    clashes = [(one, two) for one, two in combinations(range(len(keys)), 2) if keys[one] == keys[two]]
    assert [(DIFFERENT[one], DIFFERENT[two]) for one, two in clashes] == []


@pytest.mark.parametrize("group", EQUAL, ids=lambda group: type(group[0]).__name__)
def test_E43_equal_votes_have_equal_bytes_and_one_look(group: tuple[Any, ...]) -> None:
    forms = [canonical(vote) for vote in group]
    assert len({form.key for form in forms}) == 1
    assert len({(type(form.value), repr(form.value)) for form in forms}) == 1


@pytest.mark.parametrize("vote", DIFFERENT, ids=lambda vote: type(vote).__name__)
def test_the_canonical_value_is_a_fixed_point(vote: Any) -> None:
    key, value = canonical(vote)
    assert canonical(value).key == key
    assert type(value) is type(vote)


def test_the_votes_of_E43() -> None:
    result = tally([-0.0, 0.0, math.nan, float("nan"), 1, 1.0, True])
    assert sorted(result.counts.values()) == [1, 1, 1, 2, 2]


def test_canonical_rows_can_be_hashed_or_are_read_only() -> None:
    row = canonical(np.array([1.0, 2.0])).value
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 3
    record = canonical(np.array([(1, -0.0)], dtype=[("a", "i4"), ("b", "f8")])[0]).value
    assert hash(record) == hash(record)
    assert str(record.item()) == "(1, 0.0)"


def test_padding_of_structured_rows_is_not_looked_at() -> None:
    layout = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    rows = [np.frombuffer(bytes([1, *[filler] * 7]) + np.float64(2).tobytes(), dtype=layout)[0] for filler in (0, 255)]
    assert rows[0].tobytes() != rows[1].tobytes()
    assert encode(rows[0]) == encode(rows[1])


def test_structured_rows_may_hold_rows() -> None:
    layout = [("a", "f8", (2,)), ("b", [("c", "i4")])]
    rows = np.array([((0.0, np.nan), (1,)), ((-0.0, -np.nan), (1,)), ((0.0, 1.0), (1,))], dtype=layout)
    assert encode(rows[0]) == encode(rows[1]) != encode(rows[2])


class Moment(datetime):
    pass


class Day(date):
    pass


class Triple(tuple[int, ...]):
    __slots__ = ()


class Secret:
    def __repr__(self) -> str:
        return "SECRET"


@pytest.mark.parametrize(
    "vote",
    [
        Secret(),
        ["SECRET"],
        {"SECRET": 1},
        {"SECRET"},
        bytearray(b"SECRET"),
        Mutable(1),
        ("SECRET", Secret()),
        frozenset([("SECRET", Secret())]),
        Point(Secret()),  # type: ignore[arg-type]
        np.array([Secret()], dtype=object),
        np.array([1], dtype=np.longdouble),
        np.array([(1, Secret())], dtype=[("a", "i4"), ("b", "O")])[0],
        np.longdouble(1),
        np.clongdouble(1),
        timedelta(1),
        Moment(2024, 1, 2),
        Day(2024, 1, 2),
        Triple((1, 2, 3)),
        object,
        lambda: "SECRET",
    ],
    ids=lambda vote: type(vote).__name__,
)
def test_other_types_are_refused_by_name_and_without_content(vote: Any) -> None:
    with pytest.raises(InvalidParameter, match="type") as caught:
        encode(vote)
    assert "SECRET" not in str(caught.value)
    inner: Any = {tuple: "Secret", frozenset: "Secret", Point: "Secret"}.get(type(vote), type(vote).__name__)
    assert inner in str(caught.value)


# --- tally ------------------------------------------------------------------------------------------------------------


def test_abstentions_are_voters_without_a_vote() -> None:
    result = tally(["a", ABSTAIN, "b", "a", ABSTAIN])
    assert {result.values[key]: count for key, count in result.counts.items()} == {"a": 2, "b": 1}
    assert result.voters == 5


@pytest.mark.parametrize("votes", [[0.0, -0.0, 1], [Decimal("1.0"), Decimal(1), "a"], [1, True, 1.0]])
def test_E44_a_tally_does_not_depend_on_the_order_of_voters(votes: list[Any]) -> None:
    looks = {repr([(key, n, result.values[key]) for key, n in result.counts.items()])
             for result in map(tally, permutations(votes))}  # fmt: skip
    assert len(looks) == 1


def test_E44_a_tally_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "from accord.core.votes import tally, encode\n"
        "votes = ['b', 'a', frozenset('abcdef'), frozenset('fedcba'), ('x', 1)]\n"
        "print([(key.hex(), count) for key, count in tally(votes).counts.items()])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert "2" in outputs.pop()


@pytest.mark.parametrize(
    "votes",
    [
        np.array([3, 3, 5]),
        np.array(["x", "x", "y"]),
        np.array([[1.0, -0.0], [1.0, 0.0], [2.0, 0.0]]),
        np.array([("a",), ("a",), ("b",)], dtype=[("c", "U1")]),
        np.array(["x", "x", None], dtype=object),
        np.array(["2024-01-01", "2024-01-01", "2024-01-02"], dtype="M8[D]"),
        [np.array([1, 2]), np.array([1, 2]), np.array([2, 2])],
        ("p", "p", "q"),
        {"p": 1, "q": 2}.values(),
    ],
    ids=lambda votes: type(votes).__name__,
)
def test_votes_may_come_in_many_forms(votes: Any) -> None:
    result = tally(votes)
    assert result.voters == len(votes)
    if result.voters == 3:
        assert sorted(result.counts.values()) == [1, 2]


def test_rows_are_released_as_rows() -> None:
    mode = StableMode(epsilon=5, delta="0.5")
    votes = np.tile(np.array([1.5, -0.0]), (40, 1))
    row = mode.release(votes).value
    assert isinstance(row, np.ndarray)
    assert str(row.tolist()) == "[1.5, 0.0]"
    assert set(mode.law(votes)) == {encode(row), NoAnswer}


def test_python_equal_values_share_an_entry_of_a_law_and_none_is_lost() -> None:
    law = StableMode(epsilon=1, delta="0.01").law([1, True, 1.0, "a"])
    assert sum(law.values()) == 1
    assert law[1] == 3 * law["a"]


@pytest.mark.parametrize(
    "votes", ["abc", b"abc", {"a": 1}, {"a", "b"}, frozenset("ab"), 5, None, iter("ab"), [], (), np.array([])]
)
def test_refusals_of_what_is_no_sequence_of_votes(votes: Any) -> None:
    with pytest.raises(InvalidParameter):
        tally(votes)


def test_no_answer_is_no_vote() -> None:
    with pytest.raises(InvalidParameter, match="ABSTAIN"):
        tally(["a", NoAnswer])


def test_an_abstention_inside_a_tuple_is_an_ordinary_part_of_a_vote() -> None:
    assert tally([(1, ABSTAIN), (1, ABSTAIN)]).counts == {encode((1, ABSTAIN)): 2}


def test_a_tally_is_frozen() -> None:
    result = tally(["a"])
    with pytest.raises(TypeError):
        result.counts[b"x"] = 3  # type: ignore[index]
    with pytest.raises(AttributeError):
        result.voters = 4  # type: ignore[misc]


def test_J11_the_default_rule_says_that_it_needs_a_majority_and_does() -> None:
    mode = StableMode(epsilon=1, delta="1e-6")
    assert "majority of all k voters" in (StableMode.__doc__ or "")
    assert "majority" in (StableMode.release.__doc__ or "")
    assert mode.acceptance(480, votes=1000) == 0
    assert 0.25 < mode.acceptance(500, votes=1000) < 0.26
    assert mode.acceptance(508, votes=1000) > 0.999
    votes = ["a"] * 480 + ["b"] * 260 + ["c"] * 260
    assert mode.release(votes).value is NoAnswer
    assert StableMode(epsilon=1, delta="1e-6", rule="distance").release(votes).value == "a"
