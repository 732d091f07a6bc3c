"""Releases follow the exact law: at the edges of the integer cells, and in frequency with the real source.

As in test_coins.py: the truth is refused with a chance below 1e-6, a law 10 % off is accepted with a chance below 1e-6.
"""

from collections import Counter
from fractions import Fraction
from itertools import accumulate
from typing import Literal

import numpy as np
import pytest
from scipy import stats

from accord.core.curve import exclusive_curve
from accord.core.stable_mode import half_gap, safe_threshold
from accord.errors import InvalidParameter, WrongRandomness
from accord.mechanisms import ABSTAIN, BestOfDraws, StableMode
from accord.privacy import NoAnswer
from accord.randomness import PrivateRandomness, SharedRandomness
from accord.testing import ReplayRandomness

RATE = 1e-6
TRIES = 30_000


class Fixed(PrivateRandomness):
    """Answers every request for bits with the same number and counts the requests."""

    __slots__ = ("asked", "value")

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value
        self.asked = 0

    def bits(self, count: int) -> int:
        self.asked += 1
        return self.value


def check_law(counts: Counter, tries: int, law: dict) -> None:
    """Compare frequencies with a law; every law here has outcomes above 1/4, where 10 % shows."""
    assert set(counts) <= set(law)
    assert max(law.values()) >= Fraction(1, 4)
    for outcome, exact in law.items():
        chance = float(exact)
        low, high = stats.binom.ppf(RATE / 8, tries, chance) - 1, stats.binom.ppf(1 - RATE / 8, tries, chance) + 1
        if chance >= 0.25:
            for wrong in (0.9 * chance, 1.1 * chance):
                inside = stats.binom.cdf(high, tries, wrong) - stats.binom.cdf(low - 1, tries, wrong)
                assert inside < RATE, "the test is too small to see a law 10 % off"
        assert low <= counts[outcome] <= high


# --- edges ------------------------------------------------------------------------------------------------------------


def test_S8_release_reads_one_integer_and_cuts_at_the_cumulative_chances() -> None:
    votes = ["b", "a", "b", "c", "b", "a", ABSTAIN]
    mode = StableMode(epsilon=1, delta="1e-3")
    curve = exclusive_curve(1, "1e-3", votes=7)
    assert curve[1] > 0
    ends = list(accumulate(curve[count] for count in (2, 3, 1)))  # a, b, c in the order of their bytes
    cuts = {0: "a", ends[0] - 1: "a", ends[0]: "b", ends[1] - 1: "b", ends[1]: "c", ends[2] - 1: "c"}
    for draw, value in {**cuts, ends[2]: NoAnswer, 2**128 - 1: NoAnswer}.items():
        source = Fixed(draw)
        assert mode.release(votes, randomness=source).value == value
        assert source.asked == 1


def test_S9_release_cuts_at_the_cumulative_weights() -> None:
    best = BestOfDraws(epsilon=1, delta="0.1", draws=2)
    votes = [["b", "a", "b"], ["z", "z", "z"]]
    weights = [weight for _, weight in zip(range(4), best._weights(), strict=False)]
    ends = list(accumulate((weights[1], weights[2], weights[3])))
    cuts = {0: (0, "a"), ends[0] - 1: (0, "a"), ends[0]: (0, "b"), ends[1]: (1, "z"), ends[2] - 1: (1, "z")}
    for draw, value in {**cuts, ends[2]: NoAnswer, ends[2] + 2**256 - 1: NoAnswer}.items():
        assert best.release(votes, randomness=Fixed(draw)).value == value


@pytest.mark.parametrize("noise", range(-4, 12))
def test_L6_release_compares_with_the_threshold(noise: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mode = StableMode(epsilon=1, delta="0.1", rule="distance")
    monkeypatch.setattr("accord.core.stable_mode.two_sided_geometric", lambda _, *, randomness: noise)
    passes = half_gap(7, 2) + noise >= safe_threshold(Fraction(1), Fraction(1, 10))
    assert mode.release([*"aaaaaaabb"]).value == ("a" if passes else NoAnswer)


# --- frequencies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["exclusive", "distance"])
def test_S8_L6_release_law(rule: Literal["exclusive", "distance"]) -> None:
    mode, source = StableMode(epsilon="0.8", delta="0.1", rule=rule), PrivateRandomness()
    votes = ["a"] * (4 if rule == "exclusive" else 8) + ["b"] * 2 + [ABSTAIN]
    law = mode.law(votes)
    assert max(law.values()) < Fraction(9, 10)
    check_law(Counter(mode.release(votes, randomness=source).value for _ in range(TRIES)), TRIES, law)


def test_S9_release_law() -> None:
    best, source = BestOfDraws(epsilon=2, delta="0.3", draws=2), PrivateRandomness()
    votes = [["a", "a", "b", ABSTAIN], ["a", "a", "c", "c"]]
    law = best.law(votes)
    check_law(Counter(best.release(votes, randomness=source).value for _ in range(TRIES)), TRIES, law)


def test_the_law_check_refuses_a_law_ten_percent_off() -> None:
    law = {"a": Fraction(1, 2), NoAnswer: Fraction(1, 2)}
    for hits in (13_500, 16_500):
        with pytest.raises(AssertionError):
            check_law(Counter({"a": hits, NoAnswer: TRIES - hits}), TRIES, law)
    with pytest.raises(AssertionError):
        check_law(Counter({"b": TRIES}), TRIES, law)


# --- randomness -------------------------------------------------------------------------------------------------------

WRONG = [SharedRandomness(1), 0, 1, True, "seed", np.random.default_rng(0), np.random.RandomState(0), object()]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("rule", ["exclusive", "distance"])
def test_release_takes_secret_randomness_only(wrong: object, rule: Literal["exclusive", "distance"]) -> None:
    with pytest.raises(WrongRandomness):
        StableMode(epsilon=1, delta="0.1", rule=rule).release(["a"], randomness=wrong)  # type: ignore[arg-type]
    with pytest.raises(WrongRandomness):
        BestOfDraws(epsilon=1, delta="0.1", draws=1).release([["a"]], randomness=wrong)  # type: ignore[arg-type]


def test_the_source_is_checked_before_the_votes() -> None:
    with pytest.raises(WrongRandomness):
        StableMode(epsilon=1, delta="0.1").release([], randomness=0)  # type: ignore[arg-type]


def test_nothing_is_drawn_for_votes_that_are_refused() -> None:
    source = Fixed(0)
    for votes in ([], [[1]], [object()], "aaa"):
        with pytest.raises(InvalidParameter):
            StableMode(epsilon=1, delta="0.1").release(votes, randomness=source)
    shapes: list[list[list[object]]] = [[], [[]], [["a"], ["b"]], [[object()]]]
    for shape in shapes:
        with pytest.raises(InvalidParameter):
            BestOfDraws(epsilon=1, delta="0.1", draws=1).release(shape, randomness=source)
    assert source.asked == 0


def test_replayed_noise_gives_the_same_answer_whatever_the_order_of_voters() -> None:
    mode = StableMode(epsilon=1, delta="0.1")
    votes = ["a"] * 5 + ["b"] * 2
    answers = {
        key: mode.release(votes, randomness=ReplayRandomness(key)).value
        == mode.release(votes[::-1], randomness=ReplayRandomness(key)).value
        for key in range(200)
    }
    assert all(answers.values())


def test_equal_answers_look_equal_whoever_gave_them() -> None:
    mode, source = StableMode(epsilon=5, delta="0.5"), Fixed(0)
    for votes in ([0.0] * 3 + [-0.0] * 3, [-0.0] * 3 + [0.0] * 3):
        assert str(mode.release(votes, randomness=source).value) == "0.0"
