"""M3, M4: choosing by score, by enumeration in rationals. Neighbours are all pairs of score vectors at most S apart."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.exact import exp_lower, exp_upper
from accord.errors import AccordError
from accord.mechanisms import Exponential, PermuteAndFlip, TopK
from accord.noise.permute_and_flip import _flip
from accord.noise.scores import Cumulative, choose, log_upper, score_weights, whole_weights
from accord.randomness import PrivateRandomness

Law = dict[Any, Fraction]
RULES = [("1", "1", 2), ("0.1", "3", 2), ("7", "1e-9", 1), ("1e-30", "1000", 2), ("1e30", "1e-6", 1), ("1/3", "0.2", 2)]


def worst_ratio(law: Callable[[Any], Law], pairs: Iterator[tuple[Any, Any]]) -> Fraction | float:
    """Return the largest ratio of probabilities of one outcome; exact, infinite if one is 0."""
    known: dict[Any, Law] = {}
    worst: Fraction | float = Fraction(1)
    for here, there in pairs:
        p, q = (known.setdefault(scores, law(scores)) for scores in (here, there))
        for outcome, chance in p.items():
            worst = max(worst, chance / q[outcome] if q.get(outcome) else math.inf)
    return worst


def neighbours(levels: list[Fraction], *, candidates: int, bound: Fraction) -> Iterator[tuple[Any, Any]]:
    vectors = list(product(levels, repeat=candidates))
    for here, there in product(vectors, repeat=2):
        if max(abs(a - b) for a, b in zip(here, there, strict=True)) <= bound:
            yield here, there


def same_direction(pairs: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    for here, there in pairs:
        if all(a <= b for a, b in zip(here, there, strict=True)):
            yield from ((here, there), (there, here))


# --- M3: privacy ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "7"])
@pytest.mark.parametrize(("bound", "step"), [("1", "1"), ("1", "1/2"), ("0.3", "0.15"), ("1/7", "1/7")])
def test_M3_all_neighbours_are_within_epsilon(kind: Any, epsilon: str, bound: str, step: str) -> None:
    mechanism = kind(sensitivity=bound, epsilon=epsilon)
    levels = [Fraction(step) * level for level in range(4)]
    pairs = neighbours(levels, candidates=3, bound=Fraction(bound))
    worst = worst_ratio(mechanism.law, pairs)
    assert 1 < worst <= exp_lower(Fraction(epsilon))


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_M3_monotone_scores(kind: Any) -> None:
    mechanism = kind(sensitivity=1, epsilon=1, monotone=True)
    levels = [Fraction(level, 2) for level in range(5)]
    worst = worst_ratio(mechanism.law, same_direction(neighbours(levels, candidates=3, bound=Fraction(1))))
    assert Fraction(2) < worst <= exp_lower(Fraction(1))


@pytest.mark.parametrize("epsilon", ["1e-8", "0.1", "1", "5"])
@pytest.mark.parametrize("bound", ["1", "0.3", "1e-12", "12345.678"])
def test_M3_epsilon_is_used_up_but_not_exceeded(epsilon: str, bound: str) -> None:
    """With a base of a million to one the ratio of the rare candidate comes near exp(epsilon), never above."""
    mechanism = Exponential(sensitivity=bound, epsilon=epsilon)
    here, there = (mechanism.law(scores, base=[10**9, 1]) for scores in ([bound, 0], [0, bound]))
    ratio = there[1] / here[1]
    assert ratio <= exp_lower(Fraction(epsilon))
    assert ratio >= exp_upper(Fraction(epsilon) * Fraction(99, 100))


@pytest.mark.parametrize("far", ["50", "1e3", "1e9", "1e200"])
def test_M3_no_candidate_is_possible_on_one_dataset_alone(far: str) -> None:
    mechanism = Exponential(sensitivity=1, epsilon=1)
    score = Fraction(far)
    ends = [(Fraction(0), score), (Fraction(0), score + 1), (Fraction(1), score), (Fraction(0), score - 1)]
    laws = [mechanism.law(scores) for scores in ends]
    assert all(set(law) == {0, 1} for law in laws)
    for here, there in permutations(laws, 2):
        assert all(here[i] <= exp_lower(Fraction(2)) * there[i] for i in (0, 1)), "two steps at most"
    assert laws[0][0] <= Fraction(math.exp(-25))


finite = st.floats(min_value=-1e6, max_value=1e6)
moves = st.sampled_from([-1.0, -0.999, -0.5, -1e-9, 0.0, 5e-324, 1e-16, 0.25, 1.0])


@settings(max_examples=150)
@given(
    st.lists(st.tuples(finite | st.floats(), moves), min_size=1, max_size=5),
    st.sampled_from(["1e-9", "1e-3", "1", "30"]),
    st.sampled_from([0.3, 1.0, 1e-3, 7e5, 1e-230]),
    st.booleans(),
)
def test_M3_any_floats_at_most_S_apart(
    entries: list[tuple[float, float]],
    epsilon: str,
    bound: float,
    with_base: bool,  # noqa: FBT001
) -> None:
    """Sensitivity in the exact values of the floats; the rounding of scores is charged."""
    here = [score if score < math.inf else -math.inf for score, _ in entries]
    there = []
    for score, (_, move) in zip(here, entries, strict=True):
        moved = score + move * bound
        near = score == -math.inf or abs(Fraction(moved) - Fraction(score)) <= Fraction(bound)
        there.append(moved if near else score)
    mechanism = Exponential(sensitivity=bound, epsilon=epsilon)
    base = [1 + 3.7 * place for place in range(len(here))] if with_base else None
    p, q = mechanism.law(here, base=base), mechanism.law(there, base=base)
    assert set(p) == set(q)
    ratio = exp_lower(Fraction(epsilon))
    assert all(p[i] <= ratio * q[i] and q[i] <= ratio * p[i] for i in p)


def test_E13_a_gap_of_two_counts_moves_by_two() -> None:
    """Seven votes or fewer for three labels: the least sensitivity that covers every neighbour."""
    for votes in range(2, 8):
        counts = [c for c in product(range(votes + 1), repeat=3) if sum(c) == votes]
        moved = {"count": 0, "gap": 0, "histogram": 0}
        for here in counts:
            for a, b in permutations(range(3), 2):
                there = tuple(c - (i == a) + (i == b) for i, c in enumerate(here))
                if min(there) >= 0:
                    gaps = [sorted(c)[2] - sorted(c)[1] for c in (here, there)]
                    moved["gap"] = max(moved["gap"], abs(gaps[0] - gaps[1]))
                    apart = [abs(x - y) for x, y in zip(here, there, strict=True)]
                    moved["count"] = max(moved["count"], *apart)
                    moved["histogram"] = max(moved["histogram"], sum(apart))
        assert moved == {"count": 1, "gap": 2, "histogram": 2}
        right = Exponential(sensitivity=1, epsilon=1)
        pairs = ((h, t) for h, t in permutations(counts, 2) if sum(abs(x - y) for x, y in zip(h, t, strict=True)) == 2)
        assert worst_ratio(right.law, pairs) <= exp_lower(Fraction(1))


# --- top-k ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("epsilon", ["0.5", "3"])
def test_top_k_all_neighbours_are_within_epsilon(count: int, epsilon: str) -> None:
    best = TopK(count=count, sensitivity=1, epsilon=epsilon)
    pairs = neighbours([Fraction(level) for level in range(3)], candidates=3, bound=Fraction(1))
    assert 1 < worst_ratio(best.law, pairs) <= exp_lower(Fraction(epsilon))


def test_top_k_law_is_the_product_over_rounds() -> None:
    best = TopK(count=2, sensitivity=1, epsilon=2)
    scores = [Fraction(0), Fraction(3, 2), Fraction(-1)]
    law = best.law(scores)
    first = best.round.law(scores)
    assert sum(law.values()) == 1
    for i, j in permutations(range(3), 2):
        left = [score for k, score in enumerate(scores) if k != i]
        second = best.round.law(left)[j - (j > i)]
        assert law[i, j] == first[i] * second


# --- permute and flip -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [(0, 1), (0, 1, 2), (1, 1, 0, 1), (0, 5, 5, 2, 1)])
def test_permute_and_flip_law_by_permutations(scores: tuple[int, ...]) -> None:
    mechanism = PermuteAndFlip(sensitivity=1, epsilon=1)
    one = score_weights(bound=Fraction(1), epsilon=Fraction(1), sides=2)
    weights = one.weigh(np.array(scores), among=np.ones(len(scores), dtype=np.bool_))
    coins = [Fraction(weight) for weight in weights.tolist()]
    law = dict.fromkeys(range(len(scores)), Fraction(0))
    for order in permutations(range(len(scores))):
        going = Fraction(1, math.factorial(len(scores)))
        for index in order:
            law[index] += going * coins[index]
            going *= 1 - coins[index]
    assert mechanism.law(scores) == law
    assert sum(law.values()) == 1


@pytest.mark.parametrize("scores", [(0, 1), (0, 1, 2), (1, 1, 0, 1), (0, 5, 5, 2, 1)])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_permute_and_flip_is_never_worse(scores: tuple[int, ...], epsilon: str) -> None:
    """Its score is larger in distribution than that of the exponential mechanism, which is another law."""
    flips, other = (kind(sensitivity=1, epsilon=epsilon).law(scores) for kind in (PermuteAndFlip, Exponential))
    assert flips != other
    for least in sorted(set(scores))[1:]:
        here, there = (sum(law[i] for i, score in enumerate(scores) if score >= least) for law in (flips, other))
        assert here > there


# --- M4 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "10"])
@pytest.mark.parametrize("maximisers", [1, 2, 5])
def test_M4_chance_of_a_large_shortfall(kind: Any, epsilon: str, maximisers: int) -> None:
    """The worst case: all others lie exactly G below the best."""
    mechanism = kind(sensitivity="0.7", epsilon=epsilon)
    candidates = 9
    for t in ("0", "0.5", "2", "10", "60"):
        gap = Fraction(mechanism.utility_bound(t, candidates=candidates, maximisers=maximisers))
        law = mechanism.law([Fraction(0)] * maximisers + [-gap] * (candidates - maximisers))
        far = sum(law.get(index, 0) for index in range(maximisers, candidates))
        assert far <= exp_lower(-Fraction(t))
        if kind is Exponential and t != "0":
            assert far >= exp_lower(-Fraction(t)) / 20, "not loose"


@pytest.mark.parametrize("value", ["1e-5", "0.5", "1", "3", "1000000/7"])
def test_log_upper_is_an_upper_bound(value: str) -> None:
    bound = log_upper(Fraction(value))
    assert exp_upper(bound) >= Fraction(value) >= exp_lower(bound - Fraction(1, 10**45))


# --- the weights ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bound", "epsilon", "sides"), RULES)
def test_weights_are_certified(bound: str, epsilon: str, sides: int) -> None:
    rule = score_weights(bound=Fraction(bound), epsilon=Fraction(epsilon), sides=sides)
    steps = math.ceil(Fraction(bound) / Fraction(2) ** rule.exponent)
    assert sides * rule.rate * steps + Fraction(1, 2**46) == Fraction(epsilon), "all of epsilon is accounted for"
    assert rule.rate * (rule.deepest + 1) > 88 >= rule.rate * rule.deepest
    assert rule.deepest < 2**45
    generator = np.random.default_rng(1)
    below = [0, 1, 511, 512, rule.deepest, rule.deepest - 1, *generator.integers(0, rule.deepest, 40).tolist()]
    scores = [-Fraction(depth) * Fraction(2) ** rule.exponent for depth in below] + [Fraction(-10) ** 601]
    values = np.empty(len(scores), dtype=object)
    values[:] = scores
    weights = rule.weigh(values, among=np.ones(len(scores), dtype=np.bool_))
    assert weights[0] == 1
    assert weights[1] < 1
    assert weights[-1] == weights[4], "beyond the floor"
    error = Fraction(1, 2**49)
    for depth, weight in zip(below, weights.tolist(), strict=False):
        low, high = exp_upper(-rule.rate * depth) * (1 - error), exp_lower(-rule.rate * depth) * (1 + error)
        assert low <= Fraction(weight) <= high
        assert (Fraction(weight) * 2**180).denominator == 1


def test_the_charge_covers_the_rounding_of_weights() -> None:
    error = 2.0**-49
    assert 2 * math.log((1 + error) / (1 - error)) <= 2.0**-46
    assert error >= 9.01 * 2.0**-53, "five table entries and four products, each within 2^-53"


# --- select follows law -----------------------------------------------------------------------------------------------


NEAR = Fraction(1, 2**600)


class Scripted(PrivateRandomness):
    """Gives the bits of one real number in [0, 1), and counts what is read."""

    def __init__(self, numerator: int, denominator: int) -> None:
        super().__init__()
        self.rest, self.denominator, self.read = numerator, denominator, 0

    def bits(self, count: int) -> int:
        self.read += count
        digits, self.rest = divmod(self.rest << count, self.denominator)
        return digits


@pytest.mark.parametrize(
    "scores", [[0.0], [0.0, 1.0, 2.5], [-math.inf, 3.0, -math.inf, 3.0], [0.0, 300.0, -200.0], [1.0] * 7]
)
def test_select_is_the_law(scores: list[float]) -> None:
    """At, just below and just above each end of the intervals of U that the law gives to the candidates."""
    mechanism = Exponential(sensitivity=1, epsilon=1)
    law = mechanism.law(scores)
    start = Fraction(0)
    order = sorted(law)
    for place, index in enumerate(order):
        end = start + law[index]
        inside = [start + NEAR, (start + end) / 2, end - NEAR]
        for u in inside:
            assert mechanism.select(scores, randomness=Scripted(*u.as_integer_ratio())).value == index
        if place + 1 < len(order):
            u = end + NEAR
            assert mechanism.select(scores, randomness=Scripted(*u.as_integer_ratio())).value == order[place + 1]
        start = end
    assert start == 1


@pytest.mark.parametrize("size", [1, 8191, 8192, 8193, 20_000])
def test_select_is_the_law_across_blocks(size: int) -> None:
    scores = np.random.default_rng(size).normal(size=size) * 20
    rule = score_weights(bound=Fraction(1), epsilon=Fraction(1), sides=2)
    weights = rule.weigh(scores, among=np.ones(size, dtype=np.bool_))
    whole = whole_weights(weights)
    ends = np.cumsum(np.array(whole, dtype=object))
    running = Cumulative(weights)
    for index in {0, 1, size // 2, 8190, 8191, 8192, 8193, size - 1} & set(range(size)):
        end = Fraction(int(ends[index]), int(ends[-1]))
        start = end - Fraction(whole[index], int(ends[-1]))
        for u in (start + NEAR, end - NEAR):
            assert running.choose(randomness=Scripted(*u.as_integer_ratio())) == index


@pytest.mark.parametrize("scores", [np.zeros(9000), np.arange(9000.0), np.r_[np.zeros(8999), 1e6], -np.arange(9000.0)])
def test_E18_the_number_of_random_bits_does_not_depend_on_scores(scores: Any) -> None:
    source = Scripted(271828, 1000003)
    Exponential(sensitivity=1, epsilon=1).select(scores, randomness=source)
    assert source.read == 256


def test_choose_reads_on_only_when_it_must() -> None:
    third = Fraction(1, 3)
    for u, expected, read in (
        (third / 2, 0, 256),
        (third - Fraction(1, 2**300), 0, 320),
        (third + Fraction(1, 2**300), 1, 320),
        (2 * third + NEAR, 2, 640),
    ):
        source = Scripted(*u.as_integer_ratio())
        assert choose(lambda position: position, 3, randomness=source) == expected
        assert source.read == read


def test_a_source_that_repeats_itself_is_refused() -> None:
    with pytest.raises(AccordError, match="repeats"):
        choose(lambda position: position, 3, randomness=Scripted(1, 3))


def test_permute_and_flip_coins_are_exact() -> None:
    """Words at the first 63 bits of a weight are decided by the digits that are left."""

    class Words(Scripted):
        def words(self, count: int) -> Any:
            return np.full(count, self.word, dtype=np.uint64)

        word = 0

    weight = math.exp(-0.1) * 2.0**-20
    scaled = Fraction(weight) * 2**63
    cut, rest = int(scaled), scaled - int(scaled)
    assert 0 < rest < 1
    for word, u, expected in (
        (cut - 1, Fraction(1, 2), True),
        (cut + 1, Fraction(1, 2), False),
        (cut, rest - Fraction(1, 2**90), True),
        (cut, rest, False),
    ):
        source = Words(*u.as_integer_ratio())
        source.word = 2 * word
        assert _flip(np.array([weight]), randomness=source).tolist() == [expected]
    always = Words(1, 2)
    always.word = 2**64 - 1
    assert _flip(np.array([1.0, 0.0]), randomness=always).tolist() == [True, False]
