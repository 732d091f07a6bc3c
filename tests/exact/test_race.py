"""The race by enumeration, exact areas and replay: nothing here depends on luck."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, permutations
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.coupling import ABSTAIN
from accord.couplings import race
from accord.couplings.race import RaceCoupling, agreement
from accord.distributions import Categorical, Normal
from accord.errors import InvalidParameter, WrongRandomness
from accord.randomness import SharedRandomness

WAYS = [pytest.param(200_000, id="one race"), pytest.param(1, id="binary tree"), pytest.param(60, id="wider tree")]
LABELS = ("a", "b", "c", "d", "e")
SHARED = SharedRandomness("replay")

# --- the agreement formula --------------------------------------------------------------------------------------------

Point = tuple[Fraction, Fraction]


def clipped(polygon: list[Point], *, a: Fraction, b: Fraction, c: Fraction) -> list[Point]:
    """The part of a convex polygon where a x + b y + c >= 0."""
    result: list[Point] = []
    for (x0, y0), (x1, y1) in pairwise([*polygon, *polygon[:1]]):
        f0, f1 = a * x0 + b * y0 + c, a * x1 + b * y1 + c
        if f0 >= 0:
            result.append((x0, y0))
        if f0 * f1 < 0:
            t = f0 / (f0 - f1)
            result.append((x0 + t * (x1 - x0), y0 + t * (y1 - y0)))
    return result


def area(polygon: list[Point]) -> Fraction:
    twice = sum((x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in pairwise([*polygon, *polygon[:1]])), Fraction(0))
    return abs(twice) / 2


def agreement_by_area(*laws: Sequence[Fraction]) -> Fraction:
    """On three values: the direction of three exponential arrivals is uniform on a triangle, and who wins depends on it
    alone, so the probability that all laws take y is an area cut out by half-planes ``E_x p(y) >= E_y p(x)``."""
    total = Fraction(0)
    for y in range(3):
        polygon: list[Point] = [(Fraction(0), Fraction(0)), (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))]
        for law in laws:
            for x in range(3):
                # coordinates (E_0, E_1, E_2) = (u, v, 1 - u - v), each as coefficients of (u, v, 1)
                names = [(1, 0, 0), (0, 1, 0), (-1, -1, 1)]
                a, b, c = (names[x][i] * law[y] - names[y][i] * law[x] for i in range(3))
                polygon = clipped(polygon, a=Fraction(a), b=Fraction(b), c=Fraction(c))
        total += 2 * area(polygon) if polygon else 0
    return total


weights = st.integers(min_value=0, max_value=12)
triples = st.tuples(weights, weights, weights).filter(any)


def law_of(numbers: Sequence[int]) -> list[Fraction]:
    return [Fraction(number, sum(numbers)) for number in numbers]


def exactly(*laws: Sequence[Fraction]) -> Fraction:
    result = agreement(*laws)
    assert isinstance(result, Fraction)
    return result


@given(st.lists(triples, min_size=1, max_size=4))
def test_S1_agreement_is_the_area_of_the_directions_in_which_all_agree(numbers: list[tuple[int, int, int]]) -> None:
    laws = [law_of(row) for row in numbers]
    assert exactly(*laws) == agreement_by_area(*laws)


@given(triples)
def test_S1_the_winner_has_the_law_by_areas(numbers: tuple[int, int, int]) -> None:
    law = law_of(numbers)
    for y in range(3):
        certain = [Fraction(int(x == y)) for x in range(3)]
        assert agreement_by_area(law, certain) == law[y] == exactly(law, certain)


@st.composite
def laws(draw: st.DrawFn, *, count: int) -> list[list[Fraction]]:
    size = draw(st.integers(1, 7))
    row = st.lists(st.integers(0, 50), min_size=size, max_size=size).filter(any)
    return [law_of(draw(row)) for _ in range(count)]


@given(laws(count=2))
def test_S1_agreement_lies_between_its_bounds(pair: list[list[Fraction]]) -> None:
    p, q = pair
    distance = sum((abs(x - y) for x, y in zip(p, q, strict=True)), Fraction(0)) / 2
    assert (1 - distance) / (1 + distance) <= exactly(p, q) <= 1 - distance


@given(laws(count=3))
def test_agreement_of_more_laws_is_less_and_has_no_order(three: list[list[Fraction]]) -> None:
    p, q, r = three
    assert exactly(p, q, r) <= min(exactly(p, q), exactly(q, r), exactly(p, r))
    assert exactly(p, q, r) == exactly(r, p, q) == exactly(r, q, p)
    assert exactly(p, q, q) == exactly(p, q)
    assert exactly(p, p) == exactly(p) == 1
    # a union bound over the two pairs with q
    assert exactly(p, q, r) >= exactly(p, q) + exactly(q, r) - 1


@given(laws(count=3))
def test_agreement_in_floats_agrees_with_fractions_and_takes_any_scale(three: list[list[Fraction]]) -> None:
    floats = [[float(7 * w) for w in law] for law in three]
    assert agreement(*floats) == pytest.approx(float(exactly(*three)), abs=1e-12)
    assert exactly(*[[7 * w for w in law] for law in three]) == exactly(*three)


def test_agreement_of_laws_with_tiny_weights() -> None:
    assert agreement([1.0, 1e-320], [1e-320, 1.0]) == pytest.approx(0, abs=1e-300)
    assert agreement([1, 0], [0, 1]) == 0


@pytest.mark.parametrize(
    "bad", [[], [[1], [1, 2]], [[1, -1]], [[0, 0]], [[float("nan"), 1.0]], [[float("inf"), 1.0]], [[]]]
)
def test_agreement_refuses(bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        agreement(*bad)


# --- isolation by replay ----------------------------------------------------------------------------------------------


def some_laws(count: int, *, seed: int = 0) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [Categorical(LABELS, generator.multinomial(300, [0.1, 0.2, 0.3, 0.15, 0.25]) + 0.25) for _ in range(count)]


WORDS: Any = LABELS


def forged(*probabilities: float) -> Categorical:
    law = Categorical(LABELS, [1, 1, 1, 1, 1])
    object.__setattr__(law, "probabilities", probabilities)
    return law


class Angry:
    """A law that raises whatever is asked of it."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


ODD = {
    "abstention": ABSTAIN,
    "normal": Normal(0, 1),
    "nothing": None,
    "text": "law",
    "fewer labels": Categorical(LABELS[:4], [1, 1, 1, 1]),
    "other order": Categorical(LABELS[::-1], [1, 1, 1, 1, 1]),
    "NaN": forged(float("nan"), 0.25, 0.25, 0.25, 0.25),
    "negative": forged(-0.5, 0.5, 0.5, 0.25, 0.25),
    "no mass": forged(0.0, 0.0, 0.0, 0.0, 0.0),
    "infinite": forged(float("inf"), 0.0, 0.0, 0.0, 0.0),
    "short": forged(0.5, 0.5),
    "words": forged(*WORDS),
    "angry": object.__new__(Angry),
}
VALID = {
    "far": Categorical(LABELS, [9, 1, 1, 1, 9]),
    "certain": Categorical(LABELS, [0, 0, 1, 0, 0]),
    "near": Categorical(LABELS, [31, 60, 90, 45, 75]),
    "tiny": Categorical(LABELS, [1, 1e-300, 1, 5e-324, 1]),
}


def keys(given: Sequence[Any], *, most: int, draws: int = 6, records: int = 7) -> Any:
    coupling = RaceCoupling(LABELS, most_vectors=most)
    return coupling.couple(given, records=records, draws=draws, shared=SHARED).keys


@pytest.mark.parametrize("most", WAYS)
@pytest.mark.parametrize("name", [*ODD, *VALID])
def test_changing_one_law_changes_that_blocks_keys_only(name: str, most: int) -> None:
    before = some_laws(8)
    base = keys(before, most=most)
    assert all(isinstance(key, bytes) for key in base.flat)
    for block in (0, 3, 7):
        after = list(before)
        after[block] = (ODD | VALID)[name]
        changed = keys(after, most=most)
        others = np.arange(8) != block
        assert (changed[:, others] == base[:, others]).all()
        assert all((key is ABSTAIN) == (name in ODD) for key in changed[:, block])


@pytest.mark.parametrize("most", WAYS)
def test_each_block_alone_gives_the_same_keys(most: int) -> None:
    given = [*some_laws(5), ABSTAIN, VALID["certain"], VALID["tiny"]]
    together = keys(given, most=most)
    for block, law in enumerate(given):
        assert (keys([law], most=most)[:, 0] == together[:, block]).all()


@pytest.mark.parametrize("most", WAYS)
def test_permuting_blocks_permutes_keys(most: int) -> None:
    given = [*some_laws(3), ABSTAIN]
    base = keys(given, most=most)
    for order in permutations(range(4)):
        assert (keys([given[i] for i in order], most=most) == base[:, list(order)]).all()


@pytest.mark.parametrize("most", WAYS)
def test_a_draw_does_not_depend_on_how_many_there_are_or_on_memory(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = some_laws(4)
    base = keys(given, most=most, draws=9)
    assert (keys(given, most=most, draws=4) == base[:4]).all()
    monkeypatch.setattr(race, "_MOST_CELLS", 1)
    assert (keys(given, most=most, draws=9) == base).all()
    assert len({tuple(row) for row in base.tolist()}) > 5


@pytest.mark.parametrize("most", WAYS)
def test_an_exception_in_one_block_is_its_abstention(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = some_laws(4)
    base = keys(given, most=most)
    original = race._Race._log_weights

    def failing(self: Any, probabilities: Any) -> Any:
        if tuple(probabilities.tolist()) == given[2].probabilities:
            raise MemoryError
        return original(self, probabilities)

    monkeypatch.setattr(race._Race, "_log_weights", failing)
    changed = keys(given, most=most)
    assert all(key is ABSTAIN for key in changed[:, 2])
    assert (changed[:, [0, 1, 3]] == base[:, [0, 1, 3]]).all()


@pytest.mark.parametrize("most", WAYS)
def test_equal_laws_always_agree_and_unlike_ones_never(most: int) -> None:
    law = VALID["far"]
    result = keys([law, Categorical(LABELS, law.probabilities), VALID["certain"]], most=most, draws=30)
    assert (result[:, 0] == result[:, 1]).all()
    assert not (result[:, 0] == result[:, 2]).any()


# --- keys, values, ways -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", WAYS)
def test_a_key_is_the_counts_and_values_are_its_arrangement(most: int) -> None:
    labels = ("x", 1, True, ("t", 0), 2.5)
    law = Categorical(labels, [1, 2, 3, 1, 1])
    coupled = RaceCoupling(labels, most_vectors=most).couple([law, law, ABSTAIN], records=40, draws=3, shared=SHARED)
    orders = set()
    for draw in range(3):
        key = coupled.keys[draw, 0]
        counts = np.frombuffer(key, dtype="<i8")
        assert len(key) == 8 * 5
        assert counts.sum() == 40
        records = coupled.decode(draw, key)
        assert records.shape == (40, 1)
        found = [(type(value), value) for value in records[:, 0].tolist()]
        assert [found.count((type(label), label)) for label in labels] == counts.tolist()
        assert (records == coupled.decode(draw, key)).all()
        orders.add(tuple(map(repr, coupled.decode(draw, coupled.keys[0, 0])[:, 0].tolist())))
    assert len(orders) == 3
    assert coupled.values.shape == (3, 3, 40, 1)


def test_isolated_is_declared() -> None:
    assert RaceCoupling(LABELS).isolated is True


@pytest.mark.parametrize("most", WAYS)
def test_impossible_labels_do_not_occur(most: int) -> None:
    for key in keys([Categorical(LABELS, [1, 0, 1, 0, 2])], most=most, draws=40)[:, 0]:
        assert np.frombuffer(key, dtype="<i8")[[1, 3]].tolist() == [0, 0]


@pytest.mark.parametrize("most", WAYS)
def test_one_category_one_record_and_no_blocks(most: int) -> None:
    coupling = RaceCoupling([7], most_vectors=most)
    coupled = coupling.couple([Categorical([7], [2.0])] * 2, records=3, draws=2, shared=SHARED)
    assert coupled.values.tolist() == [[[[7]] * 3] * 2] * 2
    assert keys([], most=most).shape == (6, 0)
    assert all(sum(np.frombuffer(key, dtype="<i8")) == 1 for key in keys(some_laws(2), most=most, records=1).flat)


@pytest.mark.parametrize(("total", "groups"), [(0, 1), (5, 1), (0, 3), (1, 4), (4, 3), (3, 6), (12, 2)])
def test_count_vectors_are_all_of_them(total: int, groups: int) -> None:
    vectors = race._count_vectors(total, groups=groups)
    assert len(vectors) == comb(total + groups - 1, groups - 1) == len({tuple(row) for row in vectors.tolist()})
    assert (vectors.sum(axis=1) == total).all()
    assert (vectors >= 0).all()
    assert vectors.tolist() == sorted(vectors.tolist())


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 30), st.integers(1, 3000))
def test_the_tree_splits_down_to_single_categories(categories: int, records: int, most: int) -> None:
    nodes = list(race._tree(categories, records=records, most=most))
    parts = [(0, categories)] + [part for cuts in nodes for part in pairwise(cuts)]
    assert {part for part in parts if part[1] - part[0] == 1} == {(i, i + 1) for i in range(categories)}
    assert {(cuts[0], cuts[-1]) for cuts in nodes} == {part for part in parts if part[1] - part[0] > 1}
    assert all(len(cuts) == 3 or comb(records + len(cuts) - 2, records) <= most for cuts in nodes)


def test_which_tree_it_is_depends_on_public_numbers() -> None:
    assert list(race._tree(3, records=200, most=200_000)) == [(0, 1, 2, 3)]
    assert next(race._tree(16, records=60, most=200_000)) == (0, 4, 8, 12, 16)
    assert len(list(race._tree(16, records=60, most=200_000))) == 5
    assert len(list(race._tree(16, records=60, most=1))) == 15


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "draws", "name"),
    [(0, 1, "records"), (1.5, 1, "records"), (True, 1, "records"), (1, 0, "draws"), (1, -1, "draws")],
)
def test_couple_refuses_numbers(records: Any, draws: Any, name: str) -> None:
    with pytest.raises(InvalidParameter, match=name):
        RaceCoupling(LABELS).couple(some_laws(1), records=records, draws=draws, shared=SHARED)


@pytest.mark.parametrize("shared", [3, "key", np.random.default_rng(0)])
def test_couple_refuses_other_randomness(shared: Any) -> None:
    with pytest.raises(WrongRandomness):
        RaceCoupling(LABELS).couple(some_laws(1), records=1, draws=1, shared=shared)


@pytest.mark.parametrize("categories", [[], "ab", ["a", "a"], [None]])
def test_race_refuses_categories(categories: Any) -> None:
    with pytest.raises(InvalidParameter, match="categories"):
        RaceCoupling(categories)


@pytest.mark.parametrize("most", [0, -1, 1.5, "many"])
def test_race_refuses_most_vectors(most: Any) -> None:
    with pytest.raises(InvalidParameter, match="most_vectors"):
        RaceCoupling(["a"], most_vectors=most)
