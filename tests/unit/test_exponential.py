"""Choosing by score: values, refusals, input kinds."""

import copy
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accord.errors import InvalidParameter, WrongRandomness
from accord.mechanisms import Exponential, PermuteAndFlip, TopK
from accord.noise.scores import read_scores
from accord.privacy import Neighbouring, PureDP, Sensitivity
from accord.testing import ReplayRandomness

INF = math.inf
KINDS: list[Callable[..., Any]] = [Exponential, PermuteAndFlip, lambda **fields: TopK(count=1, **fields)]
MINIMUM = -1


def close(law: dict[Any, Fraction], index: Any) -> float:
    return float(law[index])


# --- E12, E19, E20 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_E12_the_largest_score_wins(kind: Callable[..., Any]) -> None:
    mechanism = kind(sensitivity=1, epsilon=1000)
    for scores, best in (([0, 1, 2, 100], 3), ([-0.0, -1.0, -2.0, -100.0], 0)):
        assert {mechanism.select(scores).value for _ in range(20)} <= {best, (best,)}


def test_E12_minimising_is_negating() -> None:
    scores = np.array([0.0, 1.0, 2.0, 100.0])
    assert Exponential(sensitivity=1, epsilon=1000).select(MINIMUM * scores).value == 0


def test_E12_law_of_two() -> None:
    assert close(Exponential(sensitivity=1, epsilon=1).law([0, 1]), 1) == pytest.approx(0.6224593312018546, rel=1e-11)
    monotone = Exponential(sensitivity=1, epsilon=1, monotone=True)
    assert close(monotone.law([0, 1]), 1) == pytest.approx(0.7310585786300049, rel=1e-11)


def test_E19_k_distinct_winners_end_at_once() -> None:
    best = TopK(count=3, sensitivity=1, epsilon=4)
    release: Any = best.select([1000, 0, 0])
    assert sorted(release.value) == [0, 1, 2]
    assert release.guarantee == PureDP(4)
    assert best.round.guarantee.epsilon * 3 == 4
    assert sum(best.law([1000, 0, 0]).values()) == 1


def test_E20_mismatched_base_states_both_lengths() -> None:
    with pytest.raises(InvalidParameter, match=r"3 scores, 2 weights"):
        Exponential(sensitivity=1, epsilon=1).select([1, 2, 3], base=[1, 1])


def test_E20_missing_sensitivity_is_named_by_pythons_own_error() -> None:
    # A keyword without a default: leaving it out is Python's TypeError, whose text names it.
    with pytest.raises(TypeError, match="sensitivity"):
        Exponential(epsilon=1)  # type: ignore[call-arg]
    missing: Any = None
    with pytest.raises(InvalidParameter, match="sensitivity"):
        Exponential(sensitivity=missing, epsilon=1)


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "scores",
    [
        [],
        np.array([]),
        [math.nan, 1.0],
        [1, math.nan],
        [INF, 0.0],
        [INF, 0],
        np.array([0.0, math.nan]),
        np.array([0.0, INF]),
        np.zeros((2, 2)),
        np.array(3.0),
        np.array([True, False]),
        [True, False],
        np.array(["1", "2"]),
        np.array([1j]),
        np.ma.array([1.0, 2.0], mask=[False, True]),
        [None, 1],
        ["one"],
        3,
        "12",
    ],
)
def test_bad_scores_are_refused_before_noise_is_drawn(kind: Callable[..., Any], scores: Any) -> None:
    source = ReplayRandomness("refusal")
    mechanism = kind(sensitivity=1, epsilon=1)
    with pytest.raises(InvalidParameter, match="scores"):
        mechanism.select(scores, randomness=source)
    assert source.bits(64) == ReplayRandomness("refusal").bits(64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "sensitivity", [0, -1, math.nan, INF, None, "x", True, 1e200 * 1e200, "1e-300", "1e300", Sensitivity(0)]
)
def test_E11_bad_sensitivity_is_refused(kind: Callable[..., Any], sensitivity: Any) -> None:
    with pytest.raises(InvalidParameter, match="sensitivity"):
        kind(sensitivity=sensitivity, epsilon=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0, -1, math.nan, INF, 1001, "1e-10", None])
def test_bad_epsilon_is_refused(kind: Callable[..., Any], epsilon: Any) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        kind(sensitivity=1, epsilon=epsilon)


@pytest.mark.parametrize("base", [[-1, 1], [0, 0], [math.nan, 1.0], [INF, 1.0], [1.0, -INF], [[1, 1]], [1, "1e-9000"]])
def test_bad_base_is_refused(base: Any) -> None:
    with pytest.raises(InvalidParameter, match="base"):
        Exponential(sensitivity=1, epsilon=1).select([0, 1], base=base)


@pytest.mark.parametrize("kind", KINDS)
def test_monotone_needs_add_or_remove_one(kind: Callable[..., Any]) -> None:
    with pytest.raises(InvalidParameter, match="ADD_OR_REMOVE_ONE"):
        kind(sensitivity=Sensitivity(1, Neighbouring.REPLACE_ONE), epsilon=1, monotone=True)
    with pytest.raises(InvalidParameter, match="monotone"):
        kind(sensitivity=1, epsilon=1, monotone=1)
    relation = Neighbouring.ADD_OR_REMOVE_ONE
    assert kind(sensitivity=1, epsilon=1, monotone=True).guarantee == PureDP(1, relation)
    assert kind(sensitivity=Sensitivity(2, relation), epsilon=1).guarantee == PureDP(1, relation)
    assert kind(sensitivity=1, epsilon="0.1").guarantee == PureDP("0.1", Neighbouring.REPLACE_ONE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("randomness", [0, np.random.default_rng(0), "seed"])
def test_only_secret_randomness(kind: Callable[..., Any], randomness: Any) -> None:
    with pytest.raises(WrongRandomness):
        kind(sensitivity=1, epsilon=1).select([0, 1], randomness=randomness)


@pytest.mark.parametrize("count", [0, -1, 1.5, None, True])
def test_bad_count_is_refused(count: Any) -> None:
    with pytest.raises(InvalidParameter, match="count"):
        TopK(count=count, sensitivity=1, epsilon=1)


def test_more_winners_than_candidates_are_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"count = 3 entries, not 2"):
        TopK(count=3, sensitivity=1, epsilon=1).select([1, 2])


def test_a_round_may_not_be_too_cheap() -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        TopK(count=1000, sensitivity=1, epsilon="1e-8")


# --- kinds of input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sensitivity", "epsilon"), [("1", "1"), ("0.1", "0.3"), ("1e6", "2"), ("1e-5", "1e-6")])
def test_floats_ints_and_exact_numbers_have_one_law(sensitivity: str, epsilon: str) -> None:
    mechanism = Exponential(sensitivity=sensitivity, epsilon=epsilon)
    whole = [3, 0, -7, 2**31, -(2**31), 12]
    exact = mechanism.law([Fraction(score) for score in whole])
    for scores in (
        whole,
        [float(score) for score in whole],
        np.array(whole),
        np.array(whole, dtype=np.float64),
        [str(score) for score in whole],
        [Decimal(score) for score in whole],
        [float(score) if score else 0 for score in whole],
        [np.int64(score) for score in whole],
    ):
        assert mechanism.law(scores) == exact


@pytest.mark.parametrize(("dtype", "low", "high"), [("i1", -128, 127), ("u1", 0, 255), ("i8", -(2**63), 2**63 - 1)])
@pytest.mark.parametrize("sensitivity", ["1", "1e-3", "1e15"])
def test_E06_integers_do_not_wrap_around(dtype: str, low: int, high: int, sensitivity: str) -> None:
    mechanism = Exponential(sensitivity=sensitivity, epsilon=1)
    scores = [low, high, high - 1, 0, 5]
    expected = mechanism.law([Fraction(score) for score in scores])
    assert mechanism.law(np.array(scores, dtype=dtype)) == expected
    assert mechanism.law(scores) == expected


def test_unsigned_and_huge_integers() -> None:
    mechanism = Exponential(sensitivity=1, epsilon=1)
    scores = [2**64 - 1, 2**64 - 3, 0]
    assert mechanism.law(np.array(scores, dtype=np.uint64)) == mechanism.law([Fraction(score) for score in scores])
    assert mechanism.law([10**50, 10**50 - 2]) == mechanism.law([2, 0])


@pytest.mark.parametrize("sensitivity", ["1e-200", "1e-20", "1", "1e20", "1e200"])
def test_extreme_floats_have_the_exact_law(sensitivity: str) -> None:
    mechanism = Exponential(sensitivity=sensitivity, epsilon=1)
    tiny = 5e-324
    near = float(Fraction(sensitivity)) * 3
    for scores in ([0.0, tiny, -tiny, near], [1.0, -1e-300, near, -near], [1e300, 1e-300], [-1e280, 1e280, near, 0.0]):
        assert mechanism.law(scores) == mechanism.law([Fraction(score) for score in scores])


def test_scores_far_beyond_the_grid_count_as_its_end() -> None:
    mechanism = Exponential(sensitivity=1, epsilon=1)
    assert mechanism.law([1.7e308, 1e307]) == {0: Fraction(1, 2), 1: Fraction(1, 2)}
    assert close(mechanism.law([-1.7e308, 1.7e308]), 1) == pytest.approx(1)


def test_half_precision_is_read_exactly() -> None:
    mechanism = Exponential(sensitivity=1, epsilon=1)
    scores = np.array([0.1, 0.2], dtype=np.float16)
    assert mechanism.law(scores) == mechanism.law([Fraction(float(score)) for score in scores])


@pytest.mark.parametrize("kind", KINDS)
def test_minus_infinity_is_never_chosen_unless_all_are(kind: Callable[..., Any]) -> None:
    mechanism = kind(sensitivity=1, epsilon=1)
    for scores in ([-INF, 0.0, -1e9], [-INF, 0, Fraction(-(10**9))]):
        law = mechanism.law(scores)
        assert set(law) in ({1, 2}, {(1,), (2,)})
    law = mechanism.law([-INF] * 3)
    assert set(law.values()) == {Fraction(1, 3)}
    assert {mechanism.select([-INF, 2.0]).value for _ in range(30)} <= {1, (1,)}


def test_top_k_takes_minus_infinity_last() -> None:
    law = TopK(count=2, sensitivity=1, epsilon=1).law([-INF, 0.0, -INF])
    assert law == {(1, 0): Fraction(1, 2), (1, 2): Fraction(1, 2)}


# --- base measure -----------------------------------------------------------------------------------------------------


def test_base_of_zero_is_never_chosen_even_with_the_best_score() -> None:
    mechanism = Exponential(sensitivity=1, epsilon=1)
    law = mechanism.law([1e6, 1.0, 0.0], base=[0, 1, 1])
    assert law == {index + 1: chance for index, chance in mechanism.law([1.0, 0.0]).items()}
    assert set(mechanism.law([-INF, -INF, 5.0], base=[1, 3, 0])) == {0, 1}


@pytest.mark.parametrize("base", [[1, 2, 5], [1e-3, 1.0, 1e3], ["1/3", "1/7", "2"], [1e-12, 1e-3, 1.0]])
def test_base_multiplies_weights(base: list[Any]) -> None:
    mechanism = Exponential(sensitivity=1, epsilon="0.7")
    scores = [0.0, 1.5, -2.0]
    weights = [float(Fraction(b)) * math.exp(0.35 * score) for b, score in zip(base, scores, strict=True)]
    law = mechanism.law(scores, base=base)
    for index, weight in enumerate(weights):
        assert float(law[index]) == pytest.approx(weight / sum(weights), rel=3e-11)


def test_all_minus_infinity_leaves_the_base() -> None:
    law = Exponential(sensitivity=1, epsilon=1).law([-INF, -INF], base=[1, 3])
    assert float(law[1]) == pytest.approx(0.75, rel=1e-10)


def test_equal_base_changes_nothing() -> None:
    mechanism = Exponential(sensitivity=1, epsilon=1)
    assert mechanism.law([0.0, 3.0], base=np.array([7.0, 7.0])) == mechanism.law([0.0, 3.0])
    assert mechanism.select([0.0, 1.0], base=[1, 1]).value in {0, 1}


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_mechanism_is_a_value(kind: Callable[..., Any]) -> None:
    mechanism = kind(sensitivity="0.1", epsilon="0.1")
    assert mechanism == kind(sensitivity=Fraction(1, 10), epsilon=Fraction(1, 10))
    assert mechanism == kind(sensitivity="0.1", epsilon=0.1) != kind(sensitivity="0.1", epsilon=Fraction(0.1))
    assert hash(mechanism) == hash(copy.deepcopy(mechanism))
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism  # noqa: S301 - our own bytes
    with pytest.raises(AttributeError):
        mechanism.epsilon = 2


@pytest.mark.parametrize("kind", KINDS)
def test_input_is_left_alone_and_the_answer_is_an_int(kind: Callable[..., Any]) -> None:
    scores = np.array([1.0, 2.0, -INF])
    value = kind(sensitivity=1, epsilon=1).select(scores).value
    assert scores.tolist() == [1.0, 2.0, -INF]
    assert type(value[0] if isinstance(value, tuple) else value) is int


@pytest.mark.parametrize("kind", KINDS)
def test_replay_repeats(kind: Callable[..., Any]) -> None:
    mechanism = kind(sensitivity=1, epsilon=1)
    scores = np.arange(20_000) % 7 * 0.3
    picks = [mechanism.select(scores, randomness=ReplayRandomness(key)).value for key in (1, 1, 2, 3)]
    assert picks[0] == picks[1]
    assert len(set(picks)) > 1


# --- M4 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("monotone", "factor"), [(False, 2), (True, 1)])
def test_M4_utility_bound_is_the_formula(monotone: bool, factor: int) -> None:  # noqa: FBT001
    mechanism = Exponential(sensitivity="0.5", epsilon="0.25", monotone=monotone)
    for t, candidates, maximisers in ((0, 10, 1), (3, 1000, 1), (2.5, 50, 7), (10, 5, 5)):
        formula = factor * 0.5 / 0.25 * (math.log(candidates / maximisers) + t)
        bound = mechanism.utility_bound(t, candidates=candidates, maximisers=maximisers)
        assert formula <= bound == pytest.approx(formula, rel=1e-9)


def test_M4_permute_and_flip_promises_more() -> None:
    flips = PermuteAndFlip(sensitivity=1, epsilon=1)
    formula = 2 * (math.log((100 - 3) / (3 + 1)) + 2)
    assert flips.utility_bound(2, candidates=100, maximisers=3) == pytest.approx(formula, rel=1e-9)
    assert 0 < flips.utility_bound(2, candidates=3, maximisers=3) < 1e-9
    assert flips.utility_bound(0, candidates=3, maximisers=2) < 1e-9


def test_M4_nothing_is_claimed_below_the_floor() -> None:
    mechanism = Exponential(sensitivity=1, epsilon=1)
    assert mechanism.utility_bound(88, candidates=10) == INF
    assert mechanism.utility_bound(85, candidates=10) < INF


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
@pytest.mark.parametrize(
    "arguments",
    [{"t": -1}, {"t": math.nan}, {"candidates": 0}, {"maximisers": 0}, {"maximisers": 11}, {"candidates": 1.5}],
)
def test_bad_arguments_of_the_bound_are_refused(kind: Callable[..., Any], arguments: dict[str, Any]) -> None:
    given = {"t": 1, "candidates": 10, "maximisers": 1} | arguments
    with pytest.raises(InvalidParameter, match=next(iter(arguments))):
        kind(sensitivity=1, epsilon=1).utility_bound(given.pop("t"), **given)


# --- ints beside floats -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "dtype"),
    [
        ([1, 2.5, -INF], np.float64),
        ([2**53, 0.5], np.float64),
        ([-(2**53), np.float64(0.5)], np.float64),
        ([2**53 + 1, 0.5], np.object_),
        ([-(2**53) - 1, 0.5], np.object_),
        ([10**400, 0.5], np.object_),
        ([1, Fraction(1, 3), 0.5], np.object_),
    ],
)
def test_ints_beside_floats_are_read_fast_where_that_is_exact(scores: list[Any], dtype: Any) -> None:
    read = read_scores(scores)
    assert read.dtype == dtype
    assert read.tolist() == scores
    exact = [score if score == -INF else Fraction(score) for score in scores]
    mechanism = Exponential(sensitivity=1, epsilon=1)
    assert mechanism.law(scores) == mechanism.law(exact)


@pytest.mark.parametrize("base", [[math.nan, 1.0], [INF, 1.0], [INF, 1], np.ma.array([1.0, 2.0], mask=[False, True])])
def test_the_hint_for_a_refused_base_is_one_that_works(base: Any) -> None:
    mechanism = Exponential(sensitivity=1, epsilon=1)
    with pytest.raises(InvalidParameter, match=r"^base .*give 0 to a candidate"):
        mechanism.select([1, 2], base=base)
    assert mechanism.law([1, 2], base=[0, 1]) == {1: 1}
    with pytest.raises(InvalidParameter, match=r"^base must hold weights of at least 0"):
        mechanism.select([1, 2], base=[-INF, 1.0])
